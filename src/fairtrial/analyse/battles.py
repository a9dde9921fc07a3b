"""Pairwise battles as columns, taken from judges' verdicts, people's votes or scores."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from fairtrial.analyse.case_table import Floats, Ints
from fairtrial.analyse.score_table import ArmScores, ScoreTable
from fairtrial.analyse.stored_run import StoredRun
from fairtrial.core.place import Place, place_of
from fairtrial.store import opinions
from fairtrial.store.votes import votes

By = Literal["scores", "verdicts", "votes", "both"]
STYLE = ("length", "markdown")
_FENCED = re.compile(r"^(`{3,}|~{3,}).*?^\1", re.DOTALL | re.MULTILINE)
_MARKDOWN = re.compile(r"^#{1,6} |^\s*(?:[-*+]|\d+\.) |\*\*[^*\n]+\*\*", re.MULTILINE)


class Battles(NamedTuple):
    """Pairwise results as columns: the two arms, the result of the first, the prompt and the style difference.

    `worth` is the result of `one`: 1 for a win, ½ for a tie, 0 for a loss.
    """

    one: list[int] | Ints
    other: list[int] | Ints
    worth: list[float] | Floats
    prompts: list[str] | Ints
    style: Sequence[tuple[float, ...]] = ()


def from_pairs(scores: ScoreTable, arms: Sequence[ArmScores], by: By, *, styled: bool = False) -> Battles | None:
    """Return the battles from judges' verdicts and people's votes on pairs; None if there are none."""
    positions = {id(one): place for place, one in enumerate(arms)}
    found: list[tuple[int, int, float, str, tuple[float, ...]]] = []
    for source in scores.sources:
        own = {one.arm.name: positions[id(one)] for one in arms if one.source is source}
        for run in source.runs:
            rows = list(pair_rows(run, by))
            styles = _styles(run) if rows and styled else {}
            names = [arm.name for arm in run.plan_arms]
            for row in rows:
                a, b = own.get(names[row["arm_one"]]), own.get(names[row["arm_other"]])
                if a is None or b is None:
                    continue
                case, repeat = row["case_position"], row["repeat"]
                mine, theirs = (styles.get(Place(case, row[arm], repeat)) for arm in ("arm_one", "arm_other"))
                found.append((a, b, row["worth"], f"{run.plan.id}:{case}", _difference(mine, theirs)))
    if not found:
        return None
    one, other, worth, prompts, styles_of = zip(*found, strict=True)
    return Battles(list(one), list(other), list(worth), list(prompts), styles_of)


def pair_rows(run: StoredRun, by: By) -> Iterator[dict[str, Any]]:
    """Yield judges' verdicts, with a disagreement between the two orders as a tie, and people's votes."""
    if by in ("verdicts", "both"):
        for row in opinions.pairs(run.store, run.id):
            if row["failure_kind"] is None:
                yield {**row, "worth": row["forward"] if row["forward"] == row["backward"] else 0.5}
    if by in ("votes", "both"):
        yield from votes(run.store, run.id)


def _styles(run: StoredRun) -> dict[Place, tuple[float, ...]]:
    """Return the style of every answer: its length, and the amount of markdown outside code blocks."""
    return {
        place_of(row): style_of(row["answer"])
        for row in run.store.trial_rows(run.id, run.record.scoring)
        if row["answer"] is not None
    }


def style_of(answer: str) -> tuple[float, ...]:
    """Return style features that may sway a judge although they were not asked for: length and markdown count."""
    return float(len(answer)), float(len(_MARKDOWN.findall(_FENCED.sub("", answer))))


def _difference(mine: tuple[float, ...] | None, theirs: tuple[float, ...] | None) -> tuple[float, ...]:
    """Return how much more one answer has than the other, as a share of both: −1 to 1."""
    if mine is None or theirs is None:
        return (0.0,) * len(STYLE)
    return tuple((a - b) / (a + b) if a + b else 0.0 for a, b in zip(mine, theirs, strict=True))


def from_scores(values: Floats, prompts: Ints) -> Battles:
    """Return battles in which the better value on a case wins and equal values tie, from arms × cases."""
    one, other = np.triu_indices(len(values), 1)
    worth = np.where(values[one] > values[other], 1.0, np.where(values[one] < values[other], 0.0, 0.5))
    count = values.shape[1]
    return Battles(one.repeat(count), other.repeat(count), worth.ravel(), np.tile(prompts, len(one)))
