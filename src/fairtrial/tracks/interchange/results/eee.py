"""Every Eval Ever, versions 0.1.0 to 0.3.0: an aggregate (`ID.json`) and its samples (`ID_samples.jsonl`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from fairtrial.core.errors import FairtrialError
from fairtrial.core.score import Scale
from fairtrial.foreign.results import SCORE, Columns, Contestant, Log, Question, Sample, Source, picked
from fairtrial.tracks.interchange.results._values import (
    chat_or_text,
    dict_of,
    expected_of,
    failure_of,
    list_of,
    mark_of,
    name_of,
    number_of,
    params_of,
    scrub,
    seconds_of,
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
        return {"schema_version", "evaluation_results", "model_info"} <= source.keys and (
            dict_of(source.document.get("eval_library")).get("name") != "k-eval"
        )

    def read(self, sources: Sequence[Source], columns: Columns) -> Iterator[Log]:
        """Yield one log per evaluation."""
        samples = {source.path: source for source in sources if source.suffix == ".jsonl"}
        aggregates: dict[str, dict[str, Any]] = {}
        for source in sources:
            if source.suffix != ".json":
                continue
            found = [
                source.path.parent / f"{source.path.name.split('.')[0]}{_SAMPLES}{packed}" for packed in ("", ".gz")
            ]
            beside = next((path for path in found if path.is_file()), None)
            document = dict_of(source.document)
            source.release()
            aggregates[str(document.get("evaluation_id"))] = document
            if beside is not None:
                samples.setdefault(beside, Source(beside))
            elif not samples:
                raise FairtrialError(f"{source.name} has means alone: put its {_SAMPLES.strip('_')} next to it")
        for source in samples.values():
            stem = source.path.name.split(_SAMPLES)[0]
            beside = source.path.parent / f"{stem}.json"
            if beside.is_file():
                document = dict_of(Source(beside).document)
                aggregates.setdefault(str(document.get("evaluation_id")), document)
            yield from _logs(source, aggregates, columns)


def _logs(source: Source, aggregates: dict[str, dict[str, Any]], columns: Columns) -> Iterator[Log]:
    ids = list(dict.fromkeys(str(row.get("evaluation_id")) for row in source.records()))
    for name in ids:
        yield _log(source, name, aggregates.get(name, {}), columns, part=name if len(ids) > 1 else "")


def _log(source: Source, evaluation: str, facts: dict[str, Any], columns: Columns, part: str) -> Log:
    results = [one for one in list_of(facts.get("evaluation_results")) if isinstance(one, dict)]
    library = dict_of(facts.get("eval_library"))
    made = f" by {name_of(library['name'])} {library.get('version') or ''}".rstrip() if library.get("name") else ""
    first = source.first
    arms: dict[str, Contestant] = {}
    if results:
        config = dict_of(results[0].get("generation_config"))
        arm = name_of(dict_of(facts.get("model_info")).get("id") or first.get("model_id") or "model")
        params = params_of(dict_of(config.get("generation_args")) or config)
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
        scales={_metric(one): scale for one in results if (scale := _scale(dict_of(one.get("metric_config"))))},
        created=seconds_of(facts.get("evaluation_timestamp") or facts.get("retrieved_timestamp")),
        notes=[f"made{made}"] if made else [],
    )


def _metric(row: dict[str, Any]) -> str:
    config = dict_of(row.get("metric_config"))
    return name_of(row.get("evaluation_result_id") or config.get("metric_name") or SCORE)


def _scale(config: dict[str, Any]) -> Scale | None:
    low, high = number_of(config.get("min_score")), number_of(config.get("max_score"))
    lower = bool(config.get("lower_is_better"))
    if low is None or high is None or low == high:
        return (None, 0.0) if lower else None
    return (high, low) if lower else (low, high)


def _samples(source: Source, evaluation: str, columns: Columns) -> Iterator[Sample]:
    """Yield samples, joined from one row per metric; a metric that comes again begins the next repeat."""
    joined: dict[str, list[dict[str, dict[str, Any]]]] = {}
    for row in source.records():
        if str(row.get("evaluation_id")) == evaluation:
            repeats = joined.setdefault(str(row.get("sample_id", row.get("sample_idx"))), [])
            metric = _metric(row)
            place = next((one for one in repeats if metric not in one), None)
            if place is None:
                repeats.append({metric: row})
            else:
                place[metric] = row
    for name, repeats in joined.items():
        for number, rows in enumerate(repeats):
            yield _sample(name, number, rows, columns)


def _sample(name: str, repeat: int, rows: dict[str, dict[str, Any]], columns: Columns) -> Sample:
    row = next(iter(rows.values()))
    marks = {metric: mark_of(dict_of(one.get("evaluation")).get("score")) for metric, one in rows.items()}
    tokens, performance = dict_of(row.get("token_usage")), dict_of(row.get("performance"))
    latency = number_of(performance.get("latency_ms"))
    seconds = number_of(performance.get("generation_time_s") or performance.get("latency_s"))
    asked = dict_of(row.get("input"))
    metadata = tidy(dict_of(row.get("metadata")))
    choices = list_of(asked.get("choices"))
    error = row.get("error")
    return Sample(
        question=Question(
            id=name_of(name),
            input=scrub(chat_or_text(asked.get("raw"))),
            expected=_expected(asked.get("reference"), choices),
            metadata={**metadata, **({"choices": tidy(choices)} if choices else {})},
            **picked(metadata, columns),
        ),
        arm=name_of(row.get("model_id") or "model"),
        repeat=repeat,
        answer=None if error else scrub(_answer(row)),
        failure=failure_of(error) if error else None,
        scores={metric: mark for metric, mark in marks.items() if mark is not None},
        unscored={metric: "the score is not recorded" for metric, mark in marks.items() if mark is None},
        usage=usage_of(
            tokens.get("input_tokens"), tokens.get("output_tokens"), reasoning=tokens.get("reasoning_tokens")
        )
        if tokens
        else None,
        latency_ms=latency if latency is not None else 1000 * seconds if seconds is not None else None,
        trace=tool_trace(row.get("messages")),
    )


def _expected(reference: Any, choices: list[Any]) -> Any:
    given = reference[0] if isinstance(reference, list) and len(reference) == 1 else reference
    if choices and isinstance(given, str) and given.isdigit() and int(given) < len(choices) and given not in choices:
        given = choices[int(given)]
    return expected_of(given)


def _answer(row: dict[str, Any]) -> str:
    output = dict_of(row.get("output")).get("raw")
    if isinstance(output, list):
        output = output[0] if output else ""
    if output is None:
        said = [one for one in list_of(row.get("messages")) if dict_of(one).get("role") == "assistant"]
        output = said[-1].get("content") if said else ""
    return text_of(output)
