"""Checks after any turn: what they see, how they enter the score, and what is not asked after one that failed."""

import html
import json
import re
import sys
import tempfile
from pathlib import Path

import aiohttp
import pytest

from fairtrial import pipeline
from fairtrial.cli.trial_page import print_trial
from fairtrial.core.errors import ProblemsError
from fairtrial.web.serving import serve_site
from fairtrial.workflows.resume import arescore, aresume
from tests.scripted import Say
from tests.targets.test_agents import FACTS, facts
from tests.workers import WorkersHere

LOOKUP = {"type": "tool_calls", "names": ["facts.lookup"]}


def agent(**case):
    """A suite with an agent that has a real MCP server, and one case."""
    return {
        "targets": ["tool-agent:openai:m"],
        "mcp_servers": {"facts": facts()},
        "conditions": {"with": {"mcp": ["facts"]}},
        "cases": [{"id": "a", **case}],
    }


def clerk(turn):
    """A model that looks a code up when it is asked for one, and says what it knows otherwise."""
    tool = next((name for name in turn.tools if name.endswith("lookup")), None)
    asked = turn.question.strip().splitlines()[-1]
    if "code" in asked:
        return Say(f"It is {turn.results[-1]}") if turn.results or not tool else Say("", ((tool, {"topic": "code"}),))
    return Say("You are welcome." if "Thank" in asked else "How can I help?")


def placed(run):
    """The place, the case and the only trial of a run."""
    ((place, trial),) = run.placed_trials(0, 1)
    return place, next(iter(run.store.cases_at(run.plan.id, [0], None))), trial


async def page_of(run):
    """The text of the page of a run's only trial."""
    with tempfile.TemporaryDirectory() as folder:
        async with serve_site(run.store, Path(folder), token="t") as address, aiohttp.ClientSession() as session:
            url = f"{address.rstrip('/')}/runs/{run.id}/cases/1/1/1"
            async with session.get(url, headers={"authorization": "Bearer t"}) as response:
                assert response.status == 200, await response.text()
                return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", await response.text())).split())


class TestWhatAChecksSees:
    async def test_calls_and_answer_of_its_own_turn(self, run_suite, model):
        await model(clerk)
        none = {"type": "tool_calls", "max": 0}
        suite = agent(
            turns=[
                {"input": "Hello", "check": none},
                {"input": "The code?", "check": [LOOKUP, {"type": "contains", "any": ["4711"]}]},
                {"input": "Thanks", "check": none, "expected": "welcome"},
            ],
            expected="welcome",
            scorer="contains",
        )
        (trial,) = (await run_suite(**suite)).trials()
        assert trial.score == 1 and trial.metrics == {"turn 1": 100, "turn 2": 100, "turn 3": 100, "answer": 100}

    async def test_a_failed_check_in_the_first_turn_is_no_silent_100(self, run_suite, model):
        await model(clerk)
        suite = agent(turns=[{"input": "Hello", "check": LOOKUP}, "The code?"], expected="4711", scorer="contains")
        (trial,) = (await run_suite(**suite)).trials()
        assert trial.score == 0.5 and trial.metrics == {"turn 1": 0, "answer": 100}
        assert trial.notes.startswith("turn 1: 0 (no fitting call of facts.lookup") and "answer: 100" in trial.notes
        first, answer = trial.details["turns"]
        assert (first["name"], first["scorer"], first["value"], first["weight"]) == ("turn 1", "tool_calls", 0, 1)
        assert (answer["name"], answer["turn"], answer["value"]) == ("answer", 2, 1)

    async def test_a_call_in_another_turn_does_not_count_for_the_last_one(self, run_suite, model):
        await model(clerk)
        suite = agent(turns=["The code?", {"input": "Thanks", "check": LOOKUP}])
        (trial,) = (await run_suite(**suite)).trials()
        assert trial.score == 0 and trial.metrics == {"turn 2": 0}

    async def test_what_the_target_does_not_tell_is_unscored(self, run_suite, tmp_path):
        (tmp_path / "t.py").write_text("def talk(question):\n    return 'It is 4711'\n")
        turns = [{"input": "Hello", "check": LOOKUP}, "The code?"]
        cases = [{"id": "a", "turns": turns, "expected": "4711", "scorer": "contains"}]
        (trial,) = (await run_suite(targets=["python:t.py:talk"], cases=cases)).trials()
        assert trial.score is None
        assert trial.unscored_message == "turn 1: the target does not report which tools were used"


class TestLimits:
    async def test_turns_after_a_limit_are_not_reached_and_earn_nothing(self, run_suite, model):
        def never_done(turn):
            tool = next(name for name in turn.tools if name.endswith("lookup"))
            again = "code" in turn.question
            return Say("", ((tool, {"topic": "code"}),)) if again else Say("How can I help?")

        await model(never_done)
        greeted, told = {"type": "contains", "any": ["help"]}, {"type": "contains", "any": ["4711"]}
        turns = [{"input": "Hello", "check": greeted}, {"input": "The code?", "check": told}]
        suite = agent(turns=[*turns, {"input": "Thanks", "check": greeted}])
        suite["targets"] = [{"target": "tool-agent:openai:m", "options": {"max_steps": 2}}]
        (trial,) = (await run_suite(**suite)).trials()
        assert trial.limit == "turns" and trial.failure_kind is None
        assert trial.score == pytest.approx(1 / 3)
        assert trial.notes.endswith("turn 3: not reached, the agent was stopped at its turn limit after 2 turns")


class TestScores:
    TURNS = ("Hello", "The code?", "Thanks")

    def suite(self, weights=(1, 1), **case):
        wrong, right = {"type": "contains", "any": ["nothing"]}, {"type": "contains", "any": ["4711"]}
        turns = [
            {"input": "Hello", "check": wrong, "weight": weights[0]},
            {"input": "The code?", "check": right, "weight": weights[1]},
            "Thanks",
        ]
        return agent(turns=turns, expected="welcome", scorer="contains", **case)

    @pytest.mark.parametrize(
        ("case", "score"),
        [
            ({}, 2 / 3),
            ({"weights": (2, 1)}, 0.5),
            ({"weights": (0, 1)}, 1),  # shown, not counted
            ({"turns_score": "all"}, 0),
            ({"turns_score": "last"}, 1),
        ],
    )
    async def test_how_they_enter(self, run_suite, model, case, score):
        await model(clerk)
        run = await run_suite(**self.suite(**case))
        (trial,) = run.trials()
        assert trial.score == pytest.approx(score)
        assert trial.metrics == {"turn 1": 0, "turn 2": 100, "answer": 100}  # whatever counts
        assert run.summary().arms[0].metrics["turn 1"].mean == 0

    async def test_a_rescore_and_one_with_another_scorer(self, run_suite, model, store):
        await model(clerk)
        run = await run_suite(**self.suite())
        again = await arescore(run.id, store=store)
        (trial,) = again.trials()
        assert trial.score == pytest.approx(2 / 3) and trial.metrics == {"turn 1": 0, "turn 2": 100, "answer": 100}
        other = await arescore(run.id, scorer={"type": "contains"}, store=store)
        assert next(other.trials()).score == 1


class TestStop:
    """After a check with `stop` that fails, nothing more is asked."""

    def suite(self, first, **case):
        thanks = {"input": "Thanks", "expected": "are", "scorer": "contains"}
        turns = [{"input": "Hello", "check": first, "stop": True}, "The code?", thanks]
        return agent(turns=turns, scorer={"type": "contains", "any": ["welcome"]}, **case)

    async def test_what_is_not_reached(self, run_suite, model, capsys):
        served = await model(clerk)
        run = await run_suite(**self.suite({"type": "contains", "any": ["nothing"]}))
        (trial,) = run.trials()
        assert len(served.bodies) == 1
        assert trial.status == "scored" and trial.score == 0 and trial.metrics == {"turn 1": 0}
        assert [each.get("not_reached") for each in trial.details["turns"]] == [
            None,
            *["the check after turn 1 failed"] * 2,
        ]
        assert trial.input == "Hello"  # what was not said is not shown as if it had been
        (end,) = [event for event in run.trajectory(*placed(run)) if getattr(event, "kind", "") == "end"]
        assert end.text.startswith("the check after turn 1 failed (") and end.turn == 1
        assert run.summary().arms[0].metrics.keys() == {"turn 1"}  # no mean over turns that were not reached
        print_trial(run, trial)
        shown = capsys.readouterr().out
        assert "turn 1 (contains) 0 of 100" in shown and "turn 3 (contains) not reached" in shown
        assert "ended" in shown and "the check after turn 1 failed" in shown
        page = await page_of(run)
        for words in ("turn 1", "0 of 100", "turn 3", "not reached", end.text):  # as the terminal says it
            assert words in page and words in " ".join(shown.split())

    async def test_one_that_is_satisfied_changes_nothing(self, run_suite, model):
        await model(clerk)
        run = await run_suite(**self.suite({"type": "contains", "any": ["help"]}))
        (trial,) = run.trials()
        assert trial.score == 1 and trial.metrics == {"turn 1": 100, "turn 3": 100, "answer": 100}

    async def test_it_survives_a_rescore_and_asks_nothing_again(self, run_suite, model, store):
        served = await model(clerk)
        run = await run_suite(**self.suite({"type": "contains", "any": ["nothing"]}))
        again = await arescore(run.id, store=store)
        assert next(again.trials()).score == 0
        await aresume(run.id, store=store)
        assert len(served.bodies) == 1

    async def test_a_check_that_cannot_be_made_ends_nothing(self, run_suite, model, tmp_path):
        (tmp_path / "s.py").write_text("def f(response):\n    raise RuntimeError('down')\n")
        served = await model(clerk)
        run = await run_suite(**self.suite({"type": "python", "function": "s.py:f"}))
        (trial,) = run.trials()
        assert trial.score is None and trial.unscored_message.startswith("turn 1: ") and len(served.bodies) > 2

    async def test_workers_do_the_same(self, run_suite, model, monkeypatch):
        served = await model(clerk)
        backend = WorkersHere(most=2)
        monkeypatch.setattr("fairtrial.engine.session.backend_of", lambda where: backend)
        run = await run_suite(**self.suite({"type": "contains", "any": ["nothing"]}))
        (trial,) = run.trials()
        assert trial.score == 0 and trial.metrics == {"turn 1": 0} and len(served.bodies) == 1
        assert any(link.worker is not None for link in backend.links)


class TestWorkspaces:
    async def test_a_check_sees_the_folder_as_it_was_then(self, run_suite, model, tmp_path, store):
        known = 'return f"The {topic} is 4711."'
        work = "Path(sys.argv[1], 'asked').write_text(topic); return 'It is 4711'"
        (tmp_path / "server.py").write_text(Path(FACTS).read_text().replace(known, work))
        await model(clerk)
        turns = [
            {"input": "Hello", "check": {"type": "check", "command": "test ! -e asked"}},
            {"input": "The code?", "check": {"type": "check", "command": "grep code asked"}},
            "Thanks",
        ]
        run = await run_suite(
            targets=["tool-agent:openai:m"],
            mcp_servers={"facts": {"command": sys.executable, "args": ["server.py", "{{ workspace }}"]}},
            conditions={"c": {"mcp": ["facts"]}},
            workspace={},
            cases=[{"id": "a", "turns": turns, "scorer": {"type": "check", "command": "grep code asked"}}],
        )
        (trial,) = run.trials()
        assert trial.metrics == {"turn 1": 100, "turn 2": 100, "answer": 100}, trial.unscored_message
        again = await arescore(run.id, store=store)  # from the store
        assert next(again.trials()).metrics == {"turn 1": 100, "turn 2": 100, "answer": 100}


class TestJudges:
    async def test_one_judge_marks_two_turns_apart(self, run_suite, model, store):
        await model(clerk)
        marks = {"welcome": 9, "help": 2}
        judge = {"target": "mock:judge", "options": {"verdict": {"marks": marks, "otherwise": 4}}}
        turns = [{"input": "Hello", "check": "llm_judge"}, {"input": "Thanks", "check": "llm_judge"}]
        run = await run_suite(**agent(turns=turns), judge=judge)
        (trial,) = run.trials()
        assert trial.metrics == {"turn 1": 20, "turn 2": 90}
        assert len({verdict["prompt_hash"] for verdict in run.judgements(trial.trial_id)}) == 2
        again = await arescore(run.id, store=store)
        (trial,) = again.trials()
        assert trial.metrics == {"turn 1": 20, "turn 2": 90}
        assert all(not verdict["charged_usd"] for verdict in again.judgements(trial.trial_id))


@pytest.mark.parametrize(
    ("turns", "problem"),
    [
        ([{"input": "a", "check": "contains", "scorer": "exact"}, "b"], "set `check` or `scorer`, not both"),
        ([{"input": "a", "stop": True}, "b"], "`stop` and `weight` are about a check"),
        ([{"input": "a", "check": "nosuch"}, "b"], "unknown scorer `nosuch`"),
        ([{"input": "a", "check": {"type": "contains", "al": ["x"]}}, "b"], "unknown key"),
        ([{"input": "a", "check": "contains"}, "b"], "turn 1: `expected` is blank or missing"),
        ([{"input": "a", "check": "llm_judge", "stop": True}, "b"], "`stop` needs a check without a judge"),
        ([{"say": "a"}, "b"], "unknown key"),
        ([17, "b"], "must be"),
    ],
)
def test_what_is_wrong_is_found_beforehand(write_suite, turns, problem):
    with pytest.raises(ProblemsError) as caught:
        pipeline.load(
            write_suite(
                cases=[{"id": "a", "turns": turns, "expected": "x", "scorer": "exact"}], judge={"target": "mock:echo"}
            )
        )
    assert problem in str(caught.value)


def test_plans_of_plain_turns_are_as_they_were(write_suite):
    plain = pipeline.load(write_suite(cases=[{"id": "a", "turns": ["a", "b"], "expected": "x"}]))
    (case,) = plain.cases()
    assert case.turns == ("b",) and case.metadata is None and json.dumps(plain.arms[0].scorer_of(case))


def test_a_check_in_front_of_a_single_turn(write_suite):
    suite = pipeline.load(
        write_suite(cases=[{"id": "a", "turns": [{"input": "a", "expected": 17, "scorer": "exact"}]}])
    )
    (case,) = suite.cases()
    checks = [{"after": 1, "check": ["exact"], "expected": "17"}]
    assert suite.arms[0].scorer_of(case) == {"type": "turns", "checks": checks}


def test_editors_know_both_forms_of_a_turn():
    import jsonschema_rs

    from fairtrial.config.schema import suite_schema

    schema = jsonschema_rs.validator_for(suite_schema())
    checked = {"input": "b", "check": {"type": "contains", "any": ["x"]}, "stop": True}
    whole = {"name": "s", "targets": ["mock:echo"], "cases": [{"turns": ["a", checked], "turns_score": "all"}]}
    assert schema.is_valid(whole)
    assert not schema.is_valid({**whole, "cases": [{"turns": ["a", {**checked, "say": "c"}]}]})


def test_plans_keep_their_fingerprint(write_suite):
    """One case is the same whether its turn is a text or a mapping without a check; a check makes it another one."""
    prints = [
        pipeline.load(write_suite(name="s", cases=[{"id": "a", "turns": turns, "expected": "x"}])).dataset_sha256
        for turns in (["a", "b"], [{"input": "a"}, "b"], [{"input": "a", "expected": "y"}, "b"])
    ]
    assert prints[0] == prints[1] != prints[2]


async def test_in_python_a_check_may_be_a_function(store):
    import fairtrial as ft

    def polite(response):
        return "please" in response

    turns = [{"input": "Two, please.", "check": polite}, {"input": "Two.", "check": polite}, "Thanks"]
    suite = ft.Suite(
        name="s", targets=["mock:echo"], cases=[ft.Case(turns=turns, expected="Thanks", turns_score="all")]
    )
    (trial,) = (await pipeline.arun(suite, store=store)).trials()
    assert trial.metrics == {"turn 1": 100, "turn 2": 0, "answer": 100} and trial.score == 0
