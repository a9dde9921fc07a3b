"""MLflow: a run per arm under one parent, with parameters, metrics, a table of the trials, and the report."""

from __future__ import annotations

import json
import logging
import os
import re
import tempfile
import time
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fairtrial.analyse.run import Run
from fairtrial.analyse.summary import RunSummary
from fairtrial.core.errors import FairtrialError, NotInstalledError
from fairtrial.core.experiment import Arm
from fairtrial.reports.json import trial_document
from fairtrial.tracks.interchange.exports.tracked import (
    COLUMNS,
    arm_facts,
    arm_numbers,
    run_facts,
    shown_address,
    write_files,
)

_NOT_IN_NAMES = re.compile(r"[^\w\-. :/]")
_MAX_VALUE = 6000  # characters that MLflow stores of a parameter
_TABLE = "trials.json"


def send(run: Run, address: str | None = None) -> str:
    """Record a run at a tracking address, by default at the one that MLflow is configured with; return where it is."""
    try:
        import mlflow
        from mlflow.exceptions import MlflowException
    except ImportError:
        raise NotInstalledError("sending a run to MLflow", "mlflow") from None
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "2")  # seven by default: minutes, if nobody listens
    tracking = address or mlflow.get_tracking_uri()
    logging.getLogger("mlflow").setLevel(logging.WARNING)
    try:
        with warnings.catch_warnings(action="ignore"):  # what its own code will have to change is nothing to our users
            experiment, parent = _record(mlflow.MlflowClient(tracking_uri=tracking), run)
    except (MlflowException, OSError) as error:
        shown = shown_address(tracking)
        reason = str(error).splitlines()[0].replace(tracking, shown)
        raise FairtrialError(f"MLflow at {shown} does not take the run: {reason}") from None
    return f"{shown_address(tracking)}: experiment {experiment}, run {parent}"


def _record(client: Any, run: Run) -> tuple[str, str]:
    summary = run.summary()
    experiment = client.get_experiment_by_name(summary.suite)
    number = experiment.experiment_id if experiment else client.create_experiment(summary.suite)
    parent = _start(client, number, f"{summary.suite} {run.id}", summary)
    _log(client, parent, run_facts(summary), {})
    for arm, numbers in zip(run.plan_arms, summary.arms, strict=True):
        child = _start(client, number, arm.name, summary, {"mlflow.parentRunId": parent})
        _log(client, child, arm_facts(run, arm), arm_numbers(numbers))
        _log_trials(client, child, run, arm)
        _end(client, child, summary)
    with tempfile.TemporaryDirectory(prefix="fairtrial-") as folder:
        for file in write_files(run, Path(folder)):
            client.log_artifact(parent, str(file))
    _end(client, parent, summary)
    return summary.suite, parent


def _start(client: Any, experiment: str, name: str, summary: RunSummary, tags: Mapping[str, str] = {}) -> str:
    tags = {"fairtrial.run_id": summary.run_id, **tags}
    started = client.create_run(experiment, start_time=int(1000 * summary.created_at), run_name=name, tags=tags)
    return str(started.info.run_id)


def _end(client: Any, run_id: str, summary: RunSummary) -> None:
    done = summary.status in ("completed", "stopped")
    ended = summary.ended_at or time.time()
    client.set_terminated(run_id, "FINISHED" if done else "FAILED", end_time=int(1000 * ended))


def _log(client: Any, run_id: str, params: Mapping[str, Any], metrics: Mapping[str, float]) -> None:
    for name, value in params.items():
        client.log_param(run_id, _NOT_IN_NAMES.sub("_", name), str(value)[:_MAX_VALUE])
    for name, number in metrics.items():
        client.log_metric(run_id, _NOT_IN_NAMES.sub("_", name), number)


def _log_trials(client: Any, run_id: str, run: Run, arm: Arm) -> None:
    """Log the trials of an arm as a table in MLflow's own form, written trial by trial."""
    with tempfile.TemporaryDirectory(prefix="fairtrial-") as folder:
        path = Path(folder, _TABLE)
        with path.open("w", encoding="utf-8") as file:
            file.write(f'{{"columns": {json.dumps(COLUMNS)}, "data": [')
            separator = "\n"
            for trial in run.trials():
                if trial.arm == arm.name:
                    document = trial_document(trial)
                    file.write(separator + json.dumps([document[name] for name in COLUMNS], ensure_ascii=False))
                    separator = ",\n"
            file.write("]}\n")
        client.log_artifact(run_id, str(path))
    client.set_tag(run_id, "mlflow.loggedArtifacts", json.dumps([{"path": _TABLE, "type": "table"}]))
