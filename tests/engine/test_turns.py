"""Conversations: several turns within a trial, each durable; a killed one goes on where it was."""

import json
import subprocess
import sys

import pytest

from fairtrial.analyse.run import Run
from fairtrial.reports.json import document
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


class TestSimulatedUser:
    """The other side of a conversation is played by a model, which costs apart."""

    SUITE = {
        "targets": ["openai:m"],
        "user": {"target": "openai:u", "persona": "{{ who }}, in a hurry", "goal": "a refund", "max_turns": 5},
        "cases": [{"id": "a", "input": "Hello", "vars": {"who": "Ann"}, "expected": "refund", "scorer": "contains"}],
        "prices": {"openai:m": {"input": 1000, "output": 1000}, "openai:u": {"input": 100, "output": 100}},
    }

    @staticmethod
    def script(turn):
        from tests.scripted import Say

        if "You play a user" in turn.system:
            return Say("[END]" if "refund" in turn.question else "I want my money back.")
        return Say("Here is your refund." if "money" in turn.question else "How can I help?")

    async def test_it_talks_until_it_has_what_it_wants(self, run_suite, store, model):
        served = await model(self.script)
        run = await run_suite(**self.SUITE, system="You help the customers of a shop that sells tea.")
        (trial,) = run.trials()
        assert trial.score == 1 and trial.answer == "Here is your refund."
        assert trial.input == "user: Hello\n\nassistant: How can I help?\n\nuser: I want my money back."
        asked = [body["model"] for body in served.bodies]
        assert asked == ["m", "u", "m", "u"]
        system, *said = served.bodies[1]["messages"]
        assert "Who you are: Ann, in a hurry" in system["content"] and "What you want: a refund" in system["content"]
        assert [message["role"] for message in said] == ["user", "assistant", "user"]
        assert [message["content"] for message in said[1:]] == ["Hello", "How can I help?"]
        # Two calls each; the arm pays for its own.
        assert run.arms[0].cost.known == pytest.approx(2 * 0.107)
        summary = run.summary()
        assert summary.user_cost.known == pytest.approx(2 * 0.0107)
        assert document(summary)["user"]["cost_usd"] == pytest.approx(2 * 0.0107)
        assert summary.spent.known == pytest.approx(2 * 0.107 + 2 * 0.0107)
        from fairtrial.present.words.runs import run_notes

        notes = run_notes(summary)
        assert any(note.startswith("The simulated user cost $0.02") for note in notes)
        assert not any(note.startswith("Total spent") for note in notes)

    async def test_an_answer_from_another_conversation_is_not_taken_from_the_cache(self, run_suite, model):
        served = await model(self.script)
        for _ in range(2):
            run = await run_suite(**self.SUITE, cache=True)
            assert next(run.trials()).answer == "Here is your refund."
        assert [body["model"] for body in served.bodies] == ["m", "u", "m", "u"] * 2

    def test_its_cost_is_estimated(self, write_suite, monkeypatch):
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test-key-0001")
        from fairtrial import pipeline
        from fairtrial.workflows.estimate import estimate

        found = estimate(pipeline.load(write_suite(**{**self.SUITE, "targets": ["mock:echo"]})))
        # Four replies of at most 1,000 tokens at 100 USD per million, and what it reads: answers of up to 2,048 tokens.
        assert (4 * 1000 + 10 * 2048) / 1e4 < found.user_usd < 7 and found.total_usd == pytest.approx(found.user_usd)

    async def test_it_ends_after_so_many_turns(self, run_suite, model):
        from tests.scripted import Say

        served = await model(lambda turn: Say("More!" if "You play a user" in turn.system else "No."))
        run = await run_suite(**{**self.SUITE, "user": {**self.SUITE["user"], "max_turns": 3}})
        assert [body["model"] for body in served.bodies] == ["m", "u", "m", "u", "m"]
        assert next(run.trials()).score == 0

    async def test_a_failing_user_is_not_the_targets_failure(self, run_suite, store, model):
        from tests.scripted import Say

        broken = [True]

        def script(turn):
            if "You play a user" in turn.system and broken:
                raise RuntimeError("down")
            return self.script(turn) if not broken else Say("How can I help?")

        served = await model(script)
        retry = {"attempts": 1, "wait": 0}
        run = await run_suite(**self.SUITE, retry=retry)
        (trial,) = run.trials()
        assert trial.failure_kind == "user" and "the simulated user: " in trial.failure_message
        asked = sum(body["model"] == "m" for body in served.bodies)
        broken.clear()
        run = await aresume(run.id, mode="retry", store=store)
        assert next(run.trials()).score == 1
        assert sum(body["model"] == "m" for body in served.bodies) == asked + 1  # what was answered is not asked again

    async def test_scorers_and_judges_see_the_whole_conversation(self, run_suite, store, model, tmp_path):
        from fairtrial.workflows.resume import arescore

        (tmp_path / "s.py").write_text("def f(messages):\n    return len(messages) / 10\n")
        await model(self.script)
        counted = {"type": "python", "function": "s.py:f"}
        cases = [{**self.SUITE["cases"][0], "scorer": counted}]
        run = await run_suite(**{**self.SUITE, "cases": cases})
        assert next(run.trials()).score == pytest.approx(0.3)
        run = await arescore(run.id, scorer={"type": "contains"}, store=store)
        again = await arescore(run.id, scorer=counted, store=store)
        assert next(again.trials()).score == pytest.approx(0.3)

    @pytest.mark.parametrize(
        ("keys", "problem"),
        [
            ({"user": {"target": "mock:echo"}}, "needs a `persona` or a `goal`"),
            (
                {"user": {"target": "mock:echo", "goal": "{{ nowhere }}"}},
                "the simulated user's goal: this case has no `nowhere`",
            ),
            ({"user": {"target": "mock:echo", "goal": "x"}, "cases": [TURNS]}, "or cases with `turns`, not both"),
            ({"user": {"target": "nosuch:x", "goal": "x"}}, "unknown provider `nosuch`"),
        ],
    )
    def test_what_is_wrong_is_found_beforehand(self, write_suite, keys, problem):
        from fairtrial import pipeline
        from fairtrial.core.errors import ProblemsError

        with pytest.raises(ProblemsError) as caught:
            pipeline.load(write_suite(**keys))
        assert problem in str(caught.value)
