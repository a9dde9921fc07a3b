"""What is written is read back: every field of an answer and a score, made from the structs, so that none is forgotten.

A field that is added to a struct is covered by these tests, or they fail.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
import pytest
from sqlalchemy import Boolean, Column, LargeBinary, MetaData, Table, Text, delete

import fairtrial
from fairtrial import pipeline
from fairtrial.analyse.run import Run
from fairtrial.analyse.stored_run import TrialRecord
from fairtrial.config import RunOptions
from fairtrial.core.answer import Answer, EarlierTurn, Failure, Usage
from fairtrial.core.file import File
from fairtrial.core.judge import Judgement
from fairtrial.core.money import Cost
from fairtrial.core.score import Score, Unscored
from fairtrial.core.trace import with_limit
from fairtrial.core.variables import Variables
from fairtrial.reports.export import export
from fairtrial.scorers.exact import Exact
from fairtrial.store import Store, rows, schema
from fairtrial.store.copying import copy_runs
from fairtrial.store.transcripts import turn_rows
from fairtrial.store.types import Float, Integer
from fairtrial.targets.mock import Mock
from fairtrial.workflows.resume import arescore, aresume
from tests.postgres import on_both

PACKAGE = Path(fairtrial.__file__).parent
NO_VARIABLES = Variables({})
# Fields without a column of their name: what they are stored as, or why they are not.
ELSEWHERE = {
    Answer: {"text": "answer", "usage": "*_tokens", "changes": "an attachment", "given_up": "unknown_costs"},
    Usage: {"cache_write_1h": "a part of cache_write that only the price needs, which is stored"},
    Failure: {
        "kind": "failure_kind",
        "message": "failure_message",
        "usage": "*_tokens",
        "changes": "an attachment",
        "retryable": "by its kind",
        "retry_after": "for the next attempt of the same session",
        "maybe_billed": "charged_usd",
        "given_up": "unknown_costs",
    },
    Score: {"judgements": "judgements", "files": "attachments"},
    Unscored: {"kind": "unscored_kind", "message": "unscored_message", "judgements": "judgements"},
    Judgement: {
        "cost": "cost_usd and its like",
        "retryable": "for the same session",
        "batched": "batch_requests",
        "stored": "scoring",
    },
    EarlierTurn: {"cost": "cost_usd and its like", "user_cost": "user_cost_usd and its like"},
}
TABLES = {
    Answer: schema.trials,
    Failure: schema.trials,
    Score: schema.scores,
    Unscored: schema.scores,
    Judgement: schema.judgements,
    EarlierTurn: schema.turns,
}


# Counts that can be true, each of its own: others would be called unknown.
_USAGE = Usage(prompt=40, completion=30, cache_read=12, cache_write=11, reasoning=10, cache_write_1h=9)


def filled(kind: type[Any]) -> Any:
    """A struct of which no field has its default."""
    hints = get_type_hints(kind)
    made = kind(**{field.name: _value(hints[field.name], field) for field in msgspec.structs.fields(kind)})
    same = [f.name for f in msgspec.structs.fields(kind) if not f.required and getattr(made, f.name) == f.default]
    assert not same, same
    return made


def _value(hint: Any, field: Any) -> Any:
    kinds = [one for one in get_args(hint) if one is not NoneType]
    kind = kinds[0] if get_origin(hint) in (Union, UnionType) else hint
    number = 3 + sum(map(ord, field.name)) % 50  # of its own, more or less
    known: dict[Any, Any] = {
        str: f"${{the}} {field.name} \0 é",
        int: number,
        float: number + 0.25,
        bool: field.default is not True,
        bytes: _archive(),
        Cost: Cost(known=0.5, charged=0.75, unknown=1),
        Usage: _USAGE,
        File: File(name="workspace", media="application/x-tar", body=_archive()),  # what an agent changed
        dict[str, Any]: {field.name: [1, {"deep": None}]},
        dict[str, str]: {field.name: "a text"},
        dict[str, float]: {field.name: 0.5},
        tuple[str, ...]: (field.name, "and more"),
    }
    if kind in known:
        return known[kind]
    if get_origin(kind) is Literal:
        return get_args(kind)[0]
    if get_origin(kind) is tuple:
        return (filled(get_args(kind)[0]),)
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return filled(kind)
    pytest.fail(f"{field.name} is a {kind}: say here what a value of it is, and store it in store/rows.py")


def _archive() -> bytes:
    body = io.BytesIO()
    with tarfile.open(fileobj=body, mode="w") as archive:
        member = tarfile.TarInfo("new.txt")
        member.size = 3
        archive.addfile(member, io.BytesIO(b"new"))
    return body.getvalue()


def stored(answer: Answer) -> Answer:
    """The answer as it is read: the rest of its usage is for its price, and of what was given up the cost is unknown."""
    assert answer.usage is not None
    usage = msgspec.structs.replace(answer.usage, cache_write_1h=0)
    return msgspec.structs.replace(answer, usage=usage, given_up=False)


def limited() -> Answer:
    """An answer of which no field has its default: it ended at a limit, at which it would end again, as its trace says."""
    answer = msgspec.structs.replace(filled(Answer), limit="turns")
    return msgspec.structs.replace(answer, trace=with_limit(answer.trace, "turns", answer.limit_value))


@pytest.mark.parametrize("kind", TABLES)
def test_every_field_has_a_column_or_is_known_to_be_elsewhere(kind):
    fields = {field.name for field in msgspec.structs.fields(kind)}
    assert fields - set(ELSEWHERE[kind]) <= set(TABLES[kind].c.keys())
    assert not set(ELSEWHERE[kind]) - fields
    assert {f"{name}_tokens" for name in Usage.__struct_fields__ if name not in ELSEWHERE[Usage]} == set(schema.TOKENS)


def test_turns_and_records_have_every_column_of_an_answer():
    columns = {name for name in Answer.__struct_fields__ if name in schema.trials.c}
    assert columns - set(schema.LIMIT) <= set(schema.turns.c.keys())  # a turn at whose end a limit is, is the last one
    assert columns | set(schema.TOKENS) <= set(TrialRecord.__struct_fields__)


class Seen:
    """What scorers were given, in place of what a target said."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, answer: Answer) -> None:
        self.answers: list[Answer] = []
        score = Exact.score

        async def ask(target: Any, request: Any) -> Answer:
            return answer

        async def watched(scorer: Any, context: Any) -> Any:
            self.answers.append(context.answer)
            return await score(scorer, context)

        monkeypatch.setattr(Mock, "ask", ask)
        monkeypatch.setattr(Exact, "score", watched)


@on_both
async def test_an_answer_comes_back_to_scorers(run_suite, store, monkeypatch):
    answer = limited()
    seen = Seen(monkeypatch, answer)
    run = await run_suite(RunOptions(cache=True), scorer="exact")
    (first,) = seen.answers
    assert first == msgspec.structs.replace(answer, cost_usd=0.0)  # a mock is free, whatever it says
    await arescore(run.id, scorer={"type": "exact", "threshold": 0.5}, store=store)
    with store.writing() as connection:
        connection.execute(delete(schema.scores).where(schema.scores.c.run_id == run.id))
    store.set_run(run.id, status="interrupted", scoring=0)
    await aresume(run.id, store=store)
    without_workspace = msgspec.structs.replace(stored(first), changes=None)  # these are read where there is one
    assert seen.answers[1:] == [without_workspace] * 2
    await run_suite(RunOptions(cache=True), scorer="exact")
    assert seen.answers[3:] == [msgspec.structs.replace(stored(first), cost_usd=None)]  # it was paid for before


def _expected(answer: Answer) -> dict[str, Any]:
    """What a trial says of its answer."""
    said = {name: getattr(answer, name) for name in Answer.__struct_fields__ if name not in ELSEWHERE[Answer]}
    tokens = {name: getattr(answer.usage, name.removesuffix("_tokens")) for name in schema.TOKENS}
    return {**said, **tokens, "answer": answer.text, "cost_usd": 0.0}


@on_both
async def test_an_answer_is_in_records_exports_and_copies(run_suite, store, tmp_path, monkeypatch, request):
    answer = limited()
    Seen(monkeypatch, answer)
    run = await run_suite(scorer="exact")
    other = Store(request.getfixturevalue("postgres_url") if store.dialect.name == "sqlite" else str(tmp_path / "o.db"))
    assert [copied.outcome for copied in copy_runs(store, other, store.runs())] == ["copied"]
    for opened in (store, other):
        found = Run.find(run.id, opened)
        (trial,) = found.trials()
        export(found, tmp_path / "trials.jsonl")
        line = json.loads((tmp_path / "trials.jsonl").read_text("utf-8"))
        for name, value in _expected(answer).items():
            assert getattr(trial, name) == line[name] == value, name
        (row,) = opened.trial_rows(run.id, 0)
        read = msgspec.structs.replace(rows.read_answer(row, NO_VARIABLES), changes=answer.changes)
        assert read == stored(msgspec.structs.replace(answer, cost_usd=0.0))
    other.close()


@on_both
async def test_a_turn_a_score_and_a_verdict_come_back(run_suite, store):
    run = await run_suite(scorer="exact")
    (row,) = store.trial_rows(run.id, 0)
    (case,) = store.cases(run.plan.id, 0, 1)
    trial = msgspec.convert({"id": row["trial_id"], "case": msgspec.to_builtins(case), "arm": msgspec.to_builtins(run.plan_arms[0]),
                             "repeat": 0, "params": {}}, rows.Trial)  # fmt: skip
    turn, score, verdict = (
        filled(EarlierTurn),
        filled(Score),
        msgspec.structs.replace(filled(Judgement), failure_kind=None),
    )
    verdict = msgspec.structs.replace(verdict, failure_message=None)
    store.write(
        {
            "turns": [rows.turn_row(run.id, trial, 0, turn, NO_VARIABLES)],
            "scores": [rows.score_row(run.id, trial, 0, {"type": "exact"}, score, NO_VARIABLES)],
            "judgements": [rows.judgement_row(run.id, trial, 0, verdict, NO_VARIABLES)],
        }
    )
    (turn_row,) = turn_rows(store, run.id, [0])
    # A turn at whose end a limit is, is the last one, and that is the trial's row.
    elsewhere = {"cost_usd": None, "changes": None, "limit": None, "limit_value": None}
    paid_before = msgspec.structs.replace(stored(turn.answer), **elsewhere)
    assert rows.read_turn(turn_row, NO_VARIABLES) == msgspec.structs.replace(turn, answer=paid_before)
    (record,) = run.trials()
    said = [name for name in Score.__struct_fields__ if name in TrialRecord.__struct_fields__]
    assert {name: getattr(record, name) for name in said} == {name: getattr(score, name) for name in said}
    assert record.score == score.value and {"confidence", "raw", "max", "notes", "details", "metrics"} <= set(said)
    (verdict_row,) = store.judgements(run.id, (0, 0, 0))
    kept = {"asked": 0, "stored": 0, "cost": Cost(), "prompt_tokens": None, "completion_tokens": None}
    once = {"retryable": False, "batched": ()}
    assert rows.read_judgement(verdict_row) == msgspec.structs.replace(verdict, **kept, **once)


class Later(msgspec.Struct, frozen=True, kw_only=True):
    """A struct with fields that a version to come may add."""

    number: int = 7
    flag: bool = True
    maybe: float | None = 1.0
    note: str = ""
    aside: str | None = None
    names: tuple[str, ...] = ()
    facts: dict[str, Any] = {}
    usage: Usage | None = None


LATER = Table(
    "later", MetaData(), Column("number", Integer), Column("flag", Boolean), Column("maybe", Float), Column("note", Text),
    Column("aside", Text), Column("names", LargeBinary), Column("facts", LargeBinary), Column("usage", LargeBinary),
)  # fmt: skip


@pytest.mark.parametrize("value", [Later(), filled(Later), Later(flag=False, number=0, maybe=None)])
def test_fields_of_every_type_are_read_as_they_were(value):
    fields = rows.StoredFields(Later, LATER)
    assert Later(**fields.read(fields.write(value, NO_VARIABLES))) == value


def test_a_column_that_older_rows_do_not_have_is_the_default():
    empty = dict.fromkeys(Later.__struct_fields__)
    assert Later(**rows.StoredFields(Later, LATER).read(empty)) == Later(maybe=None)


def test_secrets_are_hidden_in_texts_and_mappings():
    variables = Variables({"THE_API_KEY": "a-very-secret-value"})
    told = Later(note="a-very-secret-value", facts={"key": ["a-very-secret-value"]}, names=("a-very-secret-value",))
    assert "a-very-secret-value" not in str(rows.StoredFields(Later, LATER).write(told, variables))


# What CONTRIBUTING says a column of a trial costs, done to a copy of the package.
COLUMN = {
    "core/answer.py": ("    reasoning: str | None = None\n    trace: dict[str, Any] | None = None\n    cost_usd",
                       "    steps: int | None = None\n    reasoning: str | None = None\n    trace: dict[str, Any] | None = None\n    cost_usd"),
    "store/schema.py": ('    return [*_columns(Float, "latency_ms"', '    steps = Column("steps", Integer, info={"since": 21})\n    return [steps, *_columns(Float, "latency_ms"'),
    "analyse/stored_run.py": ("    reasoning: str | None\n", "    steps: int | None\n    reasoning: str | None\n"),
}  # fmt: skip
SCRIPT = """
import asyncio, json, sys
import fairtrial
from fairtrial import pipeline
from fairtrial.core.answer import Answer
from fairtrial.reports.export import export
from fairtrial.scorers.exact import Exact
from fairtrial.store import Store
from fairtrial.targets.mock import Mock
from fairtrial.workflows.resume import arescore, aresume
seen, score = [], Exact.score
async def ask(target, request): return Answer(text="Paris", steps=5)
async def watched(scorer, context):
    seen.append(context.answer.steps)
    return await score(scorer, context)
Mock.ask, Exact.score = ask, watched
store = Store(sys.argv[2])
(earlier,) = (fairtrial.open_run(run.id, store=sys.argv[2]) for run in store.runs())
run = asyncio.run(pipeline.arun(pipeline.load(sys.argv[1]), store=store))
asyncio.run(arescore(run.id, scorer={"type": "exact", "threshold": 0.5}, store=store))
with store.writing() as connection:
    connection.exec_driver_sql(f"DELETE FROM scores WHERE run_id = '{run.id}'")
store.set_run(run.id, status="interrupted", scoring=0)
asyncio.run(aresume(run.id, store=store))
export(run, "out.jsonl")
shown = [[t.steps for t in one.trials()] for one in (earlier, run)]
print(json.dumps([fairtrial.__file__, seen, shown, json.load(open("out.jsonl"))["steps"]]))
"""


@pytest.mark.slow
async def test_a_column_added_as_contributing_says_comes_back(tmp_path, write_suite):
    """In a store that is older than the column, too."""
    suite, store = write_suite(scorer="exact"), Store(str(tmp_path / "old.db"))
    await pipeline.arun(pipeline.load(suite), store=store)
    store.close()
    copy = tmp_path / "copy" / "fairtrial"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    for name, (before, after) in COLUMN.items():
        text = (copy / name).read_text("utf-8")
        assert text.count(before) == 1, name
        (copy / name).write_text(text.replace(before, after), "utf-8")
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, suite, tmp_path / "old.db"], cwd=tmp_path, capture_output=True, text=True,
        check=False, env={**os.environ, "PYTHONPATH": str(copy.parent)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    file, seen, shown, exported = json.loads(done.stdout)
    assert Path(file).is_relative_to(copy) and seen == [5, 5, 5] and shown == [[None], [5]] and exported == 5
