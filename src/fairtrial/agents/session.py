"""One session of an agent's program: what it is given, where it works, and how it is started."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from fairtrial.agents.record import Record
from fairtrial.core.answer import Request


class Launch(NamedTuple):
    """How a session is started: arguments of the program, variables in addition to the common ones, and its input."""

    arguments: list[str]
    environment: dict[str, str]
    stdin: str


class AgentSession(msgspec.Struct, frozen=True, kw_only=True):
    """One trial: what is asked, where the agent works, and what came of it so far."""

    request: Request
    home: Path  # for its settings; made for this session, and removed after it
    folder: Path  # in which it works
    environment: Mapping[str, str]
    servers: dict[str, dict[str, Any]]  # how to start or reach them, by name, as desktop clients have it
    record: Record

    def write(self, name: str, content: str | bytes) -> Path:
        """Write a file into its home, which only this user can read: command lines are visible to every user."""
        path = self.home / name
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def system_file(self) -> Path | None:
        """Return a file with the condition's system prompt; None if it has none."""
        return self.write("system.md", self.request.system) if self.request.system else None

    def split_name(self, name: str, prefix: str = "") -> tuple[str | None, str]:
        """Split the name of a tool into its server and its own name; the agent's own tools have no server."""
        for server in sorted(self.servers, key=len, reverse=True):
            start = f"{prefix}{server}_"
            if name.startswith(start):
                return server, name.removeprefix(start)
        return None, name
