"""A limit that an agent reaches is an outcome: what is there is scored, and the limit is noted."""

import asyncio
import json
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

import fairtrial as ft
from fairtrial import pipeline
from fairtrial.cli.main import _run
from fairtrial.core.answer import Answer, limit_words
from fairtrial.core.errors import ProblemsError
from fairtrial.core.time_limit import time_limit
from fairtrial.engine import ladder
from fairtrial.workflows.resume import arescore, aresume
from tests.limits import limit_reached_when
from tests.scripted import Say
from tests.targets.test_agents import CASES, FACTS, facts

# Both know the even cases. On the others, one says something wrong, and one never comes to an end.
TWO = """
import asyncio
async def errs(input, steps):
    return "right" if int(input) % 2 == 0 else "wrong"
async def hangs(input, steps):
    if int(input) % 2:
        steps.append({"name": "think", "args": {}})
        await asyncio.Event().wait()
    return "right"
"""
TWENTY = [{"id": f"c{n}", "input": str(n), "expected": "right"} for n in range(20)]
BOTH = [{"id": "errs", "target": "python:two:errs"}, {"id": "hangs", "target": "python:two:hangs"}]
SOON = 0.05  # seconds


@pytest.fixture
def two(tmp_path):
    (tmp_path / "two.py").write_text(TWO)
    return {"targets": BOTH, "cases": TWENTY, "timeout": SOON, "concurrency": 20}


async def test_whoever_hangs_is_not_better_than_whoever_is_wrong(run_suite, two):
    """Finding 4: the second led with 100.0 against 50.0, as its ten trials without an answer were left out."""
    run = await run_suite(**two)
    errs, hangs = run.arms
    assert run.status == "completed"
    assert errs.aggregate.mean == hangs.aggregate.mean == 0.5
    assert (hangs.scored, hangs.failed, hangs.limits, errs.limits) == (20, 0, {"time": 10}, {})
    pair = ft.compare(run, "errs", "hangs")
    assert (pair.difference, pair.count) == (0.0, 20)
    assert pair.verdict not in ("depends on failures", "better", "worse")


async def test_what_is_known_of_a_trial_that_ended_at_a_limit(run_suite, two):
    run = await run_suite(**two)
    trial = next(trial for trial in run.trials() if trial.arm == "hangs" and trial.limit)
    assert (trial.status, trial.answer, trial.score, trial.attempts) == ("scored", "", 0.0, 1)
    assert (trial.limit, trial.limit_value, trial.latency_ms) == ("time", SOON, SOON * 1000)
    assert trial.cost_usd is None  # a function may have spent something until then
    *_, note, limit = trial.trace["events"]
    assert note["text"] == "its last reported step was think"
    assert limit == {"type": "limit", "kind": "time", "limit": SOON}
    assert [call["tool"] for call in trial.trace["tool_calls"]] == ["think"]


@pytest.mark.parametrize(
    ("suite", "target", "case", "score", "failed"),
    [
        ("check", None, None, 0.5, 0),
        ("wrong", None, None, 0.5, 0),
        ("fail", None, None, 1.0, 10),
        ("check", "fail", None, 1.0, 10),
        ("fail", "check", None, 0.5, 0),
        ("fail", "fail", "wrong", 0.5, 0),
        ("check", "check", "fail", 1.0, 10),
    ],
)
async def test_the_most_specific_setting_wins(run_suite, two, suite, target, case, score, failed):
    more = {"on_limit": case} if case else {}
    arm = {**BOTH[1], **({"on_limit": target} if target else {})}
    cases = [{**one, **more} for one in TWENTY]
    run = await run_suite(**{**two, "targets": [arm], "cases": cases, "on_limit": suite})
    (hangs,) = run.arms
    assert (hangs.aggregate.mean, hangs.failed) == (score, failed)
    trials = [trial for trial in run.trials() if trial.case_id == "c1"]
    (trial,) = trials
    if failed:
        message = f"no answer within {SOON} s; its last reported step was think"
        assert (trial.failure_kind, trial.failure_message, trial.limit) == ("timeout", message, None)
    elif "wrong" in (suite, case):
        assert trial.notes == f"stopped at its time limit after {SOON} s: wrong by `on_limit`"


async def test_wrong_is_not_judged(run_suite, two):
    """What a judge would have liked is 0."""
    judged = {"judge": {"target": "mock:judge", "options": {"verdict": {"otherwise": 10}}}, "scorer": "llm_judge"}
    run = await run_suite(**{**two, "targets": BOTH[1:], "cases": TWENTY[1:2]}, **judged, on_limit="wrong")
    (trial,) = run.trials()
    assert trial.score == 0.0 and run.arms[0].judge_calls == 0
    rescored = await arescore(run.id, store=run.store)
    assert next(rescored.trials()).score == 0.0  # nor later


@pytest.mark.parametrize("retry", [{}, {"timeouts": 3, "wait": 0.001}])
async def test_a_limit_is_not_tried_again(run_suite, two, retry):
    """Until it is not reached: that would be choosing among answers. Nor is it asked again by `resume` or `retry`."""
    run = await run_suite(**{**two, "targets": BOTH[1:], "cases": TWENTY[1:2]}, retry=retry)
    assert [(trial.attempts, trial.limit) for trial in run.trials()] == [(1, "time")]
    again = await aresume(run.id, store=run.store, mode="retry")
    assert [(trial.attempts, trial.tried) for trial in again.trials()] == [(1, [])]


async def test_a_model_that_does_not_answer_in_time_has_failed(run_suite, model_server):
    await model_server(faults={"hang": 1})
    run = await run_suite(targets=["openai:m"], timeout=SOON, retry={"timeouts": 0})
    assert [(trial.failure_kind, trial.limit) for trial in run.trials()] == [("timeout", None)]


async def test_a_conversation_ends_where_its_agent_reaches_a_limit(run_suite, tmp_path):
    (tmp_path / "talk.py").write_text(
        "import asyncio\n"
        "async def talk(messages):\n"
        "    if len(messages) == 3:\n        await asyncio.Event().wait()\n"
        "    return f'answer {len(messages)}'\n"
    )
    case = {"turns": ["one", "two", "three"], "expected": "answer 5"}
    run = await run_suite(targets=["python:talk:talk"], cases=[case], timeout=SOON)
    (trial,) = run.trials()
    assert (trial.status, trial.score, trial.limit) == ("scored", 0.0, "time")
    limits = [event for event in trial.trace["events"] if event["type"] == "limit"]
    assert [event["turn"] for event in limits] == [2]


async def test_a_server_that_does_not_start_is_no_limit_of_the_agent(run_suite, model, tmp_path, monkeypatch):
    """Whatever hangs before the agent has its tools is not its work. The check before the run is its first start."""
    await model()
    once, again = tmp_path / "once", tmp_path / "again"
    (tmp_path / "server.sh").write_text(
        f"if [ -e {once} ]; then touch {again}; exec sleep 3600; fi\ntouch {once}\nexec {sys.executable} {FACTS}\n"
    )
    monkeypatch.setattr(ladder, "time_limit", limit_reached_when(again.exists))
    run = await run_suite(
        targets=["tool-agent:openai:m"],
        mcp_servers={"facts": {"command": "sh", "args": ["server.sh"]}},
        conditions={"with-facts": {"mcp": ["facts"]}},
        cases=CASES,
    )
    (trial,) = run.trials()
    assert (trial.failure_kind, trial.limit) == ("timeout", None)
    assert trial.failure_message.endswith("it was waiting for the MCP servers to start: facts")


async def test_waiting_for_the_limits_of_an_account_is_not_the_time_of_the_agent():
    """A session that waits at the turnstile for longer than it may work has not used its time."""

    class Queue:
        """A pace that lets nobody through until it is opened."""

        def __init__(self):
            self.opened, self.used = asyncio.Event(), lambda usage: None

        @asynccontextmanager
        async def call(self, size):
            await self.opened.wait()
            yield

    queue, clock = Queue(), time_limit(0.02)
    turnstile = ladder._Turnstile(queue)
    turnstile.clock = clock
    asyncio.get_running_loop().call_later(0.2, queue.opened.set)
    async with clock, turnstile.call(10, 10):
        pass
    with pytest.raises(TimeoutError):
        async with clock:
            await asyncio.Event().wait()


@pytest.mark.parametrize("target", ["tool-agent:openai:m", "tool-agent:anthropic:m"])
async def test_who_runs_out_of_turns_with_the_right_file_in_place_is_right(run_suite, model, target):
    """Finding 4: `max_turns` reached with the file in place was a failure, and no check ran."""
    await model(lambda turn: Say("Once more.", (("facts__lookup", {"topic": "code"}),)))
    run = await run_suite(**leaving(target, max_steps=3))
    (trial,) = run.trials()
    assert (trial.status, trial.score, trial.answer) == ("scored", 1.0, "Once more.")
    assert (trial.limit, trial.limit_value, trial.completion_tokens) == ("turns", 3, 21)
    assert trial.trace["events"][-2]["type"] == "limit"  # and then what it changed
    (failed,) = (await run_suite(**leaving(target, max_steps=3), on_limit="fail")).trials()
    assert (failed.failure_kind, failed.limit) == ("steps", None)
    assert failed.failure_message == "no answer: stopped at its turn limit after 3 turns"


def leaving(target: str, **options) -> dict:
    """A suite whose tool leaves a file in the workspace, which a check looks for."""
    return {
        "targets": [{"id": "agent", "target": target, "options": options}],
        "mcp_servers": {"facts": facts(env={"LEAVES": "{{ workspace }}/answer.txt"})},
        "conditions": {"with-facts": {"mcp": ["facts"]}},
        "cases": CASES,
        "workspace": {},
        "scorer": {"type": "check", "command": "grep -qx 4711 answer.txt"},
    }


async def test_a_program_that_is_out_of_time_left_what_it_left(run_suite, tmp_path):
    (tmp_path / "agent.sh").write_text("echo 4711 > answer.txt; touch ready; exec sleep 3600")
    run = await run_suite(
        targets=[{"id": "agent", "target": "command", "options": {"command": ["sh", "agent.sh"]}}],
        cases=CASES,
        timeout=2,
        scorer={"type": "check", "command": "grep -qx 4711 answer.txt"},
    )
    (trial,) = run.trials()
    assert (trial.score, trial.limit, trial.limit_value) == (1.0, "time", 2.0)


class TestReported:
    """What an agent of the user's own says about its limit goes the same way."""

    @pytest.mark.parametrize(
        ("told", "limit"),
        [
            ("turns", ("turns", None)),
            ({"kind": "tokens", "value": 50_000}, ("tokens", 50_000.0)),
            ({"kind": "money", "value": "much"}, ("money", None)),
            ("patience", (None, None)),
        ],
    )
    async def test_a_report(self, run_suite, tmp_path, told, limit):
        (tmp_path / "own.py").write_text(f"def own(input):\n    return {{'text': '4711', 'limit': {told!r}}}\n")
        run = await run_suite(targets=["python:own:own"], cases=CASES, scorer="boolean")
        (trial,) = run.trials()
        assert (trial.limit, trial.limit_value) == limit and trial.score == 1.0
        if limit[0] is None:
            assert trial.trace["left_out"] == ["limit left out: 'patience' is none of time, turns, tokens, money"]
        else:
            assert trial.trace["events"][-1]["kind"] == limit[0]
            assert "tool_calls" not in trial.trace  # it does not say what it called: that is not "nothing"

    async def test_an_answer_of_ours(self, run_suite, tmp_path):
        (tmp_path / "own.py").write_text(
            "from fairtrial.plugins import Answer\n"
            "def own(input):\n    return Answer(text='4711', limit='turns', limit_value=7)\n"
            "def odd(input):\n    return Answer(text='4711', limit='patience')\n"
        )
        run = await run_suite(targets=["python:own:own", "python:own:odd"], cases=CASES, scorer="boolean")
        one, odd = run.trials()
        assert (one.limit, one.limit_value, one.score) == ("turns", 7.0, 1.0)
        assert odd.failure_message == "the target returned a limit other than time, turns, tokens, money"


class TestCache:
    """An answer that ended at a limit is used again where it would end there again."""

    async def runs(self, run_suite, two, **second):
        keys = {**two, "targets": BOTH[1:], "cases": TWENTY[1:2]}
        await run_suite(**keys)
        return next((await run_suite(**{**keys, "cache": True, **second})).trials())

    async def test_the_same_limit(self, run_suite, two):
        trial = await self.runs(run_suite, two)
        assert trial.cached and trial.limit == "time"

    @pytest.mark.parametrize("second", [{"timeout": 0.06}, {"on_limit": "fail"}])
    async def test_another_one(self, run_suite, two, second):
        assert not (await self.runs(run_suite, two, **second)).cached


async def test_a_value_that_is_none_is_a_problem_of_the_suite(write_suite):
    with pytest.raises(ProblemsError, match="on_limit"):
        pipeline.load(write_suite(on_limit="ignore"))


@pytest.mark.parametrize(
    ("kind", "value", "words"),
    [
        ("time", 600.0, "stopped at its time limit after 600 s"),
        ("turns", 30, "stopped at its turn limit after 30 turns"),
        ("turns", 1, "stopped at its turn limit after 1 turn"),
        ("tokens", 50_000, "stopped at its token limit after 50,000 tokens"),
        ("tokens", None, "stopped at its token limit"),
        ("money", 0.125, "stopped at its money limit: another call could exceed $0.12"),
    ],
)
def test_words(kind, value, words):
    assert limit_words(kind, value) == words


async def test_old_answers_have_no_limit():
    assert Answer(text="x").limit is None


async def test_every_surface_says_so(run_suite, two, tmp_path, capsys):
    run = await run_suite(**two)
    line = "10 of 40 trials ended at a limit (10 time)."
    store = ["--store", run.store.address]
    assert _run(["show", *store]) == 0
    assert line in " ".join(capsys.readouterr().out.split())
    assert _run(["show", "--json", *store]) == 0
    arms = json.loads(capsys.readouterr().out)["arms"]
    assert [arm["limits"] for arm in arms] == [{}, {"time": 10}]
    for name in ("report.md", "report.html"):
        assert _run(["export", "-o", str(tmp_path / name), *store]) == 0
        assert line in " ".join(Path(tmp_path / name).read_text().split()), name
    assert line in run._repr_html_()
    assert _run(["show", "latest", "c1", "hangs", *store]) == 0
    assert f"stopped at its time limit after {SOON} s" in " ".join(capsys.readouterr().out.split())
    assert _run(["export", "-o", str(tmp_path / "run.csv"), *store]) == 0
    assert f'"time",{SOON}' in (tmp_path / "run.csv").read_text()
