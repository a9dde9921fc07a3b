"""Results of k-eval: `NAME_DATE_ID.detailed.jsonl`, one row per condition and case, with every repetition in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from fairtrial.core.errors import FairtrialError
from fairtrial.core.score import Scale
from fairtrial.core.trace import ToolCall, Trace
from fairtrial.foreign.results import Columns, Contestant, Log, Question, Sample, Source
from fairtrial.tracks.interchange.results._fields import Fields
from fairtrial.tracks.interchange.values import clean_text, name_of

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
        whole = {"schema_version", "evaluation_results", "eval_library"} <= source.keys
        return whole and Fields(source.document).get("eval_library.name") == "k-eval"

    def read(self, sources: Sequence[Source], columns: Columns) -> Iterator[Log]:
        """Yield one log per detailed file."""
        rows = {source.path: source for source in sources if source.suffix == ".jsonl"}
        wholes = {source.path.name.split(".")[0]: source for source in sources if source.suffix == ".json"}
        for source in wholes.values():
            stem = source.name.removesuffix(_WHOLE)
            found = source.beside(f"{stem}{_DETAILED}")
            if found is None:
                raise FairtrialError(f"{source.name} has means alone: put {stem}{_DETAILED} next to it")
            rows.setdefault(found.path, found)
        for path, source in rows.items():
            beside = source.beside(f"{source.name.removesuffix(_DETAILED)}{_WHOLE}")
            yield _log(source, wholes.get(path.name.split(".")[0]) or beside)


def _log(source: Source, whole: Source | None) -> Log:
    facts, first = Fields(whole.document if whole else None), source.first
    name = str(first.get("evaluation_name", "")).split("/")[0]
    hashes = (result.get("source_data.dataset_sha256") for result in facts.records("evaluation_results"))
    return Log(
        tool="k-eval",
        version=str(facts.get("eval_library.version") or ""),
        name=name_of(name or source.name),
        sources=(source,),
        samples=lambda: (sample for row in source.records() for sample in _samples(Fields(row))),
        arms=_Arms(),
        metrics=(MEAN, *MARKS),
        scales=dict.fromkeys((MEAN, *MARKS), _SCALE),
        created=facts.time("retrieved_timestamp"),
        dataset_sha256=next(map(str, filter(None, hashes)), ""),
        notes=[
            f"`{MEAN}` is the mean of the three marks, which is the score of fairtrial's golden_judge too",
            "k-eval keeps unverified claims by case and condition: each is with the first answer there",
        ],
        missing=["tokens of single answers", "the judge's model"],
    )


class _Arms(dict[str, Contestant]):
    """Conditions as arms; all of them are of the model in the rows."""

    def get(self, name: str, default: Any = None) -> Any:
        return Contestant(name=name, condition=name)


def _samples(row: Fields) -> Iterator[Sample]:
    number, own = row.mapping["sample_idx"], row.mapping["evaluation_name"]
    question = Question(id=name_of(number), input=row.text("input.raw"), expected=row.expected("input.reference"))
    reasons = row.below("evaluation.details")
    condition = name_of(str(own).partition("/")[2] or own)
    claims = [clean_text(claim) for claim in reasons.listed("unverified_claims")]
    for place, run in enumerate(map(Fields, row.listed("run_details"))):
        repeat = int(run.number("repetition_index") or 0)
        scores = {mark: value for mark in MARKS if (value := run.number(mark)) is not None}
        if len(scores) == len(MARKS):
            scores[MEAN] = sum(scores.values()) / len(scores)
        notes = {
            mark: clean_text(given[repeat])
            for mark in MARKS
            if len(given := reasons.listed(f"{mark}_reasonings")) > repeat
        }
        yield Sample(
            question=question,
            arm=condition,
            repeat=max(0, repeat),
            answer=run.text("agent_response"),
            scores=scores,
            notes={MEAN: "; ".join(f"{mark}: {note}" for mark, note in notes.items()), **notes},
            latency_ms=run.number("duration_ms"),
            cost_usd=run.number("cost_usd"),
            reasoning=run.text("reasoning_trace") or None,
            model=row.name("model_id") or None,
            trace=_trace(row, repeat),
            details={"unverified_claims": claims} if claims and place == 0 else None,
        )


def _trace(row: Fields, repeat: int) -> dict[str, Any] | None:
    calls = [
        ToolCall(tool=step.name("tool_name", "extracted_value", default="tool"))
        for step in row.records("answer_attribution")
        if step.get("source") == "mcp_tool" and step.mapping.get("repetition_index", 0) == repeat
    ]
    return Trace(tool_calls=tuple(calls)).as_dict() if calls else None
