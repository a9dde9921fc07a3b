"""k-eval's own definitions, as its documentation and its result files give them; nothing of fairtrial is used here."""

from __future__ import annotations

import hashlib
import json
import re
import statistics
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

METRICS = ("factual_adherence", "completeness", "helpfulness_and_clarity")
REPETITIONS, AT_ONCE = 3, 5  # if a configuration does not say


class Sample(NamedTuple):
    """One question of the golden dataset; numbered from 0, as a text."""

    index: str
    question: str
    answer: str


class Evaluation(NamedTuple):
    """One answer of the agent under a condition, and what the judge said of it."""

    sample: Sample
    condition: str
    repetition: int
    response: str
    marks: dict[str, int]
    claims: tuple[str, ...] = ()


class Pair(NamedTuple):
    """A sample under a condition: mean and deviation of each metric over the repetitions, and all claims once."""

    means: dict[str, float]
    deviations: dict[str, float]
    claims: list[str]


def dataset(content: bytes, question: str, answer: str) -> tuple[list[Sample], str]:
    """Return the samples of a golden dataset, one JSON object per line, and the SHA-256 of the file."""
    rows = [json.loads(line) for line in content.decode().splitlines() if line.strip()]
    samples = [Sample(str(n), str(row[question]), str(row[answer])) for n, row in enumerate(rows)]
    return samples, hashlib.sha256(content).hexdigest()


def filled(value: Any, environment: Mapping[str, str]) -> Any:
    """Return a configuration with its `${VARIABLES}` filled in."""
    if isinstance(value, str):
        return re.sub(r"\$\{(\w+)\}", lambda found: environment[found[1]], value)
    if isinstance(value, dict):
        return {key: filled(item, environment) for key, item in value.items()}
    return [filled(item, environment) for item in value] if isinstance(value, list) else value


def size(samples: int, conditions: int, repetitions: int = REPETITIONS) -> dict[str, int]:
    """Return how much work a run is, and how many results it reports."""
    calls = samples * conditions * repetitions
    return {"agent calls": calls, "judge calls": calls, "reported": samples * conditions}


def waits(attempts: int, first: float, factor: float) -> list[float]:
    """Return the seconds between attempts."""
    return [first * factor**n for n in range(attempts - 1)]


def deviation(values: list[float]) -> float:
    """Return the sample standard deviation; that of one value is 0."""
    return statistics.stdev(values) if len(values) > 1 else 0.0


def pairs(evaluations: Iterable[Evaluation]) -> dict[tuple[str, str], Pair]:
    """Return every sample under every condition."""
    groups: dict[tuple[str, str], list[Evaluation]] = {}
    for one in evaluations:
        groups.setdefault((one.sample.index, one.condition), []).append(one)
    return {place: _pair(sorted(group, key=lambda one: one.repetition)) for place, group in groups.items()}


def _pair(group: list[Evaluation]) -> Pair:
    marks = {name: [float(one.marks[name]) for one in group] for name in METRICS}
    return Pair(
        means={name: statistics.mean(values) for name, values in marks.items()},
        deviations={name: deviation(values) for name, values in marks.items()},
        claims=list(dict.fromkeys(claim for one in group for claim in one.claims)),
    )


def conditions(found: Mapping[tuple[str, str], Pair]) -> dict[str, dict[str, float]]:
    """Return what is reported for each condition: the means of the samples' means and of the samples' deviations."""
    names = dict.fromkeys(condition for _, condition in found)
    results = {}
    for name in names:
        own = [pair for (_, condition), pair in found.items() if condition == name]
        results[name] = {f"{metric}_mean": statistics.mean(pair.means[metric] for pair in own) for metric in METRICS}
        results[name] |= {
            f"{metric}_stddev": statistics.mean(pair.deviations[metric] for pair in own) for metric in METRICS
        }
    return results


def result_files(
    name: str, model: str, sha256: str, temperature: float, evaluations: list[Evaluation]
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return what k-eval writes: one document with the conditions, and a row for every sample under a condition."""
    found = pairs(evaluations)
    count = len({index for index, _ in found})
    results = [
        {
            "evaluation_name": f"{name}/{condition}",
            "source_data": {"source_type": "jsonl_file", "dataset_sha256": sha256, "samples_number": count},
            "metric_config": {"lower_is_better": False, "min_score": 1.0, "max_score": 5.0},
            "score_details": {"score": None, "details": details},
            "generation_config": {"judge_temperature": temperature},
        }
        for condition, details in sorted(conditions(found).items())
    ]
    document = {
        "schema_version": "0.2.1",
        "evaluation_id": "11111111-2222-4333-8444-000000000002",
        "retrieved_timestamp": "1790000000",
        "model_info": {"id": model, "name": model},
        "eval_library": {"name": "k-eval", "version": "1.2.1"},
        "evaluation_results": results,
    }
    return document, [_row(name, model, place, pair, evaluations) for place, pair in sorted(found.items())]


def _row(name: str, model: str, place: tuple[str, str], pair: Pair, evaluations: list[Evaluation]) -> dict[str, Any]:
    own = sorted(
        (one for one in evaluations if (one.sample.index, one.condition) == place), key=lambda one: one.repetition
    )
    details: dict[str, Any] = {"unverified_claims": pair.claims}
    for metric in METRICS:
        details[f"{metric}_mean"] = pair.means[metric]
        details[f"{metric}_stddev"] = pair.deviations[metric]
        details[f"{metric}_reasonings"] = [f"{metric} of repetition {one.repetition}" for one in own]
    return {
        "schema_version": "instance_level_eval_0.2.1",
        "evaluation_id": "11111111-2222-4333-8444-000000000002",
        "model_id": model,
        "evaluation_name": f"{name}/{place[1]}",
        "sample_idx": place[0],
        "interaction_type": "single_turn",
        "input": {"raw": own[0].sample.question, "reference": own[0].sample.answer},
        "output": {"raw": own[0].response, "reasoning_trace": ""},
        "answer_attribution": [],
        "evaluation": {"score": None, "details": details},
        "token_usage": {"input_tokens": None, "output_tokens": None},
        "run_details": [
            {
                "repetition_index": one.repetition,
                "agent_response": one.response,
                "reasoning_trace": "",
                "cost_usd": None,
                "duration_ms": 1000,
                "num_turns": 1,
                **one.marks,
            }
            for one in own
        ],
    }
