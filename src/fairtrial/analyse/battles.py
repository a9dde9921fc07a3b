"""Pairwise battles as columns, taken from judges' verdicts, people's votes or scores."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import msgspec
import numpy as np

from fairtrial.analyse.run import Run
from fairtrial.analyse.score_table import ArmScores, ScoreTable
from fairtrial.core.place import Place, place_of
from fairtrial.store import opinions
from fairtrial.store.votes import votes

By = Literal["scores", "verdicts", "votes", "both"]
STYLE = ("length", "markdown")
_FENCED = re.compile(r"^(`{3,}|~{3,}).*?^\1", re.DOTALL | re.MULTILINE)
_MARKDOWN = re.compile(r"^#{1,6} |^\s*(?:[-*+]|\d+\.) |\*\*[^*\n]+\*\*", re.MULTILINE)


class Battles(msgspec.Struct, frozen=True):
    """Pairwise results as columns: the two arms, the result of the first, the prompt and the style difference.

    `worth` is the result of `one`: 1 for a win, ½ for a tie, 0 for a loss.
    """

    one: list[int] = []
    other: list[int] = []
    worth: list[float] = []
    prompts: list[str] = []
    style: list[tuple[float, ...]] = []

    def add(self, one: int, other: int, worth: float, prompt: str, style: tuple[float, ...]) -> None:
        """Append one battle."""
        self.one.append(one)
        self.other.append(other)
        self.worth.append(worth)
        self.prompts.append(prompt)
        self.style.append(style)


def from_pairs(scores: ScoreTable, arms: Sequence[ArmScores], by: By, *, styled: bool = False) -> Battles | None:
    """Return the battles from judges' verdicts and people's votes on pairs; None if there are none."""
    positions = {id(one): place for place, one in enumerate(arms)}
    battles = Battles()
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
                battles.add(a, b, row["worth"], f"{run.plan.id}:{case}", _difference(mine, theirs))
    return battles if battles.one else None


def pair_rows(run: Run, by: By) -> Iterator[dict[str, Any]]:
    """Yield judges' verdicts, with a disagreement between the two orders as a tie, and people's votes."""
    if by in ("verdicts", "both"):
        for row in opinions.pairs(run.store, run.id):
            if row["failure_kind"] is None:
                yield {**row, "worth": row["forward"] if row["forward"] == row["backward"] else 0.5}
    if by in ("votes", "both"):
        yield from votes(run.store, run.id)


def _styles(run: Run) -> dict[Place, tuple[float, ...]]:
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


def from_scores(means: Sequence[dict[str, float]], keys: Sequence[str], sign: int, prompts: Sequence[str]) -> Battles:
    """Return battles in which the better score on a case wins and equal scores tie.

    Cases of one cluster are one prompt.
    """
    values = sign * np.asarray([[arm_means[key] for key in keys] for arm_means in means])
    one, other = np.triu_indices(len(means), 1)
    worth = np.where(values[one] > values[other], 1.0, np.where(values[one] < values[other], 0.0, 0.5))
    count = len(keys)
    return Battles(
        one.repeat(count).tolist(), other.repeat(count).tolist(), worth.ravel().tolist(), list(prompts) * len(one)
    )
