"""Cases are asked in a random order, or some of them that are drawn at random, and shown in the suite's."""

import csv
import json
from itertools import pairwise

import msgspec
import pytest
from click.testing import CliRunner
from sqlalchemy import update

import fairtrial as ft
from fairtrial.analyse.run import Run
from fairtrial.cli.main import cli
from fairtrial.config import RunOptions, load_suite
from fairtrial.core.errors import FairtrialError
from fairtrial.core.order import case_order
from fairtrial.reports.export import export
from fairtrial.store import schema
from fairtrial.store.records import RANDOM, RunRecord
from fairtrial.workflows.resume import aresume
from tests.analyse.test_compare import arm, cases
from tests.web.test_result import client, words  # noqa: F401

PRICE = {"input": 0.0, "output": 1e6}  # a dollar for every token: an answer costs 1
COUNT = 200


@pytest.fixture
def known_orders(monkeypatch):
    """The order comes from the plan, and so from its folder: these tests meet the same luck every time."""
    monkeypatch.setattr(RunRecord, "order_key", property(lambda record: f"run-{record.number}"))


@pytest.fixture
def sorted_suite(run_suite):
    """Run 200 cases that are sorted by difficulty: `a` is right on the first half, `b` on the second."""

    async def run(budget: float, options: RunOptions | None = None, **keys):
        return await run_suite(
            options,
            targets=[arm("a", COUNT // 2, COUNT), arm("b", range(COUNT // 2, COUNT), COUNT)],
            cases=cases(COUNT),
            prices={"a": PRICE, "b": PRICE},
            params={"max_tokens": 1},
            budget_usd=budget,
            concurrency=4,
            **keys,
        )

    return run


def asked(run) -> list[int]:
    """Return the cases that a run has, by position."""
    return sorted({int(trial.case_id[1:]) for trial in run.trials()})


def forget_order(run: Run) -> Run:
    """Make a run look like one of a version that asked its cases in the suite's order."""
    context = msgspec.json.decode(run.record.context)
    assert context.pop("order") == RANDOM
    with run.store.writing() as connection:
        change = update(schema.runs).where(schema.runs.c.id == run.id)
        connection.execute(change.values(context=msgspec.json.encode(context)))
    return Run(run.store, run.store.find_run(run.id))


@pytest.mark.usefixtures("known_orders")
async def test_a_budget_that_ends_a_run_gives_no_sure_verdict_on_the_first_cases(sorted_suite):
    """No true difference; the first third of the suite would say that a is 100 points better."""
    run = await sorted_suite(2 * COUNT / 3)
    assert run.status == "incomplete" and "budget" in run.record.reason
    had = asked(run)
    assert 60 <= len(had) <= 110 and had[-1] >= 150  # from all of the suite
    assert ft.compare(run, "a", "b").verdict == "cannot tell"


@pytest.mark.simulation
@pytest.mark.usefixtures("known_orders")
async def test_stopped_runs_without_a_difference_are_rarely_sure(sorted_suite):
    sure = 0
    for _ in range(40):
        run = await sorted_suite(2 * COUNT / 3)  # every one in another order
        sure += ft.compare(run, "a", "b").verdict != "cannot tell"
    assert sure <= 5  # 2 are expected; more than 5 have a probability of 1 %


async def test_a_run_goes_on_in_its_order(sorted_suite, store):
    run = await sorted_suite(40.0)
    order = case_order(run.plan.id, COUNT).tolist()
    had = {order.index(case) for case in asked(run)}
    assert max(had) < len(had) + 20  # the beginning of the order, but for calls at the same time
    again = await aresume(run.id, store=store, overrides={"budget_usd": 80.0})
    had = {order.index(case) for case in asked(again)}
    assert max(had) < len(had) + 20 and len(had) >= 35
    whole = await aresume(run.id, store=store, overrides={"budget_usd": 1000.0})
    assert whole.status == "completed" and asked(whole) == list(range(COUNT))
    assert {trial.attempts for trial in whole.trials()} == {1}


async def test_arms_have_nearly_the_same_cases(sorted_suite):
    run = await sorted_suite(120.0)
    a, b = ({trial.case_id for trial in run.trials() if trial.arm.startswith(name)} for name in "ab")
    assert len(a & b) >= 0.6 * max(len(a), len(b))


async def test_a_run_of_an_earlier_version_goes_on_in_the_suites_order(sorted_suite, store):
    run = await sorted_suite(40.0)
    forget_order(run)
    before = set(asked(run))
    again = await aresume(run.id, store=store, overrides={"budget_usd": 60.0})
    added = sorted(set(asked(again)) - before)
    first = [case for case in range(COUNT) if case not in before]
    assert added and set(added) <= set(first[: len(added) + 20])


def test_the_order_is_a_permutation_and_drawn_from_its_key():
    assert sorted(case_order("plan", 500)) == list(range(500))
    assert case_order("plan", 500) == case_order("plan", 500) != case_order("other", 500)
    assert case_order(None, 5).tolist() == [0, 1, 2, 3, 4]
    assert case_order("plan", 0).tolist() == []


class TestSelection:
    @pytest.fixture
    def chosen(self, write_suite):
        def load(options: RunOptions, **keys):
            suite = load_suite(write_suite(targets=["mock:echo"], **({"cases": cases(COUNT)} | keys)), options)
            return suite, [case.id for case in suite.cases()]

        return load

    def test_a_limit_draws_cases_from_all_of_the_suite(self, chosen):
        suite, ids = chosen(RunOptions(limit=30))
        assert len(ids) == 30 == suite.case_count and ids != [f"c{n:02}" for n in range(30)]
        numbers = [int(name[1:]) for name in ids]
        assert numbers == sorted(numbers) and numbers[-1] > 150  # shown in the suite's order
        assert [case.position for case in suite.cases()] == list(range(30))

    def test_the_same_cases_are_drawn_each_time_and_fewer_are_among_more(self, chosen):
        drawn = [chosen(RunOptions(limit=count))[1] for count in (5, 20, 60, COUNT, 10 * COUNT)]
        assert chosen(RunOptions(limit=20))[1] == drawn[1]
        for fewer, more in pairwise(drawn):
            assert set(fewer) <= set(more)
        assert drawn[-1] == drawn[-2] == [f"c{n:02}" for n in range(COUNT)]

    def test_a_corrected_text_draws_the_same_cases(self, chosen):
        corrected = [{**case, "input": f"corrected {case['input']}"} for case in cases(COUNT)]
        assert chosen(RunOptions(limit=20), cases=corrected)[1] == chosen(RunOptions(limit=20))[1]

    def test_of_named_cases_some_are_drawn(self, chosen):
        named = tuple(f"c{n:02}" for n in range(40, 60))
        ids = chosen(RunOptions(limit=5, cases=named))[1]
        assert len(ids) == 5 and set(ids) <= set(named)

    def test_the_first_cases_can_be_had(self, chosen):
        assert chosen(RunOptions(first=3))[1] == ["c00", "c01", "c02"]
        with pytest.raises(FairtrialError, match="limit and first cannot be combined"):
            RunOptions(limit=3, first=3)

    def test_random_cases_are_another_plan_than_the_first(self, chosen):
        plans = {chosen(options)[0].plan_id for options in (RunOptions(), RunOptions(limit=3), RunOptions(first=3))}
        assert len(plans) == 3

    def test_rows_of_a_dataset_are_drawn_too(self, chosen, tmp_path):
        rows = [f"q{n},Say {n},{n}" for n in range(COUNT)]
        (tmp_path / "d.csv").write_text("\n".join(["id,input,expected", *rows]) + "\n")
        suite, ids = chosen(RunOptions(limit=20), cases=[], dataset="d.csv")
        assert len(ids) == 20 == len(set(ids)) and max(int(name[1:]) for name in ids) > 120
        assert [case.id for case in suite.cases()] == ids

    def test_a_row_that_cannot_be_read_is_reported_wherever_it_is(self, chosen, tmp_path):
        rows = [f"q{n},Say {n},{n}" for n in range(COUNT - 1)]
        (tmp_path / "d.csv").write_text("\n".join(["id,input,expected", *rows, "broken"]) + "\n")
        with pytest.raises(FairtrialError, match=r"d\.csv:201"):
            chosen(RunOptions(limit=2), cases=[], dataset="d.csv")
        assert chosen(RunOptions(first=2), cases=[], dataset="d.csv")[1] == ["q0", "q1"]

    def test_the_command_line_takes_either(self, write_suite, store):
        path = str(write_suite(targets=["mock:echo"], cases=cases(20)))
        invoke = CliRunner().invoke
        for option, same in (("--limit", False), ("--first", True)):
            told = invoke(cli, ["run", path, option, "4", "--store", store.address, "--json"], standalone_mode=False)
            run = ft.open_run(json.loads(told.stdout)["run_id"], store=store.address)
            ids = {trial.case_id for trial in run.trials()}
            assert len(ids) == 4 and (ids == {"c00", "c01", "c02", "c03"}) is same
            assert run.record.selected == {option.removeprefix("--"): 4}
        told = invoke(cli, ["run", path, "--limit", "4", "--first", "4"], standalone_mode=False)
        assert "cannot be combined" in str(told.exception)


async def test_tables_and_exports_show_cases_in_the_suites_order(run_suite, tmp_path):
    run = await run_suite(targets=[arm("a", 20)], cases=cases())
    ids = [f"c{n:02}" for n in range(40)]
    assert [trial.case_id for trial in run.trials()] == ids
    export(run, tmp_path / "run.csv")
    with (tmp_path / "run.csv").open() as file:
        assert [row["case_id"] for row in csv.DictReader(file)] == ids
    export(run, tmp_path / "run.jsonl")
    rows = map(json.loads, (tmp_path / "run.jsonl").read_text().splitlines())
    assert [row["case_id"] for row in rows if "case_id" in row] == ids
    assert list(run.frame()["case_id"]) == ids
    shown = CliRunner().invoke(
        cli, ["show", run.id, "--trials", "--json", "--store", run.store.address], standalone_mode=False
    )
    assert [trial["case_id"] for trial in json.loads(shown.stdout)["trials"]] == ids
