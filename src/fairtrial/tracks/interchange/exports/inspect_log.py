"""A run as logs of inspect-ai, one per arm: their headers and numbers; `inspect` and `inspect_json` write the files."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import NamedTuple

import numpy as np

from fairtrial.analyse.run import Run
from fairtrial.analyse.stored_run import Told
from fairtrial.analyse.summary import ArmSummary, RunSummary
from fairtrial.core.errors import FairtrialError
from fairtrial.core.experiment import Arm
from fairtrial.reports.json import iso_time
from fairtrial.store import totals
from fairtrial.tracks.interchange.exports.inspect_sample import Document, sample_of

_VERSION = 2  # of the log format
_SEVERAL = "score"  # the name of the score where cases have scorers of their own
_CONFIG = ("temperature", "top_p", "top_k", "max_tokens", "frequency_penalty", "presence_penalty", "seed")
_PLAIN = re.compile(r"[^A-Za-z0-9.-]+")


class ArmLog(NamedTuple):
    """The log of one arm: `header` is all of it but the samples."""

    arm: Arm
    header: Document
    scorer: str
    model: str

    @property
    def file_name(self) -> str:
        """Return the name under which inspect-ai would store this log."""
        task = self.header["eval"]
        stamp = task["created"].replace(":", "-")
        return f"{stamp}_{_PLAIN.sub('-', task['task'])}_{task['eval_id']}.eval"

    def sample(self, told: Told) -> Document:
        """Return a trial as a sample."""
        return sample_of(told, self.model, self.scorer)


def only_log(run: Run) -> ArmLog:
    """Return the log of a run with one arm."""
    logs = logs_of(run)
    if len(logs) > 1:
        raise FairtrialError(
            f"a log of inspect-ai holds one arm, and this run has {len(logs)}; "
            "write a folder of logs: `fairtrial export RUN --format inspect -o logs/`"
        )
    return logs[0]


def logs_of(run: Run) -> list[ArmLog]:
    """Return the log of every arm of a run, without samples."""
    summary = run.summary()
    scores = totals.case_scores(run.store, run.id, run.plan.id, run.record.scoring)
    metrics = totals.metric_scores(run.store, run.id, run.plan.id, run.record.scoring)
    scorers = totals.scorers(run.store, run.id, run.record.scoring)
    ids = _case_ids(run)
    logs = []
    for arm, arm_summary in zip(run.plan_arms, summary.arms, strict=True):
        names = scorers.get(arm.position) or [arm.scorer["type"]]
        name = names[0] if len(names) == 1 else _SEVERAL
        measured = _Measured(
            name,
            scores.get(arm.position, totals.CaseScores()),
            metrics.get(arm.position, {}),
            arm_summary,
        )
        header = _header(run, summary, arm, arm_summary, measured, ids)
        logs.append(ArmLog(arm, header, name, header["eval"]["model"]))
    return logs


def _case_ids(run: Run) -> list[str]:
    steps = range(0, run.plan.case_count, 2000)
    return [case.id for first in steps for case in run.store.cases(run.plan.id, first, 2000)]


class _Measured(NamedTuple):
    """The scores and metrics of an arm by case."""

    scorer: str
    scores: totals.CaseScores
    metrics: Mapping[str, totals.MetricScores]
    summary: ArmSummary

    @property
    def cluster(self) -> Document:
        return {"cluster": "cluster"} if self.scores.clustered else {}

    def scorers(self) -> list[Document]:
        """Return the scorers as inspect-ai computes its metrics from them."""
        metrics = [
            {"name": "inspect_ai/mean", "options": {}},
            {"name": "inspect_ai/stderr", "options": self.cluster},
        ]
        return [{"name": name, "options": {}, "metrics": metrics, "metadata": {}} for name in self.names()]

    def names(self) -> list[str]:
        return [self.scorer, *(name for name in self.metrics if name != self.scorer)]

    def results(self) -> list[Document]:
        """Return mean and standard error as inspect-ai computes them, and our interval next to them."""
        score = self._result(self.scorer, list(self.scores.means), self.scores.clusters)
        score["metrics"] |= _ours(self.summary)
        cluster_of = dict(zip(self.scores.positions, self.scores.clusters, strict=True))
        others = []
        for name, metric in self.metrics.items():
            means = metric.means()
            clusters = [cluster_of.get(case, -case - 1) for case in means]
            others.append(self._result(name, list(means.values()), clusters))
        return [score, *(other for other in others if other["name"] != self.scorer)]

    def _result(self, name: str, values: Sequence[float], clusters: Sequence[int]) -> Document:
        metrics = {}
        if values:
            error = _clustered(values, clusters) if self.scores.clustered else _standard_error(values)
            metrics = {
                "mean": _metric("mean", float(np.mean(values))),
                "stderr": _metric("stderr", error, self.cluster),
            }
        return {
            "name": name,
            "scorer": name,
            "reducer": "mean",
            "scored_samples": len(values),
            "params": {},
            "metrics": metrics,
        }


def _ours(summary: ArmSummary) -> dict[str, Document]:
    """Return fairtrial's own mean, which has the weights of the cases, and its interval."""
    numbers = summary.aggregate
    if numbers.mean is None:
        return {}
    own = {"weighted_mean": numbers.mean}
    if numbers.ci95 is not None:
        own |= {"ci95_low": numbers.ci95[0], "ci95_high": numbers.ci95[1]}
    return {name: _metric(name, value, {"by": "fairtrial", "method": numbers.method}) for name, value in own.items()}


def _metric(name: str, value: float, params: Document | None = None) -> Document:
    return {"name": name, "value": value, "params": params or {}}


def _standard_error(values: Sequence[float]) -> float:
    return float(np.std(values, ddof=1) / math.sqrt(len(values))) if len(values) > 1 else 0.0


def _clustered(values: Sequence[float], clusters: Sequence[int]) -> float:
    """Return the standard error of a mean over clusters, with the correction for a finite number of them."""
    _, numbers = np.unique(np.asarray(clusters), return_inverse=True)
    deviations = np.asarray(values, float) - np.mean(values)
    count = int(numbers.max()) + 1
    if count < 2:
        return 0.0
    sums = np.bincount(numbers, weights=deviations)
    return float(np.sqrt(np.sum(sums**2) * count / (count - 1)) / len(values))


def _header(
    run: Run, summary: RunSummary, arm: Arm, arm_summary: ArmSummary, measured: _Measured, ids: list[str]
) -> Document:
    spec = arm.target
    model = f"{spec.provider}/{spec.model}" if spec.model else arm.target.id
    created = iso_time(summary.created_at)
    sent = run.sent(arm) or {}
    identity = hashlib.sha256(f"{run.plan.id}/{arm.name}".encode()).hexdigest()
    return {
        "version": _VERSION,
        "status": _status(summary.status, arm_summary.waiting),
        "eval": {
            "eval_id": f"{run.id}-{arm.position}",
            "run_id": run.id,
            "created": created,
            "task": summary.suite,
            "task_id": identity[:22],
            "task_version": 0,
            "task_display_name": f"{summary.suite} ({arm.condition.name})",
            "task_attribs": {},
            "task_args": {"condition": arm.condition.name},
            "task_args_passed": {},
            "dataset": {"name": summary.suite, "samples": len(ids), "sample_ids": ids, "shuffled": False},
            "model": model,
            "model_generate_config": {name: sent[name] for name in _CONFIG if sent.get(name) is not None},
            "model_args": {},
            "config": {"epochs": arm.repeats, "epochs_reducer": ["mean"], "fail_on_error": False, "log_samples": True},
            "packages": {"fairtrial": version("fairtrial")},
            "metadata": {
                "arm": arm.name,
                "target": spec.id,
                "condition": arm.condition.name,
                "dataset_sha256": summary.dataset_sha256,
                "fairtrial_status": summary.status,
            },
            "scorers": measured.scorers(),
        },
        "plan": {"name": "plan", "steps": [{"solver": "fairtrial", "params": {}, "params_passed": {}}], "config": {}},
        "results": {
            "total_samples": arm_summary.trials,
            "completed_samples": arm_summary.scored + arm_summary.unscored,
            "scores": measured.results(),
            "headline": {"scorer": measured.scorer, "score": measured.scorer, "metric": "mean"},
        },
        "stats": {
            "started_at": created,
            "completed_at": iso_time(summary.ended_at) or "",
            "model_usage": {model: _total_usage(arm_summary)},
            "role_usage": {},
        },
        "invalidated": False,
        "tags": [],
        "metadata": {},
    }


def _status(status: str, waiting: int) -> str:
    """Return inspect-ai's word: samples with an error belong to a log that succeeded, missing ones do not."""
    if status == "running":
        return "started"
    return "success" if status in ("completed", "stopped") or not waiting else "cancelled"


def _total_usage(summary: ArmSummary) -> Document:
    prompt, completion = summary.prompt_tokens, summary.completion_tokens
    usage = {"input_tokens": prompt, "output_tokens": completion, "total_tokens": prompt + completion}
    return usage if summary.cost_usd is None else {**usage, "total_cost": summary.cost_usd}
