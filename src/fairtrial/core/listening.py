"""Following an answer while it is streamed: a request may carry a listener, which streaming targets notify.

Listeners do not affect the answer.
"""

from __future__ import annotations

from typing import Protocol


class Listener(Protocol):
    """Follows one answer. Called often, from the event loop: it must be fast and must not raise."""

    def begin(self) -> None:
        """Start an attempt; discard the text of earlier attempts."""

    def piece(self, text: str) -> None:
        """Receive the next piece of the answer."""

    def end(self) -> None:
        """Handle the end of the answer, whether it succeeded or failed."""


class _NoListener:
    def begin(self) -> None:
        """Do nothing."""

    def piece(self, text: str) -> None:
        """Do nothing."""

    def end(self) -> None:
        """Do nothing."""


NOBODY: Listener = _NoListener()
