"""The scorer `trajectory`: rules over the whole way of an agent, milestones, and conditions on arguments."""

import asyncio
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairtrial.core.answer import Answer
from fairtrial.core.events import CallEvent, ChangeEvent, MessageEvent, ResultEvent, as_data
from fairtrial.core.experiment import Case
from fairtrial.core.options import build_scorer, scorer_problems
from fairtrial.core.score import Score, ScoreContext, Unscored
from fairtrial.core.trace import with_views
from fairtrial.core.trajectory import Exchanged
from fairtrial.text.conditions import IncomparableError, fits_condition
from tests.scripted import Say
from tests.targets.test_agents import FACTS, facts


def call(name, number, *, error=False, rejected=False, back=True, within="", **arguments):
    """A call of `server.tool` with its result."""
    server, tool = name.split(".")
    made = CallEvent(id=str(number), tool=tool, server=server, arguments=arguments, within=within)
    result = ResultEvent(call=str(number), text="…", error=error or rejected, rejected=rejected, within=within)
    return [made, result] if back else [made]


def way(*parts):
    """Events of calls (name, or name and options) and messages (texts with a space)."""
    events = []
    for number, part in enumerate(parts):
        name, options = part if isinstance(part, tuple) else (part, {})
        if isinstance(part, ChangeEvent):
            events.append(part)
        elif " " in name:
            events.append(MessageEvent(text=name))
        else:
            events += call(name, number, **options)
    return events


def scored(events, answer="Done, then.", trace=None, workspace=None, **options) -> Score | Unscored:
    scorer = build_scorer({"type": "trajectory", **options})
    trace = with_views({"events": as_data(events)}) if trace is None else trace
    context = ScoreContext(
        response=answer,
        case=Case(id="c", input="Do it."),
        answer=Answer(text=answer, trace=trace),
        turns=(Exchanged("Do it.", answer),),
        workspace=workspace,
    )
    return asyncio.run(scorer.score(context))


REFUND = ("shop.refund", {"amount": 150})


@pytest.mark.parametrize(
    ("options", "parts", "value"),
    [
        ({"order": ["shop.lookup", "shop.refund"]}, ["shop.lookup", "shop.wait", "shop.refund"], 1),
        ({"order": ["shop.lookup", "shop.refund"]}, ["shop.refund", "shop.lookup"], 0),
        ({"order": ["shop.lookup", "shop.lookup"]}, ["shop.lookup"], 0),
        ({"order": ["shop.lookup", "shop.refund"], "how": "exact"}, ["shop.lookup", "shop.wait", "shop.refund"], 0),
        ({"order": ["shop.lookup", "shop.refund"], "how": "exact"}, ["shop.lookup", "shop.refund"], 1),
        ({"order": ["shop.lookup", "shop.refund"], "how": "any"}, ["shop.refund", "shop.lookup"], 1),
        ({"order": ["shop.lookup", "shop.lookup"], "how": "any"}, ["shop.lookup"], 0),
        ({"order": ["*", "shop.lookup"], "how": "any"}, ["shop.lookup", "shop.refund"], 1),
        ({"forbidden": ["shop.delete"]}, ["shop.lookup"], 1),
        ({"forbidden": ["shop.delete"]}, ["shop.delete"], 0),
        ({"forbidden": ["delete*"]}, ["shop.delete_all"], 0),
        ({"forbidden": [{"tool": "shop.refund", "arguments": {"amount": ">100"}}]}, [REFUND], 0),
        ({"forbidden": [{"tool": "shop.refund", "arguments": {"amount": ">150"}}]}, [REFUND], 1),
        ({"forbidden": ["shop.delete"]}, [("shop.delete", {"rejected": True})], 0),
        ({"forbidden": ["shop.delete"], "rejected": "ignore"}, [("shop.delete", {"rejected": True})], 1),
        ({"forbidden": ["shop.delete"]}, [("shop.delete", {"back": False})], 0),
        ({"required": ["shop.lookup"]}, ["shop.refund", "shop.lookup"], 1),
        ({"required": ["shop.lookup"]}, [("shop.lookup", {"rejected": True})], 0),
        ({"required": [{"tool": "refund", "arguments": {"amount": "<=150"}}]}, [REFUND], 1),
        ({"max_calls": 1}, ["shop.lookup", "shop.lookup"], 0),
        ({"min_calls": 1}, ["Nothing to do."], 0),
        ({"max_errors": 0}, [("shop.lookup", {"error": True}), "shop.lookup"], 0),
        ({"max_errors": 0}, [("shop.lookup", {"rejected": True})], 1),  # the tool did not fail
        ({"recovers": True}, [("shop.lookup", {"error": True}), "shop.lookup"], 1),
        ({"recovers": True}, ["shop.lookup", ("shop.lookup", {"error": True}), "shop.refund"], 0),
        ({"forbidden": ["shop.delete"]}, [("shop.delete", {"within": "t"})], 0),
        ({"forbidden": ["shop.delete"], "subagents": False}, [("shop.delete", {"within": "t"})], 1),
    ],
)
def test_rules(options, parts, value):
    result = scored(way(*parts), **options)
    assert result.value == value, result


class TestMilestones:
    STONES = (
        {"name": "found", "call": "shop.lookup"},
        {"name": "asked", "text": "/are you sure/i"},
        {"name": "paid", "call": {"tool": "shop.refund", "arguments": {"amount": "<=150"}}, "weight": 2},
    )

    def test_the_share_that_was_reached(self):
        result = scored(way("shop.lookup", "Here it is."), milestones=list(self.STONES))
        assert result.value == 0.25 and result.metrics["milestones"] == 25
        assert "1 of 3 milestones" in result.notes and "not reached: asked, paid" in result.notes
        assert [stone["reached"] for stone in result.details["milestones"]] == [True, False, False]

    def test_a_broken_rule_leaves_nothing(self):
        parts = ["shop.lookup", "Are you sure?", REFUND, "shop.delete"]
        result = scored(way(*parts), milestones=list(self.STONES), forbidden=["shop.delete"])
        assert result.value == 0 and result.metrics["milestones"] == 100

    def test_in_order(self):
        parts = [REFUND, "shop.lookup", "Are you sure?"]
        assert scored(way(*parts), milestones=list(self.STONES)).value == 1
        assert scored(way(*parts), milestones=list(self.STONES), in_order=True).value == 0.5
        assert scored(way(*parts, REFUND), milestones=list(self.STONES), in_order=True).value == 1

    def test_a_call_that_failed_reaches_nothing(self):
        assert scored(way(("shop.lookup", {"error": True})), milestones=[self.STONES[0]]).value == 0

    def test_the_last_answer_is_a_message_too(self):
        assert scored(way("shop.lookup"), "Are you sure?", milestones=[self.STONES[1]]).value == 1

    def test_what_the_user_or_a_tool_says_reaches_nothing(self):
        events = [MessageEvent(text="Are you sure?", role="user"), *call("shop.lookup", 1)]
        assert scored(events, milestones=[self.STONES[1]]).value == 0

    def test_changed_files(self):
        events = way("shop.lookup", ChangeEvent(path="src/a.py", how="added"))
        stones = [{"name": "code", "changed": "src/*.py"}, {"name": "docs", "changed": "docs/*"}]
        assert scored(events, milestones=stones, workspace=object).value == 0.5
        unknown = scored(events, milestones=stones)
        assert isinstance(unknown, Unscored) and "no workspace" in unknown.message


class TestUnknown:
    def test_a_target_that_does_not_tell_is_never_right(self):
        for trace in ({}, {"events": as_data([MessageEvent(text="x")]), "not_told": [1]}):
            result = scored([], trace=trace, forbidden=["shop.delete"])
            assert isinstance(result, Unscored) and "does not report which tools" in result.message

    def test_texts_need_no_calls(self):
        assert scored([], "It is sure.", trace={}, milestones=[{"name": "a", "text": "sure"}]).value == 1

    def test_what_cannot_be_compared_is_unscored(self):
        limit = [{"tool": "shop.refund", "arguments": {"amount": ">100"}}]
        result = scored(way(("shop.refund", {"amount": "everything"})), forbidden=limit)
        assert isinstance(result, Unscored) and "everything is not a number" in result.message


class TestConditions:
    @pytest.mark.parametrize(
        ("value", "condition", "fits"),
        [
            (150, ">100", True),
            ("150", "> 100", True),
            (100, ">100", False),
            (100, ">=100", True),
            (-1, "<0", True),
            (0.1, "<=1e-1", True),
            (9007199254740993, ">9007199254740992", True),  # whole numbers are compared as they are
            ("EUR", "!=EUR", False),
            ("USD", "!=EUR", True),
            (1.0, "!=1", False),
            ("order 17", "/\\d+/", True),
            ("/usr/bin", "/usr/bin", True),
            ("/usr/bin/x", "/usr/bin", False),
            ("inv-17", "inv-*", True),
            ("my inv-17", "inv-*", False),
            ("select * from t", "select * from t", True),
            ("a[1]*", "a[1]*", True),
            ("17", 17, False),
            (1, True, False),
            ({"a": {"b": 5, "c": 1}}, {"a": {"b": "<6"}}, True),
            ({"a": 1}, {"b": "<6"}, False),
            ([1, 2], ["<2", ">1"], True),
            ([1, 2, 3], ["<2", ">1"], False),
            ("> quoted", "> quoted", True),
            (None, None, True),
        ],
    )
    def test_examples(self, value, condition, fits):
        assert fits_condition(value, condition) is fits

    @pytest.mark.parametrize("value", ["all", None, True, [5], {"a": 1}, "nan", "Infinity", float("inf"), ""])
    def test_what_is_no_number(self, value):
        with pytest.raises(IncomparableError):
            fits_condition(value, ">100")

    numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)

    @given(numbers, st.integers(-(10**20), 10**20))
    def test_comparisons_are_those_of_numbers(self, value, limit):
        below, above = fits_condition(value, f"<{limit}"), fits_condition(value, f">{limit}")
        assert (below, above) == (value < limit, value > limit)
        assert fits_condition(value, f">={limit}") is not below and fits_condition(value, f"<={limit}") is not above
        assert fits_condition(value, f"!={limit}") is (value != limit)

    json = st.recursive(
        st.none() | st.booleans() | numbers | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
        max_leaves=8,
    )

    @given(json, json)
    def test_any_value_and_condition_give_an_answer_or_a_reason(self, value, condition):
        try:
            assert fits_condition(value, condition) in (True, False)
        except IncomparableError as error:
            assert str(error)
        except Exception as error:  # a pattern that is not valid is found before the run
            from fairtrial.text.conditions import condition_problem

            assert condition_problem(condition), error


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({}, "needs a rule or a milestone"),
        ({"min_calls": 2, "max_calls": 1}, "so no answer can be right"),
        ({"forbidden": [{"tool": "a", "arguments": {"b": "/(/"}}]}, "is not valid"),
        ({"required": [{"tool": "a", "arguments": {"b": ">1e999"}}]}, "write a finite number"),
        ({"milestones": [{"name": "a"}]}, "needs one of `call`, `text` and `changed`"),
        ({"milestones": [{"name": "a", "text": "x"}, {"name": "a", "text": "y"}]}, "need different names"),
    ],
)
def test_what_is_wrong_is_found_beforehand(options, problem, tmp_path):
    spec = {"type": "trajectory", **options}
    assert not scorer_problems(spec)
    assert any(problem in found for found in build_scorer(spec).check(Case(id="c", input="x"), tmp_path))


class TestAgents:
    """With an agent, a real MCP server and the store."""

    @staticmethod
    def clerk(turn):
        tools = {name.rpartition("_")[2]: name for name in turn.tools}
        if "sum" in turn.question:
            added = [result for result in turn.results if "151" in result]  # it remembers those of earlier turns
            return Say(f"It is {added[-1]}") if added else Say("", ((tools["add"], {"a": 150, "b": 1}),))
        return Say(f"{turn.results[-1]}") if turn.results else Say("", ((tools["lookup"], {"topic": "code"}),))

    async def test_over_all_turns(self, run_suite, model):
        await model(self.clerk)
        large = {"tool": "facts.add", "arguments": {"a": ">100"}}
        cases = [
            {"id": "right", "turns": ["The code?", "The sum?"], "scorer": self.rules(order=["facts.lookup", "add"])},
            {"id": "wrong", "turns": ["The sum?", "Thanks."], "scorer": self.rules(forbidden=[large])},
        ]
        run = await run_suite(
            targets=["tool-agent:openai:m"],
            mcp_servers={"facts": facts()},
            conditions={"c": {"mcp": ["facts"]}},
            cases=cases,
        )
        right, wrong = run.trials()
        assert right.score == 1 and right.metrics["calls"] >= 2, right.notes
        assert wrong.score == 0 and 'facts.add with {"a":">100"} is forbidden' in wrong.notes

    async def test_errors_of_a_server(self, run_suite, model):
        await model(self.clerk)
        run = await run_suite(
            targets=["tool-agent:openai:m"],
            mcp_servers={"facts": {"command": sys.executable, "args": [FACTS], "env": {"BEHAVE": "error"}}},
            conditions={"c": {"mcp": ["facts"]}},
            cases=[{"id": "a", "input": "The code?", "scorer": self.rules(recovers=True)}],
        )
        (trial,) = run.trials()
        assert trial.score == 0 and "no successful call of facts.lookup after its error" in trial.notes
        assert trial.metrics["tool errors"] == 1

    @staticmethod
    def rules(**options):
        return {"type": "trajectory", **options}
