"""The bench on which tasks are tried: scripted agents in the workspaces of runs, scored as answers of runs are."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from pathlib import Path

import msgspec

from fairtrial.agents.processes.process import exit_words
from fairtrial.agents.workspace.archive import ArchiveError, pack, remove, unpack
from fairtrial.agents.workspace.changes import read_changes
from fairtrial.agents.workspace.making import LiveWorkspace, WorkspaceError, Workspaces
from fairtrial.config import Suite
from fairtrial.core.answer import Answer
from fairtrial.core.file import Attachment, File, attachment_of
from fairtrial.core.score import Score, Unscored
from fairtrial.core.time_limit import time_limit
from fairtrial.core.workshop import Workshop
from fairtrial.core.workspace import WorkspaceSpec
from fairtrial.engine.scoring import Scoring
from fairtrial.engine.trials import trials_of
from fairtrial.tracks.audit.places import Watched
from fairtrial.tracks.audit.subject import Subject, contents, files_in
from fairtrial.tracks.audit.trick import Left, Trick, Tried

_CHANGED = "files/"  # where an archive of changes has the files
_MOST_BYTES = 200 * 2**20
_SHOWN = 300  # characters of what a program wrote


class Bench:
    """Tries tasks of a suite, a few at a time. An async context manager."""

    def __init__(self, suite: Suite, *, at_once: int, seconds: float) -> None:
        self.suite, self._seconds = suite, seconds
        self._scoring = Scoring(suite.folder, on_refusal=suite.settings.on_refusal, functions=suite.functions)
        self._workshop = Workshop()
        self._room = asyncio.Semaphore(at_once)
        self._files: dict[str, File] | None = None
        self._places: dict[type[LiveWorkspace], Workspaces] = {}

    async def __aenter__(self) -> Bench:
        await self._workshop.__aenter__()
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self._workshop.__aexit__(*exception)
        for places in self._places.values():
            await places.__aexit__(*exception)

    async def _load(self, attachment: Attachment) -> File:
        if self._files is None:
            files = await asyncio.to_thread(lambda: list(self.suite.files()))
            self._files = {attachment_of(file).sha256: file for file in files}
        return self._files[attachment.sha256]

    def _workspaces(self, kind: type[LiveWorkspace]) -> Workspaces:
        return self._places.setdefault(kind, Workspaces(self._load, kind=kind))

    async def start_of(self, subject: Subject) -> dict[str, bytes]:
        """Return what the agent starts with; raise WorkspaceError if it cannot start."""
        if subject.workspace is None:
            return {}
        async with self._room, self._workspaces(LiveWorkspace).make(subject.workspace) as workspace:
            return await asyncio.to_thread(files_in, workspace.folder)

    async def act(self, subject: Subject, trick: Trick) -> Left:
        """Let a scripted agent do its trick."""
        async with self._room:
            return await self._act(subject, trick)

    async def try_out(self, subject: Subject, trick: Trick) -> Tried:
        """Let a scripted agent do its trick, and score it."""
        async with self._room:
            left = await self._act(subject, trick)
            return await self._score(subject, left, LiveWorkspace, subject.workspace)

    async def score(
        self,
        subject: Subject,
        left: Left,
        kind: type[LiveWorkspace] = LiveWorkspace,
        workspace: WorkspaceSpec | None = None,
    ) -> Tried:
        """Score what a scripted agent left, in its workspace or in another kind of one."""
        async with self._room:
            return await self._score(subject, left, kind, workspace or subject.workspace)

    async def _act(self, subject: Subject, trick: Trick) -> Left:
        if subject.workspace is None:
            return Left(trick.answer)
        try:
            async with self._workspaces(LiveWorkspace).make(subject.workspace) as workspace:
                if problem := await self._do(workspace, trick):
                    return Left(trick.answer, problem=problem)
                changes, _ = await workspace.changes()
        except (WorkspaceError, OSError, TimeoutError) as error:
            return Left(trick.answer, problem=str(error) or f"it took longer than {self._seconds:g} s")
        named = read_changes(changes.body)
        return Left(trick.answer, changes, named.added, contents(changes.body, _CHANGED))

    async def _do(self, workspace: LiveWorkspace, trick: Trick) -> str:
        """Do what a scripted agent does; return why it could not."""
        await asyncio.to_thread(_write, workspace.folder, trick)
        if not trick.script:
            return ""
        ended = await workspace.run_script(trick.script, self._seconds)
        wrote = " ".join((ended.errors or ended.output).split())[-_SHOWN:]
        return f"{exit_words(ended.code)}{f': {wrote}' if wrote else ''}" if ended.code else ""

    async def made_by_check(self, subject: Subject, left: Left) -> dict[str, bytes]:
        """Return the files that its check leaves in the workspace."""
        found: dict[str, bytes] = {}
        kind = type("WatchedOnce", (Watched,), {"made": found})
        await self.score(subject, left, kind)
        return found

    async def solve(self, subject: Subject) -> Left:
        """Let a scripted agent do what the case names as its solution."""
        solution = subject.solution
        assert solution is not None
        async with self._room:
            if subject.workspace is None:
                return Left(solution.answer)
            try:
                async with self._workspaces(LiveWorkspace).make(subject.workspace) as workspace:
                    await asyncio.to_thread(_unpack, workspace.folder, self.suite.folder, solution.files)
                    if problem := await self._apply(workspace, solution.patch):
                        return Left("", problem=problem)
                    if problem := await self._do(workspace, Trick("its solution", script=solution.run)):
                        return Left("", problem=f"`run` {problem}")
                    changes, _ = await workspace.changes()
            except (WorkspaceError, ArchiveError, OSError, TimeoutError) as error:
                return Left("", problem=str(error) or f"it took longer than {self._seconds:g} s")
        named = read_changes(changes.body)
        return Left(solution.answer, changes, named.added, contents(changes.body, _CHANGED))

    async def _apply(self, workspace: LiveWorkspace, patch: str) -> str:
        """Apply a diff in a workspace; return why it could not be."""
        if not patch:
            return ""
        place = (self.suite.folder / patch).resolve()
        if not place.is_file():
            return f"there is no file {self.suite.folder / patch}"
        command = ["git", "apply", "--whitespace=nowarn", str(place)]
        ended = await workspace.run_script(command, self._seconds, read=[place])
        return f"`git apply` {exit_words(ended.code)}: {ended.errors[-_SHOWN:]}" if ended.code else ""

    async def _score(
        self, subject: Subject, left: Left, kind: type[LiveWorkspace], spec: WorkspaceSpec | None
    ) -> Tried:
        if left.problem:
            return Tried(None, problem=left.problem)
        arm = msgspec.structs.replace(subject.arm, repeats=1)
        trial = next(trials_of([subject.case], [arm]))
        answer = Answer(text=left.answer, changes=left.changes)
        make = None if spec is None else partial(self._workspaces(kind).make, spec, left.changes)
        try:
            async with time_limit(self._seconds):
                scored = await self._scoring.score(trial, answer, workshop=self._workshop, workspace=make)
        except TimeoutError:
            return Tried(None, f"scoring it took longer than {self._seconds:g} s")
        return _tried(scored)


def _tried(scored: Score | Unscored) -> Tried:
    if isinstance(scored, Unscored):
        return Tried(None, scored.message)
    return Tried(scored.value, scored.notes)


def _write(folder: Path, trick: Trick) -> None:
    """Write a scripted agent's files and links; what cannot be there, such as a file below a file, is left out."""
    for name in trick.removed:
        remove(folder / name)
    for name, body in trick.files.items():
        with suppress(NotADirectoryError, FileExistsError, IsADirectoryError):
            _put(folder / name, body)
    for name, target in trick.links.items():
        with suppress(NotADirectoryError, FileExistsError):
            place = folder / name
            place.parent.mkdir(parents=True, exist_ok=True)
            remove(place)
            place.symlink_to(target)


def _put(place: Path, body: bytes) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    mode = place.stat().st_mode & 0o777 if place.is_file() else 0o644
    remove(place)
    place.write_bytes(body)
    place.chmod(mode | 0o755 if body.startswith(b"#!") else mode)


def _unpack(folder: Path, suite: Path, names: Iterable[str]) -> None:
    for name in names:
        unpack(pack(suite / name, _MOST_BYTES), folder)
