"""How long a campaign goes on, what chance it draws from, and what it counts."""

from __future__ import annotations

import json
import os
import random
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

SECONDS, SEED, TALLY = "TORTURE_SECONDS", "TORTURE_SEED", "TORTURE_TALLY"


class Campaign:
    """One test's rounds. Short (`make test`): a fixed number; long (`make torture`): as many as fit into its time.

    Each round has its own chance, drawn from the seed, the name and the number of the round: a round that fails is
    repeated with `TORTURE_SEED=… pytest NAME`, which begins with it.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.tally: Counter[str] = Counter()
        self._seconds = float(os.environ.get(SECONDS, "0"))
        self._seed, _, first = os.environ.get(SEED, "1").partition(":")
        self._first = int(first or 0)
        self.current = ""

    @property
    def long(self) -> bool:
        """Whether this is `make torture`."""
        return self._seconds > 0

    def rounds(self, short: int) -> Iterator[random.Random]:
        """Yield the chance of each round."""
        until, number = time.monotonic() + self._seconds, self._first
        while number < self._first + short or time.monotonic() < until:
            self.current = f"{SEED}={self._seed}:{number}"
            yield random.Random(f"{self._seed} {self.name} {number}")
            self.tally["rounds"] += 1
            number += 1

    def once(self) -> Iterator[random.Random]:
        """Yield the chance of one round, however long this is: for what nothing is drawn for."""
        self._seconds = 0.0
        yield from self.rounds(short=1)

    def count(self, **what: int) -> None:
        """Add to what was done (`kills`, `inputs`, …) and to what must stay 0 (`lost`, `doubled`, …)."""
        self.tally.update(what)

    def close(self) -> None:
        """Keep the tally for the table at the end of `make torture`."""
        if place := os.environ.get(TALLY):
            with Path(place).open("a", encoding="utf-8") as file:
                file.write(json.dumps({"name": self.name, **self.tally}) + "\n")
