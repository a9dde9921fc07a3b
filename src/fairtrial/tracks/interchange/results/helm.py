"""Runs of HELM: `per_instance_stats.json`, with `run_spec.json` and `scenario_state.json` next to it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fairtrial.core.errors import FairtrialError
from fairtrial.foreign.results import Columns, Contestant, Log, Question, Sample, Source
from fairtrial.tracks.interchange.results._fields import Fields
from fairtrial.tracks.interchange.values import (
    clean_text,
    dict_of,
    expected_of,
    list_of,
    name_of,
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


def _beside(source: Source, name: str) -> Fields:
    found = source.beside(name)
    return Fields(found.document if found else None)


def _log(source: Source) -> Log:
    instances = list_of(source.document)
    if not instances or "stats" not in dict_of(instances[0]):
        raise FairtrialError(f"{source.name} has no statistics of instances: give {_STATS} of a run of HELM")
    spec, state = _beside(source, _SPEC), _beside(source, _STATE)
    adapter = spec.below("adapter_spec") or state.below("adapter_spec")
    arm = adapter.name("model", "model_deployment", default="model")
    states = [Fields(one) for one in reversed(state.listed("request_states"))]
    asked = {_key(one, str(one.get("instance.id")), _perturbation(one.below("instance"))): one for one in states}
    names = [stat["name"]["name"] for one in instances for stat in list_of(one.get("stats"))]
    known = list(dict.fromkeys(name_of(name) for name in names if not name.startswith(_MEASURED)))
    suite = str(spec.get("name") or source.path.parent.name or "helm")
    missing = [] if asked else ["what was asked", "the answers"]
    return Log(
        tool="helm",
        name=name_of(suite.split(",model=", maxsplit=1)[0].split(":model=", maxsplit=1)[0]),
        sources=(source,),
        samples=lambda: (_sample(one, asked, arm) for one in map(Fields, instances) if not _is_worst(one)),
        arms={arm: Contestant(name=arm, model=arm, params=params_of(adapter.mapping, _PARAMS) if adapter else None)},
        metrics=(*(name for name in _MAIN if name in known), *(name for name in known if name not in _MAIN)),
        created=min((when for one in asked.values() if (when := _asked_at(one)) is not None), default=None),
        missing=[*missing, "the version of HELM", *([] if asked else ["when it was run"])],
    )


def _asked_at(state: Fields) -> float | None:
    return state.number("result.request_datetime")


def _perturbation(one: Fields) -> str:
    return str(one.get("perturbation.name") or "")


def _is_worst(one: Fields) -> bool:
    return bool(one.get("perturbation.computed_on") == "worst")


def _key(one: Fields, instance: str, perturbed: str) -> tuple[str, str, int]:
    return instance, perturbed, int(one.get("train_trial_index") or 0)


def _sample(one: Fields, asked: dict[tuple[str, str, int], Fields], arm: str) -> Sample:
    key = _key(one, str(one.get("instance_id")), _perturbation(one))
    scores: dict[str, float] = {}
    measured: dict[str, float] = {}
    for stat in one.records("stats"):
        name, value = stat.name("name.name"), stat.number("mean")
        if value is not None and stat.get("count") and not _is_worst(stat.below("name")):
            (measured if name.startswith(_MEASURED) else scores)[name] = value
    state = asked.get(key, Fields(None))
    result = state.below("result")
    failed = result.get("success") is False
    seconds = result.number("request_time") or measured.get("inference_runtime")
    completion = Fields(next(iter(result.listed("completions")), None))
    tokens = [measured.get(name) for name in _TOKENS]
    return Sample(
        question=_question(key[0], state.below("instance"), key[1]),
        arm=arm,
        repeat=key[2],
        answer=_answer(completion, state) if completion and not failed else None,
        failure=result.failure("error") if failed else None,
        scores={} if failed else scores,
        usage=usage_of(tokens[0], tokens[1] or tokens[2]) if any(token is not None for token in tokens) else None,
        latency_ms=None if seconds is None else 1000 * seconds,
        finish_reason=text_of(completion.get("finish_reason.reason")) or None,
        started_at=_asked_at(state),
    )


def _answer(completion: Fields, state: Fields) -> str:
    """Return what was answered; a letter that stands for a choice becomes the choice, as HELM compares it."""
    text = text_of(completion.get("text"))
    return clean_text(state.below("output_mapping").mapping.get(text.strip(), text))


def _question(name: str, instance: Fields, perturbed: str) -> Question:
    right = [one.get("output.text") for one in instance.records("references") if "correct" in one.listed("tags")]
    return Question(
        id=name_of(f"{name}/{perturbed}" if perturbed else name),
        input=instance.text("input.text"),
        expected=expected_of([text for text in right if text]),
        category=instance.name("split") or None,
        cluster=name_of(name) if perturbed else None,
    )


# fmt: skip  # fmt: skip
