"""Restoring of stored runs, so that they can be continued or rescored."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from fairtrial.config import embedders_named, judge_named, variables_of
from fairtrial.core.errors import FairtrialError
from fairtrial.core.experiment import ScorerSpec
from fairtrial.core.fingerprint import LENGTH, code_hash
from fairtrial.core.functions import MARK, Functions, is_given, own_name
from fairtrial.core.options import functions_in
from fairtrial.core.scorer import Scorer
from fairtrial.core.settings import JudgeSpec, Settings, target_specs
from fairtrial.core.user_functions import load_function
from fairtrial.engine.job import HERE, Job, Where
from fairtrial.store import Store
from fairtrial.store.arriving import check_arrived
from fairtrial.store.plans import case_scorers, case_templates
from fairtrial.store.todo import Mode


def stored_job(
    store: Store,
    run_id: str,
    mode: Mode,
    overrides: dict[str, Any],
    functions: Functions | None = None,
    where: Where = HERE,
) -> Job:
    """Build the job of a stored run from its plan, with variables filled in from the current environment.

    `functions` are those of the suite that have no importable name.
    """
    record = store.find_run(run_id)
    check_arrived(record)
    plan = store.plan(record.plan_id)
    variables = variables_of(Path(plan.folder))
    arms = store.arms(plan, variables)
    settings = msgspec.convert(variables.reveal_all(msgspec.json.decode(record.settings)), Settings)
    missing = set() if mode == "rescore" else set(variables.missing)  # scoring needs no key
    case_variables = variables_of(Path(plan.folder))
    for template in case_templates(store, plan.id):
        case_variables.reveal(template)
    missing |= case_variables.missing
    if missing:
        names = ", ".join(sorted(missing))
        raise FairtrialError(f"run {record.id} needs {names}: set it in the environment or in a .env file")
    changes = {name: value for name, value in overrides.items() if value is not None}
    return Job(
        run_id=record.id,
        plan_id=plan.id,
        series_id=record.series_id,
        arms=arms,
        settings=msgspec.structs.replace(settings, **changes),
        variables=variables,
        folder=Path(plan.folder),
        functions=functions or {},
        mode=mode,
        where=where,
        stopped=(record.reason or "decided") if record.status == "stopped" else None,
    )


def scorers_of_job(store: Store, job: Job, scorer: ScorerSpec | None = None) -> list[ScorerSpec]:
    """Return what a stored run is scored by: this scorer, or those of its arms and cases."""
    return [scorer] if scorer else [*(arm.scorer for arm in job.arms), *case_scorers(store, job.plan_id)]


def check_functions(store: Store, job: Job, scorer: dict[str, Any] | None = None) -> None:
    """Raise if a function of a stored run cannot be called here, or is not the one that the run began with.

    `scorer` replaces those of the suite.
    """
    names = {name for spec in scorers_of_job(store, job, scorer) for name in functions_in(spec)}
    called = target_specs(() if job.mode == "rescore" else job.arms, job.settings)
    names |= {spec.model for spec in called if spec.kind == "python_call"}
    recorded = msgspec.json.decode(store.find_run(job.run_id).context).get("code") or {}
    for name in sorted(names):
        if reason := _function_problem(name, job, recorded.get(name)):
            raise FairtrialError(f"run {job.run_id} cannot be continued: {reason}")


def _function_problem(name: str, job: Job, recorded: str | None) -> str:
    if is_given(name):
        return _given_problem(name, job)
    if recorded is None:
        return ""
    try:
        function = load_function(name, job.folder)
    except ValueError as error:
        return str(error)
    return "" if code_hash(function) == recorded else _changed(name, recorded)


def _changed(name: str, recorded: str) -> str:
    if len(recorded) != LENGTH:
        return (
            "it was started by an earlier version of fairtrial, whose record of functions cannot be compared with "
            "today's; run the suite again"
        )
    return f"the code of `{own_name(name)}` has changed since it began; run the suite again"


def _given_problem(name: str, job: Job) -> str:
    own = own_name(name)
    if name in job.functions:
        return ""
    if any(own_name(other) == own for other in job.functions):
        return _changed(name, name.partition(MARK)[2].partition("-")[0])
    return (
        f"`{own}` was given in Python and has no importable name; continue it there, with "
        "ft.resume(run, suite=suite), or move the function into a module and run the suite again"
    )


def with_judge(store: Store, job: Job, judge: str | None) -> Job:
    """Return the job with another judge, if one is given."""
    if judge is None:
        return job
    if is_given(judge) and (reason := _function_problem(judge.removeprefix("python:"), job, None)):
        raise FairtrialError(f"run {job.run_id} cannot be judged: {reason}")
    suite_text = store.plan(job.plan_id).suite_text
    chosen = judge_named(judge, job.variables, job.folder, suite_text, job.functions)
    second = (one for one in job.settings.judges if one.share is not None and one.name != chosen.name)
    return msgspec.structs.replace(job, settings=msgspec.structs.replace(job.settings, judges=(chosen, *second)))


def without_second(job: Job) -> Job:
    """Return the job without its second judge, which judges scores only."""
    judges = tuple(one for one in job.settings.judges if one.share is None)
    return msgspec.structs.replace(job, settings=msgspec.structs.replace(job.settings, judges=judges))


def with_embedders(store: Store, job: Job, scorers: Sequence[Scorer]) -> Job:
    """Return the job with the models whose embeddings these scorers need, and no others."""
    names = sorted({name for scorer in scorers for name in scorer.embedders()})
    suite_text = store.plan(job.plan_id).suite_text
    embedders = embedders_named(names, job.variables, job.folder, suite_text) if names else {}
    return msgspec.structs.replace(job, settings=msgspec.structs.replace(job.settings, embedders=embedders))


def check_keys(judges: Sequence[JudgeSpec]) -> None:
    """Raise if the key or address of a stored judge is not set."""
    for judge in judges:
        for text in (judge.target.api_key, judge.target.base_url):
            if text.startswith("${"):
                raise FairtrialError(f"judge {judge.name} needs {text[2:].rstrip('}')}: set it in the environment")
