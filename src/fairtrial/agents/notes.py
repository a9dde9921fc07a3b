"""What reached the MCP servers of an agent, noted by their supervisors: agents do not all tell it themselves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from fairtrial.core.experiment import McpServer
from fairtrial.core.trace import ToolCall


class ServerNotes:
    """The files with notes about the servers of one session, one file per server that is a program."""

    def __init__(self, folder: Path, servers: Sequence[McpServer]) -> None:
        folder.mkdir(mode=0o700, exist_ok=True)
        programs = (server.name for server in servers if server.transport == "stdio")
        self._files = {name: folder / f"{place}.jsonl" for place, name in enumerate(programs)}

    def file(self, server: str) -> Path | None:
        """Return the file for the notes about a server; None for one that is not a program of ours."""
        return self._files.get(server)

    def listed(self, server: str) -> bool | None:
        """Return whether the agent has connected to a server and asked for its tools; None for a server elsewhere."""
        return bool(self._read(server)) if server in self._files else None

    def calls(self) -> tuple[ToolCall, ...] | None:
        """Return every call that reached a server; None if the agent has connected to none of them."""
        if not any(map(self._read, self._files)):
            return None
        return tuple(call for server in self._files for call in self._calls(server))

    def unreported(self, reported: Iterable[ToolCall]) -> tuple[ToolCall, ...]:
        """Return calls that reached a server and are not among those that the agent has reported."""
        known = Counter((call.server, call.tool) for call in reported)
        calls = []
        for call in self.calls() or ():
            if known[call.server, call.tool]:
                known[call.server, call.tool] -= 1
            else:
                calls.append(call)
        return tuple(calls)

    def _calls(self, server: str) -> Iterable[ToolCall]:
        notes = self._read(server)
        returned = {str(note.get("id")): note for note in notes if "result" in note}
        for note in notes:
            if note.get("method") != "tools/call":
                continue
            call = ToolCall(tool=str(note.get("tool")), server=server, arguments=note.get("arguments"))
            end = returned.get(str(note.get("id")))
            if end is None:
                yield msgspec.structs.replace(call, unfinished=True)
            else:
                took = max(0.0, (end["at"] - note["at"]) * 1000)
                yield msgspec.structs.replace(
                    call, result=end["result"], error=bool(end.get("error")), duration_ms=took
                )

    def _read(self, server: str) -> list[dict[str, Any]]:
        try:
            lines = self._files[server].read_bytes().split(b"\n")[:-1]  # the last one may be half a line
        except OSError:
            return []
        return [msgspec.json.decode(line) for line in lines]
