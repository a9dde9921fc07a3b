"""Judges and labels: calibrate, judge in pairs, label."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from fairtrial.api.given import (
    AnyJudge,
    AnyRun,
    AnyScorer,
    AnySuite,
    functions_of,
    judge_given,
    load_given,
    open_given,
    scorer_given,
)
from fairtrial.api.twins import async_twin, sync_twin
from fairtrial.config import Suite, judge_named, variables_of
from fairtrial.core.errors import FairtrialError
from fairtrial.judging.calibration import Calibration
from fairtrial.store import Store
from fairtrial.workflows import calibrate as calibrating
from fairtrial.workflows import pairwise as pairing
from fairtrial.workflows.label import PersonLabel, add_labels, read_labels, write_sample

if TYPE_CHECKING:
    from fairtrial.analyse.labels import ArmLabels
    from fairtrial.analyse.pairs import PairsSummary


async def acalibrate(
    judge: AnyJudge | None = None,
    *,
    suite: AnySuite | None = None,
    samples: str | Path | None = None,
    scorer: AnyScorer | None = None,
    runs: int = 1,
    store: str | None = None,
) -> Calibration:
    """Calibrate a judge with answers of known quality; returns samples, summary, rating and recommendation.

    Args:
        judge: A model's name, or a function that is given the judge's prompt and returns its reply.
        suite: Calibrate the judge of this suite, or `judge` with its providers, instructions and scorer.
        samples: A file with samples of your own.
        scorer: The scorer that the judge marks for: `llm_judge`, `golden_judge`, or a mapping with options.
        runs: Ask this many times, to measure how much its marks vary.
        store: Where the result is stored.
    """
    name, functions = judge_given(judge)
    spec = scorer_given(scorer)[0]
    if suite is not None:
        loaded = load_given(suite, None)
        judges = calibrating.judges_of(loaded, name, functions)
        if len(judges) > 1:
            names = ", ".join(f"`{one.name}`" for one in judges)
            raise FairtrialError(f"this suite has several judges ({names}): name the one to calibrate")
        chosen, common = judges[0], calibrating.settings_of(loaded)
        spec = spec or next(iter(calibrating.marking_scorers(loaded)), None)
        functions = {**loaded.functions, **functions}
    elif name is None:
        raise FairtrialError("give a judge, or a suite that has one")
    else:
        variables = variables_of()
        chosen, common = judge_named(name, variables, Path(), functions=functions), {"variables": variables}
    return await calibrating.acalibrate(
        chosen,
        scorer=spec,
        samples=Path(samples) if samples else None,
        runs=runs,
        store=Store(store),
        **{**common, "functions": functions},
    )


calibrate = sync_twin(acalibrate)


async def apairwise(
    run: AnyRun = "latest",
    *,
    judge: AnyJudge | None = None,
    arms: Sequence[str] = (),
    instructions: str = "",
    budget_usd: float | None = None,
    suite: Suite | None = None,
    store: str | None = None,
) -> PairsSummary:
    """Let a judge compare the stored answers of a run, two arms at a time, in both orders.

    A preference that changes with the order counts as a tie. Pairs that were compared before are not judged again.
    `judge` is a model's name, or a function that is given the judge's prompt and returns its reply; by default, the
    judges of the run. `suite` gives functions that cannot be imported again, in a new session.
    """
    opened = open_given(run, store)
    name, functions = judge_given(judge)
    return await pairing.apair(
        opened.id,
        judge=name,
        arms=arms,
        instructions=instructions,
        overrides={"budget_usd": budget_usd},
        functions={**(functions_of(suite, opened) or {}), **functions},
        store=opened.store,
    )


pairwise = sync_twin(apairwise)


class Labels(msgspec.Struct, frozen=True, kw_only=True):
    """The result of people's labels: how many answers are to be labelled or were, and the corrected means by arm."""

    run_id: str
    answers: int  # written to `file`, or labelled
    file: Path | None = None
    arms: dict[str, ArmLabels | None] = {}


def label(
    run: AnyRun = "latest",
    labels: str | Path | Mapping[str, float | bool] | None = None,
    *,
    sample: int | None = None,
    to: str | Path | None = None,
    arms: Sequence[str] = (),
    seed: int | None = None,
    by: str = "person",
    store: str | None = None,
) -> Labels:
    """Let people label answers, and correct a judge's scores with the labels.

    `label(run, sample=30, to="marks.csv")` draws answers at random, blind; `label(run, "marks.csv")` reads the labels
    in it (0 to 100, or pass and fail); `label(run, {trial_id: 0.8})` takes labels from 0 to 1. With neither, returns
    the result of the labels so far.
    """
    opened = open_given(run, store)
    if (sample is None) != (to is None):
        raise FairtrialError("`sample` and `to` go together: the number of answers, and the file to write")
    if sample is not None and to is not None:
        if labels is not None:
            raise FairtrialError("draw a sample or give labels, one after the other")
        count = write_sample(opened, Path(to), count=sample, arms=arms, seed=seed)
        return Labels(run_id=opened.id, answers=count, file=Path(to))
    count = 0
    if isinstance(labels, Mapping):
        for trial, value in labels.items():
            if not 0 <= value <= 1:
                raise FairtrialError(f"a label in Python is a number from 0 to 1, not {value} for `{trial}`")
        count = add_labels(opened, [PersonLabel(trial, float(value)) for trial, value in labels.items()], by=by)
    elif labels is not None:
        count = add_labels(opened, read_labels(Path(labels)), by=by)
    return Labels(run_id=opened.id, answers=count, arms={arm.arm: arm.labels for arm in opened.arms})


alabel = async_twin(label)
