"""What another version of a server, a tool's description or a skill gains: score, cost, latency, and use by tool."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from fairtrial.analyse.case_share import CaseShare
from fairtrial.analyse.compare import decided
from fairtrial.analyse.comparison import Comparison
from fairtrial.analyse.offer_rates import (
    OfferDifference,
    RateChange,
    RateKind,
    Shares,
    changes_of,
    difference_of,
)
from fairtrial.analyse.score_table import choose, read_scores, sources_of
from fairtrial.analyse.stored_run import StoredRun
from fairtrial.analyse.tool_counts import ArmCounts
from fairtrial.analyse.versions import Changed, VersionPair

_TAKEN = ("cost_usd", "latency_ms")
_OF_TOOLS: tuple[RateKind, ...] = ("use", "chosen", "arguments", "success", "valid")


class VersionGain(msgspec.Struct, frozen=True, kw_only=True):
    """Two arms of one target with two versions of something: what the later one does better or worse, and takes."""

    what: list[Changed]  # one thing, or everything in which they differ
    arm: str
    baseline: str  # the earlier one
    score: OfferDifference | None  # None if they have no scored case in common
    taken: list[OfferDifference]  # cost and latency, where they are known
    changes: list[RateChange]  # by tool and skill


class Measurements:
    """The differences between pairs of arms in score, cost and latency, each as one family."""

    def __init__(self, run: StoredRun, wanted: Sequence[tuple[str, str]]) -> None:
        scores = read_scores(sources_of(run))
        self.metric = scores.primary
        self._main: list[Comparison] = []
        self._taken: list[Comparison] = []
        family = choose(scores)
        named = [set(pair) for pair in wanted]
        pairs = [(a, b) for a, b in family if {a.arm.name, b.arm.name} in named]
        if not pairs:
            return
        # The same family as in `compare`: one verdict, one interval.
        self._main = decided(scores, pairs, [scores.primary], family=family, detailed=0)
        known = [name for name in _TAKEN if all(name in arm.values for pair in pairs for arm in pair)]
        others = [name for name in known if name != scores.primary]
        self._taken = decided(scores, pairs, others, primary=False) if others else []

    def score(self, arm: str, baseline: str) -> OfferDifference | None:
        """Return the difference in the score; None if the two have no scored case in common."""
        return next(iter(self._between(self._main, arm, baseline)), None)

    def taken(self, arm: str, baseline: str) -> list[OfferDifference]:
        """Return the differences in cost and latency, where they are known."""
        return self._between(self._taken, arm, baseline)

    def _between(self, pairs: Sequence[Comparison], arm: str, baseline: str) -> list[OfferDifference]:
        own = [difference_of(pair, arm) for pair in pairs if {pair.a, pair.b} == {arm, baseline}]
        return [one for one in own if one.count]


def version_gains(
    pairs: Sequence[VersionPair], counts: Sequence[ArmCounts], measured: Measurements, *, held_out: bool
) -> list[VersionGain]:
    """Return what each pair of versions comes to; the differences in the use of tools are one family."""
    shares = [
        list(_shares(counts[pair.baseline.position], counts[pair.arm.position], held_out=held_out)) for pair in pairs
    ]
    return [
        VersionGain(
            what=pair.what,
            arm=pair.arm.name,
            baseline=pair.baseline.name,
            score=measured.score(pair.arm.name, pair.baseline.name),
            taken=measured.taken(pair.arm.name, pair.baseline.name),
            changes=changes,
        )
        for pair, changes in zip(pairs, changes_of(shares), strict=True)
    ]


def _shares(before: ArmCounts, after: ArmCounts, *, held_out: bool) -> Iterator[Shares]:
    """Yield every share that both arms have: of tools, of mistaken tools, of forbidden calls, and of skills."""
    for name in [name for name in before.tools if name in after.tools]:
        old, new = before.tools[name], after.tools[name]
        for kind in _OF_TOOLS:
            yield from _both(kind, name, getattr(old, kind), getattr(new, kind))
        for called in dict.fromkeys((*old.instead, *new.instead)):
            one, other = [own.instead.get(called) or CaseShare(of=own.chosen) for own in (old, new)]
            yield from _both("mistaken", name, one, other, called=called)
    yield from _both("unneeded", "", before.unneeded, after.unneeded)
    yield from _both("forbidden", "", before.any_forbidden, after.any_forbidden)
    for name in [name for name in before.skills if name in after.skills]:
        skills = [counts.skills[name] for counts in (before, after)]
        first, second = [skill.held_out if held_out else skill.all for skill in skills]
        yield from _both("recall", name, first.recall, second.recall)
        yield from _both("false_fires", name, first.false_fires, second.false_fires)


def _both(kind: RateKind, name: str, before: CaseShare, after: CaseShare, called: str = "") -> Iterator[Shares]:
    if before.cases & after.cases:
        yield Shares(kind=kind, name=name, called=called, before=before, after=after)
