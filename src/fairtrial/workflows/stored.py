"""Restoring of stored runs, so that they can be continued or rescored."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from fairtrial.config import embedders_named, judge_named, variables_of
from fairtrial.core.errors import FairtrialError
from fairtrial.core.experiment import JudgeSpec, Settings
from fairtrial.core.scorer import Scorer
from fairtrial.engine.job import Job
from fairtrial.store import Store
from fairtrial.store.todo import Mode


def stored_job(store: Store, run_id: str, mode: Mode, overrides: dict[str, Any]) -> Job:
    """Build the job of a stored run from its plan, with variables filled in from the current environment."""
    record = store.find_run(run_id)
    plan = store.plan(record.plan_id)
    variables = variables_of(Path(plan.folder))
    arms = store.arms(plan, variables)
    settings = msgspec.convert(variables.reveal_all(msgspec.json.decode(record.settings)), Settings)
    missing = set() if mode == "rescore" else set(variables.missing)  # scoring needs no key
    case_variables = variables_of(Path(plan.folder))
    for template in store.case_templates(plan.id):
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
        mode=mode,
        stopped=(record.reason or "decided") if record.status == "stopped" else None,
    )


def with_judge(store: Store, job: Job, judge: str | None) -> Job:
    """Return the job with another judge, if one is given."""
    if judge is None:
        return job
    chosen = judge_named(judge, job.variables, job.folder, store.plan(job.plan_id).suite_text)
    return msgspec.structs.replace(job, settings=msgspec.structs.replace(job.settings, judges=(chosen,)))


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
