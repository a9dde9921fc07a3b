"""One arm's scores and metrics, one entry for every row of the table of cases."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Generic, Literal, NamedTuple, TypeVar

import numpy as np

from fairtrial.analyse.case_table import Floats, Ints
from fairtrial.analyse.stored_run import StoredRun
from fairtrial.core.experiment import Arm
from fairtrial.core.judge import SECOND_JUDGE, SECOND_JUDGE_TOP
from fairtrial.core.score import Scale
from fairtrial.core.settings import StopSpec
from fairtrial.stats import Aggregate
from fairtrial.stats.looks import Look
from fairtrial.store.outcomes import repeat_rows

SCORE = ""  # the name of the score among the metrics
TAKEN = ("latency_ms", "cost_usd")  # time and money: compared only on request
Ends = Literal["worst", "best"]  # of a scale
T = TypeVar("T")


class RunSource(NamedTuple):
    """One run, or the runs of a series as more answers to the same questions."""

    label: str
    runs: tuple[StoredRun, ...]


class MetricColumn:
    """One metric: how many values every case has, and their sum."""

    def __init__(self, size: int) -> None:
        self.counts: Ints = np.zeros(size, dtype=np.int64)
        self.sums: Floats = np.zeros(size)

    def __len__(self) -> int:
        """Return the number of cases with a value."""
        return int(np.count_nonzero(self.counts))

    @property
    def rows(self) -> Ints:
        """The cases with a value."""
        return np.flatnonzero(self.counts)

    def add(self, rows: Ints, counts: Floats, sums: Floats) -> None:
        """Add values of cases, each of which is named once."""
        self.counts[rows] += counts.astype(np.int64)
        self.sums[rows] += sums

    def means(self, failed: Ints | None = None, end: float = 0.0) -> Floats:
        """Return the mean of every case, NaN where it has no value; `failed` more values are at an end of the scale."""
        counts = self.counts if failed is None else self.counts + failed
        sums = self.sums if failed is None else self.sums + end * failed
        means: Floats = np.divide(sums, counts, out=np.full(len(counts), np.nan), where=counts > 0)
        return means


class CaseSpread:
    """How the scores of every case differ: the sum of their squares, the lowest and the highest."""

    def __init__(self, size: int) -> None:
        self.squares: Floats = np.zeros(size)
        self.lowest: Floats = np.full(size, np.inf)
        self.highest: Floats = np.full(size, -np.inf)

    def add(self, rows: Ints, squares: Floats, lowest: Floats, highest: Floats) -> None:
        """Add scores of cases, each of which is named once."""
        self.squares[rows] += squares
        self.lowest[rows] = np.minimum(self.lowest[rows], lowest)
        self.highest[rows] = np.maximum(self.highest[rows], highest)


class Worded:
    """Values by case and wording, where a condition has several wordings, which the repeats take in turn."""

    def __init__(self, cases: int, wordings: int) -> None:
        self._shape = (cases, wordings)
        self._columns: dict[str, tuple[Floats, Floats]] = {}

    def add(self, metric: str, case: int, repeat: int, value: float) -> None:
        """Add the value of one trial."""
        if metric not in self._columns:
            self._columns[metric] = np.zeros(self._shape), np.zeros(self._shape)
        counts, sums = self._columns[metric]
        wording = repeat % self._shape[1]
        counts[case, wording] += 1
        sums[case, wording] += value

    def means(self, metric: str) -> Floats | None:
        """Return the mean of every case in every wording, NaN where it has no value; None if there are none at all."""
        if metric not in self._columns:
            return None
        counts, sums = self._columns[metric]
        means: Floats = np.divide(sums, counts, out=np.full(self._shape, np.nan), where=counts > 0)
        return means


class Late(Generic[T]):
    """Something that is read from the store when it is asked for: most analyses do without."""

    def __init__(self, empty: T) -> None:
        self.empty = empty  # what the readers fill
        self.readers: list[Callable[[], None]] = []

    def get(self) -> T:
        """Return it, read."""
        while self.readers:
            self.readers.pop()()
        return self.empty


class MetricSum(NamedTuple):
    """A metric that is made of others: a constant, and a factor for each of them."""

    constant: float
    factors: Mapping[str, float]

    def of(self, values: Mapping[str, float]) -> float | None:
        """Return its value for one trial; None if a part is missing."""
        if any(part not in values for part in self.factors):
            return None
        return self.constant + sum(factor * values[part] for part, factor in self.factors.items())


class Values(Mapping[str, MetricColumn]):
    """The metrics of an arm by name. Latency and cost are read when they are asked for: every trial has them."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._columns: dict[str, MetricColumn] = {SCORE: MetricColumn(size)}
        self._unread: dict[str, list[Callable[[], None]]] = {}

    def column(self, name: str) -> MetricColumn:
        """Return the column of a metric to fill, which is added if it is new."""
        return self._columns.setdefault(name, MetricColumn(self._size))

    def read_later(self, name: str, read: Callable[[], None]) -> None:
        """Fill the column of a metric by `read` when it is asked for."""
        self._unread.setdefault(name, []).append(read)

    def __getitem__(self, name: str) -> MetricColumn:
        for read in self._unread.pop(name, ()):
            self.column(name)
            read()
        return self._columns[name]

    def __contains__(self, name: object) -> bool:
        return name in self._columns or name in self._unread

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys((*self._columns, *self._unread)))

    def __len__(self) -> int:
        return len(list(iter(self)))


Marks = dict[int, tuple[float, float]]  # by case: a better mark, and the judges' score of the same answers


class ArmScores:
    """One arm of one source, on every case of the table."""

    def __init__(self, source: RunSource, arm: Arm, size: int) -> None:
        self.source, self.arm = source, arm
        self.label = arm.name
        self.values = Values(size)
        self.spreads = Late(CaseSpread(size))
        self.worded = Late(Worded(size, max(1, len(arm.condition.prompts))))
        self._sums: dict[str, MetricSum] = {}
        self.scales: dict[str, Scale] = {SCORE: (0.0, 1.0)}
        self.failed: Ints = np.zeros(size, dtype=np.int64)
        self.unscored: Ints = np.zeros(size, dtype=np.int64)  # answers without a score through no fault of the arm
        self.places: Ints = np.full(size, -1)  # a case's position in the arm's own plan; −1: not in it
        self.unasked: set[int] = set()  # cases of its plan that are not for it
        self.scorers: Ints = np.full(size, -1)  # a number for what scored it; −1: not in the plan
        self.judges: set[tuple[str | None, str]] = set()  # (key, prompt) of every judge that was used
        self.planned = self.ended = self.scored = 0
        self.unrecorded = 0  # answers whose agents called what was not recorded
        self.stop: StopSpec | None = None  # set if its run was allowed to stop early
        self.look: Look | None = None  # which of the planned looks it has reached
        self.left: int | None = None  # the look at which it left a race that went on
        self.whenever_stopped: dict[tuple[Any, ...], Aggregate] = {}  # computed so far: every pair asks for the same
        self.origins: list[
            tuple[StoredRun, Ints, int]
        ] = []  # its runs, their cases' rows in the table, its position there
        self.labels: Marks = {}  # human label and judges' score, for labelled cases

    def means(self, metric: str = SCORE, *, failures: Ends | None = None) -> Floats:
        """Return every case's mean over repeats; failed trials are left out, or count as the worst or best value."""
        column = self.values.get(metric)
        if column is None:
            return np.full(len(self.failed), np.nan)
        worst, best = self.scales.get(metric, (None, None))
        end = worst if failures == "worst" else best
        return column.means() if failures is None or end is None else column.means(self.failed, end)

    @property
    def second(self) -> Marks:
        """Return the second judge's score and the judges' own, for the cases that all answers to have both of."""
        column, scores = self.values.get(SECOND_JUDGE), self.values[SCORE]
        if column is None:
            return {}
        rows = np.flatnonzero((column.counts > 0) & (column.counts == scores.counts))
        both = zip(column.means()[rows] / SECOND_JUDGE_TOP, scores.means()[rows], strict=True)
        return {int(row): (float(second), float(first)) for row, (second, first) in zip(rows, both, strict=True)}

    @property
    def spread(self) -> CaseSpread:
        """Return how the scores of every case differ."""
        return self.spreads.get()

    def add_sum(self, name: str, parts: MetricSum, scale: Scale) -> None:
        """Add a metric that is made of others; there is none if one of them is missing."""
        self.scales[name] = scale
        column = self.values.column(name)
        if not all(part in self.values for part in parts.factors):
            return
        self._sums[name] = parts
        columns = {part: self.values[part] for part in parts.factors}
        column.counts = next(iter(columns.values())).counts
        sums: Floats = parts.constant * column.counts.astype(np.float64)
        for part, factor in parts.factors.items():
            sums = sums + factor * columns[part].sums
        column.sums = sums

    def value_of(self, metric: str, values: Mapping[str, float]) -> float | None:
        """Return a metric of one trial from its stored metrics; None if it has none."""
        return self._sums[metric].of(values) if metric in self._sums else values.get(metric)

    def answers(self, metric: str, row: int) -> dict[tuple[int, int], float]:
        """Return the value of every answer to one case by run and repeat; none for what belongs to every trial."""
        found: dict[tuple[int, int], float] = {}
        for number, (run, rows, position) in enumerate(self.origins):
            for case, _, repeat, score, stored in repeat_rows(run.store, run.id, run.record.scoring, [position]):
                if rows[case] != row:
                    continue
                values = {name: item[0] for name, item in stored.items() if item[0] is not None}
                value = score if metric == SCORE else self.value_of(metric, values)
                if value is not None:
                    found[number, repeat] = value
        return found

    def by_wording(self, metric: str) -> Floats | None:
        """Return the mean of every case in each wording of the condition; None if it has one wording, or no such value.

        Wordings are told apart by the order in which repeats take them.
        """
        if len(self.arm.condition.prompts) < 2:
            return None
        worded = self.worded.get()
        if metric not in self._sums:
            return worded.means(metric)
        parts = self._sums[metric]
        total: Floats = np.full(1, parts.constant)
        for part, factor in parts.factors.items():
            table = worded.means(part)
            if table is None:
                return None
            total = total + factor * table
        return total

    def end(self, trials: int, *, planned: bool) -> None:
        """Count trials that are over; of a run that stopped early, these were the planned ones."""
        self.ended += trials
        self.planned += trials if planned else 0

    def sign(self, metric: str) -> int:
        """Return 1 if higher is better, −1 if lower is."""
        worst, best = self.scales.get(metric, (None, None))
        if best is None:
            return 1
        return -1 if worst is None or best < worst else 1

    @property
    def failures(self) -> int:
        """Return the number of failed trials."""
        return int(self.failed.sum())

    @property
    def coverage(self) -> float:
        """Return the share of finished trials that have a score."""
        return self.scored / self.ended if self.ended else 0.0
