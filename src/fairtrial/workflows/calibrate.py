"""Calibration of judges with answers of known quality, and tests of their resistance to manipulation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from fairtrial.config import Suite, judge_named, suite_vars, variables_of
from fairtrial.core.amounts import check_runs
from fairtrial.core.composite import marking_parts
from fairtrial.core.errors import FairtrialError
from fairtrial.core.experiment import INPUT_NAMES, ScorerSpec
from fairtrial.core.functions import Functions
from fairtrial.core.ids import new_id
from fairtrial.core.judge import judge_key
from fairtrial.core.scorer import Scorer, without_extract
from fairtrial.core.settings import JudgeSpec, Settings
from fairtrial.core.templates import names_in
from fairtrial.core.variables import Variables
from fairtrial.engine import bench
from fairtrial.engine.targets import open_targets
from fairtrial.judging.attacks import Resistance, attack_samples, resistance
from fairtrial.judging.calibration import Calibration, CalibrationSample, load_samples
from fairtrial.store import Store
from fairtrial.store.calibrations import add_calibration, calibrations_of
from fairtrial.store.rows import encode
from fairtrial.store.scorings import scoring_choice
from fairtrial.workflows.stored import check_keys, scorers_of_job, stored_job, with_judge


async def acalibrate(
    judge: JudgeSpec,
    *,
    scorer: ScorerSpec | None = None,
    samples: Path | Sequence[CalibrationSample] | None = None,
    runs: int = 1,
    settings: Settings | None = None,
    folder: Path | None = None,
    variables: Variables | None = None,
    functions: Functions | None = None,
    vars: Mapping[str, Any] | None = None,
    store: Store | None = None,
    judged: Callable[[int, int], None] | None = None,
) -> Calibration:
    """Calibrate a judge with answers of known quality, and store the result.

    `vars` are the values of templates in its instructions; `judged` is called with the number of verdicts so far and
    the total, at the start and after every call.
    """
    check_runs(runs)
    settings, folder = settings or Settings(), folder or Path()
    variables = variables or variables_of(folder)
    marking = _marking_scorer(scorer)
    _check_instructions(judge, vars or {})
    if samples is None or isinstance(samples, Path):
        samples = load_samples(samples, marking.samples())
    store = store or Store()
    async with open_targets(
        [judge.target], folder, variables, concurrency=settings.concurrency, functions=functions
    ) as targets:
        result = await bench.calibrate(
            judge, targets[judge.target.id], marking, samples, settings, runs=runs, vars=vars, judged=judged
        )
    result = msgspec.convert(variables.hide_all(msgspec.to_builtins(result)), Calibration)
    add_calibration(
        store,
        {
            "id": new_id(),
            "judge": result.summary.judge,
            "judge_key": result.judge_key,
            "prompt_hash": result.prompt_hash,
            "rating": result.rating,
            "body": encode(msgspec.to_builtins(result)),
            "created_at": result.summary.created_at,
        },
    )
    return result


async def aattack(
    judge: JudgeSpec,
    *,
    scorer: ScorerSpec | None = None,
    settings: Settings | None = None,
    folder: Path | None = None,
    variables: Variables | None = None,
    functions: Functions | None = None,
    vars: Mapping[str, Any] | None = None,
) -> Resistance:
    """Run a set of attacks on a judge and measure how many change its mark."""
    settings, folder, variables = settings or Settings(), folder or Path(), variables or variables_of(folder)
    marking = _marking_scorer(scorer)
    if marking.samples() is not None:
        raise FairtrialError("attacks are plain texts: use them with --scorer llm_judge or golden_judge")
    _check_instructions(judge, vars or {})
    async with open_targets(
        [judge.target], folder, variables, concurrency=settings.concurrency, functions=functions
    ) as targets:
        result = await bench.calibrate(
            judge, targets[judge.target.id], marking, attack_samples(marking.top_mark()), settings, vars=vars
        )
    if all(sample.actual is None for sample in result.samples):
        raise FairtrialError(f"judge {judge.name} gave no verdict on any sample ({result.samples[0].notes})")
    return resistance(variables.hide(judge.name), [sample.actual for sample in result.samples])


def _marking_scorer(scorer: ScorerSpec | None) -> Scorer:
    """Return the scorer whose judge gives marks: the given one, or its first part that does."""
    for part in marking_parts(scorer or {"type": "llm_judge"}):
        return part
    raise FairtrialError("calibration needs a scorer whose judge gives marks: llm_judge, golden_judge or code_judge")


def unknown_names(judge: JudgeSpec, vars: Mapping[str, Any]) -> list[str]:
    """Return the names in a judge's instructions that only cases give a value, which samples cannot."""
    return sorted(names_in(judge.instructions) - vars.keys() - set(INPUT_NAMES))


def _check_instructions(judge: JudgeSpec, vars: Mapping[str, Any]) -> None:
    if names := unknown_names(judge, vars):
        shown = ", ".join(f"`{name}`" for name in names)
        it, value = ("it", "a value") if len(names) == 1 else ("them", "values")
        raise FairtrialError(
            f"samples have no {shown}, which judge {judge.name} needs: give {it} {value} under `vars` in the suite "
            "(cases keep their own)"
        )


def judges_of(suite: Suite, name: str | None = None, functions: Functions | None = None) -> list[JudgeSpec]:
    """Return a suite's judges, or the one with this name; a judge not in the suite uses the suite's providers."""
    judges = list(suite.settings.judges)
    if name is not None:
        return [judge for judge in judges if judge.name == name] or [
            judge_named(name, suite.variables, suite.folder, suite.text, functions)
        ]
    if not judges:
        raise FairtrialError(f"{suite.file} has no judge: add `judge:` to it, or name one")
    return judges


def as_in_run(store: Store, run_id: str, name: str) -> dict[str, Any]:
    """Return what a calibration needs to ask a judge as a stored run asked it: `judge`, `scorer`, settings, keys.

    A judge that the run did not have uses the providers of its suite.
    """
    record = store.find_run(run_id)
    choice = scoring_choice(store, record.id, record.scoring)
    job = with_judge(store, stored_job(store, record.id, "rescore", {}), choice.get("judge"))
    text = store.plan(job.plan_id).suite_text
    judge = next((one for one in job.settings.judges if one.name == name), None)
    judge = judge or judge_named(name, job.variables, job.folder, text)
    check_keys([judge])
    scorers = scorers_of_job(store, job, choice.get("scorer"))
    return {
        "judge": judge,
        "scorer": next(iter(_marking(scorers)), None),
        "settings": job.settings,
        "folder": job.folder,
        "variables": job.variables,
        "vars": suite_vars(text, job.variables),
    }


def settings_of(suite: Suite) -> dict[str, Any]:
    """Return the other suite settings that a calibration needs."""
    return {
        "settings": suite.settings,
        "folder": suite.folder,
        "variables": suite.variables,
        "functions": suite.functions,
        "vars": suite.vars,
    }


def scorers_of(suite: Suite) -> list[ScorerSpec]:
    """Return every scorer of a suite once, including those of its cases; those of its arms come first."""
    own = [msgspec.json.decode(spec) for spec in sorted(suite.scorers)]
    arms = [arm.scorer for arm in suite.arms]
    return sorted(own, key=lambda spec: arms.index(spec) if spec in arms else len(arms))


def marking_scorers(suite: Suite) -> list[ScorerSpec]:
    """Return the suite's scorers whose judge gives marks; those that ask it the same count as one, the first."""
    return _marking(scorers_of(suite))


def _marking(scorers: Iterable[ScorerSpec]) -> list[ScorerSpec]:
    asked: dict[tuple[str | None, ...], ScorerSpec] = {}
    for spec in scorers:
        if parts := marking_parts(spec):
            asked.setdefault(tuple(without_extract(part).prompt_hash("") for part in parts), spec)
    return list(asked.values())


def calibration_notes(store: Store, suite: Suite, advice: Callable[[JudgeSpec], str]) -> list[str]:
    """Report how the judges of a run were calibrated: with this prompt, with another, or never.

    `advice` says how to calibrate a judge; it may be empty.
    """
    notes = []
    parts = [part for scorer in scorers_of(suite) for part in marking_parts(scorer)]
    for judge in suite.settings.judges if parts else ():
        calibrations = calibrations_of(store, judge_key(judge))
        hashes = {part.prompt_hash(judge.instructions) for part in parts}
        matching = [row for row in calibrations if row["prompt_hash"] in hashes]
        how = f"; {advised}" if (advised := advice(judge)) else ""
        if matching:
            notes.append(f"judge {judge.name}: rated {matching[0]['rating']} when calibrated with this prompt")
        elif calibrations:
            notes.append(f"warning: judge {judge.name} was only calibrated with another prompt{how}")
        else:
            notes.append(f"warning: judge {judge.name} was never calibrated{how}")
    return notes
