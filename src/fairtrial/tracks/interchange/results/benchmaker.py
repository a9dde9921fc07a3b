"""Runs of Benchmaker: one run, a list of runs, or its whole database as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from fairtrial.core.errors import FairtrialError
from fairtrial.foreign.results import SCORE, Columns, Contestant, Log, Question, Sample, Source, picked
from fairtrial.text.printable import counted
from fairtrial.tracks.interchange.results._values import (
    clean_text,
    dict_of,
    expected_of,
    failure_of,
    list_of,
    mark_of,
    name_of,
    number_of,
    params_of,
    seconds_of,
    tidy,
    usage_of,
)

_PARAMS = {  # by the names that they have here
    "topP": "top_p",
    "maxTokens": "max_tokens",
    "frequencyPenalty": "frequency_penalty",
    "presencePenalty": "presence_penalty",
    "benchmarkMode": "benchmark_mode",
}
_NO_REASON = "Benchmaker's judge gave no mark, and no reason"
_ERRORS = ("Judge error:", "Quick score error:")  # how notes of its code judges begin, which say no confidence


class Benchmaker:
    """Reads runs of Benchmaker."""

    def recognises(self, source: Source) -> bool:
        """A run names its test suite, its models and their results."""
        keys = source.keys
        if {"models", "results", "testSuiteName"} <= keys or {"runs", "testSuites"} <= keys:
            return True
        return source.head.lstrip()[:1] == b"[" and b'"testSuiteName"' in source.head

    def read(self, sources: Sequence[Source], columns: Columns) -> Iterator[Log]:
        """Yield one log per run."""
        for source in sources:
            document = source.document
            suites = {one["id"]: one for one in list_of(dict_of(document).get("testSuites")) if "id" in dict_of(one)}
            runs = document if isinstance(document, list) else dict_of(document).get("runs") or [document]
            found = [run for run in list_of(runs) if list_of(dict_of(run).get("results"))]
            if not found:
                raise FairtrialError(f"{source.name} has no runs with results: export a finished run")
            for run in found:
                yield _log(source, run, suites, columns, part=str(run.get("id")) if len(found) > 1 else "")
            source.release()


def _log(source: Source, run: dict[str, Any], suites: dict[str, Any], columns: Columns, part: str) -> Log:
    suite = dict_of(run.get("testSuiteSnapshot")) or dict_of(suites.get(str(run.get("testSuiteId"))))
    cases = {one["id"]: one for one in list_of(suite.get("testCases")) if "id" in dict_of(one)}
    params = params_of({_PARAMS.get(name, name): one for name, one in dict_of(run.get("parameters")).items()})
    system = clean_text(suite.get("systemPrompt"))
    status = str(run.get("status") or "completed")
    arms = {
        name_of(m): Contestant(name=name_of(m), model=name_of(m), system=system, params=params)
        for m in list_of(run.get("models"))
    }
    ended = [one for one in list_of(run.get("results")) if _ended(one)]
    return Log(
        tool="benchmaker",
        name=name_of(run.get("testSuiteName") or suite.get("name") or source.name),
        part=part,
        sources=(source,),
        samples=lambda: (_sample(one, cases, columns) for one in ended),
        arms=arms,
        metrics=(SCORE,),
        created=seconds_of(run.get("startedAt")),
        ended=seconds_of(run.get("completedAt")),
        unfinished="" if status == "completed" else f"Benchmaker's run is {name_of(status)}",
        notes=_notes(ended),
        missing=["the version of Benchmaker", *([] if cases else ["what was asked"])],
    )


def _ended(one: dict[str, Any]) -> bool:
    return one.get("status") not in ("idle", "running", "cancelled")


def _failed(one: dict[str, Any]) -> bool:
    return one.get("status") == "failed" or bool(one.get("error"))


def _unmarked(score: dict[str, Any]) -> str | None:
    """Return why a judge gave no mark; None if it gave one.

    Benchmaker writes a 0 with confidence 0. A 0 that its scorer meant has a confidence, or none is given.
    """
    if number_of(score.get("score")) != 0:
        return None
    notes, confidence = clean_text(score.get("notes")), number_of(score.get("confidence"))
    if confidence == 0 or (confidence is None and notes.startswith(_ERRORS)):
        return notes or _NO_REASON
    return None


def _notes(results: list[dict[str, Any]]) -> list[str]:
    unmarked = sum(not _failed(one) and _unmarked(dict_of(one.get("score"))) is not None for one in results)
    if not unmarked:
        return []
    they = "it has" if unmarked == 1 else "they have"
    counts = counted(unmarked, "answer")
    return [f"Benchmaker counts {counts} that its judge could not mark as 0; here {they} no score"]


def _sample(one: dict[str, Any], cases: dict[str, Any], columns: Columns) -> Sample:
    case, score = dict_of(cases.get(str(one.get("testCaseId")))), dict_of(one.get("score"))
    mark, failed, unmarked = mark_of(score.get("score")), _failed(one), _unmarked(score)
    metadata = dict_of(case.get("metadata"))
    weight = number_of(case.get("weight"))
    return Sample(
        question=Question(
            id=name_of(one.get("testCaseId")),
            input=clean_text(case.get("prompt")),
            expected=expected_of(case.get("expectedOutput")),
            tags=tuple(name_of(tag) for tag in list_of(metadata.get("tags"))),
            weight=1.0 if weight is None or weight < 0 else weight,
            metadata=tidy({name: value for name, value in metadata.items() if name != "tags"}),
            **picked(metadata, columns),
        ),
        arm=name_of(one.get("modelId")),
        answer=None if failed else clean_text(one.get("response")),
        failure=failure_of(one.get("error")) if failed else None,
        scores={} if mark is None or failed or unmarked is not None else {SCORE: mark},
        unscored={} if unmarked is None else {SCORE: unmarked},
        notes={SCORE: clean_text(score.get("notes"))},
        usage=usage_of(one.get("promptTokens"), one.get("completionTokens")),
        latency_ms=number_of(one.get("latencyMs")),
        cost_usd=number_of(one.get("cost")),
    )
