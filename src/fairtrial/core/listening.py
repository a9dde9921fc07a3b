"""Listening to an answer while it is given: a request may carry a listener, and targets that stream tell it.

Nothing depends on it: an answer that nobody listens to is the same.
"""

from __future__ import annotations

from typing import Protocol


class Listener(Protocol):
    """Follows one answer. Called often, from the event loop: it must be quick and must not fail."""

    def begin(self) -> None:
        """An attempt begins; the text of earlier attempts no longer counts."""

    def piece(self, text: str) -> None:
        """The next piece of the answer."""

    def end(self) -> None:
        """The answer has ended, one way or another."""


class _Nobody:
    def begin(self) -> None:
        """Nobody listens."""

    def piece(self, text: str) -> None:
        """Nobody listens."""

    def end(self) -> None:
        """Nobody listens."""


NOBODY: Listener = _Nobody()
