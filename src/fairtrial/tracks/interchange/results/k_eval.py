"""Results of k-eval: `NAME_DATE_ID.detailed.jsonl`, one row per condition and case, with every repetition in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from fairtrial.core.errors import FairtrialError
from fairtrial.core.score import Scale
from fairtrial.core.trace import ToolCall, Trace
from fairtrial.foreign.results import Columns, Contestant, Log, Question, Sample, Source
from fairtrial.tracks.interchange.results._values import (
    clean_text,
    dict_of,
    expected_of,
    list_of,
    name_of,
    number_of,
    seconds_of,
)

MARKS = ("factual_adherence", "completeness", "helpfulness_and_clarity")
MEAN = "mean_mark"
_SCALE: Scale = (1.0, 5.0)
_DETAILED, _WHOLE = ".detailed.jsonl", ".json"


class KEval:
    """Reads results of k-eval."""

    def recognises(self, source: Source) -> bool:
        """Rows have the details of every run; the file next to them names k-eval."""
        if source.suffix == ".jsonl":
            return {"run_details", "evaluation_name", "sample_idx"} <= source.first.keys()
        return {"schema_version", "evaluation_results", "eval_library"} <= source.keys and dict_of(
            source.document["eval_library"]
        ).get("name") == "k-eval"

    def read(self, sources: Sequence[Source], columns: Columns) -> Iterator[Log]:
        """Yield one log per detailed file."""
        rows = {source.path: source for source in sources if source.suffix == ".jsonl"}
        wholes = {source.path.name.split(".")[0]: source for source in sources if source.suffix == ".json"}
        for source in wholes.values():
            stem = source.name.removesuffix(_WHOLE)
            beside = [source.path.parent / f"{stem}{_DETAILED}{packed}" for packed in ("", ".gz")]
            found = next((path for path in beside if path.is_file()), None)
            if found is None:
                raise FairtrialError(f"{source.name} has means alone: put {stem}{_DETAILED} next to it")
            rows.setdefault(found, Source(found))
        for path, source in rows.items():
            yield _log(source, wholes.get(path.name.split(".")[0]) or _beside(source))


def _beside(source: Source) -> Source | None:
    path = source.path.parent / f"{source.name.removesuffix(_DETAILED)}{_WHOLE}"
    return Source(path) if path.is_file() else None


def _log(source: Source, whole: Source | None) -> Log:
    facts = dict_of(whole.document) if whole else {}
    first = source.first
    name = str(first.get("evaluation_name", "")).split("/")[0]
    return Log(
        tool="k-eval",
        version=str(dict_of(facts.get("eval_library")).get("version") or ""),
        name=name_of(name or source.name),
        sources=(source,),
        samples=lambda: (sample for row in source.records() for sample in _samples(row)),
        arms=_Arms(),
        metrics=(MEAN, *MARKS),
        scales=dict.fromkeys((MEAN, *MARKS), _SCALE),
        created=seconds_of(facts.get("retrieved_timestamp")),
        dataset_sha256=_dataset_sha256(facts),
        notes=[
            f"`{MEAN}` is the mean of the three marks, which is the score of fairtrial's golden_judge too",
            "k-eval keeps unverified claims by case and condition: each is with the first answer there",
        ],
        missing=["tokens of single answers", "the judge's model"],
    )


def _dataset_sha256(facts: dict[str, Any]) -> str:
    """Return the hash of the golden dataset, which every condition has."""
    given = (dict_of(dict_of(result).get("source_data")) for result in list_of(facts.get("evaluation_results")))
    return next((str(data["dataset_sha256"]) for data in given if data.get("dataset_sha256")), "")


class _Arms(dict[str, Contestant]):
    """Conditions as arms; all of them are of the model in the rows."""

    def get(self, name: str, default: Any = None) -> Any:
        return Contestant(name=name, condition=name)


def _samples(row: dict[str, Any]) -> Iterator[Sample]:
    asked = dict_of(row.get("input"))
    question = Question(
        id=name_of(row["sample_idx"]),
        input=clean_text(asked.get("raw")),
        expected=expected_of(asked.get("reference")),
    )
    reasons = dict_of(dict_of(row.get("evaluation")).get("details"))
    condition = name_of(str(row["evaluation_name"]).partition("/")[2] or row["evaluation_name"])
    claims = [clean_text(claim) for claim in list_of(reasons.get("unverified_claims"))]
    for place, run in enumerate(list_of(row.get("run_details"))):
        repeat = int(number_of(run.get("repetition_index")) or 0)
        scores = {mark: value for mark in MARKS if (value := number_of(run.get(mark))) is not None}
        if len(scores) == len(MARKS):
            scores[MEAN] = sum(scores.values()) / len(scores)
        notes = {
            mark: clean_text(given[repeat])
            for mark in MARKS
            if len(given := list_of(reasons.get(f"{mark}_reasonings"))) > repeat
        }
        yield Sample(
            question=question,
            arm=condition,
            repeat=max(0, repeat),
            answer=clean_text(run.get("agent_response")),
            scores=scores,
            notes={MEAN: "; ".join(f"{mark}: {note}" for mark, note in notes.items()), **notes},
            latency_ms=number_of(run.get("duration_ms")),
            cost_usd=number_of(run.get("cost_usd")),
            reasoning=clean_text(run.get("reasoning_trace")) or None,
            model=name_of(row["model_id"]) if row.get("model_id") else None,
            trace=_trace(row, repeat),
            details={"unverified_claims": claims} if claims and place == 0 else None,
        )


def _trace(row: dict[str, Any], repeat: int) -> dict[str, Any] | None:
    calls = [
        ToolCall(tool=name_of(step.get("tool_name") or step.get("extracted_value") or "tool"))
        for step in list_of(row.get("answer_attribution"))
        if dict_of(step).get("source") == "mcp_tool" and step.get("repetition_index", 0) == repeat
    ]
    return Trace(tool_calls=tuple(calls)).as_dict() if calls else None
