"""Random numbers that are the same on every machine and with every version of Python and NumPy."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Draws:
    """A stream of random numbers for a list of names and numbers: another list, another stream.

    Of Python's generator only `random()` is used, the one method whose sequence is promised to stay as it is.
    """

    def __init__(self, *key: str | int) -> None:
        digest = hashlib.sha256("/".join(map(str, key)).encode()).digest()
        self._random = random.Random(int.from_bytes(digest, "big"))  # no secret depends on it

    def whole(self, low: int, high: int) -> int:
        """Return an integer from low to high, both included."""
        return low + int(self._random.random() * (high - low + 1))

    def decimal(self, low: float, high: float, digits: int) -> float:
        """Return a number with at most this many digits after the point."""
        scale: int = 10**digits
        return self.whole(round(low * scale), round(high * scale)) / scale

    def wholes(self, count: int, low: int, high: int) -> list[int]:
        """Return several integers."""
        return [self.whole(low, high) for _ in range(count)]

    def shuffled(self, items: Sequence[T]) -> list[T]:
        """Return the items in another order."""
        mixed = list(items)
        for last in range(len(mixed) - 1, 0, -1):
            other = self.whole(0, last)
            mixed[last], mixed[other] = mixed[other], mixed[last]
        return mixed
