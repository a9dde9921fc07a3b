"""Reports of pydantic-evals, as its `EvaluationReport` writes them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain

from fairtrial.core.score import ANY
from fairtrial.foreign.results import Columns, Contestant, Log, Question, Sample, Source, picked
from fairtrial.tracks.interchange.results._fields import Fields
from fairtrial.tracks.interchange.values import clean_text, dict_of, mark_of, name_of, number_of

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
    report = Fields(source.document)
    arm = report.name("experiment_metadata.model", "name", default=source.name)
    cases, failures = ([Fields(one) for one in report.listed(key)] for key in ("cases", "failures"))
    first = cases[0] if cases else Fields(None)
    names = [*([ASSERTIONS] if first.get("assertions") else []), *map(name_of, first.below("scores").mapping)]
    measured = {name_of(name) for case in cases for name in case.below("metrics").mapping}
    return Log(
        tool="pydantic-evals",
        name=report.name("dataset_name", "name", default="report"),
        sources=(source,),
        samples=lambda: chain((_case(c, arm, columns) for c in cases), (_failed(f, arm, columns) for f in failures)),
        arms={arm: Contestant(name=arm, model=arm, params=report.params("experiment_metadata"))},
        metrics=tuple(names),
        scales=dict.fromkeys(measured, ANY),
        notes=[f"`{ASSERTIONS}` is the share of a case's assertions that hold"] if first.get("assertions") else [],
        missing=["when it was run", "the version of pydantic-evals"],
    )


def _question(case: Fields, columns: Columns) -> Question:
    metadata = case.tidy("metadata")
    return Question(
        id=name_of(case.get("source_case_name") or _REPEAT.sub("", str(case.get("name")))),
        input=case.text("inputs"),
        expected=case.expected("expected_output"),
        metadata=metadata,
        **picked(metadata, columns),
    )


def _failed(case: Fields, arm: str, columns: Columns) -> Sample:
    return Sample(question=_question(case, columns), arm=arm, failure=case.failure("error_message"))


def _case(case: Fields, arm: str, columns: Columns) -> Sample:
    scores, notes = {}, {}
    for name, result in case.below("scores").mapping.items():
        if (mark := mark_of(dict_of(result).get("value"))) is not None:
            scores[name_of(name)] = mark
        if dict_of(result).get("reason"):
            notes[name_of(name)] = clean_text(result["reason"])
    held = {name: bool(dict_of(one).get("value")) for name, one in case.below("assertions").mapping.items()}
    if held:
        scores[ASSERTIONS] = sum(held.values()) / len(held)
        scores |= {name_of(name): float(value) for name, value in held.items() if name_of(name) not in scores}
        wrong = [name_of(name) for name, value in held.items() if not value]
        notes[ASSERTIONS] = f"does not hold: {', '.join(wrong)}" if wrong else ""
    failures = [Fields(failure) for failure in case.listed("evaluator_failures")]
    metrics = case.below("metrics")
    scores |= {name_of(n): v for n, value in metrics.mapping.items() if (v := number_of(value)) is not None}
    labels = {name_of(n): name_of(dict_of(r).get("value")) for n, r in case.below("labels").mapping.items()}
    total, finish = case.number("total_duration"), case.get("attributes.finish_reason")
    details = {**({"labels": labels} if labels else {}), **({"total_duration": total} if total is not None else {})}
    return Sample(
        question=_question(case, columns),
        arm=arm,
        answer=case.text("output"),
        scores=scores,
        unscored={one.name("name", default="evaluator"): one.text("error_message") for one in failures},
        notes=notes,
        details=details or None,
        latency_ms=case.milliseconds("task_duration"),
        cost_usd=metrics.number("cost"),
        usage=metrics.usage("input_tokens", "output_tokens"),
        finish_reason=name_of(finish) if isinstance(finish, str) else None,
    )
