"""Every Eval Ever: the aggregate record format of shared evaluation collections, one record per target."""

from __future__ import annotations

import datetime
from importlib.metadata import version
from typing import IO, Any

import msgspec

from fairtrial.analyse import Run
from fairtrial.analyse.summary import ArmSummary, RunSummary
from fairtrial.core.errors import FairtrialError
from fairtrial.core.score import Scale

SCHEMA_VERSION = "0.2.2"
_GENERATION = ("temperature", "top_p", "top_k", "max_tokens")


def write(run: Run, file: IO[str]) -> None:
    """Write the record of a run with one target, as agent evaluations have."""
    target_records = records(run)
    if len(target_records) > 1:
        raise FairtrialError(
            "a .eee.json file holds one model, and this run has several; export to .eee.jsonl, one record per line"
        )
    file.write(msgspec.json.format(msgspec.json.encode(target_records[0]), indent=2).decode() + "\n")


def records(run: Run) -> list[dict[str, Any]]:
    """Return one record for each target of a run, with its conditions and metrics as results."""
    summary = run.summary()
    targets = dict.fromkeys(arm.target for arm in summary.arms)
    return [_record(run, summary, target) for target in targets]


def _record(run: Run, summary: RunSummary, target: str) -> dict[str, Any]:
    arms = [arm for arm in summary.arms if arm.target == target]
    spec = next(arm.target for arm in run.plan_arms if arm.target.id == target)
    stamp = f"{summary.created_at:.0f}"
    return {
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": f"{summary.suite}/{target}/{stamp}",
        "evaluation_timestamp": _time(summary.created_at),
        "retrieved_timestamp": stamp,
        "source_metadata": {
            "source_name": summary.suite,
            "source_type": "evaluation_run",
            "source_organization_name": "unknown",
            "evaluator_relationship": "other",
            "additional_details": {"run_id": summary.run_id, "status": summary.status},
        },
        "eval_library": {"name": "fairtrial", "version": version("fairtrial")},
        "model_info": {"name": spec.model or target, "id": f"{spec.provider}/{spec.model}" if spec.model else target},
        "evaluation_results": [result for arm in arms for result in _results(run, summary, arm)],
    }


def _results(run: Run, summary: RunSummary, arm: ArmSummary) -> list[dict[str, Any]]:
    if arm.aggregate.mean is None:
        return []
    numbers = arm.aggregate
    common = _common(run, summary, arm)
    score = _result(
        f"{summary.suite}/{arm.condition}",
        common,
        (0.0, 100.0),
        100 * arm.aggregate.mean,
        {
            "standard_error": 100 * numbers.std_err if numbers.std_err is not None else None,
            "ci95": [100 * bound for bound in numbers.ci95] if numbers.ci95 else None,
            "std_dev": 100 * numbers.std_dev if numbers.std_dev is not None else None,
            "count": numbers.count,
            "method": numbers.method,
        },
    )
    others = [
        _result(
            f"{summary.suite}/{arm.condition}/{name}",
            common,
            _both_bounds(metric.scale),
            metric.mean,
            {"ci95": list(metric.ci95) if metric.ci95 else None, "std_dev": metric.std_dev},
        )
        for name, metric in arm.metrics.items()
        if None not in metric.scale
    ]
    return [score, *others]


def _both_bounds(scale: Scale) -> tuple[float, float]:
    """Return the worst and the best value of a scale; the format requires both."""
    assert scale[0] is not None and scale[1] is not None
    return scale[0], scale[1]


def _common(run: Run, summary: RunSummary, arm: ArmSummary) -> dict[str, Any]:
    """Return the data and parameter entries that all results of an arm share."""
    condition = next(a.condition for a in run.plan_arms if a.name == arm.arm)
    sent = arm.params or {}
    arguments: dict[str, Any] = {name: sent[name] for name in _GENERATION if name in sent}
    if condition.system:
        arguments["prompt_template"] = condition.system
    tools = [
        {"name": f"{item['server']}.{tool['name']}"}
        for item in run.context.get("mcp_servers") or ()
        if item["server"] in {server.name for server in condition.mcp}
        for tool in item["tools"]
    ]
    if tools:
        arguments["agentic_eval_config"] = {"available_tools": tools}
    details: dict[str, Any] = {
        "condition": arm.condition,
        "trials": arm.trials,
        "scored": arm.scored,
        "failed": arm.failed,
    }
    if arm.params is None:
        details["parameters"] = "not recorded"
    return {
        "source_data": {
            "dataset_name": summary.suite,
            "source_type": "other",
            "additional_details": {"sha256": summary.dataset_sha256, "cases": str(summary.case_count)},
        },
        "generation_config": {
            "generation_args": arguments,
            "additional_details": {name: str(value) for name, value in details.items()},
        },
    }


def _result(
    name: str, common: dict[str, Any], scale: tuple[float, float], score: float, spread: dict[str, Any]
) -> dict[str, Any]:
    uncertainty: dict[str, Any] = {}
    if spread.get("standard_error") is not None:
        uncertainty["standard_error"] = {"value": spread["standard_error"], "method": "analytic"}
    if spread.get("ci95"):
        low, high = spread["ci95"]
        method = {"method": spread["method"]} if "method" in spread else {}
        uncertainty["confidence_interval"] = {"lower": low, "upper": high, "confidence_level": 0.95, **method}
    if spread.get("std_dev") is not None:
        uncertainty["standard_deviation"] = spread["std_dev"]
    if spread.get("count") is not None:
        uncertainty["num_samples"] = spread["count"]
    return {
        "evaluation_name": name,
        "source_data": common["source_data"],
        "metric_config": {
            "lower_is_better": scale[1] < scale[0],
            "score_type": "continuous",
            "min_score": min(scale),
            "max_score": max(scale),
        },
        "score_details": {"score": score, **({"uncertainty": uncertainty} if uncertainty else {})},
        "generation_config": common["generation_config"],
    }


def _time(seconds: float) -> str:
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).isoformat()
