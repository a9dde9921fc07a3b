"""Results of promptfoo: its JSON and JSONL output, and its SQLite database."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from fairtrial.core.errors import FairtrialError
from fairtrial.core.ids import canonical_json, content_hash
from fairtrial.foreign.results import Columns, Contestant, Log, Question, Sample, Source, picked
from fairtrial.foreign.source import MAX_DOCUMENT, Reading, decode
from fairtrial.text.printable import one_line
from fairtrial.tracks.interchange.results._fields import Fields
from fairtrial.tracks.interchange.values import (
    clean_text,
    dict_of,
    expected_of,
    list_of,
    mark_of,
    name_of,
    number_of,
    usage_of,
)

PASS, SCORE = "pass", "score"
_ERROR = 2  # of `failureReason`
_SQLITE = b"SQLite format 3\0"
_REFERENCE = ("equals", "contains", "icontains", "starts-with", "similar", "contains-any", "contains-all", "factuality")
_JSON_COLUMNS = {
    "test_case": "testCase",
    "prompt": "prompt",
    "provider": "provider",
    "response": "response",
    "grading_result": "gradingResult",
    "named_scores": "namedScores",
    "metadata": "metadata",
}
_PLAIN_COLUMNS = {
    "prompt_idx": "promptIdx",
    "test_idx": "testIdx",
    "latency_ms": "latencyMs",
    "cost": "cost",
    "error": "error",
    "success": "success",
    "score": "score",
    "failure_reason": "failureReason",
}
Rows = Callable[[], Iterator[dict[str, Any]]]


class Promptfoo:
    """Reads results of promptfoo."""

    def recognises(self, source: Source) -> bool:
        """Its output has an evaluation's id and results; its database begins as every SQLite file."""
        if source.head.startswith(_SQLITE):
            return b"eval_results" in source.head or "promptfoo" in source.name
        if source.suffix == ".jsonl":
            return {"promptIdx", "testIdx", "testCase"} <= source.first.keys()
        return {"results", "config"} <= source.keys and bool({"evalId", "version", "shareableUrl"} & source.keys)

    def read(self, sources: Sequence[Source], columns: Columns) -> Iterator[Log]:
        """Yield one log per evaluation; a database has many."""
        for source in sources:
            if source.head.startswith(_SQLITE):
                yield from _database(source, columns)
            elif source.suffix == ".jsonl":
                yield _Evaluation(source, {}, source.records, columns).log()
            else:
                document = dict_of(source.document)
                yield _Evaluation(source, document, partial(_rows_of, document.get("results")), columns).log()
                source.release()


def _rows_of(given: Any) -> Iterator[dict[str, Any]]:
    """Yield the rows; old versions have a table of tests and prompts alone."""
    results = Fields(given)
    if results.get("results"):
        yield from results.listed("results")
        return
    for number, line in enumerate(results.listed("table.body")):
        for column, output in enumerate(list_of(line.get("outputs"))):
            named = {"testIdx": number, "promptIdx": column, "response": {"output": output.get("text")}}
            yield {**output, **named, "success": output.get("pass"), "testCase": dict_of(line.get("test"))}


class _Evaluation:
    def __init__(self, source: Source, document: dict[str, Any], rows: Rows, columns: Columns, part: str = "") -> None:
        self.source, self.rows, self.columns, self.part = source, rows, columns, part
        self.document = Fields(document)
        self.prompts = [Fields(one) for one in self.document.listed("results.prompts", "results.table.head.prompts")]
        self.config = self.document.below("config")
        self.arms: dict[int, str] = {}
        self.ids: dict[bytes, str] = {}

    def log(self) -> Log:
        for number, prompt in enumerate(self.prompts):
            self._arm(number, prompt.get("provider"), prompt)
        errors = self.document.number("results.stats.errors")
        notes = ["`pass` is what promptfoo calls success; `score` is the weighted mean of the assertions"]
        if errors:
            notes.append(f"promptfoo counts {errors:g} errors as a score of 0 in its sums; here they are failures")
        return Log(
            tool="promptfoo",
            version=str(self.document.get("metadata.promptfooVersion") or ""),
            name=self.config.name("description", default=self.source.name.rsplit(".", 1)[0]),
            part=self.part,
            sources=(self.source,),
            samples=lambda: (self._sample(Fields(row)) for row in self.rows()),
            arms={self.arms[number]: self._contestant(number) for number in range(len(self.prompts))},
            metrics=(PASS, SCORE, *self._named()),
            created=self.document.time("results.timestamp", "metadata.evaluationCreatedAt"),
            notes=notes,
        )

    def _named(self) -> list[str]:
        # Those without a count are derived from the others, for the whole evaluation.
        counts = (prompt.below("metrics.namedScoresCount").mapping for prompt in self.prompts)
        return list(dict.fromkeys(name_of(name) for one in counts for name in one))

    def _arm(self, number: int, provider: Any, prompt: Fields) -> str:
        """Return the name of an arm, a provider with a prompt."""
        if number not in self.arms:
            given = Fields(provider)
            name = given.name("label", "id") if given else name_of(provider or "provider")
            if len({one.get("label", "raw") for one in self.prompts}) > 1:
                label = str(prompt.get("label", "raw") or number)
                name = f"{name}/{name_of(label)[:40]}"
            taken = set(self.arms.values())
            self.arms[number] = name if name not in taken else f"{name} ({number + 1})"
        return self.arms[number]

    def _contestant(self, number: int) -> Contestant:
        name = self.prompts[number].get("provider")
        providers = self.config.records("providers")
        given = next((one for one in providers if name in (one.get("label"), one.get("id"))), Fields(None))
        maker, _, model = str(given.get("id") or name or "").partition(":")
        return Contestant(
            name=self.arms[number],
            model=name_of(model.rpartition(":")[2] or maker),
            provider=name_of(maker),
            params=(given.params("config") or {}) if given else None,
        )

    def _sample(self, row: Fields) -> Sample:
        reason, finish = row.get("failureReason"), row.get("response.finishReason")
        arm = self._arm(int(row.number("promptIdx") or 0), row.get("provider"), row.below("prompt"))
        failed = reason == _ERROR or (reason is None and row.get("response.error"))
        return Sample(
            question=self._question(row),
            arm=arm,
            answer=None if failed else row.text("response.output"),
            failure=row.failure("error", "response.error") if failed else None,
            scores={} if failed else self._scores(row),
            notes=dict.fromkeys((PASS, SCORE), row.text("gradingResult.reason")),
            details=_assertions(row.below("gradingResult")),
            usage=_usage(row.below("response.tokenUsage", "tokenUsage")),
            latency_ms=row.number("latencyMs"),
            cost_usd=row.number("cost") or None,  # 0 is what promptfoo writes if it does not know a price
            finish_reason=finish if isinstance(finish, str) else None,
        )

    def _scores(self, row: Fields) -> dict[str, float]:
        passed, named = row.get("success"), row.below("namedScores").mapping.items()
        own = {PASS: None if passed is None else float(bool(passed)), SCORE: row.mark("score")}
        marks = {**{name_of(name): mark_of(value) for name, value in named}, **own}
        return {name: value for name, value in marks.items() if value is not None}

    def _question(self, row: Fields) -> Question:
        """Return the test; a repeat is the same test under another number."""
        test, variables = row.below("testCase"), row.below("testCase.vars", "vars").mapping
        asserts = [one.mapping for one in test.records("assert")]
        key = canonical_json([test.get("description"), variables, asserts])
        if key not in self.ids:
            name = name_of(test.get("description") or content_hash(variables)[:12])
            taken = set(self.ids.values())
            self.ids[key] = name if name not in taken else f"{name} ({len(taken) + 1})"
        references = [one.get("value") for one in asserts if one.get("type") in _REFERENCE]
        metadata = test.tidy("metadata")
        texts = {str(name): clean_text(value) for name, value in variables.items()}
        asked = next(iter(texts.values())) if len(texts) == 1 else "\n".join(f"{n}: {t}" for n, t in texts.items())
        return Question(
            id=self.ids[key],
            input=asked or row.text("prompt.raw"),
            expected=expected_of(references[0]) if references else None,
            metadata=metadata,
            **picked(metadata, self.columns),
        )


def _assertions(grading: Fields) -> dict[str, Any] | None:
    parts = grading.records("componentResults")
    if not parts:
        return None
    passed = sum(bool(part.get("pass")) for part in parts)
    weights = {name_of(n): number_of(w) for n, w in grading.below("namedScoreWeights").mapping.items()}
    return {
        "assertions": {"passed": passed, "failed": len(parts) - passed},
        **({"weights": weights} if weights else {}),
    }


def _usage(tokens: Fields) -> Any:
    if not tokens.get("prompt", "completion", "total"):
        return None
    return usage_of(
        tokens.get("prompt"),
        tokens.get("completion"),
        cache_read=tokens.get("completionDetails.cacheReadInputTokens") or 0,
        reasoning=tokens.get("completionDetails.reasoning") or 0,
    )


# -- the database ---------------------------------------------------------------------------------


def _database(source: Source, columns: Columns) -> Iterator[Log]:
    with _opened(source) as database:
        names = {row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if "evals" not in names:
            raise FairtrialError(f"{source.name} is not a promptfoo database: it has no table `evals`")
        evaluations = [dict(row) for row in database.execute("SELECT * FROM evals ORDER BY created_at")]
    if not evaluations:
        raise FairtrialError(f"{source.name} has no evaluations")
    for one in evaluations:
        results = dict_of(_json(one.get("results")))
        document = {
            "config": _json(one.get("config")),
            "results": {
                **results,
                "prompts": _json(one.get("prompts")) or results.get("prompts"),
                "timestamp": one.get("created_at"),
            },
        }
        old = bool(results.get("results") or results.get("table"))
        rows: Rows = partial(_rows_of, results) if old else partial(_database_rows, source, one["id"])
        if old or next(rows(), None) is not None:
            yield _Evaluation(source, document, rows, columns, part=str(one["id"])).log()


def _database_rows(source: Source, evaluation: str) -> Iterator[dict[str, Any]]:
    with _opened(source) as database:
        query = "SELECT * FROM eval_results WHERE eval_id = ? ORDER BY test_idx, prompt_idx"
        for row in database.execute(query, (evaluation,)):
            found = dict(row)
            texts = {ours: _json(found.get(theirs)) for theirs, ours in _JSON_COLUMNS.items()}
            yield {**texts, **{ours: found.get(theirs) for theirs, ours in _PLAIN_COLUMNS.items()}}


@contextmanager
def _opened(source: Source) -> Iterator[sqlite3.Connection]:
    """Open the database for reading; it may be packed."""
    with tempfile.TemporaryDirectory() as folder:
        path = source.path
        if source.path.suffix == ".gz":
            path = Path(folder) / "promptfoo.db"
            with Reading(source), source.open() as packed, path.open("wb") as file:
                written = 0
                while part := packed.read(2**20):
                    written += file.write(part)
                    if written > MAX_DOCUMENT:
                        raise FairtrialError(f"{source.name} is larger than {MAX_DOCUMENT // 2**20} MB unpacked")
        try:
            with closing(sqlite3.connect(f"file:{path.resolve().as_posix()}?mode=ro", uri=True)) as database:
                database.row_factory = sqlite3.Row
                yield database
        except (sqlite3.Error, UnicodeDecodeError) as error:
            text = isinstance(error, UnicodeDecodeError) or "UTF-8" in str(error)
            why = "a text in it is damaged (it is not UTF-8)" if text else one_line(str(error))
            raise FairtrialError(f"{source.name} cannot be read: {why}") from None


def _json(text: Any) -> Any:
    if not isinstance(text, str | bytes):
        return None
    try:
        return decode(text.encode() if isinstance(text, str) else text)
    except (ValueError, msgspec.MsgspecError):
        return None
