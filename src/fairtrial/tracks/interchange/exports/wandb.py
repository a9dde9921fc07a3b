"""Weights & Biases: a run per arm in one group, with parameters, metrics and a table of its trials, and the report."""

from __future__ import annotations

import tempfile
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from fairtrial.analyse.run import Run
from fairtrial.core.errors import FairtrialError, NotInstalledError
from fairtrial.core.experiment import Arm
from fairtrial.reports.json import trial_document
from fairtrial.tracks.interchange.exports.tracked import COLUMNS, arm_facts, arm_numbers, run_facts, write_files

_MOST_ROWS = 10_000  # of a table, which is held in memory; the file of all trials has the rest


def send(run: Run, address: str | None = None) -> str:
    """Record a run in a project (`project` or `entity/project`), by default one named after the suite."""
    try:
        import wandb
    except ImportError:
        raise NotInstalledError("sending a run to Weights & Biases", "wandb") from None
    entity, _, project = (address or "").rpartition("/")
    project = project or run.record.suite_name.replace("/", "-")
    try:
        return _record(wandb, run, entity or None, project)
    except (wandb.errors.Error, OSError) as error:
        reason = str(error).strip().splitlines()[0]
        raise FairtrialError(
            f"Weights & Biases does not take the run: {reason}; `wandb login` sets the key, WANDB_MODE=offline does "
            "without the service"
        ) from None


def _record(wandb: Any, run: Run, entity: str | None, project: str) -> str:
    summary = run.summary()
    common = {
        "entity": entity,
        "project": project,
        "group": run.id,
        "settings": _settings(wandb),
        "reinit": "finish_previous",
    }
    for arm, numbers in zip(run.plan_arms, summary.arms, strict=True):
        facts = {**run_facts(summary), **arm_facts(run, arm)}
        with wandb.init(**common, name=arm.name, job_type="arm", config=facts) as started:
            started.summary.update(arm_numbers(numbers))
            started.log({"trials": _table(wandb, run, arm)})
    with wandb.init(
        **common, name=f"{summary.suite} {run.id}", job_type="report", config=run_facts(summary)
    ) as started:
        with tempfile.TemporaryDirectory(prefix="fairtrial-") as folder:
            artifact = wandb.Artifact(f"fairtrial-{run.id}", type="evaluation")
            for file in write_files(run, Path(folder)):
                artifact.add_file(str(file), policy="mutable")
            started.log_artifact(artifact)
            if not started.offline:
                artifact.wait()
        where = str(Path(started.dir).parent) if started.offline else started.url
    return str(where)


def _settings(wandb: Any) -> Any:
    """Return settings under which only what is logged leaves: no command line, code, output, packages or machine."""
    return wandb.Settings(
        silent=True,
        console="off",
        save_code=False,
        disable_code=True,
        disable_git=True,
        disable_job_creation=True,
        x_disable_meta=True,
        x_disable_stats=True,
        x_disable_machine_info=True,
        x_save_requirements=False,
    )


def _table(wandb: Any, run: Run, arm: Arm) -> Any:
    own = (trial for trial in run.trials() if trial.arm == arm.name)
    rows = [[_cell(trial_document(trial)[name]) for name in COLUMNS] for trial in islice(own, _MOST_ROWS)]
    return wandb.Table(columns=list(COLUMNS), data=rows, allow_mixed_types=True)


def _cell(value: Any) -> Any:
    return msgspec.json.encode(value).decode() if isinstance(value, list | tuple | dict) else value
