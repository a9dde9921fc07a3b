"""Every number that a tool reports, computed again from our store alone.

A check takes the folder with the files of one tool and yields pairs: what the tool reports, and what the store says.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import fmean, pstdev, stdev
from typing import Any

from fairtrial.analyse.run import Run
from fairtrial.foreign.source import Source, decode
from fairtrial.store import Store
from fairtrial.tracks.interchange.import_results import import_all
from fairtrial.tracks.interchange.results._zip import Zip

Pairs = Iterator[tuple[str, float, float]]


def values_of(run: Run, metric: str, arm: str | None = None) -> dict[str, list[float]]:
    """Return the values of a metric by case; the one that became the score is read back from it."""
    origin = run.record.origin or {}
    values: dict[str, list[float]] = {}
    for trial in run.trials():
        value = trial.metrics.get(metric)
        if value is None and metric == origin["metric"] and trial.score is not None:
            value = trial.raw
        if value is not None and arm in (None, trial.arm):
            values.setdefault(trial.case_id, []).append(value)
    return values


def _flat(values: dict[str, list[float]]) -> list[float]:
    return [value for own in values.values() for value in own]


def _means(values: dict[str, list[float]]) -> list[float]:
    return [fmean(own) for own in values.values()]


def _error(values: list[float]) -> float:
    return stdev(values) / math.sqrt(len(values))


def inspect(folder: Path, store: Store) -> Pairs:
    """Accuracy and standard error of every scorer, over the means of the epochs; tokens."""
    for file in sorted(folder.glob("*.eval")):
        (done,) = import_all(file, store=store)
        with file.open("rb") as opened:
            log = Zip(opened)
            header = decode(next(log.read(member) for member in log.members() if member.name == "header.json"))
        for score in header["results"]["scores"]:
            means = _means(values_of(done.run, score["name"]))
            computed = {"accuracy": fmean(means), "mean": fmean(means), "stderr": _error(means)}
            for name, metric in score["metrics"].items():
                yield f"{score['name']} {name}", metric["value"], computed[name]
        (usage,) = header["stats"]["model_usage"].values()
        trials = list(done.run.trials())
        yield "input tokens", usage["input_tokens"], sum(trial.prompt_tokens or 0 for trial in trials)
        yield "output tokens", usage["output_tokens"], sum(trial.completion_tokens or 0 for trial in trials)


def pydantic_evals(folder: Path, store: Store) -> Pairs:
    """Averages, which the tool prints and does not write."""
    (done,) = import_all(folder / "report.json", store=store)
    averages = _document(folder / "averages.json")
    yield "assertions", averages["assertions"], fmean(_means(values_of(done.run, "assertions")))
    yield "duration", averages["task_duration"], fmean((t.latency_ms or 0) / 1000 for t in done.run.trials())


def promptfoo(folder: Path, store: Store) -> Pairs:
    """Counts and sums of every prompt and provider, from every kind of its files."""
    report = _document(folder / "results.json")["results"]
    for name in ("results.json", "promptfoo.db"):
        (done,) = import_all(folder / name, store=store)
        trials = list(done.run.trials())
        for prompt in report["prompts"]:
            own = [trial for trial in trials if trial.arm == prompt["provider"]]
            metrics = prompt["metrics"]
            yield "passed", metrics["testPassCount"], sum(trial.score == 1 for trial in own)
            yield "failed", metrics["testFailCount"], sum(trial.score == 0 for trial in own)
            yield "errors", metrics["testErrorCount"], sum(trial.status == "failed" for trial in own)
            yield "score", metrics["score"], sum(_flat(values_of(done.run, "score", prompt["provider"])))
            for kind, tokens in (("prompt", "prompt_tokens"), ("completion", "completion_tokens")):
                yield kind, metrics["tokenUsage"][kind], sum(getattr(trial, tokens) or 0 for trial in own)


def lm_eval(folder: Path, store: Store) -> Pairs:
    """Every metric of every filter with its standard error, and the number of samples."""
    for file in sorted(folder.rglob("results_*.json")):
        report = _document(file)
        runs = {one.run.record.suite_name: one.run for one in import_all(file, store=store)}
        for task, results in report["results"].items():
            filters = {key.split(",")[1] for key in results if "," in key}
            yield "samples", report["n-samples"][task]["effective"], runs[task].plan.case_count
            for key, value in results.items():
                if "," not in key or not isinstance(value, int | float):
                    continue
                metric, kind = key.split(",")
                plain = metric.removesuffix("_stderr")
                values = _flat(values_of(runs[task], f"{plain},{kind}" if len(filters) > 1 else plain))
                yield f"{task} {key}", value, (fmean if plain == metric else _error)(values)


def deepeval(folder: Path, store: Store) -> Pairs:
    """Sums, passes, failures and errors of every metric, and of the cases."""
    for file in sorted(folder.glob("test_run_*.json*")):
        report = _document(file)
        (done,) = import_all(file, store=store)
        passed = _flat(values_of(done.run, "pass"))
        yield "passed", report["testPassed"], passed.count(1)
        yield "failed", report["testFailed"], passed.count(0)
        limits = {data["name"]: data["threshold"] for case in report["testCases"] for data in case["metricsData"]}
        for one in report["metricsScores"]:
            values = _flat(values_of(done.run, one["metric"]))
            yield f"{one['metric']} scores", len(one["scores"]), len(values)
            yield f"{one['metric']} sum", math.fsum(one["scores"]), math.fsum(values)
            yield f"{one['metric']} passes", one["passes"], sum(v >= limits[one["metric"]] for v in values)
            yield f"{one['metric']} fails", one["fails"], sum(v < limits[one["metric"]] for v in values)
            yield f"{one['metric']} errors", one["errors"], len(passed) - len(values)


def k_eval(folder: Path, store: Store) -> Pairs:
    """Mean and standard deviation of every mark under every condition."""
    for file in sorted(folder.glob("*.json")):
        (done,) = import_all(file, store=store)
        for result in _document(file)["evaluation_results"]:
            for key, value in result["score_details"]["details"].items():
                metric, _, what = key.rpartition("_")
                cases = values_of(done.run, metric, result["evaluation_name"].split("/")[1]).values()
                yield f"{result['evaluation_name']} {key}", value, fmean(map(fmean if what == "mean" else stdev, cases))


_HELM_TOKENS = {"num_prompt_tokens": "prompt_tokens", "num_completion_tokens": "completion_tokens"}


def helm(folder: Path, store: Store) -> Pairs:
    """Mean, least, most and spread over the trials of every metric that has values of single instances."""
    for file in sorted(folder.rglob("per_instance_stats.json*")):
        (done,) = import_all(file, store=store)
        trials = list(done.run.trials())
        for stat in _document(next(file.parent.glob("stats.json*"))):
            name, perturbed = stat["name"]["name"], stat["name"].get("perturbation", {})
            if perturbed.get("computed_on") in ("worst", "original") or not stat["count"]:
                continue  # made of several instances, or said once more
            values: dict[int, list[float]] = {}
            for trial in trials:
                value = _helm_value(trial, name, done.origin["metric"])
                if value is not None and trial.case_id.partition("/")[2] == perturbed.get("name", ""):
                    values.setdefault(trial.repeat, []).append(value)
            if not values:
                continue  # no values of single instances, such as a macro F1
            means = [fmean(own) for own in values.values()]
            label = f"{name} {perturbed.get('name', '')}"
            yield f"{label} mean", stat["mean"], fmean(means)
            yield f"{label} min", stat["min"], min(means)
            yield f"{label} max", stat["max"], max(means)
            yield f"{label} spread", stat["stddev"], pstdev(means)


def _helm_value(trial: Any, name: str, metric: str) -> float | None:
    if name in _HELM_TOKENS:
        return float(getattr(trial, _HELM_TOKENS[name]))
    if name == "inference_runtime":
        return float(trial.latency_ms / 1000)
    value = trial.metrics.get(name)
    return trial.raw if value is None and name == metric else value


def _document(file: Path) -> Any:
    return Source(file).document


CHECKS: dict[str, Callable[[Path, Store], Pairs]] = {
    "inspect": inspect,
    "pydantic-evals": pydantic_evals,
    "promptfoo": promptfoo,
    "lm-eval": lm_eval,
    "deepeval": deepeval,
    "k-eval": k_eval,
    "helm": helm,
}


def differing(pairs: Pairs) -> tuple[int, list[str]]:
    """Return the number of pairs, and those whose values differ by more than rounding."""
    count, wrong = 0, []
    for name, reported, computed in pairs:
        count += 1
        if not math.isclose(reported, computed, rel_tol=1e-12, abs_tol=1e-12):
            wrong.append(f"{name}: reported {reported!r}, computed {computed!r}")
    return count, wrong
