"""Which cases of a suite are run: those that are named, and of these some at random, or the first."""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Callable, Iterator
from itertools import islice

from fairtrial.config.run_options import RunOptions
from fairtrial.core.errors import Problem
from fairtrial.core.experiment import Case

Located = tuple[Problem, Case | None, str]  # place, case, problem


class Drawing:
    """The selected cases of a suite, in the suite's order. Cases that cannot be read are never left out."""

    def __init__(self, options: RunOptions) -> None:
        self._named, self._limit, self._first = frozenset(options.cases), options.limit, options.first
        self._last: tuple[bytes, int] | None = None  # the last draw within the limit, found when first needed

    def cases(self, read: Callable[[], Iterator[Located]]) -> Iterator[Located]:
        """Yield the selected cases; with a limit, all cases are read once more, the first time."""
        if self._limit is None:
            yield from islice(self._wanted(read()), self._first)
            return
        if self._last is None:
            draws = (_draw(item[1], place) for place, item in enumerate(self._wanted(read())) if item[1] is not None)
            self._last = max(heapq.nsmallest(self._limit, draws), default=(b"", 0))
        for place, item in enumerate(self._wanted(read())):
            if item[1] is None or _draw(item[1], place) <= self._last:
                yield item

    def _wanted(self, located: Iterator[Located]) -> Iterator[Located]:
        return (item for item in located if item[1] is None or not self._named or item[1].id in self._named)


def _draw(case: Case, place: int) -> tuple[bytes, int]:
    """Return a case's place in a random order that depends on its id alone.

    The plan's id cannot be the key, since it depends on the limit; a hash of the dataset could, but then every
    correction of a text would draw other cases. This way all suites and runs with these cases draw the same, fewer are
    among more, and a new case replaces one at most.
    """
    key = case.id.encode(errors="surrogatepass")
    return hashlib.blake2b(key, digest_size=16, person=b"limit").digest(), place
