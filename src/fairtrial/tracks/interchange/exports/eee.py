"""Every Eval Ever: the record format of shared evaluation collections, one record per target.

A file holds the record alone; a folder gets records and the rows of their trials where the collection has them.
"""

from __future__ import annotations

import datetime
import hashlib
import re
import uuid
from contextlib import ExitStack
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any

import msgspec

from fairtrial.analyse.run import Run
from fairtrial.analyse.stored_run import Told
from fairtrial.analyse.summary import ArmSummary, RunSummary
from fairtrial.core.errors import FairtrialError
from fairtrial.tracks.interchange.exports.eee_samples import rows

SCHEMA_VERSION = "0.3.0"
_NOT_PLAIN = re.compile(r"[^A-Za-z0-9._-]+")
_GENERATION = ("temperature", "top_p", "top_k", "max_tokens")


def write(run: Run, file: IO[str]) -> None:
    """Write the record of a run with one target, as agent evaluations have."""
    target_records = records(run)
    if len(target_records) > 1:
        raise FairtrialError(
            "a .eee.json file holds one model, and this run has several; export to .eee.jsonl, one record per line"
        )
    file.write(_formatted(target_records[0]))


def _formatted(record: dict[str, Any]) -> str:
    return msgspec.json.format(msgspec.json.encode(record), indent=2).decode() + "\n"


def write_folder(run: Run, folder: Path) -> None:
    """Write the record of every target, and next to it the rows of its trials, in one pass over them."""
    with ExitStack() as stack:
        parts = {}
        for target, record in zip(dict.fromkeys(arm.target.id for arm in run.plan_arms), records(run), strict=True):
            path = Path("data", _plain(run.record.suite_name), *_model_folders(record), _file_name(run, target))
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            parts[target] = stack.enter_context(_RecordFiles(record, folder, path))
        for told in run.told_trials():
            parts[told.trial.target].add(told)


class _RecordFiles:
    """Writes the rows of one record, then the record with their number and checksum."""

    def __init__(self, record: dict[str, Any], folder: Path, path: Path) -> None:
        self._record, self._path, self._place = record, path, folder / path
        self._results: dict[str, dict[str, dict[str, Any]]] = {}
        for result in record["evaluation_results"]:
            arm, metric = result["evaluation_result_id"].split("#", 1)
            self._results.setdefault(arm, {})[metric] = result

    def __enter__(self) -> _RecordFiles:
        self._file = self._place.with_name(f"{self._place.name}_samples.jsonl").open("wb")
        self._checksum, self._rows, self._unscored = hashlib.sha256(), 0, 0
        return self

    def add(self, told: Told) -> None:
        """Add the rows of a trial."""
        lines = [
            msgspec.json.encode(row, enc_hook=repr) + b"\n"
            for row in rows(told, self._record, self._results.get(told.trial.arm.replace("#", "-"), {}))
        ]
        self._unscored += not lines
        for line in lines:
            self._file.write(line)
            self._checksum.update(line)
            self._rows += 1

    def __exit__(self, failed: type[BaseException] | None, *_: object) -> None:
        self._file.close()
        if failed is not None:
            return
        self._record["detailed_evaluation_results"] = {
            "format": "jsonl",
            "file_path": f"{self._path.as_posix()}_samples.jsonl",
            "hash_algorithm": "sha256",
            "checksum": self._checksum.hexdigest(),
            "total_rows": self._rows,
            "additional_details": {"trials_without_a_score": str(self._unscored)},
        }
        self._place.with_name(f"{self._place.name}.json").write_text(_formatted(self._record), "utf-8")


def _model_folders(record: dict[str, Any]) -> tuple[str, str]:
    """Return the folders of a model: its developer, which is the first part of its id, and its name."""
    developer, _, name = record["model_info"]["id"].rpartition("/")
    return _plain(developer or "unknown"), _plain(name)


def _plain(name: str) -> str:
    return _NOT_PLAIN.sub("-", name).strip(".-") or "unnamed"


def _file_name(run: Run, target: str) -> str:
    """Return a UUID that is the same whenever this run is exported."""
    digest = hashlib.sha256(f"{run.id}/{target}".encode()).digest()
    return str(uuid.UUID(bytes=digest[:16], version=4))


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
        "evaluation_timestamp": datetime.datetime.fromtimestamp(summary.created_at, datetime.UTC).isoformat(),
        "retrieved_timestamp": stamp,
        "source_metadata": {
            "source_name": summary.suite,
            "source_type": "evaluation_run",
            "source_organization_name": "unknown",
            "evaluator_relationship": "other",
            "additional_details": {"run_id": summary.run_id, "status": summary.status},
        },
        "eval_library": {"name": "fairtrial", "version": version("fairtrial")},
        "model_info": {
            "name": spec.model or target,
            "id": f"{spec.provider}/{spec.model}" if spec.model else target,
            "additional_details": {"target": target, "deployment_type": "unknown", "model_availability": "unknown"},
        },
        "evaluation_results": [result for arm in arms for result in _results(run, summary, arm)],
    }


def _results(run: Run, summary: RunSummary, arm: ArmSummary) -> list[dict[str, Any]]:
    numbers = arm.aggregate
    if numbers.mean is None:
        return []
    common, name = _common(run, summary, arm), f"{summary.suite}/{arm.condition}"
    error = {} if numbers.std_err is None else {"value": 100 * numbers.std_err, "method": "analytic"}
    uncertainty = {
        **({"standard_error": error} if error else {}),
        **_uncertainty(100, numbers.ci95, numbers.std_dev, method=numbers.method),
        "num_samples": numbers.count,
    }
    results = [_result(name, arm, "", (0.0, 100.0), 100 * numbers.mean, uncertainty, common)]
    for metric, own in arm.metrics.items():
        worst, best = own.scale
        if worst is not None and best is not None:  # the format requires both
            uncertainty = _uncertainty(1, own.ci95, own.std_dev)
            results.append(_result(f"{name}/{metric}", arm, metric, (worst, best), own.mean, uncertainty, common))
    return results


def _uncertainty(unit: int, ci95: tuple[float, float] | None, std_dev: float | None, **method: str) -> dict[str, Any]:
    made: dict[str, Any] = {}
    if ci95:
        low, high = (unit * bound for bound in ci95)
        made["confidence_interval"] = {"lower": low, "upper": high, "confidence_level": 0.95, **method}
    return made if std_dev is None else {**made, "standard_deviation": unit * std_dev}


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
        if (item["server"], item.get("entry", "")) in {(server.name, server.entry) for server in condition.mcp}
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
    name: str,
    arm: ArmSummary,
    metric: str,
    scale: tuple[float, float],
    score: float,
    uncertainty: dict[str, Any],
    common: dict[str, Any],
) -> dict[str, Any]:
    return {
        "evaluation_result_id": f"{arm.arm.replace('#', '-')}#{metric}",  # the key by which rows name their result
        "evaluation_name": name,
        "source_data": common["source_data"],
        "metric_config": {
            "metric_id": f"fairtrial.{metric or 'score'}",
            "metric_name": metric or "score",
            "lower_is_better": scale[1] < scale[0],
            "score_type": "continuous",
            "min_score": min(scale),
            "max_score": max(scale),
        },
        "score_details": {"score": score, **({"uncertainty": uncertainty} if uncertainty else {})},
        "generation_config": common["generation_config"],
    }
