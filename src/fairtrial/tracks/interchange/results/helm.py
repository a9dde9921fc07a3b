"""Runs of HELM: `per_instance_stats.json`, with `run_spec.json` and `scenario_state.json` next to it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from fairtrial.core.errors import FairtrialError
from fairtrial.foreign.results import Columns, Contestant, Log, Question, Sample, Source
from fairtrial.tracks.interchange.results._values import (
    clean_text,
    dict_of,
    expected_of,
    failure_of,
    list_of,
    name_of,
    number_of,
    params_of,
    text_of,
    usage_of,
)

_STATS, _SPEC, _STATE = "per_instance_stats.json", "run_spec.json", "scenario_state.json"
_MAIN = ("exact_match", "quasi_exact_match", "prefix_exact_match", "f1_score", "rouge_l", "bleu_4", "math_equiv")
_TOKENS = ("num_prompt_tokens", "num_completion_tokens", "num_output_tokens")
_MEASURED = (
    "num_",
    "inference_",
    "max_prob",
    "logprob",
    "training_",
    "estimated_",
    "batch_size",
    "finish_reason",
    "prompt_",
)
_PARAMS = (
    "temperature",
    "max_tokens",
    "num_outputs",
    "stop_sequences",
    "max_train_instances",
    "method",
    "num_train_trials",
)


class Helm:
    """Reads runs of HELM."""

    def recognises(self, source: Source) -> bool:
        """The statistics of every instance; the other files of a run are read with them."""
        return source.name == _STATS or (
            source.suffix == ".json" and b'"train_trial_index"' in source.head and b'"stats"' in source.head
        )

    def read(self, sources: Sequence[Source], columns: Columns) -> Iterator[Log]:
        """Yield one log per run."""
        for source in sources:
            yield _log(source)
            source.release()


def _beside(source: Source, name: str) -> Any:
    for path in (source.path.parent / name, source.path.parent / f"{name}.gz"):
        if path.is_file():
            return Source(path).document
    return {}


def _log(source: Source) -> Log:
    instances = list_of(source.document)
    if not instances or "stats" not in dict_of(instances[0]):
        raise FairtrialError(f"{source.name} has no statistics of instances: give {_STATS} of a run of HELM")
    spec, state = dict_of(_beside(source, _SPEC)), dict_of(_beside(source, _STATE))
    adapter = dict_of(spec.get("adapter_spec")) or dict_of(state.get("adapter_spec"))
    arm = name_of(adapter.get("model") or adapter.get("model_deployment") or "model")
    asked = {_key(dict_of(one.get("instance")), one): one for one in reversed(list_of(state.get("request_states")))}
    names = [stat["name"]["name"] for one in instances for stat in list_of(one.get("stats"))]
    known = list(dict.fromkeys(name_of(name) for name in names if not _is_measured(name)))
    suite = str(spec.get("name") or source.path.parent.name or "helm")
    missing = [] if asked else ["what was asked", "the answers"]
    return Log(
        tool="helm",
        name=name_of(suite.split(",model=", maxsplit=1)[0].split(":model=", maxsplit=1)[0]),
        sources=(source,),
        samples=lambda: (_sample(one, asked, arm) for one in instances if not _is_worst(one)),
        arms={arm: Contestant(name=arm, model=arm, params=params_of(adapter, _PARAMS) if adapter else None)},
        metrics=(*(name for name in _MAIN if name in known), *(name for name in known if name not in _MAIN)),
        created=min((when for one in asked.values() if (when := _asked_at(one)) is not None), default=None),
        missing=[*missing, "the version of HELM", *([] if asked else ["when it was run"])],
    )


def _asked_at(state: dict[str, Any]) -> float | None:
    return number_of(dict_of(state.get("result")).get("request_datetime"))


def _perturbation(one: dict[str, Any]) -> str:
    return str(dict_of(one.get("perturbation")).get("name") or "")


def _is_worst(one: dict[str, Any]) -> bool:
    return dict_of(one.get("perturbation")).get("computed_on") == "worst"


def _key(instance: dict[str, Any], one: dict[str, Any]) -> tuple[str, str, int]:
    return str(instance.get("id")), _perturbation(instance), int(one.get("train_trial_index") or 0)


def _is_measured(name: str) -> bool:
    return name.startswith(_MEASURED)


def _sample(one: dict[str, Any], asked: dict[tuple[str, str, int], dict[str, Any]], arm: str) -> Sample:
    perturbed = _perturbation(one)
    key = (str(one.get("instance_id")), perturbed, int(one.get("train_trial_index") or 0))
    scores: dict[str, float] = {}
    measured: dict[str, float] = {}
    for stat in list_of(one.get("stats")):
        name, value = name_of(dict_of(stat.get("name")).get("name")), number_of(stat.get("mean"))
        if (
            value is None
            or not stat.get("count")
            or dict_of(stat["name"].get("perturbation")).get("computed_on") == "worst"
        ):
            continue
        (measured if _is_measured(name) else scores)[name] = value
    state = asked.get(key, {})
    result = dict_of(state.get("result"))
    failed = result.get("success") is False
    seconds = number_of(result.get("request_time")) or measured.get("inference_runtime")
    completion = dict_of(next(iter(list_of(result.get("completions"))), None))
    tokens = [measured.get(name) for name in _TOKENS]
    return Sample(
        question=_question(one, dict_of(state.get("instance")), perturbed),
        arm=arm,
        repeat=key[2],
        answer=_answer(completion, state) if completion and not failed else None,
        failure=failure_of(result.get("error")) if failed else None,
        scores={} if failed else scores,
        usage=usage_of(tokens[0], tokens[1] or tokens[2]) if any(token is not None for token in tokens) else None,
        latency_ms=None if seconds is None else 1000 * seconds,
        finish_reason=text_of(dict_of(completion.get("finish_reason")).get("reason")) or None,
        started_at=_asked_at(state),
    )


def _answer(completion: dict[str, Any], state: dict[str, Any]) -> str:
    """Return what was answered; a letter that stands for a choice becomes the choice, as HELM compares it."""
    text = text_of(completion.get("text"))
    return clean_text(dict_of(state.get("output_mapping")).get(text.strip(), text))


def _question(one: dict[str, Any], instance: dict[str, Any], perturbed: str) -> Question:
    right = [
        dict_of(reference.get("output")).get("text")
        for reference in list_of(instance.get("references"))
        if "correct" in list_of(reference.get("tags"))
    ]
    name = str(one.get("instance_id"))
    return Question(
        id=name_of(f"{name}/{perturbed}" if perturbed else name),
        input=clean_text(dict_of(instance.get("input")).get("text")),
        expected=expected_of([text for text in right if text]),
        category=name_of(instance["split"]) if instance.get("split") else None,
        cluster=name_of(name) if perturbed else None,
    )
