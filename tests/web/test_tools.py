"""The page of a run: do the tools help, what answers took, how much another run would differ; and prompt styles."""

import re
import sys
from pathlib import Path

import pytest

from fairtrial.analyse.leaderboard import run_leaderboard
from fairtrial.analyse.spread import run_spreads

from .test_result import client, words  # noqa: F401

SERVER = Path(__file__).parents[2] / "examples" / "agents" / "graph_server.py"
FAILING = {"server": "graph", "tool": "neighbours", "share": 0.5, "error": True}


def agent(**more):
    """An agent whose answers are right with tools, and right every third time without."""
    wrong = {f"q{n} plain": "no" for n in range(30) if n % 3}
    right = {f"q{n} ": "yes" for n in range(30)}
    calls = [{"server": "graph", "tool": "search"}, FAILING]
    return {
        "targets": [{"id": "m", "target": "mock:m", "options": {"answers": wrong | right, "tool_calls": calls}}],
        "mcp_servers": {"graph": {"command": sys.executable, "args": [str(SERVER)]}},
        "conditions": {"plain": {"prompt": "{{input}}plain"}, "tools": {"prompt": "{{input}}tools", "mcp": ["graph"]}},
        "cases": [{"id": f"c{n}", "input": f"q{n} ", "expected": "yes"} for n in range(30)],
        **more,
    }


@pytest.mark.slow
async def test_a_run_with_tools_says_whether_they_help(run_suite, client):  # noqa: F811
    run = await run_suite(**agent(repeats=2))
    page = client.get(f"/runs/{run.id}/result").text
    section = page.split("Do the tools help?")[1].split("</section>")[0]
    verdict = run_leaderboard(run).distances["m/tools"]["m/plain"].verdict
    assert verdict == "better" and "The server graph helps: +66.7 points (95 % CI" in words(section)
    tools = next(arm.tools for arm in run.summary().arms if arm.tools)
    calls, errors = tools.tools["graph.neighbours"]
    assert errors and f"neighbours (not offered) {calls - errors} of {calls}" in words(section)
    assert f"{tools.used} of {tools.answers}" in words(section)
    assert "tools used in" not in page  # nothing twice
    part = client.get(f"/runs/{run.id}/variance").text
    assert "differences between cases" in part and f"/plan?run={run.id}" in part


async def test_a_run_of_one_arm_has_nothing_to_plan_from(run_suite, client):  # noqa: F811
    run = await run_suite()
    page = client.get(f"/plan?run={run.id}&wait=1")
    assert page.status_code == 200 and "Two arms with scores are needed" in page.text


async def test_a_run_without_tools_does_not_ask_about_them(run_suite, client):  # noqa: F811
    run = await run_suite()
    page = client.get(f"/runs/{run.id}/result").text
    assert "Do the tools help?" not in page and "How much would another run differ?" not in page


async def test_metrics_are_drawn_on_their_own_scale(run_suite, client):  # noqa: F811
    judge = {"target": "mock:judge", "options": {"verdict": {"marks": {"Say 1": 5}, "otherwise": 2}}}
    cases = [{"input": f"Say {n}", "expected": f"Say {n}"} for n in range(4)]
    run = await run_suite(judge=judge, scorer="golden_judge", cases=cases)
    page = words(client.get(f"/runs/{run.id}/result").text)
    assert "Factual adherence scale 1–5" in page and "2.75" in page


async def test_latency_and_cost_are_shown_as_boxes(run_suite, client, write_suite, tmp_path):  # noqa: F811
    (tmp_path / "paid.py").write_text(
        "def answer(input):\n    return {'text': input, 'cost_usd': 0.001 * (1 + int(input[4:]))}\n"
    )
    cases = [{"input": f"Say {n}", "expected": "Say 0"} for n in range(21)]
    run = await run_suite(targets=[{"id": "m", "target": "python:paid.py:answer"}], cases=cases)
    cost = run_spreads(run)["m"].cost_usd
    assert cost == pytest.approx((0.002, 0.006, 0.011, 0.016, 0.020))
    page = client.get(f"/runs/{run.id}/result").text
    assert "of 1,000 such answers" in page and "$11.00" in page


@pytest.mark.slow
async def test_styles_are_drawn_with_their_intervals(run_suite, client):  # noqa: F811
    point = '{"x": [0,0,0,0,0,0,0,0,0,0], "objective_value": 0}'
    ids = ["original-10", "box_qp-10", "convex_qp-10"]
    run = await run_suite(
        targets=[{"id": "m", "target": "mock:m", "options": {"answer": point}}],
        suite={"kind": "optimisation", "ids": ids},
        repeats=1,
    )
    page = client.get(f"/runs/{run.id}/styles?wait=1").text
    assert all(name in page for name in ("Which style leads", "Gap", "Feasible", "Followed", "By difficulty"))
    assert re.search(r"95 % CI|to \d", words(page))
    wrong = client.get(f"/runs/{run.id}/styles?weights=many&wait=1").text
    assert 'aria-invalid="true"' in wrong and "weights must be two numbers" in wrong and "Which style leads" in wrong
    problem = client.get("/optimisation/box_qp-10").text
    assert "Every answer by its gap" in problem and f"/runs/{run.id}/cases/" in problem


KNAPSACK = """
id: bag
sense: max
variables: [{name: x, size: 2, lower: 0, upper: 1, integer: true}]
objective: 3*x[0] + 2*x[1]
constraints: ["2*x[0] + 2*x[1] <= 3"]
"""


@pytest.mark.slow
async def test_pages_know_problems_of_ones_own_and_start_runs(run_suite, client, tmp_path):  # noqa: F811
    (tmp_path / "bag.yaml").write_text(KNAPSACK)
    (tmp_path / "broken.yaml").write_text("variables: []\nobjective: 1 +\n")
    (tmp_path / "pirates.yaml").write_text('pirate: ["Arr! {{problem}}"]\n')
    page = client.get("/optimisation").text
    assert "bag.yaml" in page and 'href="/optimisation/bag"' in page and "broken.yaml" in page
    shown = client.get("/optimisation/bag").text
    assert "Not solved yet" in shown and "bag.yaml" in shown and "Maximise" in shown
    form = client.get("/optimisation/new").text
    assert 'value="bag.yaml"' in form and 'value="pirates.yaml"' in form and "pirates.yaml" in form
    assert "name at least one model" in client.post("/optimisation/new", data={"style": "polite"}).text
    wrong = {"targets": "mock:m", "style": "nowhere", "problem": "bag.yaml"}
    assert "unknown style" in client.post("/optimisation/new", data=wrong).text
    chosen = {"targets": "mock:echo", "style": ["polite", "strict"], "n": "2", "repeats": "2", "name": "mine"}
    made = client.post("/optimisation/new", data=chosen, follow_redirects=False)
    assert made.status_code == 303 and made.headers["location"] == "/new?file=mine.yaml"
    assert "n:\n  - 2" in (tmp_path / "mine.yaml").read_text()
    assert "mock:echo" in client.get("/new?file=mine.yaml").text


async def test_the_report_on_styles_can_be_downloaded(run_suite, client):  # noqa: F811
    point = '{"x": [0, 0], "objective_value": 0}'
    run = await run_suite(
        targets=[{"id": "<b>m</b>", "target": "mock:m", "options": {"answer": point}}],
        suite={"kind": "optimisation", "ids": ["original-2", "convex_qp-2"]},
        repeats=1,
    )
    page = client.get(f"/runs/{run.id}/styles?wait=1").text
    assert "Methods, ready to paste" in page and "<b>m</b>" not in page
    for form in ("html", "md", "tex", "csv", "json"):
        assert f"/styles/report.{form}" in page
        found = client.get(f"/runs/{run.id}/styles/report.{form}")
        assert found.status_code == 200 and "attachment" in found.headers["content-disposition"]
        assert form in ("csv", "json") or "<b>m</b>" not in found.text
    assert client.get(f"/runs/{run.id}/styles/report.docx").status_code == 404
