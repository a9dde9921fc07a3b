"""Why a conversation with a simulated user ended: what it said, a check of what is there, or the limit of turns."""

import sys
from pathlib import Path

import pytest

from fairtrial import pipeline
from fairtrial.cli.trial_page import print_trial
from fairtrial.core.errors import ProblemsError
from fairtrial.core.trace import ending
from fairtrial.reports.json import document
from fairtrial.workflows.resume import arescore, aresume
from tests.scripted import Say
from tests.targets.test_agents import FACTS

USER = {"target": "openai:u", "goal": "a refund", "max_turns": 3}


def suite(**user):
    return {
        "targets": ["openai:m"],
        "user": {**USER, **user},
        "cases": [{"id": "a", "input": "Hello", "expected": "refund", "scorer": "contains"}],
    }


def talk(says, answers="How can I help?"):
    """A user who says these things one after the other, and a target that always answers alike or by a function."""
    left = iter(says)

    def script(turn):
        if "You play a user" in turn.system:
            return Say(next(left))
        return Say(answers(turn) if callable(answers) else answers)

    return script


def refund(turn):
    """Answer with a refund once money is asked for."""
    return "Here is your refund." if "money" in turn.question else "How can I help?"


SURE = {"type": "contains", "any": ["refund"]}


@pytest.mark.parametrize(
    ("script", "user", "why", "asked"),
    [
        (talk(["My money!", "[END]"], refund), {}, "the user said that it has what it wants", "mumu"),
        (talk(["Well?", "[GIVE UP]"]), {}, "the user gave up", "mumu"),
        (talk(["Well?", "Well?"]), {}, "the limit of 3 turns was reached", "mumum"),
        (talk(["My money!"], refund), {"end": SURE}, "the check passed after turn 2", "mum"),
        (
            talk(["Well?", "[END]"]),
            {"end": [SURE]},
            "the user said that it has what it wants, although the check had not passed",
            "mumu",
        ),
        (
            talk(["Well?", "Well?"]),
            {"end": SURE},
            "the limit of 3 turns was reached, and the check did not pass (does not contain 'refund')",
            "mumum",
        ),
        (talk([], "Your refund."), {"end": SURE}, "the check passed after turn 1", "m"),
        (talk(["My money!", "Well?"], refund), {"max_turns": 2, "end": SURE}, "the check passed after turn 2", "mum"),
    ],
)
async def test_the_reason_is_recorded_and_shown(run_suite, model, capsys, script, user, why, asked):
    served = await model(script)
    run = await run_suite(**suite(**user))
    (trial,) = run.trials()
    assert "".join(body["model"] for body in served.bodies) == asked
    assert trial.status == "scored" and ending(trial.trace) == why
    ((place, _),) = run.placed_trials(0, 1)
    case = next(iter(run.store.cases_at(run.plan.id, [0], None)))
    events = run.trajectory(place, case, trial)
    assert events[-1].text == why and events[-1].turn == asked.count("m")
    assert trial.tool_calls is None and "tool_calls" not in trial.trace  # a model without tools still tells of none
    print_trial(run, trial)
    assert why in " ".join(capsys.readouterr().out.split())


async def test_it_survives_failures_and_rescores(run_suite, model, store):
    """A session that ends in between asks nothing again, and the reason is that of the conversation."""
    broken = [True]
    user = talk(["My money!", "[END]"], refund)

    def script(turn):
        if "You play a user" in turn.system and "refund" in turn.question and broken:
            broken.clear()
            raise RuntimeError("down")
        return user(turn)

    await model(script)
    run = await run_suite(**suite(), retry={"attempts": 1, "wait": 0})
    assert next(run.trials()).failure_kind == "user"
    run = await aresume(run.id, mode="retry", store=store)
    assert ending(next(run.trials()).trace) == "the user said that it has what it wants"
    again = await arescore(run.id, store=store)
    assert ending(next(again.trials()).trace) == "the user said that it has what it wants"
    assert document(again.summary())


async def test_the_state_decides_not_what_was_said(run_suite, model, tmp_path):
    """What an MCP server wrote into the workspace ends the conversation; the agent's word for it does not."""
    known = 'return f"The {topic} is 4711."'
    work = "Path(sys.argv[1], 'paid').write_text(topic); return 'done'"
    (tmp_path / "server.py").write_text(Path(FACTS).read_text().replace(known, work))

    def clerk(turn):
        if "You play a user" in turn.system:
            return Say("Really?")
        if "Really?" not in turn.question:
            return Say("I have paid it.")
        tool = next(name for name in turn.tools if name.endswith("lookup"))
        return Say("Now I have.") if turn.results else Say("", ((tool, {"topic": "17"}),))

    await model(clerk)
    run = await run_suite(
        targets=["tool-agent:openai:m"],
        mcp_servers={"facts": {"command": sys.executable, "args": ["server.py", "{{ workspace }}"]}},
        conditions={"c": {"mcp": ["facts"]}},
        workspace={},
        user={**USER, "end": {"type": "check", "command": "test -s paid"}},
        cases=[{"id": "a", "input": "Pay 17.", "scorer": {"type": "check", "command": "test -s paid"}}],
    )
    (trial,) = run.trials()
    assert ending(trial.trace) == "the check passed after turn 2" and trial.score == 1


@pytest.mark.parametrize(
    ("end", "problem"),
    [
        ("nosuch", "unknown scorer `nosuch`"),
        ("llm_judge", "checked without a judge"),
        ({"type": "check", "command": "true"}, "works in no folder"),
        ({"type": "contains", "al": ["x"]}, "unknown key"),
        ({"type": "contains", "any": [" "]}, "is blank, so every answer would contain it"),
    ],
)
def test_what_is_wrong_is_found_beforehand(write_suite, end, problem):
    with pytest.raises(ProblemsError) as caught:
        pipeline.load(
            write_suite(
                targets=["mock:echo"],
                user={"target": "mock:echo", "goal": "x", "end": end},
                cases=[{"id": "a", "input": "x", "expected": "y"}],
                judge={"target": "mock:echo"},
            )
        )
    assert problem in str(caught.value)
