"""Logs of OpenAI evals: JSONL with the specification, the events of every sample, and a final report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from fairtrial.foreign.results import Columns, Contestant, Log, Question, Sample, Source
from fairtrial.tracks.interchange.results._values import (
    clean_text,
    dict_of,
    expected_of,
    failure_of,
    list_of,
    mark_of,
    milliseconds_of,
    name_of,
    seconds_of,
    usage_of,
)

CORRECT = "correct"


class OpenaiEvals:
    """Reads logs of OpenAI evals."""

    def recognises(self, source: Source) -> bool:
        """The first line is the specification, an event, or the final report."""
        keys = source.first.keys()
        return (
            "eval_name" in dict_of(source.first.get("spec"))
            or {"run_id", "event_id", "sample_id"} <= keys
            or ("final_report" in keys and source.suffix == ".jsonl")
        )

    def read(self, sources: Sequence[Source], columns: Columns) -> Iterator[Log]:
        """Yield one log per file."""
        for source in sources:
            spec: dict[str, Any] = {}
            ended = False
            for row in source.records():
                spec = spec or dict_of(row.get("spec"))
                ended = ended or "final_report" in row
            yield _log(source, spec, ended=ended)


def _log(source: Source, spec: dict[str, Any], *, ended: bool) -> Log:
    functions = list_of(spec.get("completion_fns"))
    arm = name_of((functions[0] if functions else spec.get("model_name")) or "model")
    return Log(
        tool="openai-evals",
        name=name_of(spec.get("eval_name") or spec.get("base_eval") or source.name),
        sources=(source,),
        samples=lambda: _samples(source, arm),
        arms={arm: Contestant(name=arm, model=arm, provider="openai")},
        created=seconds_of(spec.get("created_at")),
        unfinished="" if ended else "the log has no final report: the run was still going, or was stopped",
        missing=["the version of the tool", "what was sent with the requests"],
    )


def _samples(source: Source, arm: str) -> Iterator[Sample]:
    """Yield samples, joined from events, which are written as they happen."""
    events: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for row in source.records():
        if row.get("sample_id") is not None and row.get("type"):
            of_sample = events.setdefault(str(row["sample_id"]), {})
            of_sample.setdefault(str(row["type"]), []).append({**dict_of(row.get("data")), "at": row.get("created_at")})
    for name, by_type in events.items():
        yield _sample(name, arm, by_type)


def _sample(name: str, arm: str, events: dict[str, list[dict[str, Any]]]) -> Sample:
    match = events["match"][-1] if "match" in events else {}
    sampling = events["sampling"][-1] if "sampling" in events else {}
    errors = events.get("error", [])
    scores = {}
    if (correct := mark_of(match.get("correct"))) is not None:
        scores[CORRECT] = correct
    for one in events.get("metrics", []):
        scores |= {name_of(n): mark for n, v in one.items() if n != "at" and (mark := mark_of(v)) is not None}
    sampled = match.get("sampled", sampling.get("sampled"))
    answer = sampled[0] if isinstance(sampled, list) and sampled else sampled
    failed = bool(errors) and not scores
    usage = dict_of(sampling.get("usage"))
    return Sample(
        question=Question(
            id=name_of(name),
            input=clean_text(sampling.get("prompt")),
            expected=expected_of(match.get("expected")),
        ),
        arm=arm,
        repeat=0,
        answer=None if failed else clean_text(answer),
        failure=failure_of(errors[-1].get("message") or errors[-1].get("error") or errors[-1]) if failed else None,
        scores=scores,
        usage=usage_of(usage.get("prompt_tokens"), usage.get("completion_tokens")) if usage else None,
        model=name_of(sampling["model"]) if sampling.get("model") else None,
        started_at=seconds_of(sampling.get("at")),
        latency_ms=milliseconds_of(sampling.get("latency")),
    )
