"""Runs of Benchmaker: one run, a list of runs, or its whole database as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fairtrial.core.errors import FairtrialError
from fairtrial.foreign.results import SCORE, Columns, Contestant, Log, Question, Sample, Source, picked
from fairtrial.text.printable import counted
from fairtrial.tracks.interchange.results._fields import Fields
from fairtrial.tracks.interchange.values import list_of, name_of, params_of, tidy

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
            suites = _by_id(Fields(document).records("testSuites"))
            runs = document if isinstance(document, list) else Fields(document).get("runs") or [document]
            found = [run for run in map(Fields, list_of(runs)) if run.listed("results")]
            if not found:
                raise FairtrialError(f"{source.name} has no runs with results: export a finished run")
            for run in found:
                yield _log(source, run, suites, columns, part=str(run.get("id")) if len(found) > 1 else "")
            source.release()


def _by_id(records: list[Fields]) -> dict[str, Fields]:
    return {one.get("id"): one for one in records if "id" in one.mapping}


def _log(source: Source, run: Fields, suites: dict[str, Fields], columns: Columns, part: str) -> Log:
    suite = run.below("testSuiteSnapshot") or suites.get(str(run.get("testSuiteId")), Fields(None))
    cases = _by_id(suite.records("testCases"))
    params = params_of({_PARAMS.get(name, name): one for name, one in run.below("parameters").mapping.items()})
    status = str(run.get("status") or "completed")
    models = [name_of(model) for model in run.listed("models")]
    results = map(Fields, run.listed("results"))
    ended = [one for one in results if one.get("status") not in ("idle", "running", "cancelled")]
    return Log(
        tool="benchmaker",
        name=name_of(run.get("testSuiteName") or suite.get("name") or source.name),
        part=part,
        sources=(source,),
        samples=lambda: (_sample(one, cases, columns) for one in ended),
        arms={m: Contestant(name=m, model=m, system=suite.text("systemPrompt"), params=params) for m in models},
        metrics=(SCORE,),
        created=run.time("startedAt"),
        ended=run.time("completedAt"),
        unfinished="" if status == "completed" else f"Benchmaker's run is {name_of(status)}",
        notes=_notes(ended),
        missing=["the version of Benchmaker", *([] if cases else ["what was asked"])],
    )


def _failed(one: Fields) -> bool:
    return one.get("status") == "failed" or bool(one.get("error"))


def _unmarked(one: Fields) -> str | None:
    """Return why a judge gave no mark; None if it gave one.

    Benchmaker writes a 0 with confidence 0. A 0 that its scorer meant has a confidence, or none is given.
    """
    if one.number("score.score") != 0:
        return None
    notes, confidence = one.text("score.notes"), one.number("score.confidence")
    if confidence == 0 or (confidence is None and notes.startswith(_ERRORS)):
        return notes or _NO_REASON
    return None


def _notes(results: list[Fields]) -> list[str]:
    unmarked = sum(not _failed(one) and _unmarked(one) is not None for one in results)
    if not unmarked:
        return []
    they = "it has" if unmarked == 1 else "they have"
    counts = counted(unmarked, "answer")
    return [f"Benchmaker counts {counts} that its judge could not mark as 0; here {they} no score"]


def _sample(one: Fields, cases: dict[str, Fields], columns: Columns) -> Sample:
    case = cases.get(str(one.get("testCaseId")), Fields(None))
    mark, failed, unmarked = one.mark("score.score"), _failed(one), _unmarked(one)
    metadata, weight = case.below("metadata"), case.number("weight")
    return Sample(
        question=Question(
            id=one.name("testCaseId"),
            input=case.text("prompt"),
            expected=case.expected("expectedOutput"),
            tags=metadata.tags("tags"),
            weight=1.0 if weight is None or weight < 0 else weight,
            metadata=tidy({name: value for name, value in metadata.mapping.items() if name != "tags"}),
            **picked(metadata.mapping, columns),
        ),
        arm=one.name("modelId"),
        answer=None if failed else one.text("response"),
        failure=one.failure("error") if failed else None,
        scores={} if mark is None or failed or unmarked is not None else {SCORE: mark},
        unscored={} if unmarked is None else {SCORE: unmarked},
        notes={SCORE: one.text("score.notes")},
        usage=one.usage("promptTokens", "completionTokens"),
        latency_ms=one.number("latencyMs"),
        cost_usd=one.number("cost"),
    )
