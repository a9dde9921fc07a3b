"""Test runs of DeepEval: `test_run_*.json`, the same as `.deepeval/.latest_run_full.json`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from fairtrial.core.trace import ToolCall, Trace, short
from fairtrial.foreign.results import Columns, Contestant, Log, Question, Sample, Source, picked
from fairtrial.tracks.interchange.results._fields import Fields
from fairtrial.tracks.interchange.values import name_of, tidy

PASS = "pass"  # noqa: S105


class Deepeval:
    """Reads test runs of DeepEval."""

    def recognises(self, source: Source) -> bool:
        """A test run has test cases and the scores of every metric."""
        return "testCases" in source.keys and bool({"metricsScores", "conversationalTestCases"} & source.keys)

    def read(self, sources: Sequence[Source], columns: Columns) -> Iterator[Log]:
        """Yield one log per file."""
        for source in sources:
            yield _log(source, columns)
            source.release()


def _log(source: Source, columns: Columns) -> Log:
    document = Fields(source.document)
    name = document.name("hyperparameters.model", "identifier", default=source.name.removesuffix(".json"))
    metrics = [one.name("metric") for one in document.records("metricsScores")]
    cases = [*document.listed("testCases"), *document.listed("conversationalTestCases")]
    return Log(
        tool="deepeval",
        name=document.name("testFile", "datasetAlias", default="deepeval"),
        sources=(source,),
        samples=lambda: (_sample(Fields(case), name, columns) for case in cases),
        arms={name: Contestant(name=name, model=name, params=document.params("hyperparameters"))},
        metrics=(*metrics, PASS),
        notes=["a metric that could not be computed has no score here; DeepEval counts it as failed in `pass`"],
        missing=["when it was run", "the version of DeepEval", "calls of the model that failed"],
    )


def _sample(case: Fields, arm: str, columns: Columns) -> Sample:
    scores, unscored, notes = {}, {}, {}
    for metric in map(Fields, case.listed("metricsData")):
        name, mark = metric.name("name"), metric.mark("score")
        if mark is None:
            unscored[name] = metric.text("error") or "DeepEval recorded no score"
        else:
            scores[name] = mark
        if metric.get("reason"):
            notes[name] = metric.text("reason")
    if isinstance(case.get("success"), bool):
        scores[PASS] = float(case.get("success"))
    given = {name: case.get(name) for name in ("context", "expectedTools") if case.get(name)}
    metadata = tidy({**given, **case.below("metadata").mapping, **case.below("additionalMetadata").mapping})
    context = tidy(case.listed("retrievalContext"))
    return Sample(
        question=Question(
            id=name_of(case.mapping.get("name") or case.mapping.get("order", "case")),
            input=case.text("input") or _turns(case),
            expected=case.expected("expectedOutput", "expectedOutcome"),
            tags=case.tags("tags"),
            metadata=metadata,
            **picked(metadata, columns),
        ),
        arm=arm,
        answer=case.text("actualOutput"),
        scores=scores,
        unscored=unscored,
        notes=notes,
        cost_usd=case.number("tokenCost"),
        latency_ms=case.milliseconds("completionTime"),
        trace=_trace(case.records("toolsCalled")),
        details={"retrieval_context": context} if context else None,
    )


def _turns(case: Fields) -> str:
    turns = case.records("turns")
    return "\n\n".join(f"{str(turn.mapping.get('role', '')).upper()}: {turn.text('content')}" for turn in turns)


def _trace(called: list[Fields]) -> dict[str, Any] | None:
    calls = [
        ToolCall(
            tool=call.name("name", default="tool"),
            arguments=tidy(call.get("inputParameters", "input_parameters")),
            result=short(call.text("output")),
        )
        for call in called
    ]
    return Trace(tool_calls=tuple(calls)).as_dict() if calls else None
