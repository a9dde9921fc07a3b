"""Conversations: several turns within a trial, each durable; a killed one goes on where it was."""

import json
import subprocess
import sys

import pytest

from fairtrial.analyse import Run
from fairtrial.store import Store
from fairtrial.store.ledger import spent
from fairtrial.workflows.resume import aresume

TURNS = {
    "id": "ann",
    "turns": ["I am Ann.", "I like tea.", "What is my name?"],
    "expected": "Ann",
    "scorer": "contains",
}
FUNCTION = """
import json, os, pathlib, signal

def talk(question, system, servers, messages):
    calls = pathlib.Path("calls.jsonl")
    with calls.open("a") as file:
        file.write(json.dumps(messages) + "\\n")
    trouble = pathlib.Path("trouble")
    if trouble.exists() and question == "I like tea.":
        how = trouble.read_text()
        trouble.unlink()
        if how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        raise RuntimeError("no tea")
    said = " ".join(message["content"] for message in messages if message["role"] == "user")
    return {"text": f"You said: {said}", "cost_usd": 0.25, "prompt_tokens": 10, "completion_tokens": 1}
"""


@pytest.fixture
def talk(tmp_path):
    (tmp_path / "t.py").write_text(FUNCTION)

    def calls():
        return [json.loads(line) for line in (tmp_path / "calls.jsonl").read_text().splitlines()]

    return calls


def costs(run, store):
    return run.arms[0].cost.known, spent(store, run.id).known


async def test_every_turn_sees_the_answers_before_it(run_suite, store, talk):
    run = await run_suite(targets=["python:t.py:talk"], system="Be brief.", cases=[TURNS])
    (trial,) = run.trials()
    assert trial.score == 1 and trial.answer == "You said: I am Ann. I like tea. What is my name?"
    roles = [[message["role"] for message in call] for call in talk()]
    assert roles == [["system", *["user", "assistant"] * n, "user"] for n in range(3)]
    assert talk()[2][2]["content"] == "You said: I am Ann."
    assert costs(run, store) == (0.75, 0.75) and trial.cost_usd == 0.75
    assert (trial.prompt_tokens, trial.completion_tokens, trial.attempts) == (30, 3, 1)
    assert trial.input == (
        "user: I am Ann.\n\nassistant: You said: I am Ann.\n\nuser: I like tea.\n\n"
        "assistant: You said: I am Ann. I like tea.\n\nuser: What is my name?"
    )


async def test_a_prompt_is_around_the_first_turn(run_suite, talk):
    await run_suite(targets=["python:t.py:talk"], prompts={"p": "Hello! {{ input }}"}, cases=[TURNS])
    users = [message["content"] for message in talk()[2] if message["role"] == "user"]
    assert users == ["Hello! I am Ann.", "I like tea.", "What is my name?"]


async def test_a_failed_conversation_goes_on_where_it_failed(run_suite, store, talk, tmp_path):
    (tmp_path / "trouble").write_text("raise")
    run = await run_suite(targets=["python:t.py:talk"], cases=[TURNS])
    (trial,) = run.trials()
    assert trial.failure_message == "turn 2: t.py:talk raised RuntimeError: no tea"
    run = await aresume(run.id, mode="retry", store=store)
    (trial,) = run.trials()
    assert trial.score == 1 and [len(call) for call in talk()] == [1, 3, 3, 5]  # the first turn was asked once
    assert costs(run, store) == (0.75, 0.75)


@pytest.mark.slow
async def test_a_killed_conversation_goes_on_where_it_was(write_suite, talk, tmp_path):
    (tmp_path / "trouble").write_text("kill")
    path = write_suite(targets=["python:t.py:talk"], cases=[TURNS])
    killed = subprocess.run(
        [sys.executable, "-m", "fairtrial", "run", str(path), "--store", f"sqlite:///{tmp_path}/test.db"],
        cwd=tmp_path,
        capture_output=True,
        check=False,
    )
    assert killed.returncode == -9
    store = Store(f"sqlite:///{tmp_path}/test.db")
    (record,) = store.runs()
    assert spent(store, record.id).known == 0.25  # the first turn
    run = await aresume(record.id, store=store)
    (trial,) = Run.find(run.id, store).trials()
    assert trial.score == 1 and [len(call) for call in talk()] == [1, 3, 3, 5]
    assert costs(run, store) == (0.75, 0.75)


async def test_a_budget_ends_a_conversation_between_turns(run_suite, store, model):
    from tests.scripted import Say

    served = await model(lambda turn: Say(f"I heard {turn.question}"))
    cases = [{"id": "a", "turns": ["one", "two", "three"], "expected": "three", "scorer": "contains"}]
    prices = {"openai:m": {"input": 1000, "output": 1000}}  # 0.107 USD for each answer of the script
    run = await run_suite(targets=["openai:m"], cases=cases, prices=prices, params={"max_tokens": 60}, budget_usd=0.3)
    assert run.status == "incomplete" and "budget" in run.record.reason
    asked = len(served.bodies)
    assert 0 < asked < 3 and spent(store, run.id).charged <= 0.3
    run = await aresume(run.id, store=store, overrides={"budget_usd": 9.0})
    assert run.status == "completed" and len(served.bodies) == 3
    assert [len(body["messages"]) for body in served.bodies] == [1, 3, 5]
    assert costs(run, store)[0] == pytest.approx(costs(run, store)[1])


def test_what_cannot_be_a_conversation(write_suite):
    from fairtrial import pipeline
    from fairtrial.core.errors import ProblemsError

    def problem(**keys):
        with pytest.raises(ProblemsError) as caught:
            pipeline.load(write_suite(**keys))
        return str(caught.value)

    assert "set `input` or `turns`, not both" in problem(cases=[{**TURNS, "input": "x"}])
    assert "`input` is missing" in problem(cases=[{"expected": "x"}])
    cat = {"target": "command:x", "options": {"command": ["cat"]}}
    assert "takes one question, not several `turns`" in problem(cases=[TURNS], targets=[cat])
