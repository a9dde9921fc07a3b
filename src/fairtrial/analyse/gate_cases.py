"""Rules of a gate about single cases: facts about their answers, without statistics.

`must_pass` holds for every answer. `k_of_n` holds for that many of the answers; a case whose answers differed in the
baseline already is flaky: it is listed and does not block. Such a case stays in the mean: leaving it out because of the
very answers that are compared would bias the difference. Only a `quarantine` in the suite leaves cases out of the mean.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

import numpy as np

from fairtrial.analyse.arm_scores import MetricColumn
from fairtrial.analyse.case_table import CaseRow, Ints
from fairtrial.analyse.gate_reasons import PassedAnswers, RuleReason
from fairtrial.analyse.gate_result import Flaky, GateCheck, Result
from fairtrial.analyse.score_table import ArmScores, ScoreTable
from fairtrial.analyse.stored_run import StoredRun
from fairtrial.core.errors import FairtrialError
from fairtrial.core.gate import GateSpec
from fairtrial.core.registry import nearest
from fairtrial.store.columns import Columns
from fairtrial.store.outcomes import answer_ids, passing_scores

_FEW = 20  # cases among which the nearest is named


class CasePasses(NamedTuple):
    """How many answers every case has, and how many of them pass."""

    answers: Ints
    passed: Ints

    @property
    def mixed(self) -> Ints:
        """The cases of which some answers pass and others do not."""
        return np.flatnonzero((self.passed > 0) & (self.passed < self.answers))


def column_of(entry: ArmScores, read: Callable[[StoredRun], Iterable[Columns]]) -> MetricColumn:
    """Return counts and sums of an arm over all its runs, from streams of case, arm, count and sum."""
    column = MetricColumn(len(entry.failed))
    for run, rows, position in entry.origins:
        for cases, positions, counts, sums in read(run):
            own = np.asarray(positions) == position
            known = np.asarray(counts, dtype=np.float64)[own]
            totals = np.nan_to_num(np.asarray(sums, dtype=np.float64)[own])
            column.add(rows[np.asarray(cases)[own]], known, totals)
    return column


def passes_of(entry: ArmScores, least: float) -> CasePasses:
    """Return how many answers of every case pass, from a score of `least` (0–1) on."""
    column = column_of(entry, lambda run: passing_scores(run.store, run.id, run.record.scoring, least - 1e-9))
    return CasePasses(column.counts, column.sums.astype(np.int64))


def is_unchanged(after: ArmScores, before: ArmScores) -> bool:
    """Return whether every answer is one that was reused, to the same trials as before, and scores as it did."""
    own: set[str] = set()
    for trial, reused in _answers(after):
        if not reused:
            return False
        own.add(trial)
    same = bool(own) and own == {trial for trial, _ in _answers(before)}
    return same and np.array_equal(after.means(), before.means(), equal_nan=True)


def _answers(entry: ArmScores) -> Iterator[tuple[str, bool]]:
    for run, _, position in entry.origins:
        yield from answer_ids(run.store, run.id, position)


def chosen_rows(scores: ScoreTable, names: Sequence[str], rule: str) -> Ints:
    """Return the cases that any of these names or patterns means; raise if one means none."""
    if not names:
        return np.empty(0, dtype=np.int64)
    facts = [(row, scores.facts[row]) for row in range(len(scores.facts))]
    rows: set[int] = set()
    for name in names:
        own = {row for row, case in facts if _means(name, case)}
        if not own:
            hint = nearest(name, [case.id for _, case in facts]) if len(facts) <= _FEW else ""
            raise FairtrialError(f"gate: {rule}: no case is `{name}`{hint}")
        rows |= own
    return np.asarray(sorted(rows), dtype=np.int64)


def _means(name: str, case: CaseRow) -> bool:
    kind, _, value = name.partition(":")
    if kind == "tag":
        return value in case.tags
    if kind == "category":
        return value == case.category
    return name == case.id or fnmatchcase(case.id, name)


def flaky_cases(scores: ScoreTable, entries: Sequence[ArmScores], least: float, left_out: Ints) -> Iterator[Flaky]:
    """Yield the cases of which some answers pass and others do not, arm by arm."""
    for entry in entries:
        passes = passes_of(entry, least)
        for row in np.setdiff1d(passes.mixed, left_out):
            yield Flaky(
                case=scores.facts[int(row)].id,
                arm=entry.arm.name,
                passed=int(passes.passed[row]),
                answers=int(passes.answers[row]),
            )


def case_checks(
    scores: ScoreTable, own: Sequence[ArmScores], spec: GateSpec, flaky: Sequence[Flaky], left_out: Ints
) -> Iterator[GateCheck]:
    """Check the rules about single cases for every arm."""
    if not spec.about_cases:
        return
    every = np.setdiff1d(chosen_rows(scores, spec.must_pass, "must_pass"), left_out)
    some = {name: np.setdiff1d(chosen_rows(scores, [name], "k_of_n"), left_out) for name in spec.k_of_n}
    for entry in own:
        passes = passes_of(entry, spec.pass_score / 100)
        excused = {one.case for one in flaky if one.arm == entry.arm.name}
        edited = _edited(scores, entry, [every, *some.values()])
        edited = np.union1d(edited, np.fromiter(entry.unasked, dtype=np.int64))
        if spec.must_pass:
            yield _check(scores, entry, passes, np.setdiff1d(every, edited), "must_pass", None, frozenset())
        for name, rows in some.items():
            kept = np.setdiff1d(rows, edited)
            yield _check(scores, entry, passes, kept, f"k_of_n {name}", spec.k_of_n[name], excused)


def _edited(scores: ScoreTable, entry: ArmScores, chosen: Sequence[Ints]) -> Ints:
    """Return the cases that are only in the baseline, and here under the same id with another text."""
    absent = [row for rows in chosen for row in rows.tolist() if entry.places[row] < 0]
    if not absent:
        return np.empty(0, dtype=np.int64)
    asked = {scores.facts[row].id for row in np.flatnonzero(entry.places >= 0).tolist()}
    return np.asarray([row for row in absent if scores.facts[row].id in asked], dtype=np.int64)


def _check(
    scores: ScoreTable,
    entry: ArmScores,
    passes: CasePasses,
    rows: Ints,
    name: str,
    k: int | None,
    excused: set[str] | frozenset[str],
) -> GateCheck:
    """Check one rule: every answer must pass, or `k` of them."""
    broken: list[PassedAnswers] = []
    unknown: list[PassedAnswers] = []
    excepted: list[PassedAnswers] = []
    for row in rows.tolist():
        case, answers, passed = scores.facts[row].id, int(passes.answers[row]), int(passes.passed[row])
        planned = answers + int(entry.failed[row]) + int(entry.unscored[row])
        if k is not None and k > max(planned, 1) and entry.places[row] >= 0:
            raise FairtrialError(
                f"gate: {name}: {k} answers must pass, but `{case}` has {planned}: use `repeats: {k}` or more"
            )
        needed = k if k is not None else max(planned, 1)
        if passed >= needed:
            continue
        missing = planned - answers if planned else needed
        may_have_passed = passed + missing >= needed  # a trial without a score
        found = unknown if may_have_passed else excepted if case in excused else broken
        found.append(PassedAnswers(case=case, passed=passed, answers=answers))
    result: Result = "failed" if broken else "cannot tell" if unknown else "passed"
    reason = RuleReason(k=k, cases=len(rows), broken=broken, unknown=unknown, flaky=excepted)
    return GateCheck(name=name, arm=entry.arm.name, result=result, reason=reason, unmet=broken + unknown)
