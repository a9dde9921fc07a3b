"""A gate for continuous integration: passed, failed, or nobody can tell yet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec

from fairtrial.analyse.compare import Comparison, compare
from fairtrial.analyse.compare_words import Scale, p_words
from fairtrial.analyse.contestants import SCORE, Contestant, Field, Source, enter, pick
from fairtrial.core.errors import FairtrialError

Result = Literal["passed", "failed", "cannot tell"]
EXIT_CODES: dict[Result, int] = {"passed": 0, "failed": 100, "cannot tell": 101}
BEARABLE = 0.05  # the loss that nobody minds, unless they say so
_FEWEST_ALIKE = 5  # cases that all differ by the same, so that chance is below 5 %


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """What is demanded. Scores are 0–1; `these_cases` asks about the very cases, not about cases like them."""

    min_score: float | None = None
    margin: float | None = None
    min_coverage: float = 0.95
    metric: str = SCORE
    arms: tuple[str, ...] = ()
    these_cases: bool = False


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One demand on one arm."""

    name: str
    arm: str
    result: Result
    message: str


class Gate(msgspec.Struct, frozen=True, kw_only=True):
    """Every check, and what they come to."""

    run_ids: list[str]
    against: list[str]
    checks: list[Check]

    @property
    def result(self) -> Result:
        """One failure fails it; else one doubt leaves it open."""
        results = {check.result for check in self.checks}
        return "failed" if "failed" in results else "cannot tell" if "cannot tell" in results else "passed"

    @property
    def exit_code(self) -> int:
        """0, 100 or 101."""
        return EXIT_CODES[self.result]


def gate(source: Source, against: Source | None, terms: Terms) -> Gate:
    """Hold a run or series to its terms, and against another one."""
    if against is not None and {run.id for run in source.runs} & {run.id for run in against.runs}:
        raise FairtrialError("a run cannot be held against itself: name an earlier one, or give it a tag")
    field = enter([source] if against is None else [source, against])
    own = [one for one in field.contestants if one.source is source]
    if terms.arms:
        own = [pick(Field(field.sources[:1], tuple(own), *field[2:]), name) for name in terms.arms]
    checks = [*_coverage(own, terms)]
    if terms.min_score is not None:
        checks += _minimum(field, own, terms, terms.min_score)
    if against is not None:
        checks += _regression(field, own, against, terms)
    return Gate(
        run_ids=[run.id for run in source.runs],
        against=[run.id for run in against.runs] if against else [],
        checks=checks,
    )


def _coverage(own: Sequence[Contestant], terms: Terms) -> Iterator[Check]:
    for one in own:
        share = one.scored / one.planned if one.planned else 0.0
        enough = share >= terms.min_coverage
        message = f"{one.scored} of {one.planned} trials have a score (at least {100 * terms.min_coverage:g} %)"
        yield Check(name="coverage", arm=one.arm.name, result="passed" if enough else "failed", message=message)


def _minimum(field: Field, own: Sequence[Contestant], terms: Terms, least: float) -> Iterator[Check]:
    scale = Scale(terms.metric)
    for one in own:
        found = field.aggregate(one, terms.metric)
        result: Result = "cannot tell"
        if found.mean is None:
            message = "no score"
        else:
            bounds = found.ci95
            if terms.these_cases:
                result = "passed" if found.mean >= least else "failed"
            elif bounds is not None:
                result = "passed" if bounds[0] >= least else "failed" if bounds[1] < least else "cannot tell"
            shown = "n = 1" if bounds is None else f"95% CI [{scale.plain(bounds[0])}, {scale.plain(bounds[1])}]"
            message = f"{scale.plain(found.mean)} ({shown}), at least {scale.plain(least)}"
        yield Check(name="minimum", arm=one.arm.name, result=result, message=message)


def _regression(field: Field, own: Sequence[Contestant], against: Source, terms: Terms) -> Iterator[Check]:
    margin = terms.margin if terms.margin is not None else 0.0 if terms.these_cases else BEARABLE
    before = {one.arm.name: one for one in field.contestants if one.source is against}
    pairs = [(one, before[one.arm.name]) for one in own if one.arm.name in before]
    for one in own:
        if one.arm.name not in before:
            message = f"{against.label} has no such arm"
            yield Check(name="regression", arm=one.arm.name, result="cannot tell", message=message)
    if not pairs:
        return
    if margin <= 0 and not terms.these_cases:
        raise FairtrialError("a loss of nothing at all can never be ruled out: give a --margin above 0")
    compared = compare(field, pairs, metric=terms.metric, margin=margin or None)
    for (one, _), pair in zip(pairs, compared.pairs, strict=True):
        result, message = _held(pair, margin, terms)
        yield Check(name="regression", arm=one.arm.name, result=result, message=f"{message} against {against.label}")


def _held(pair: Comparison, margin: float, terms: Terms) -> tuple[Result, str]:
    """Passed where a loss beyond the margin is ruled out; failed where there is a loss that is not."""
    scale = Scale(terms.metric)
    if pair.difference is None:
        return "cannot tell", "no case in common"
    shown = f"{scale.signed(pair.difference)}{scale.unit}"
    if terms.these_cases:
        return ("passed" if pair.difference >= -margin else "failed"), f"{shown} on {pair.count} cases"
    interval = pair.equivalence.ci90 if pair.equivalence is not None else None
    enough = bool(pair.std_err) or pair.units >= _FEWEST_ALIKE
    message = f"{shown} (90% CI {scale.interval(interval)}, p {p_words(pair.p_adjusted)}), margin {scale.plain(margin)}"
    if interval is not None and enough and interval[0] > -margin:
        return "passed", message
    return ("failed" if pair.verdict == "worse" else "cannot tell"), message


def gate_line(check: Check) -> str:
    """One check in a line."""
    return f"{check.result}: {check.name} of {check.arm}: {check.message}"
