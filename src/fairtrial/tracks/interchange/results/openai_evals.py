"""Logs of OpenAI evals: JSONL with the specification, the events of every sample, and a final report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from fairtrial.foreign.results import Columns, Contestant, Log, Question, Sample, Source
from fairtrial.tracks.interchange.results._fields import Fields
from fairtrial.tracks.interchange.values import clean_text, dict_of, failure_of, mark_of, name_of

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
            yield _log(source, Fields(spec), ended=ended)


def _log(source: Source, spec: Fields, *, ended: bool) -> Log:
    functions = spec.listed("completion_fns")
    arm = name_of((functions[0] if functions else spec.get("model_name")) or "model")
    return Log(
        tool="openai-evals",
        name=spec.name("eval_name", "base_eval", default=source.name),
        sources=(source,),
        samples=lambda: _samples(source, arm),
        arms={arm: Contestant(name=arm, model=arm, provider="openai")},
        created=spec.time("created_at"),
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
    match, sampling = (Fields(events[kind][-1] if kind in events else None) for kind in ("match", "sampling"))
    errors = events.get("error", [])
    scores = {}
    if (correct := match.mark("correct")) is not None:
        scores[CORRECT] = correct
    for one in events.get("metrics", []):
        scores |= {name_of(n): mark for n, v in one.items() if n != "at" and (mark := mark_of(v)) is not None}
    sampled = match.mapping.get("sampled", sampling.get("sampled"))
    answer = sampled[0] if isinstance(sampled, list) and sampled else sampled
    failed = bool(errors) and not scores
    return Sample(
        question=Question(id=name_of(name), input=sampling.text("prompt"), expected=match.expected("expected")),
        arm=arm,
        repeat=0,
        answer=None if failed else clean_text(answer),
        failure=failure_of(errors[-1].get("message") or errors[-1].get("error") or errors[-1]) if failed else None,
        scores=scores,
        usage=sampling.usage("usage.prompt_tokens", "usage.completion_tokens"),
        model=sampling.name("model") or None,
        started_at=sampling.time("at"),
        latency_ms=sampling.milliseconds("latency"),
    )
