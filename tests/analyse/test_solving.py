"""What solving takes: the same numbers in the summary, the comparison, the documents and on every surface."""

import json
from pathlib import Path

import pytest

import fairtrial as ft
from fairtrial import pipeline
from fairtrial.cli.main import _run
from fairtrial.core.errors import ProblemsError

# Both solve the even cases; the second costs three times as much, and reports no cost where `blind` is set.
AGENTS = """
import asyncio
def cheap(input):
    right = int(input) % 2 == 0
    return {"text": "right" if right else "wrong", "cost_usd": 0.01 * (1 + int(input) % 3), "prompt_tokens": 100, "completion_tokens": 20}
def dear(input):
    return {**cheap(input), "cost_usd": 0.03 * (1 + int(input) % 3)}
def never(input):
    return {**cheap(input), "text": "wrong"}
def blind(input):
    report = cheap(input)
    return report if int(input) else {"text": "right"}
async def hangs(input):
    if int(input) % 2:
        await asyncio.Event().wait()
    return {"text": "right", "cost_usd": 0.01}
"""
TWENTY = [{"id": f"c{n}", "input": str(n), "expected": "right"} for n in range(20)]
SPENT = sum(0.01 * (1 + n % 3) for n in range(20))


@pytest.fixture
def agents(tmp_path):
    (tmp_path / "own.py").write_text(AGENTS)

    def suite(*names: str, **more) -> dict:
        return {"targets": [{"id": name, "target": f"python:own:{name}"} for name in names], "cases": TWENTY, **more}

    return suite


async def test_the_cost_of_all_trials_counts(run_suite, agents):
    run = await run_suite(**agents("cheap", "never", "blind"))
    cheap, never, blind = (arm.solving for arm in run.arms)
    assert (cheap.trials, cheap.solved, cheap.least) == (20, 10, 1.0)
    assert cheap.cost_usd.value == pytest.approx(SPENT / 10)
    assert cheap.cost_usd.ci95[0] < SPENT / 10 < cheap.cost_usd.ci95[1]
    assert cheap.tokens.value == pytest.approx(240)
    assert (never.cost_usd.value, never.cost_usd.total) == (None, pytest.approx(SPENT))
    assert (blind.cost_usd.unknown, blind.cost_usd.ci95) == (1, None)  # the least


async def test_time_to_solve_is_that_of_all(run_suite, agents):
    """Ten cases are solved at once, and ten are at the limit: on average it takes half of the limit."""
    run = await run_suite(**agents("hangs"), timeout=0.05, concurrency=20)
    times = run.arms[0].solving.seconds
    assert times.horizon >= 0.05 and times.within[-1].share == 0.5
    assert 0.5 * times.horizon <= times.mean < times.horizon


@pytest.mark.parametrize(("solved", "count"), [(None, 10), (0.5, 15), (0.2, 20)])
async def test_what_counts_as_solved_is_stated(run_suite, tmp_path, solved, count):
    (tmp_path / "own.py").write_text("def own(input):\n    return {'text': input, 'cost_usd': 0.01}\n")
    (tmp_path / "mark.py").write_text(
        "def mark(response):\n    return {0: 1.0, 1: 0.5, 2: 1.0, 3: 0.2}[int(response) % 4]\n"
    )
    stated = {} if solved is None else {"solved": solved}
    run = await run_suite(
        targets=["python:own:own"], cases=TWENTY, scorer={"type": "python", "function": "mark.py:mark"}, **stated
    )
    assert run.arms[0].solving.solved == count


@pytest.mark.parametrize("solved", [0, 1.5, 80])
def test_a_score_that_cannot_be(write_suite, solved):
    with pytest.raises(ProblemsError, match="solved"):
        pipeline.load(write_suite(solved=solved))


async def test_two_agents_are_compared_by_what_solving_costs(run_suite, agents):
    run = await run_suite(**agents("cheap", "dear", "never"))
    both = ft.compare(run, "dear", "cheap").solving
    assert (both.ratio, both.count) == (pytest.approx(3), 20) and both.a == pytest.approx(3 * SPENT / 10)
    assert both.ci95 == pytest.approx((3, 3))  # case by case it is three times as much
    turned = ft.compare(run, "cheap", "dear").solving
    assert turned.ratio == pytest.approx(1 / 3) and turned.a == both.b
    assert ft.compare(run, "cheap", "never").solving is None


async def test_models_without_costs_have_no_such_numbers(run_suite):
    run = await run_suite(targets=["mock:echo"])
    assert run.arms[0].solving is None


async def test_every_surface_says_so(run_suite, agents, tmp_path, capsys):
    run = await run_suite(**agents("cheap", "dear", "never"))
    store = ["--store", run.store.address]
    lines = ["10 of 20 trials solved (full marks)", f"more than ${SPENT:.2g}, which solved none"]
    ratio = "solved trial costs cheap $0.039 and dear $0.12: 0.33 times as much"
    assert _run(["show", "--details", *store]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert all(line in shown for line in lines) and "> $0.39" in shown
    for name in ("report.md", "report.html"):
        assert _run(["export", "-o", str(tmp_path / name), *store]) == 0
        text = " ".join(Path(tmp_path / name).read_text().replace("\\", "").replace("&gt;", ">").split())
        assert all(line in text for line in lines), name
        assert "> $0.39" in text, name
    assert _run(["show", "--json", *store]) == 0
    cheap, _, never = json.loads(capsys.readouterr().out)["arms"]
    assert cheap["solving"]["cost_usd"]["value"] == pytest.approx(SPENT / 10) and cheap["solving"]["solved"] == 10
    assert never["solving"]["cost_usd"]["value"] is None
    assert _run(["compare", "--arms", "cheap", "dear", *store]) == 0
    assert ratio in " ".join(capsys.readouterr().out.split())
    assert _run(["compare", "--arms", "cheap", "dear", "--json", *store]) == 0
    (pair,) = json.loads(capsys.readouterr().out)["pairs"]
    assert pair["solving"]["ratio"] == pytest.approx(1 / 3)
