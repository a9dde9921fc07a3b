"""Doubles in trials: an agent is given a small program of ours in the place of a server, whatever agent it is."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from fairtrial.agents.doubles.cassette import CassetteError, Exchange, Part, put_together, write_part
from fairtrial.agents.doubles.links import HEADERS
from fairtrial.agents.doubles.mocks import MockError
from fairtrial.agents.doubles.nearest import missing_words
from fairtrial.agents.doubles.notes import Note, Told, earlier_notes, exchanges, read_notes, told_in, with_sources
from fairtrial.agents.doubles.parts import PARTS
from fairtrial.agents.doubles.played import Played, read_played
from fairtrial.agents.processes.supervised import private_temp_folder
from fairtrial.core.answer import Answer, Ask, Failure, Request
from fairtrial.core.double import ServerDouble
from fairtrial.core.errors import FairtrialError
from fairtrial.core.experiment import Arm, McpServer
from fairtrial.core.trial import Trial
from fairtrial.core.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

_PAUSE = 0.5  # seconds between two looks at what is to be recorded
_SURROUNDINGS = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy", "SSL_CERT_FILE")
_READABLE = 0o644  # by the user of a sandbox too


class Doubles:
    """The doubles of one session of work; `close` removes what they needed."""

    def __init__(self, run_id: str, hide_all: Callable[[Any], Any]) -> None:
        self.run_id, self.hide_all = run_id, hide_all
        self._home: Path | None = None
        self._played: dict[tuple[str, ServerDouble], tuple[Played, Path]] = {}

    def of(self, trial: Trial) -> TrialDoubles | None:
        """Return the doubles of one trial; None if it has none."""
        servers = [server for server in trial.arm.condition.mcp if server.double]
        return TrialDoubles(self, trial) if servers else None

    @property
    def home(self) -> Path:
        """A folder for this session."""
        if self._home is None:
            self._home = private_temp_folder("fairtrial-doubles")
        return self._home

    def play(self, server: McpServer) -> tuple[Played, Path] | None:
        """Return what is played for a server, and the file with it, which all trials share; None if nothing is."""
        if not server.double or not server.double.play:
            return None
        key = server.name, replace(server.double, unknown="fail")  # which may be a mapping, and is not played
        if key not in self._played:
            played = read_played(server.double)
            file = self.home / f"play-{len(self._played)}.json"
            file.write_text(json.dumps(played.document(server.double.ignore)), "utf-8")
            file.chmod(_READABLE)
            self._played[key] = played, file
        return self._played[key]

    def close(self) -> None:
        """Remove what trials needed."""
        if self._home is not None:
            shutil.rmtree(self._home, ignore_errors=True)


class TrialDoubles:
    """The doubles of one trial, over all its turns."""

    def __init__(self, doubles: Doubles, trial: Trial) -> None:
        self._doubles, self._trial = doubles, trial
        self._folder: Path | None = None
        traces = [turn.answer.trace for turn in trial.turns]
        servers = [server for server in trial.arm.condition.mcp if server.double]
        self._kept = {server.name: earlier_notes(traces, server.name) for server in servers}
        self._told = told_in(traces[-1]) if traces else {}

    async def __call__(self, request: Request, ask: Ask) -> Answer | Failure:
        """Ask with doubles in the place of servers, and say in the result what came from them."""
        try:
            if self._folder is None:
                self._folder = self._doubles.home / self._trial.id.replace("/", "-")
            shutil.rmtree(self._folder, ignore_errors=True)  # of an attempt that came to nothing
            (self._folder / "notes").mkdir(parents=True)
            folders = _names_of(request.workspace)
            servers = [self._placed(server, request.workspace, folders) for server in request.mcp]
            if request.workspace is not None:
                request.workspace.shared.append(self._folder / "notes")
            async with self._recording(request.mcp, folders):
                result = await ask(replace(request, mcp=tuple(servers)))
            return self._noted(request.mcp, result)
        except (OSError, CassetteError, MockError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            return Failure(kind="mcp", message=f"an MCP server's double cannot be used: {reason}")

    def _notes_file(self, name: str) -> Path:
        assert self._folder is not None
        return self._folder / "notes" / f"{name}.jsonl"

    def _placed(self, server: McpServer, workspace: Workspace | None, folders: Sequence[str]) -> McpServer:
        """Return what an agent starts instead of a server."""
        double = server.double
        if not double:
            return server
        assert self._folder is not None
        played = self._doubles.play(server)
        notes, settings = self._notes_file(server.name), self._folder / f"{server.name}.json"
        notes.write_bytes(b"".join(msgspec.json.encode(note) + b"\n" for note in self._kept[server.name]))
        words = {
            "notes": str(notes),
            "unknown": double.unknown,
            "case": self._trial.case.id,
            "folders": list(folders),
            "timeout": server.timeout,
            "url": server.url,
            "transport": server.transport,
        }
        settings.write_bytes(msgspec.json.encode(words))
        settings.chmod(_READABLE)
        in_container = workspace is not None and workspace.spec.sandbox == "docker"
        own = ("-I", "-S", str(PARTS[0]), str(settings), str(played[1]) if played else "-")
        real = (server.command, *server.args) if double.asks and server.command else ()
        return replace(
            server,
            transport="stdio",
            command="python3" if in_container else sys.executable,
            args=(*own, *real),
            env=_environment(server, workspace),
            cwd=server.cwd or str(self._folder),
            url=server.url if double.asks else "",
            double=msgspec.UNSET,
        )

    # -- what is recorded --------------------------------------------------------------------------

    @asynccontextmanager
    async def _recording(self, servers: Sequence[McpServer], folders: Sequence[str]) -> AsyncIterator[None]:
        """Write what a trial records while it goes on: after a kill, what passed until then is there."""
        recorded = {server.name: server.double for server in servers if server.double and server.double.record}
        if not recorded:
            yield
            return
        written: dict[str, int] = {}

        def write() -> None:
            for name, double in recorded.items():
                found = exchanges(read_notes(self._notes_file(name)), folders)
                if found and len(found) != written.get(name):
                    part = Part(case=self._trial.case.id, calls=self._hidden(found))
                    write_part(Path(double.record), self._part_name(), part)
                    written[name] = len(found)

        async def follow() -> None:
            while True:
                await asyncio.sleep(_PAUSE)
                await asyncio.to_thread(write)

        following = asyncio.create_task(follow())
        try:
            yield
        finally:
            following.cancel()
            with suppress(asyncio.CancelledError):
                await following  # what it could not write is tried once more, and raises then
            write()

    def _part_name(self) -> str:
        return f"{self._doubles.run_id}-{self._trial.id.replace('/', '-')}"

    def _hidden(self, found: list[Exchange]) -> list[Exchange]:
        data = self._doubles.hide_all(msgspec.to_builtins(found))
        return msgspec.convert(data, list[Exchange])

    # -- what is told ------------------------------------------------------------------------------

    def _noted(self, servers: Sequence[McpServer], result: Answer | Failure) -> Answer | Failure:
        doubled = [server for server in servers if server.double]
        notes = {server.name: read_notes(self._notes_file(server.name)) for server in doubled}
        fresh = {name: own[len(self._kept[name]) :] for name, own in notes.items()}
        told = dict(self._told)
        for server in doubled:
            told[server.name] = self._summed(server, fresh[server.name], told.get(server.name))
        if isinstance(result, Answer):
            self._kept, self._told = notes, told
        return with_sources(result, fresh, told)

    def _summed(self, server: McpServer, notes: Sequence[Note], before: Told | None) -> Told:
        """Return how many calls came from where, and which ones were not recorded, over all turns."""
        played = self._doubles.play(server)
        before = before or Told(plays=played is not None)
        counts = Counter(note.source for note in notes if note.unknown is msgspec.UNSET)
        missing = [note for note in notes if note.unknown is not msgspec.UNSET]
        words = [missing_words(server.name, note, played[0]) for note in missing] if played else []
        return Told(
            plays=before.plays,
            recorded=before.recorded + counts["recorded"],
            mock=before.mock + counts["mock"],
            live=before.live + counts["live"],
            unknown=[*before.unknown, *words],
        )

    def close(self) -> None:
        """Remove what the trial needed."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)


def put_recordings_together(arms: Sequence[Arm], run_id: str) -> None:
    """Put together what the trials of a run recorded; raise a FairtrialError if that is not possible."""
    servers = [server for arm in arms for server in arm.condition.mcp]
    for folder in sorted({server.double.record for server in servers if server.double and server.double.record}):
        try:
            put_together(Path(folder), run_id)
        except (OSError, CassetteError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise FairtrialError(
                f"what was recorded in {folder} cannot be put together: {reason}; its parts are still there"
            ) from None


def _names_of(workspace: Workspace | None) -> list[str]:
    """Return the paths of a trial's folder, as programs may write them."""
    if workspace is None:
        return []
    return list(dict.fromkeys((str(workspace.folder), str(workspace.folder.resolve()))))


def _environment(server: McpServer, workspace: Workspace | None) -> dict[str, str]:
    """Return the environment of a double: what the server gets; and what leads to an address, with its headers."""
    assert server.double
    if not server.double.asks:
        return {}
    if server.transport == "stdio":
        return server.env
    sandboxed = workspace is not None and workspace.spec.sandbox != "none"  # which has ways out of its own
    ours = {} if sandboxed else {name: os.environ[name] for name in _SURROUNDINGS if name in os.environ}
    return {**ours, HEADERS: json.dumps(dict(server.headers))}
