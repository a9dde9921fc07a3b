"""Test runs of DeepEval: `test_run_*.json`, the same as `.deepeval/.latest_run_full.json`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from fairtrial.core.trace import ToolCall, Trace, short
from fairtrial.foreign.results import Columns, Contestant, Log, Question, Sample, Source, picked
from fairtrial.tracks.interchange.results._values import (
    clean_text,
    dict_of,
    expected_of,
    list_of,
    mark_of,
    milliseconds_of,
    name_of,
    number_of,
    params_of,
    tidy,
)

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
    document = dict_of(source.document)
    given = dict_of(document.get("hyperparameters"))
    name = name_of(given.get("model") or document.get("identifier") or source.name.removesuffix(".json"))
    metrics = [name_of(one.get("metric")) for one in list_of(document.get("metricsScores")) if isinstance(one, dict)]
    conversations = list_of(document.get("conversationalTestCases"))
    return Log(
        tool="deepeval",
        name=name_of(document.get("testFile") or document.get("datasetAlias") or "deepeval"),
        sources=(source,),
        samples=lambda: (
            _sample(case, name, columns) for case in [*list_of(document.get("testCases")), *conversations]
        ),
        arms={name: Contestant(name=name, model=name, params=params_of(given) if given else None)},
        metrics=(*metrics, PASS),
        notes=["a metric that could not be computed has no score here; DeepEval counts it as failed in `pass`"],
        missing=["when it was run", "the version of DeepEval", "calls of the model that failed"],
    )


def _sample(case: dict[str, Any], arm: str, columns: Columns) -> Sample:
    scores, unscored, notes = {}, {}, {}
    for metric in list_of(case.get("metricsData")):
        name = name_of(metric.get("name"))
        mark = mark_of(metric.get("score"))
        if mark is None:
            unscored[name] = clean_text(metric.get("error")) or "DeepEval recorded no score"
        else:
            scores[name] = mark
        if metric.get("reason"):
            notes[name] = clean_text(metric["reason"])
    if isinstance(case.get("success"), bool):
        scores[PASS] = float(case["success"])
    given = {name: case[name] for name in ("context", "expectedTools") if case.get(name)}
    metadata = tidy({**given, **dict_of(case.get("metadata")), **dict_of(case.get("additionalMetadata"))})
    asked = clean_text(case.get("input")) or _turns(case)
    return Sample(
        question=Question(
            id=name_of(case.get("name") or case.get("order", "case")),
            input=asked,
            expected=expected_of(case.get("expectedOutput") or case.get("expectedOutcome")),
            tags=tuple(name_of(tag) for tag in list_of(case.get("tags"))),
            metadata=metadata,
            **picked(metadata, columns),
        ),
        arm=arm,
        answer=clean_text(case.get("actualOutput")),
        scores=scores,
        unscored=unscored,
        notes=notes,
        cost_usd=number_of(case.get("tokenCost")),
        latency_ms=milliseconds_of(case.get("completionTime")),
        trace=_trace(case.get("toolsCalled")),
        details={"retrieval_context": tidy(context)} if (context := list_of(case.get("retrievalContext"))) else None,
    )


def _turns(case: dict[str, Any]) -> str:
    turns = [turn for turn in list_of(case.get("turns")) if isinstance(turn, dict)]
    return "\n\n".join(f"{str(turn.get('role', '')).upper()}: {clean_text(turn.get('content'))}" for turn in turns)


def _trace(called: Any) -> dict[str, Any] | None:
    calls = [
        ToolCall(
            tool=name_of(call.get("name") or "tool"),
            arguments=tidy(call.get("inputParameters") or call.get("input_parameters")),
            result=short(clean_text(call.get("output"))),
        )
        for call in list_of(called)
        if isinstance(call, dict)
    ]
    return Trace(tool_calls=tuple(calls)).as_dict() if calls else None
