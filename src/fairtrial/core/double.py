"""What stands in for an MCP server: a recording or a mock that answers in its place, or a recorder in front of it."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

Unknown = Literal["fail", "ask"] | dict[str, Any]  # what a call comes to that was not recorded


class ServerDouble(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What answers for a server, and where what it says is recorded."""

    play: str = ""  # the path of what answers: the folder of a recording, or the file of a mock
    mock: bool = False
    record: str = ""  # the folder of the recording that is made
    shown: str = ""  # the path that the suite has
    unknown: Unknown = "fail"  # `ask`: the server itself; otherwise a result for everything unknown
    ignore: tuple[str, ...] = ()  # arguments, or JSON pointers into them, that make no difference
    sha256: str = ""  # of what is played

    @property
    def asks(self) -> bool:
        """Whether the server itself is started or reached."""
        return not self.play or self.unknown == "ask"

    def __str__(self) -> str:
        return f"the {'mock' if self.mock else 'recording'} {self.shown}"

    def identity(self, server: dict[str, Any]) -> dict[str, Any]:
        """Return what identifies a server with this in its place: what is recorded changes nothing for an agent."""
        if not self.play:
            return server
        own: dict[str, Any] = {"mock" if self.mock else "replay": self.sha256, "unknown": self.unknown}
        own |= {"ignore": self.ignore} if self.ignore else {}
        only = {"only": server["only"]} if "only" in server else {}
        return {**server, **own} if self.asks else {"name": server["name"], **own, **only}
