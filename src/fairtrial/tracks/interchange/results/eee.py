"""Every Eval Ever, versions 0.1.0 to 0.3.0: an aggregate (`ID.json`) and its samples (`ID_samples.jsonl`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from fairtrial.core.errors import FairtrialError
from fairtrial.core.score import Scale
from fairtrial.foreign.results import SCORE, Columns, Contestant, Log, Question, Sample, Source, picked
from fairtrial.tracks.interchange.results._fields import Fields
from fairtrial.tracks.interchange.values import (
    chat_or_text,
    expected_of,
    name_of,
    params_of,
    scrub,
    text_of,
    tidy,
    tool_trace,
    usage_of,
)

_SAMPLES = "_samples.jsonl"


class Eee:
    """Reads samples in the format of Every Eval Ever."""

    def recognises(self, source: Source) -> bool:
        """Both files have a schema's version and an evaluation's id; not those of k-eval."""
        if source.suffix == ".jsonl":
            first = source.first
            return {"schema_version", "evaluation_id", "evaluation"} <= first.keys() and "run_details" not in first
        whole = {"schema_version", "evaluation_results", "model_info"} <= source.keys
        return whole and Fields(source.document).get("eval_library.name") != "k-eval"

    def read(self, sources: Sequence[Source], columns: Columns) -> Iterator[Log]:
        """Yield one log per evaluation."""
        samples = {source.path: source for source in sources if source.suffix == ".jsonl"}
        aggregates: dict[str, Fields] = {}
        for source in sources:
            if source.suffix != ".json":
                continue
            beside, document = source.beside(f"{source.path.name.split('.')[0]}{_SAMPLES}"), Fields(source.document)
            source.release()
            aggregates[str(document.get("evaluation_id"))] = document
            if beside is not None:
                samples.setdefault(beside.path, beside)
            elif not samples:
                raise FairtrialError(f"{source.name} has means alone: put its {_SAMPLES.strip('_')} next to it")
        for source in samples.values():
            if beside := source.beside(f"{source.path.name.split(_SAMPLES)[0]}.json"):
                document = Fields(beside.document)
                aggregates.setdefault(str(document.get("evaluation_id")), document)
            ids = list(dict.fromkeys(str(row.get("evaluation_id")) for row in source.records()))
            for name in ids:
                facts = aggregates.get(name, Fields(None))
                yield _log(source, name, facts, columns, part=name if len(ids) > 1 else "")


def _log(source: Source, evaluation: str, facts: Fields, columns: Columns, part: str) -> Log:
    results, first = facts.records("evaluation_results"), source.first
    library = facts.name("eval_library.name")
    made = f" by {library} {facts.get('eval_library.version') or ''}".rstrip() if library else ""
    arms: dict[str, Contestant] = {}
    if results:
        config = results[0].below("generation_config")
        arm = name_of(facts.get("model_info.id") or first.get("model_id") or "model")
        params = params_of(config.below("generation_args").mapping or config.mapping)
        arms[arm] = Contestant(name=arm, model=arm, params=params if config else None)
    return Log(
        tool="every-eval-ever",
        version=str(facts.get("schema_version") or first.get("schema_version") or ""),
        name=name_of(first.get("evaluation_name") or evaluation),
        part=part,
        sources=(source,),
        samples=lambda: _samples(source, evaluation, columns),
        arms=arms,
        metrics=tuple(dict.fromkeys(_metric(one) for one in results)),
        scales={_metric(one): scale for one in results if (scale := _scale(one, source))},
        created=facts.time("evaluation_timestamp", "retrieved_timestamp"),
        notes=[f"made{made}"] if made else [],
    )


def _metric(row: Fields) -> str:
    return row.name("evaluation_result_id", "metric_config.metric_name", default=SCORE)


def _scale(row: Fields, source: Source) -> Scale | None:
    config = row.below("metric_config")
    low, high = config.number("min_score"), config.number("max_score")
    lower = config.get("lower_is_better")
    if not isinstance(lower, bool | None):
        where = f"{source.name}: `lower_is_better` of the metric `{_metric(row)}`"
        raise FairtrialError(f"{where} must be true or false, since it decides who is better, not {lower!r:.40}")
    if low is None or high is None or low == high:
        return (None, 0.0) if lower else None
    return (high, low) if lower else (low, high)


def _samples(source: Source, evaluation: str, columns: Columns) -> Iterator[Sample]:
    """Yield samples, joined from one row per metric; a metric that comes again begins the next repeat."""
    joined: dict[str, list[dict[str, Fields]]] = {}
    for row in map(Fields, source.records()):
        if str(row.get("evaluation_id")) == evaluation:
            repeats = joined.setdefault(str(row.mapping.get("sample_id", row.get("sample_idx"))), [])
            metric = _metric(row)
            place = next((one for one in repeats if metric not in one), None)
            if place is None:
                repeats.append({metric: row})
            else:
                place[metric] = row
    for name, repeats in joined.items():
        for number, rows in enumerate(repeats):
            yield _sample(name, number, rows, columns)


def _sample(name: str, repeat: int, rows: dict[str, Fields], columns: Columns) -> Sample:
    row = next(iter(rows.values()))
    marks = {metric: one.mark("evaluation.score") for metric, one in rows.items()}
    tokens, latency = row.below("token_usage"), row.number("performance.latency_ms")
    seconds = row.milliseconds("performance.generation_time_s", "performance.latency_s")
    metadata, choices, error = row.tidy("metadata"), row.listed("input.choices"), row.get("error")
    return Sample(
        question=Question(
            id=name_of(name),
            input=scrub(chat_or_text(row.get("input.raw"))),
            expected=_expected(row.get("input.reference"), choices),
            metadata={**metadata, **({"choices": tidy(choices)} if choices else {})},
            **picked(metadata, columns),
        ),
        arm=row.name("model_id", default="model"),
        repeat=repeat,
        answer=None if error else scrub(_answer(row)),
        failure=row.failure("error") if error else None,
        scores={metric: mark for metric, mark in marks.items() if mark is not None},
        unscored={metric: "the score is not recorded" for metric, mark in marks.items() if mark is None},
        usage=usage_of(
            tokens.get("input_tokens"), tokens.get("output_tokens"), reasoning=tokens.get("reasoning_tokens")
        )
        if tokens
        else None,
        latency_ms=latency if latency is not None else seconds,
        trace=tool_trace(row.get("messages")),
    )


def _expected(reference: Any, choices: list[Any]) -> Any:
    given = reference[0] if isinstance(reference, list) and len(reference) == 1 else reference
    if choices and isinstance(given, str) and given.isdigit() and int(given) < len(choices) and given not in choices:
        given = choices[int(given)]
    return expected_of(given)


def _answer(row: Fields) -> str:
    output = row.get("output.raw")
    if isinstance(output, list):
        output = output[0] if output else ""
    if output is None:
        said = [one for one in row.records("messages") if one.get("role") == "assistant"]
        output = said[-1].get("content") if said else ""
    return text_of(output)
