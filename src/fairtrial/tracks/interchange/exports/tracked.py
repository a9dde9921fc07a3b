"""What tracking services record of a run: parameters and numbers of every arm, and files."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from fairtrial.analyse.run import Run
from fairtrial.analyse.summary import ArmSummary, RunSummary
from fairtrial.core.experiment import Arm
from fairtrial.reports.export import export

# What a table of trials shows; the file of all trials has everything.
COLUMNS = (
    "case_id", "arm", "repeat", "status", "input", "expected", "answer", "score", "scorer", "notes", "category", "tags",
    "failure_kind", "failure_message", "unscored_kind", "unscored_message", "latency_ms", "prompt_tokens",
    "completion_tokens", "cost_usd", "trial_id",
)  # fmt: skip


def run_facts(summary: RunSummary) -> dict[str, Any]:
    """Return what identifies a run."""
    return {
        "suite": summary.suite,
        "run_id": summary.run_id,
        "status": summary.status,
        "cases": summary.case_count,
        "dataset_sha256": summary.dataset_sha256,
        "fairtrial": version("fairtrial"),
    }


def arm_facts(run: Run, arm: Arm) -> dict[str, Any]:
    """Return how an arm was set up: never its keys, headers or address."""
    facts = {
        "arm": arm.name,
        "target": arm.target.id,
        "provider": arm.target.provider,
        "model": arm.target.model,
        "condition": arm.condition.name,
        "scorer": arm.scorer["type"],
        "repeats": arm.repeats,
    }
    return {**facts, **{f"params.{name}": value for name, value in (run.sent(arm) or {}).items()}}


def arm_numbers(arm: ArmSummary) -> dict[str, float]:
    """Return the numbers of an arm that are known; scores are 0–100, metrics on their own scales."""
    numbers = arm.aggregate
    low, high = numbers.ci95 or (None, None)
    score = {"score": numbers.mean, "score.ci95_low": low, "score.ci95_high": high, "score.std_dev": numbers.std_dev}
    values: dict[str, float | None] = {name: None if v is None else 100 * v for name, v in score.items()}
    for name, metric in arm.metrics.items():
        low, high = metric.ci95 or (None, None)
        values |= {name: metric.mean, f"{name}.ci95_low": low, f"{name}.ci95_high": high}
    values |= {
        "trials": arm.trials,
        "scored": arm.scored,
        "failed": arm.failed,
        "unscored": arm.unscored,
        "cost_usd": arm.cost_usd,
        "prompt_tokens": arm.prompt_tokens,
        "completion_tokens": arm.completion_tokens,
        "latency_ms.p50": arm.latency_ms.p50,
        "latency_ms.p95": arm.latency_ms.p95,
    }
    return {name: float(value) for name, value in values.items() if value is not None}


def write_files(run: Run, folder: Path) -> list[Path]:
    """Write the files that go along: the report, and every trial."""
    return [export(run, folder / "report.html"), export(run, folder / "trials.jsonl")]


def shown_address(address: str) -> str:
    """Return an address without the password or token in it."""
    parts = urlsplit(address)
    if not parts.netloc:
        return address
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
