"""Hearing an answer while it is given: whoever wants to listen says so around the call, and targets pass it on.

Nothing depends on it: an answer that nobody listens to is the same.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Protocol


class Ear(Protocol):
    """Somebody who listens to one answer. Called often, from the loop: it must be quick and must not fail."""

    def begin(self) -> None:
        """An attempt begins; what was heard before does not count."""

    def piece(self, text: str) -> None:
        """Some more of the answer."""

    def end(self) -> None:
        """There will be no more, however it ended."""


class _Nobody:
    def begin(self) -> None:
        """Nobody listens."""

    def piece(self, text: str) -> None:
        """Nobody listens."""

    def end(self) -> None:
        """Nobody listens."""


NOBODY: Ear = _Nobody()
listening: ContextVar[Ear] = ContextVar("listening", default=NOBODY)
