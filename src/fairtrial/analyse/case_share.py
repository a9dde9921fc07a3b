"""A share over cases: hits of chances, whose interval is over cases, as the trials of a case are not independent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from fairtrial.core.experiment import Case
from fairtrial.stats import Aggregate, aggregate


class CaseShare:
    """A share with its interval: hits and chances by case, as the trials of a case are not independent.

    Args:
        of: A share of the same chances: what is mentioned late is not counted from then on only.
    """

    def __init__(self, of: CaseShare | None = None) -> None:
        self._hits: Counter[int] = Counter()
        self._chances: Counter[int] = of._chances if of else Counter()
        self._clusters: dict[int, str] = of._clusters if of else {}

    def add(self, case: Case, *, hits: int, of: int = 1) -> None:
        """Add the hits of a trial, of this many chances."""
        if of:
            self._hits[case.position] += hits
            self._chances[case.position] += of
            self._clusters[case.position] = case.cluster or f"\0{case.position}"

    def hit(self, case: Case) -> None:
        """Add a hit, of chances that are counted elsewhere."""
        self._hits[case.position] += 1

    @property
    def hits(self) -> int:
        """All hits."""
        return sum(self._hits.values())

    @property
    def chances(self) -> int:
        """All chances."""
        return sum(self._chances.values())

    @property
    def cases(self) -> set[int]:
        """The positions of the cases that have any chances."""
        return set(self._chances)

    def values(self, cases: Sequence[int]) -> list[float]:
        """Return the share of each of these cases."""
        return [self._hits[case] / self._chances[case] for case in cases]

    def clusters(self, cases: Sequence[int]) -> list[str] | None:
        """Return the cluster of each of these cases; None if no two are in one."""
        names = [self._clusters[case] for case in cases]
        return names if len(set(names)) < len(names) else None

    def aggregate(self) -> Aggregate:
        """Return the share over all chances: each case has the weight of its chances."""
        cases = sorted(self._chances)
        return aggregate(self.values(cases), [self._chances[case] for case in cases], self.clusters(cases))
