"""A session whose time is over: not bought again, and what it did until then is kept."""

import asyncio
import sys

import pytest

from fairtrial.cli.main import _run
from fairtrial.core.answer import Failure, Request, SoFar, Usage
from fairtrial.core.experiment import McpServer, TargetSpec
from fairtrial.core.settings import RetrySpec, Settings
from fairtrial.core.target import Target
from fairtrial.core.time_limit import time_limit
from fairtrial.engine import ladder
from fairtrial.engine.budget import Budget
from fairtrial.engine.limits import Limiter
from fairtrial.engine.targets import build_target
from fairtrial.providers.prices import Price, Rate
from tests.processes import new_mark
from tests.scripted import Say, Turn
from tests.targets.test_agents import CASES, FACTS, _gone

REQUEST = Request(trial_id="t", case_id="c", input="What is the code?")
ONE_DOLLAR = Price((Rate(prompt=1.0, completion=1.0),))


class Slow(Target):
    """Never comes to an end, and says how far it has come in a way of its own."""

    asked = 0
    tells = None

    async def ask(self, request: Request) -> Failure:
        self.asked += 1
        if self.tells is not None:
            request.journal.read = self.tells
        await asyncio.Event().wait()
        raise AssertionError


class SlowAgent(Slow):
    agent = True


def broken():
    raise RuntimeError("a plug-in may do anything")


async def climb(target: Target, **settings) -> tuple:
    """The outcome of one call that takes too long."""
    how = Settings(**{"timeout": 0.01, "retry": RetrySpec(wait=0.001), **settings})
    calls = ladder.Ladder(
        target, how, gate=asyncio.Semaphore(1), limiter=Limiter(1, 1), budget=Budget(None, 0.0), price=ONE_DOLLAR
    )
    return await calls.ask(REQUEST)


def made(cls: type[Target]) -> Target:
    return cls(TargetSpec(id="t", kind="mock", provider="mock"), None, None)


class TestLadder:
    @pytest.mark.parametrize(
        ("cls", "timeouts", "asked"), [(Slow, None, 2), (SlowAgent, None, 1), (Slow, 0, 1), (SlowAgent, 2, 3)]
    )
    async def test_only_a_model_is_asked_again_unless_the_suite_says_so(self, cls, timeouts, asked):
        target = made(cls)
        outcome = await climb(target, retry=RetrySpec(wait=0.001, timeouts=timeouts))
        assert outcome.result.kind == "timeout" and target.asked == outcome.attempts == asked

    async def test_what_is_known_is_kept_and_the_cost_is_not_claimed(self):
        target = made(SlowAgent)
        so_far = SoFar(doing="it was waiting for x.y", usage=Usage(prompt=3), trace={"tool_calls": []})
        target.tells = lambda: so_far
        outcome = await climb(target)
        assert outcome.result.message == "no answer within 0.01 s; it was waiting for x.y"
        assert outcome.result.usage == Usage(prompt=3) and outcome.result.trace == {"tool_calls": []}
        assert outcome.cost.usd is None  # three dollars are known, but the last turn may be billed too

    @pytest.mark.parametrize("tells", [None, broken, lambda: None])
    async def test_who_tells_nothing(self, tells):
        target = made(SlowAgent)
        target.tells = tells
        outcome = await climb(target)
        assert (outcome.result.kind, outcome.result.trace) == ("timeout", None)

    @pytest.mark.parametrize(("cls", "seconds"), [(Slow, 120), (SlowAgent, 600)])
    async def test_a_session_has_more_time_than_a_call(self, cls, seconds, monkeypatch):
        given = []

        def shortened(limit: float):
            given.append(limit)
            return time_limit(0.001)

        monkeypatch.setattr(ladder, "time_limit", shortened)
        await climb(made(cls), timeout=None)
        assert set(given) == {seconds}


def hanging_request(mark: str) -> Request:
    server = McpServer(name="facts", command=sys.executable, args=(FACTS, mark), env={"BEHAVE": "hang"})
    return Request(trial_id="t", case_id="c", input="What is the code?", mcp=(server,))


async def given_up(target: Target, request: Request, doing: str) -> SoFar:
    """What is known of a session when it does this; then it is ended."""
    await target.open(1)
    asking = asyncio.create_task(target.ask(request))
    try:
        while doing not in request.journal.read().doing:
            assert not asking.done(), asking.result()
            await asyncio.sleep(0.01)
        return request.journal.read()
    finally:
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        await target.close()


def look_twice(turn: Turn) -> Say:
    """First what answers at once, then what never does."""
    name = next(name for name in turn.tools if name.endswith("add"))
    if not turn.results:
        return Say("Let me add.", ((name, {"a": 1, "b": 1}),))
    return Say("Let me look.", ((name.replace("add", "lookup"), {"topic": "code"}),))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["tool_agent", "claude_code"])
async def test_which_tool_hung(model, kind, tmp_path):
    served, mark = await model(look_twice), new_mark()
    spec = TargetSpec(
        id="a", kind=kind, provider="anthropic", model="claude-test-1", api="anthropic_api", base_url=served.url
    )
    so_far = await given_up(build_target(spec, tmp_path), hanging_request(mark), "lookup")
    assert so_far.doing == "it was waiting for facts.lookup"
    first, second = so_far.trace["tool_calls"]
    assert (first["tool"], first["unfinished"]) == ("add", False) and "2" in first["result"]
    assert (second["tool"], second["unfinished"], second["arguments"]) == ("lookup", True, {"topic": "code"})
    assert so_far.usage.prompt == 280  # two turns of the model
    await _gone(mark)


async def test_what_a_program_wrote(tmp_path):
    script = "echo step 1 >&2; echo step 2 >&2; printf half of a >&2; exec sleep 3600"
    spec = TargetSpec(id="a", kind="command", provider="command", options={"command": ["sh", "-c", script]})
    so_far = await given_up(build_target(spec, tmp_path), REQUEST, "step 2")
    assert so_far.doing == "until then it wrote: step 1\nstep 2"


class TestInARun:
    @pytest.mark.parametrize("on_limit", ["check", "fail"])
    async def test_a_function_keeps_its_steps(self, run_suite, tmp_path, capsys, on_limit):
        (tmp_path / "sleepy.py").write_text(
            "import asyncio\n"
            "async def query(user_query, system_prompt, mcp_servers, steps):\n"
            "    steps.append({'name': 'read', 'args': {'file': 'a'}, 'result': 'A'})\n"
            "    steps.append({'name': 'wait_for_it', 'args': {'for': 'ever'}})\n"
            "    await asyncio.Event().wait()\n"
        )
        run = await run_suite(targets=["python:sleepy:query"], cases=CASES, timeout=0.05, on_limit=on_limit)
        (trial,) = run.trials()
        failed = "timeout" if on_limit == "fail" else None
        assert (trial.failure_kind, trial.attempts, trial.cost_usd) == (failed, 1, None)
        assert [call["tool"] for call in trial.trace["tool_calls"]] == ["read", "wait_for_it"]
        assert _run(["show", "--store", run.store.address]) == 0
        assert "prices:" not in capsys.readouterr().out
        assert _run(["show", "--trial", trial.trial_id, "--store", run.store.address]) == 0
        shown = " ".join(capsys.readouterr().out.split())
        assert 'built-in.wait_for_it({"for": "ever"}) did not finish' in shown
        assert "its last reported step was wait_for_it" in shown

    async def test_steps_count_where_the_report_has_none(self, run_suite, tmp_path):
        (tmp_path / "brisk.py").write_text(
            "def query(user_query, system_prompt, mcp_servers, steps):\n    steps.append('read')\n    return '4711'\n"
            "def broken(user_query, system_prompt, mcp_servers, steps):\n    steps.append('read')\n    raise ValueError\n"
        )
        run = await run_suite(targets=["python:brisk:query", "python:brisk:broken"], cases=CASES)
        assert [trial.trace["tool_calls"][0]["tool"] for trial in run.trials()] == ["read", "read"]


async def test_a_price_that_the_suite_states_counts_for_a_mock_too(run_suite):
    arm = {"id": "m", "target": "mock:m", "options": {"answer": "x" * 400}}
    run = await run_suite(targets=[arm], cases=CASES, prices={"m": {"input": 0, "output": 10_000}})
    assert run.arms[0].cost_usd == pytest.approx(len(CASES) * 100 * 0.01)
