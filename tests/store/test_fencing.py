"""Sessions that lost their run: nothing of theirs takes the place of what is stored, and what they paid for is kept."""

import asyncio
import json
import re
from pathlib import Path

import pytest
from sqlalchemy import select

import fairtrial
from fairtrial import pipeline
from fairtrial.analyse.run import Run
from fairtrial.cli.main import _run
from fairtrial.core.batch import BatchRecord
from fairtrial.core.errors import RunLostError
from fairtrial.core.ids import new_id
from fairtrial.core.money import Cost
from fairtrial.store import Saver, Store, schema
from fairtrial.store.batches import void_batch
from fairtrial.store.copying import copy_runs
from fairtrial.store.late import late_answers, late_total
from fairtrial.store.lease import RunLease
from fairtrial.store.ledger import charged, ledger_row, spent
from fairtrial.store.rows import cost_columns
from fairtrial.store.scorings import add_scoring, finish_scoring
from fairtrial.workflows.pairwise import apair
from fairtrial.workflows.resume import arescore, aresume
from tests.conftest import numbered
from tests.engine.test_cluster import workers  # noqa: F401
from tests.postgres import on_both

SESSIONS = ("trials", "turns", "scores", "judgements", "pairs", "scorings", "ledgers", "batches", "runs")
JUDGE = {"target": "mock:judge", "options": {"verdict": {"marks": {}, "otherwise": 4}}}
PRICES = {"openai:m": {"input": 100.0, "output": 100.0}}


def take(store: Store, run_id: str) -> RunLease:
    """Take a run whose lock somebody holds, as after that was lost without anybody noticing."""
    return RunLease(run_id, store.dialect.lock(new_id()), store.dialect, store.writing)


def rows_of(store: Store) -> dict[str, list]:
    tables = (schema.metadata.tables[name] for name in SESSIONS)
    return {table.name: store.fetch_dicts(select(table).order_by(*table.primary_key)) for table in tables}


@pytest.fixture
def stolen(monkeypatch, store):
    """Have the run taken just before the first row of a table is written; return what was stored then."""
    real, found = RunLease.write, {}

    def when(table: str) -> dict:
        def write(lease: RunLease, rows: dict) -> None:
            if table in rows and not found:
                take(store, lease.run_id)
                found.update(rows_of(store))
            real(lease, rows)

        monkeypatch.setattr(RunLease, "write", write)
        return found

    return when


@on_both
async def test_only_the_last_session_writes(run_suite, store):
    run = await run_suite()
    with pytest.raises(RunLostError, match="another process now works on"), store.lease(run.id) as lease:
        take(store, run.id)
        before = rows_of(store)
        for write in (
            lambda: lease.write({"trials": []}),
            lambda: lease.set_run(status="running"),
            lambda: add_scoring(lease, None),
            lambda: finish_scoring(lease, 0, "completed"),
            lambda: void_batch(
                lease,
                BatchRecord(number=1, target="t", requests=1, created_at=1.0),
            ),
        ):
            with pytest.raises(RunLostError) as raised:
                write()
            assert raised.value.exit_code == 2
        assert rows_of(store) == before
        raise raised.value


CHAT = [{"id": "talk", "turns": ["one", "two"], "expected": "two"}]


@pytest.mark.parametrize("spread", [False, True])
@pytest.mark.parametrize(
    ("table", "kinds"),
    [("trials", {"trials"}), ("turns", {"turns"}), ("scores", set()), ("judgements", {"judgements"})],
)
async def test_a_session_that_lost_its_run_adds_nothing(
    table, kinds, spread, run_suite, store, stolen, request, tmp_path
):
    if spread:
        request.getfixturevalue("workers")(most=2)
    found = stolen(table)
    cases = CHAT if table == "turns" else numbered(6)
    scorer = "llm_judge" if table == "judgements" else "boolean"
    with pytest.raises(RunLostError, match="now works on"):
        await run_suite(cases=cases, scorer=scorer, judge=JUDGE, concurrency=2)
    (record,) = store.runs()
    assert rows_of(store) == found
    late = store.fetch_dicts(select(schema.late))
    assert {row["kind"] for row in late} >= kinds and {row["epoch"] for row in late} <= {1}
    if spread:
        request.getfixturevalue("monkeypatch").undo()
    await aresume(record.id, store=store)
    after = rows_of(store)
    assert all(row in after["trials"] for row in found["trials"]) and len(after["trials"]) == len(cases)
    assert store.fetch_dicts(select(schema.late)) == late and store.runs()[0].status == "completed"


@pytest.mark.parametrize("waiting", [0, 4])
@pytest.mark.parametrize("budget", [None, 5.0])
@pytest.mark.parametrize("spread", [False, True])
async def test_what_was_bought_twice_is_in_the_sums_once(
    waiting, budget, spread, write_suite, model_server, store, request, monkeypatch
):
    """Taken while three answers are on their way; trials that wait ask for money, and may hear of it before."""
    trials = 8 + waiting
    state = await model_server(answers=tuple(f"{n}: 42" for n in range(100)))
    state.hold(after=5)
    if spread:
        request.getfixturevalue("workers")(most=2)
    keys = {"budget_usd": budget} if budget else {}
    suite = pipeline.load(
        write_suite(
            targets=["openai:m"], prices=PRICES, scorer="boolean", cases=numbered(trials), concurrency=3, **keys
        )
    )
    first = asyncio.create_task(pipeline.arun(suite, store=store))
    while state.calls.total() < 8 or len(rows_of(store)["scores"]) < 5:
        await asyncio.sleep(0.002)
    (record,) = store.runs()
    take(store, record.id)
    before = rows_of(store)["trials"]
    state.release()
    seen = r"\d late answers? \(\$0\.\d+\) can be seen"
    with pytest.raises(RunLostError, match="now works on" if waiting else seen):
        await first
    assert rows_of(store)["trials"] == before
    run = await aresume(record.id, store=store)
    assert run.status == "completed"
    count, cost = late_total(store, run.id)
    unknown = spent(store, run.id).unknown
    assert count or waiting
    assert 0 < state.calls.total() - trials <= count + unknown
    bought = sum(row["charged_usd"] for row in rows_of(store)["trials"]) + cost.charged
    assert spent(store, run.id).known == pytest.approx(bought)
    worst = 0.0 if budget is None else budget
    assert bought - 1e-9 <= charged(store, run.id) <= max(worst, bought + 1e-9 + unknown)
    if not unknown:
        assert charged(store, run.id) == pytest.approx(bought)


@on_both
async def test_what_was_at_risk_is_replaced_by_what_it_cost(run_suite, store):
    """Whoever takes a run charges what calls in flight could cost; what they did cost takes its place."""
    run = await run_suite()
    row = rows_of(store)["trials"][0]
    lease = store.lease(run.id)
    lease.write({"ledgers": [ledger_row(run.id, 1.0)]})
    lease.release()
    lease = take(store, run.id)  # a session that lost the run has charged all it had at risk
    lease.write({"ledgers": [ledger_row(run.id, 0.5)]})
    other = take(store, run.id)
    other.write({"ledgers": [ledger_row(run.id, 0.25)]})
    assert charged(store, run.id) == pytest.approx(1.75) and spent(store, run.id).unknown == 3
    with pytest.raises(RunLostError):
        async with Saver(lease.write, keep_late=lease.keep_late) as saver:
            cost = Cost(known=0.125, charged=0.125)
            waits = saver.save("trials", {**row, **cost_columns(cost)}, paid=cost)
            await asyncio.gather(waits, return_exceptions=True)
            assert charged(store, run.id) == pytest.approx(1.75)  # a part of what was at risk
            with pytest.raises(RunLostError):  # so that the call is not made
                await saver.save("ledgers", ledger_row(run.id, 3.0))
            left = Cost(charged=0.0625, unknown=1)
            saver.save("ledgers", ledger_row(run.id, 0.0, left), paid=left)
    assert charged(store, run.id) == pytest.approx(1.0 + 0.125 + 0.0625 + 0.25)
    assert spent(store, run.id).unknown == 3 and spent(store, run.id).known == pytest.approx(0.125)
    (ledger,) = rows_of(store)["ledgers"]
    assert ledger["at_risk_usd"] == 0.25  # of the session that has the run


async def test_a_rescoring_that_lost_its_run_changes_no_score(run_suite, store, stolen):
    run = await run_suite(cases=numbered(4), judge=JUDGE)
    found = stolen("judgements")
    with pytest.raises(RunLostError):
        await arescore(run.id, scorer={"type": "llm_judge"}, store=store)
    assert rows_of(store) == found and store.find_run(run.id).scoring == 0
    late = late_answers(store, run.id)
    assert late and {one.what for one in late} == {"verdict"}


async def test_comparisons_that_came_late_are_kept(run_suite, store, stolen):
    run = await run_suite(
        targets=["mock:echo", {"id": "b", "target": "mock:echo"}],
        cases=numbered(3),
        judge=JUDGE,
    )
    found = stolen("pairs")
    with pytest.raises(RunLostError, match="late answer"):
        await apair(run.id, store=store)
    assert rows_of(store) == found
    late = late_answers(store, run.id)
    assert late and {(one.what, one.arms) for one in late} == {("comparison", (0, 1))}


async def test_a_run_that_was_deleted_is_one_sentence(run_suite, store, monkeypatch):
    real = RunLease.write

    def write(lease: RunLease, rows: dict) -> None:
        if "scores" in rows:
            store.delete_run(lease.run_id)
        real(lease, rows)

    monkeypatch.setattr(RunLease, "write", write)
    with pytest.raises(RunLostError, match="was deleted while this process worked on it"):
        await run_suite(cases=numbered(3))
    assert store.runs() == []


async def test_late_answers_are_shown_wherever_the_run_is(run_suite, store, stolen, tmp_path, capsys):
    stolen("trials")
    with pytest.raises(RunLostError):
        await run_suite(cases=numbered(2), concurrency=1)
    (record,) = store.runs()
    await aresume(record.id, store=store)
    place = ["--store", store.path]
    assert _run(["show", record.id, "--late", *place]) == 0
    shown = capsys.readouterr().out
    assert "q0 · mock:echo · 1" in shown or "q1 · mock:echo · 1" in shown
    assert _run(["show", record.id, "--late", "--json", *place]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["late"] and {one["what"] for one in document["late"]} == {"answer"}
    assert {one["row"]["answer"] for one in document["late"]} <= {"Question 0?", "Question 1?"}
    assert _run(["show", record.id, "--plain", *place]) == 0
    assert "kept with the run, not scored" in " ".join(capsys.readouterr().out.split())
    assert _run(["show", record.id, "--json", *place]) == 0
    assert json.loads(capsys.readouterr().out)["late"]["answers"] == len(document["late"])
    there = Store(str(tmp_path / "there.db"))
    (copied,) = copy_runs(store, there, store.runs())
    assert copied.outcome == "copied" and late_answers(there, record.id) == late_answers(store, record.id)
    assert Run(there, there.find_run(record.id)).summary().late == len(document["late"])
    there.close()


def test_only_a_lease_writes_for_a_session():
    """What works on a run gets a lease: nothing else may write its rows or its status."""
    rooms = ("engine", "workflows", "pipeline.py", "judging", "api")
    package = Path(fairtrial.__file__).parent
    files = [
        file for room in rooms for file in ((package / room).rglob("*.py") if "." not in room else [package / room])
    ]
    wrong = re.compile(r"store\.(set_run|add_run|write|writing)\b")
    assert [f"{file}: {found[0]}" for file in files for found in wrong.finditer(file.read_text("utf-8"))] == []
