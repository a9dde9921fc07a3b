"""Sessions of agents that were lost are in the sums, with a budget and without: what they may have cost, and that
nobody knows exactly."""

import asyncio
import json

import pytest

from fairtrial import pipeline
from fairtrial.analyse.run import Run
from fairtrial.reports.json import document
from fairtrial.store.ledger import charged, spent
from fairtrial.workflows.resume import aresume
from tests import forks
from tests.conftest import numbered
from tests.engine.test_cluster import workers  # noqa: F401

PRICE = 0.001  # USD per token
AGENT = """
import asyncio, pathlib
async def query(input, steps):
    here = pathlib.Path(__file__).parent
    if (here / 'answered').exists() and not (here / 'go').exists():
        (here / 'begun').touch()
        await asyncio.Event().wait()
    (here / 'answered').touch()
    return {'text': '42', 'prompt_tokens': 50, 'completion_tokens': 50}
"""
KNOWN = 100 * PRICE
KEYS = {
    "targets": ["python:agent.py:query"], "scorer": "boolean", "concurrency": 1,
    "prices": {"python:agent.py:query": {"input": PRICE * 1e6, "output": PRICE * 1e6}},
}  # fmt: skip
LIMITS = pytest.mark.parametrize("limit", [{}, {"budget_usd": 5}], ids=["no budget", "budget"])


async def appears(path):
    while not path.exists():
        await asyncio.sleep(0.01)


def with_one_lost(run, limit):
    """Check that one session is in every sum, beside one answer; with a budget it is charged what the answer cost."""
    summary = run.summary()
    assert summary.spent.unknown == 1 and summary.spent.known == pytest.approx(KNOWN)
    assert summary.spent.charged >= (2 * KNOWN if limit else KNOWN) - 1e-9
    assert charged(run.store, run.id) == pytest.approx(summary.spent.charged)
    assert json.loads(json.dumps(document(summary)))["spent"]["unknown_costs"] == 1
    return summary


@LIMITS
@pytest.mark.parametrize("split", [[], ["--workers", "1"]], ids=["here", "workers"])
async def test_a_session_that_was_killed_with_its_run(write_suite, tmp_path, store, limit, split):
    (tmp_path / "agent.py").write_text(AGENT)
    path = write_suite(cases=numbered(2), **KEYS, **limit)
    process = forks.start("run", str(path), "--quiet", "--store", store.address, *split, folder=tmp_path)
    await asyncio.wait_for(appears(tmp_path / "begun"), 100)
    process.kill()
    await asyncio.to_thread(process.wait)
    with_one_lost(Run.find("latest", store), limit)
    (tmp_path / "go").touch()
    run = await aresume(Run.find("latest", store).id, store=store)
    assert run.status == "completed"
    assert spent(store, run.id).unknown == 1 and spent(store, run.id).known == pytest.approx(2 * KNOWN)
    assert spent(store, run.id).charged >= 2 * KNOWN - 1e-9


@LIMITS
async def test_a_session_that_was_cancelled_counts_what_it_told(write_suite, tmp_path, store, limit):
    (tmp_path / "agent.py").write_text(AGENT)
    path = write_suite(cases=numbered(2), **KEYS, **limit)
    running = asyncio.create_task(pipeline.arun(pipeline.load(path), store=store))
    await asyncio.wait_for(appears(tmp_path / "begun"), 100)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    with_one_lost(Run.find("latest", store), limit)


@LIMITS
async def test_a_session_that_was_lost_with_its_worker(run_suite, tmp_path, store, limit, workers):  # noqa: F811
    (tmp_path / "agent.py").write_text(AGENT)
    backend = workers(most=1)
    running = asyncio.create_task(run_suite(cases=numbered(2), **KEYS, **limit))
    await asyncio.wait_for(appears(tmp_path / "begun"), 100)
    (tmp_path / "go").touch()
    backend.links[-1].kill()
    run = await running
    assert run.status == "completed", run.record.reason
    summary = run.summary()
    assert summary.spent.unknown == 1 and summary.spent.known == pytest.approx(2 * KNOWN)
    assert summary.spent.charged >= 2 * KNOWN - 1e-9


async def test_a_session_of_which_nothing_is_known_is_unknown_and_nothing_else(write_suite, tmp_path, store):
    (tmp_path / "agent.py").write_text(AGENT)
    (tmp_path / "answered").touch()
    path = write_suite(cases=numbered(1), targets=KEYS["targets"], scorer="boolean")
    process = forks.start("run", str(path), "--quiet", "--store", store.address, folder=tmp_path)
    await asyncio.wait_for(appears(tmp_path / "begun"), 100)
    process.kill()
    await asyncio.to_thread(process.wait)
    cost = spent(store, Run.find("latest", store).id)
    assert (cost.known, cost.charged, cost.unknown) == (0.0, 0.0, 1)


async def test_runs_that_end_leave_nothing_at_risk(run_suite, tmp_path, store):
    (tmp_path / "agent.py").write_text(AGENT)
    (tmp_path / "go").touch()
    run = await run_suite(cases=numbered(3), **KEYS)
    assert run.summary().spent.unknown == 0 and charged(store, run.id) == pytest.approx(3 * KNOWN)


async def test_what_was_lost_leaves_nothing_for_others(run_suite, tmp_path, workers):  # noqa: F811
    """The first session of an agent may cost all that is left; if it is lost, nothing is."""
    (tmp_path / "agent.py").write_text(AGENT)
    (tmp_path / "answered").touch()
    backend = workers(most=1)
    running = asyncio.create_task(run_suite(cases=numbered(2), **KEYS, budget_usd=5))
    await asyncio.wait_for(appears(tmp_path / "begun"), 100)
    (tmp_path / "go").touch()
    backend.links[-1].kill()
    run = await running
    assert run.status == "incomplete" and "budget of $5 reached" in run.record.reason
    assert run.summary().spent.charged == pytest.approx(5) and run.summary().spent.known == 0
