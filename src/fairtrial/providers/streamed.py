"""Answers that arrive in pieces: the text so far, and the events that it is made of."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

from fairtrial.core.answer import Answer, Failure
from fairtrial.core.listening import Listener
from fairtrial.providers.conversation import MAX_TEXT, Turn, read_call
from fairtrial.providers.mending import read_mended
from fairtrial.providers.streams import AnswerTooLargeError
from fairtrial.providers.tools import RequestedCall


class Collected:
    """The pieces of a streamed answer, passed on to a listener as they arrive."""

    def __init__(self, listener: Listener, started: float) -> None:
        self._texts: list[str] = []
        self._thoughts: list[str] = []
        self._size = 0
        self._listener, self._started = listener, started
        self._first: float | None = None  # when the first piece of text arrived

    def say(self, text: str) -> None:
        """Add a piece of the answer."""
        self._first = self._first or time.perf_counter()
        self._grow(text)
        self._texts.append(text)
        self._listener.piece(text)

    def think(self, thought: str) -> None:
        """Add a piece of the reasoning."""
        self._grow(thought)
        self._thoughts.append(thought)

    def _grow(self, piece: str) -> None:
        self._size += len(piece)
        if self._size > MAX_TEXT:
            raise AnswerTooLargeError(f"an answer of more than {MAX_TEXT >> 20} million characters")

    @property
    def text(self) -> str:
        """The answer so far."""
        return "".join(self._texts)

    @property
    def thinking(self) -> str:
        """The reasoning so far."""
        return "".join(self._thoughts)

    @property
    def first_token_ms(self) -> float | None:
        """The time to the first piece of the answer."""
        return (self._first - self._started) * 1000 if self._first else None

    @property
    def latency_ms(self) -> float:
        """The time since the request."""
        return (time.perf_counter() - self._started) * 1000


class Streamed:
    """An answer that is assembled from the events of a stream; each API has a subclass."""

    def __init__(self, collected: Collected) -> None:
        self.collected = collected
        self.done = False  # whether the answer is complete: streams that are cut look like any other to HTTP
        self.over = False  # whether nothing follows, even if the connection stays open
        self.finish: str | None = None
        self._calls: dict[str, tuple[Any, Any, str]] = {}  # by their place: id, name, arguments

    def take(self, data: bytes) -> Answer | Failure | None:
        """Add an event; return a result if it ends the answer before its time."""
        raise NotImplementedError

    def take_all(self, events: Iterable[bytes]) -> Answer | Failure | None:
        """Add events until one of them ends the answer; return a result if that is before its time."""
        for data in events:
            if (ended := read_mended(self.take, data)) is not None:
                return ended
            if self.over:
                break
        return None

    def turn(self) -> Turn:
        """Return the whole reply."""
        raise NotImplementedError

    def add_call(self, place: Any, identity: Any = None, name: Any = None, arguments: Any = None) -> None:
        """Merge a tool call, which arrives in pieces: first a name, then parts of the arguments."""
        known_id, known_name, so_far = self._calls.get(str(place), (None, None, ""))
        piece = arguments if isinstance(arguments, str) else ""
        self._calls[str(place)] = (known_id or identity, known_name or name, so_far + piece)

    @property
    def calls(self) -> tuple[RequestedCall, ...]:
        """The tool calls that the model requested."""
        return tuple(read_call(*call) for call in self._calls.values())
