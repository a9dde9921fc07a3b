"""Reports of pydantic-evals, as its `EvaluationReport` writes them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

from fairtrial.core.score import ANY
from fairtrial.foreign.results import Columns, Contestant, Log, Question, Sample, Source, picked
from fairtrial.tracks.interchange.results._values import (
    clean_text,
    dict_of,
    expected_of,
    failure_of,
    list_of,
    mark_of,
    milliseconds_of,
    name_of,
    number_of,
    params_of,
    tidy,
    usage_of,
)

ASSERTIONS = "assertions"
_REPEAT = re.compile(r" \[\d+/\d+\]$")


class PydanticEvals:
    """Reads reports of pydantic-evals."""

    def recognises(self, source: Source) -> bool:
        """A report has cases and failures of a named experiment."""
        return {"name", "cases"} <= source.keys and bool({"failures", "experiment_metadata", "analyses"} & source.keys)

    def read(self, sources: Sequence[Source], columns: Columns) -> Iterator[Log]:
        """Yield one log per report."""
        for source in sources:
            yield _log(source, columns)
            source.release()


def _log(source: Source, columns: Columns) -> Log:
    report = dict_of(source.document)
    given = dict_of(report.get("experiment_metadata"))
    arm = name_of(given.get("model") or report.get("name") or source.name)
    cases, failures = list_of(report.get("cases")), list_of(report.get("failures"))
    first = dict_of(cases[0]) if cases else {}
    names = [*([ASSERTIONS] if first.get("assertions") else []), *map(name_of, dict_of(first.get("scores")))]
    measured = {name_of(name) for case in cases for name in dict_of(dict_of(case).get("metrics"))}
    return Log(
        tool="pydantic-evals",
        name=name_of(report.get("dataset_name") or report.get("name") or "report"),
        sources=(source,),
        samples=lambda: chain((_case(c, arm, columns) for c in cases), (_failed(f, arm, columns) for f in failures)),
        arms={arm: Contestant(name=arm, model=arm, params=params_of(given) if given else None)},
        metrics=tuple(names),
        scales=dict.fromkeys(measured, ANY),
        notes=[f"`{ASSERTIONS}` is the share of a case's assertions that hold"] if first.get("assertions") else [],
        missing=["when it was run", "the version of pydantic-evals"],
    )


def _question(case: dict[str, Any], columns: Columns) -> Question:
    metadata = tidy(dict_of(case.get("metadata")))
    return Question(
        id=name_of(case.get("source_case_name") or _REPEAT.sub("", str(case.get("name")))),
        input=clean_text(case.get("inputs")),
        expected=expected_of(case.get("expected_output")),
        metadata=metadata,
        **picked(metadata, columns),
    )


def _failed(case: dict[str, Any], arm: str, columns: Columns) -> Sample:
    return Sample(question=_question(case, columns), arm=arm, failure=failure_of(case.get("error_message")))


def _case(case: dict[str, Any], arm: str, columns: Columns) -> Sample:
    scores, notes, unscored = {}, {}, {}
    for name, result in dict_of(case.get("scores")).items():
        if (mark := mark_of(dict_of(result).get("value"))) is not None:
            scores[name_of(name)] = mark
        if dict_of(result).get("reason"):
            notes[name_of(name)] = clean_text(result["reason"])
    held = {name: bool(dict_of(result).get("value")) for name, result in dict_of(case.get("assertions")).items()}
    if held:
        scores[ASSERTIONS] = sum(held.values()) / len(held)
        scores |= {name_of(name): float(value) for name, value in held.items() if name_of(name) not in scores}
        wrong = [name_of(name) for name, value in held.items() if not value]
        notes[ASSERTIONS] = f"does not hold: {', '.join(wrong)}" if wrong else ""
    for failure in list_of(case.get("evaluator_failures")):
        name = name_of(dict_of(failure).get("name") or "evaluator")
        unscored[name] = clean_text(dict_of(failure).get("error_message"))
    metrics = dict_of(case.get("metrics"))
    scores |= {name_of(n): v for n, value in metrics.items() if (v := number_of(value)) is not None}
    labels = {name_of(n): name_of(dict_of(r).get("value")) for n, r in dict_of(case.get("labels")).items()}
    total = number_of(case.get("total_duration"))
    details = {**({"labels": labels} if labels else {}), **({"total_duration": total} if total is not None else {})}
    return Sample(
        question=_question(case, columns),
        arm=arm,
        answer=clean_text(case.get("output")),
        scores=scores,
        unscored=unscored,
        notes=notes,
        details=details or None,
        latency_ms=milliseconds_of(case.get("task_duration")),
        cost_usd=number_of(metrics.get("cost")),
        usage=usage_of(metrics.get("input_tokens"), metrics.get("output_tokens")),
        finish_reason=_text(dict_of(case.get("attributes")).get("finish_reason")),
    )


def _text(value: Any) -> str | None:
    return name_of(value) if isinstance(value, str) else None
