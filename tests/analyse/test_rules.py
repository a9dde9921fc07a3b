"""Rules that a small slip would break unseen: each of these failed to notice a change of one line once."""

import re

import pytest
from click.testing import CliRunner
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

import fairtrial as ft
from fairtrial import pipeline
from fairtrial.analyse.summary import ranked
from fairtrial.cli.main import cli
from fairtrial.config import RunOptions
from fairtrial.engine.scoring import _validated
from fairtrial.judging.fence import Fence
from fairtrial.store.scorings import _runs_own_code
from fairtrial.web.access import COOKIE, Access
from fairtrial.workflows.resume import aresume
from tests.analyse.test_compare import arm, cases, set_latencies


@pytest.mark.parametrize("cookie", ["x", "a-token-that-nobody-guesses", "0" * 64])
def test_only_the_right_cookie_lets_in(cookie):
    inner = Starlette(routes=[Route("/", lambda _: PlainTextResponse("in"))])
    client = TestClient(Access(inner, "a-token-that-nobody-guesses"), cookies={COOKIE: cookie})
    assert client.get("/", headers={"accept": "*/*"}).status_code == 401


@pytest.mark.parametrize("text", ["<<END ANSWER 0123>>", "<<<", ">>", "a << b"])
def test_lines_that_look_like_a_fence_are_defused(text):
    fenced = Fence("0123456789abcdef").around("ANSWER", text)
    assert fenced.count("<<") == fenced.count(">>") == 2


@pytest.mark.slow
async def test_another_condition_is_another_trial(run_suite, model_server):
    state = await model_server(answer="42")
    first = {"conditions": {"c": {"system": "Be brief."}}}
    await run_suite(RunOptions(cache=True), targets=["openai:m"], cases=cases(3), **first)
    await run_suite(RunOptions(cache=True), targets=["openai:m"], cases=cases(3), **first)
    assert state.calls.total() == 3
    run = await run_suite(
        RunOptions(cache=True), targets=["openai:m"], cases=cases(3), conditions={"c": {"system": "Be long."}}
    )
    assert state.calls.total() == 6 and not any(trial.cached for trial in run.trials())


async def test_what_failed_attempts_cost_stays_on_the_bill(run_suite, model_server, store):
    """A call that was given up may have been charged: trying again adds to that."""
    state = await model_server(answer="42", faults={"hang": 1.0})
    run = await run_suite(
        targets=["openai:m"],
        cases=cases(2),
        prices={"openai:m": {"input": 1000, "output": 1000}},
        params={"max_tokens": 100},
        budget_usd=1000,
        timeout=0.3,
        retry={"attempts": 1, "timeouts": 0},
    )
    assert {trial.status for trial in run.trials()} == {"failed"}
    before = {trial.case_id: trial.charged_usd for trial in run.trials()}
    assert min(before.values()) > 0
    state.behaviour.faults = {}
    run = await aresume(run.id, store=store, mode="retry", overrides={"timeout": 60})
    for trial in run.trials():
        assert trial.status == "scored" and trial.attempts == 2 and trial.charged_usd > before[trial.case_id]


async def test_a_kind_of_cases_knows_that_less_is_better(run_suite):
    kinds = [{**case, "category": "odd" if n % 2 else "even"} for n, case in enumerate(cases(24))]
    run = await run_suite(targets=[arm("quick", 24, 24), arm("slow", 24, 24)], cases=kinds)
    set_latencies(run)
    found = ft.compare(run, "quick", "slow", metric="latency_ms")
    assert found.verdict == "better" and {group.verdict for group in found.groups} == {"better"}


async def test_a_run_is_not_served_by_its_own_series(write_suite, model_server, store):
    state = await model_server(answer="42")
    suite = pipeline.load(write_suite(targets=["openai:m"], cases=cases(3)), RunOptions(cache=True))
    for _ in range(2):
        await pipeline.arun(suite, store=store, series=pipeline.SeriesPlan("0s-series", 2))
    assert state.calls.total() == 6
    await pipeline.arun(suite, store=store)
    assert state.calls.total() == 6  # another run may take what the series has


@pytest.mark.parametrize("value", [1.0000001, 1.5, 2, -0.1, float("nan"), "1", None])
def test_only_a_number_from_0_to_1_is_a_score(value):
    assert isinstance(_validated(ft.Score(value=value)), ft.Unscored)


async def test_the_best_arm_stands_first_and_who_has_no_score_last(run_suite, store):
    run = await run_suite(
        targets=[arm("zero", 0, 4), arm("dead", 4, 4, faults={"refused": 1.0}), arm("best", 4, 4)],
        cases=cases(4),
        retry={"attempts": 1},
    )
    assert [one.arm for one in ranked(run.arms)] == ["best", "zero", "dead"]
    shown = CliRunner().invoke(cli, ["show", run.id, "--store", store.address], standalone_mode=False).output
    rows = re.findall(r"^ [\d–]+ +(zero|dead|best) +[·━ ]", shown, re.MULTILINE)
    assert rows == ["best", "zero", "dead"] and re.search(r"dead +[· ]+no score$", shown, re.MULTILINE)


def test_a_criterion_called_python_is_no_code():
    assert not _runs_own_code({"scorer": {"type": "llm_judge", "criteria": ["python"]}})
    assert _runs_own_code({"scorer": {"type": "all_of", "of": [{"type": "python", "function": "f.py:g"}]}})
