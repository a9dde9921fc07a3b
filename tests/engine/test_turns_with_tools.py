"""Conversations in which tools are called: every turn counts, for scorers and reports, and the agent remembers them."""

import gzip
import json
import sys
from pathlib import Path

import pytest

import fairtrial as ft
from fairtrial.analyse.run import Run
from fairtrial.analyse.tool_report import tool_report
from fairtrial.core.events import CallEvent, MessageEvent, ResultEvent
from fairtrial.core.place import Place
from fairtrial.store import Store
from fairtrial.workflows.resume import aresume
from tests.scripted import Say
from tests.targets.test_agents import FACTS

BEFORE = Path(__file__).parents[1] / "data" / "conversation-of-before.db.gz"
TURNS = ["What is the code?", "Thanks"]
SERVERS = {"mcp_servers": {"shop": {"command": sys.executable, "args": [FACTS], "env": {"BEHAVE": ""}}}}
CONDITION = {"conditions": {"with-shop": {"mcp": ["shop"]}}}
AGENTS = ["tool-agent:openai:m", "tool-agent:anthropic:m", "claude-code:claude-test-1"]


def once_a_turn(turn):
    """Look the code up where the last question asks for it; say thanks for thanks."""
    last = turn.question.strip().splitlines()[-1]
    asked = turn.question.count("the code?")
    tool = next(name for name in turn.tools if name.endswith("lookup"))
    if "code" in last and len(turn.results) < asked:
        return Say("Let me look.", ((tool, {"topic": "code"}),))
    return Say(f"It is {turn.results[-1]}" if "code" in last else "You are welcome.")


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("FAIRTRIAL_CACHE_DIR", str(tmp_path / "cache"))


SCORERS = [({"forbidden": ["shop.lookup"]}, 0), ({"names": ["shop.lookup"]}, 1), ({"max": 0}, 0), ({"max": 1}, 1)]


@pytest.mark.parametrize(
    ("agent", "scorer", "score"),
    [
        *((agent, *scored) for agent in AGENTS for scored in SCORERS[:2]),
        *((AGENTS[0], *scored) for scored in SCORERS[2:]),
    ],
)
async def test_calls_of_every_turn_are_scored(run_suite, model, agent, scorer, score):
    await model(once_a_turn)
    case = {"id": "a", "turns": TURNS, "scorer": {"type": "tool_calls", **scorer}}
    run = await run_suite(targets=[{"id": "t", "target": agent}], cases=[case], **SERVERS, **CONDITION)
    (trial,) = run.trials()
    assert trial.failure_message is None and trial.answer == "You are welcome."
    assert trial.score == score
    # Whatever else speaks of calls counts the same.
    (arm,) = tool_report(run).arms
    assert (arm.any_use.hits, arm.any_use.of) == (1, 1) and "shop.lookup" not in arm.never_called
    (used,) = [tool for tool in arm.tools if tool.name == "shop.lookup"]
    assert used.success.of == 1
    assert (run.arms[0].tools.used, run.arms[0].tools.tools) == (1, {"shop.lookup": (1, 0)})


@pytest.mark.parametrize("agent", AGENTS)
async def test_what_happened_is_one_list_over_all_turns(run_suite, model, agent):
    await model(once_a_turn)
    case = {"id": "a", "turns": [*TURNS, "What is the code?"], "expected": "4711", "scorer": "contains"}
    run = await run_suite(targets=[{"id": "t", "target": agent}], cases=[case], **SERVERS, **CONDITION)
    (trial,) = run.trials()
    assert trial.score == 1, trial.failure_message
    place = Place(0, 0, 0)
    (stored,) = run.store.cases_at(run.plan.id, [0])
    events = run.trajectory(place, stored, trial)
    kinds = {MessageEvent: "says", CallEvent: "calls", ResultEvent: "gets"}
    story = [(event.turn, getattr(event, "role", kinds.get(type(event)))) for event in events if type(event) in kinds]
    once = [(1, "user"), (1, "assistant"), (1, "calls"), (1, "gets"), (1, "assistant")]
    again = [(3, role) for _, role in once]
    assert story == [*once, (2, "user"), (2, "assistant"), *again]
    calls = [event for event in events if isinstance(event, CallEvent)]
    assert len({call.id for call in calls}) == 2
    assert [event.call for event in events if isinstance(event, ResultEvent)] == [call.id for call in calls]


async def test_a_simulated_user_that_asks_for_a_call_in_each_turn(run_suite, model):
    """One call in each of three turns are three calls."""

    def script(turn):
        if "You play a user" in turn.system:
            return Say("What is the code?")
        return once_a_turn(turn)

    served = await model(script)
    user = {"target": "openai:u", "persona": "Ann", "goal": "the code", "max_turns": 3}
    for most, score in ((1, 0), (2, 0), (3, 1)):
        case = {"id": "a", "input": "What is the code?", "scorer": {"type": "tool_calls", "max": most}}
        targets = [{"id": "t", "target": "tool-agent:openai:m"}]
        run = await run_suite(targets=targets, user=user, cases=[case], **SERVERS, **CONDITION)
        (trial,) = run.trials()
        assert (trial.failure_message, trial.score, len(trial.trace["tool_calls"])) == (None, score, 3)
    assert len(served.bodies) == 3 * (2 * 3 + 2)


async def test_an_interrupted_conversation_remembers_its_calls(run_suite, store, model):
    """Turn 2 fails; when it is asked again, in another session, its request has the call of turn 1 with its result."""
    down = [True]

    def script(turn):
        if "Thanks" in turn.question and down:
            raise ValueError("the server is down")
        return once_a_turn(turn)

    served = await model(script)
    keys = {"targets": [{"id": "t", "target": "tool-agent:openai:m"}], "retry": {"attempts": 1}, **SERVERS, **CONDITION}
    case = {"id": "a", "turns": TURNS, "scorer": {"type": "tool_calls", "names": ["shop.lookup"]}}
    run = await run_suite(cases=[case], **keys)
    (trial,) = run.trials()
    assert trial.failure_message.startswith("turn 2: ")
    assert [call["tool"] for call in trial.trace["tool_calls"]] == ["lookup"]
    asked = len(served.bodies)
    without_interruption = served.bodies[-1]
    down.clear()
    run = await aresume(run.id, mode="retry", store=store)
    (trial,) = run.trials()
    assert trial.score == 1 and len(served.bodies) == asked + 1
    assert served.bodies[-1] == without_interruption
    asking, answered = served.bodies[-1]["messages"][1:3]
    assert json.loads(asking["tool_calls"][0]["function"]["arguments"]) == {"topic": "code"}
    assert (answered["role"], answered["content"]) == ("tool", "The code is 4711.")


class TestRunsOfBefore:
    """Until events were stored, the trace of a conversation was that of its last turn; turns had their own.

    The store was written by that version: a function that calls `shop.lookup` in the first of two turns of the case
    `code`, and nothing in the case `plain`, scored with `forbidden: [shop.lookup]`.
    """

    @pytest.fixture
    def run(self, tmp_path):
        file = tmp_path / "before.db"
        file.write_bytes(gzip.decompress(BEFORE.read_bytes()))
        return Run.find("latest", Store(f"sqlite:///{file}"))

    def test_their_calls_are_those_of_all_turns(self, run):
        code, plain = run.trials()
        assert (code.score, code.notes) == (1, "no calls")  # as that version scored it
        assert [(call["tool"], call["turn"]) for call in code.trace["tool_calls"]] == [("lookup", 1)]
        assert plain.trace["tool_calls"] == []
        (arm,) = tool_report(run).arms
        assert (arm.any_use.hits, arm.any_use.of) == (1, 2) and "shop.lookup" not in arm.never_called

    @pytest.mark.parametrize(
        ("scorer", "score"), [({"forbidden": ["shop.lookup"]}, 0), ({"names": ["shop.lookup"]}, 1)]
    )
    async def test_scored_again_they_are_scored_as_a_whole(self, run, scorer, score):
        again = await ft.arescore(run, {"type": "tool_calls", **scorer})
        code, plain = again.trials()
        assert (code.score, plain.score) == (score, 1 - score)
