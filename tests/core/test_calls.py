"""Arguments of calls against patterns, and the calls that a case forbids."""

import pytest

from fairtrial import pipeline
from fairtrial.core.calls import ForbiddenCall, MadeCall, fits_arguments, forbidden_calls, pattern_problems
from fairtrial.core.errors import ProblemsError
from fairtrial.core.experiment import Case


@pytest.mark.parametrize(
    ("value", "pattern", "fits"),
    [
        ({"amount": 101}, {"amount": ">100"}, True),
        ({"amount": 100}, {"amount": ">100"}, False),
        ({"amount": "1,000 "}, {"amount": "> 100"}, True),
        ({"amount": "much"}, {"amount": ">100"}, False),
        ({"amount": True}, {"amount": ">0"}, False),
        ({}, {"amount": ">100"}, False),
        (None, {"amount": ">100"}, False),
        ({"amount": 100}, {"amount": ">=100"}, True),
        ({"amount": 99.5}, {"amount": "<100"}, True),
        ({"amount": 100}, {"amount": "<=99"}, False),
        ({"day": "2026-02-01"}, {"day": ">2026-01-31"}, True),
        ({"day": "2026-01-02"}, {"day": ">2026-01-31"}, False),
        ({"who": "Ada"}, {"who": "!=Linus"}, True),
        ({"who": "Linus"}, {"who": "!=Linus"}, False),
        ({"number": 5.0}, {"number": "!=5"}, False),
        ({"path": "/etc/passwd"}, {"path": "/^.etc./"}, True),
        ({"path": "/ETC/passwd"}, {"path": "/^.etc./i"}, True),
        ({"path": "/home/x"}, {"path": "/^.etc./"}, False),
        ({"path": "/etc/passwd"}, {"path": "/etc/passwd"}, True),  # no letter after the last slash is a flag
        ({"ids": [7, 8]}, {"ids": "/8/"}, True),
        ({"a": {"b": 5, "c": 1}}, {"a": {"b": ">4"}}, True),
        ({"a": 1, "b": 2}, {"a": 1}, True),
        ({"a": True}, {"a": 1}, False),
        ({"a": "x"}, {}, True),
    ],
)
def test_arguments_fit_a_pattern(value, pattern, fits):
    assert fits_arguments(value, pattern) is fits


def test_a_pattern_that_takes_too_long_is_not_answered(monkeypatch):
    monkeypatch.setattr("fairtrial.core.calls._LONGEST_SEARCH", 0.01)
    with pytest.raises(TimeoutError):
        fits_arguments({"x": "a" * 40 + "!"}, {"x": "/^(a|a|aa)*(a|aa)*$/"})


def test_what_a_case_forbids_is_its_own_and_that_of_its_scorers():
    case = Case(id="c", input="?", metadata={"forbidden": ["a", {"tool": "b", "arguments": {"x": ">1"}}]})
    scorer = {
        "type": "all_of",
        "scorers": [
            {"type": "tool_calls", "forbidden": ["a", "c"]},
            {"type": "trajectory", "forbidden": [{"tool": "d"}]},
            {"type": "mine", "forbidden": ["no"]},
            {"type": "not", "scorer": {"type": "tool_calls", "forbidden": ["e"]}},
        ],
    }
    rule = ForbiddenCall(tool="b", arguments={"x": ">1"})
    assert forbidden_calls(case, scorer) == (
        ForbiddenCall(tool="a"), rule, ForbiddenCall(tool="c"), ForbiddenCall(tool="d"),
    )  # fmt: skip
    assert rule.is_made(MadeCall("b", "s", {"x": 2})) and not rule.is_made(MadeCall("b", "s", {"x": 1}))


def test_patterns_are_checked_before_the_run(write_suite):
    assert list(pattern_problems({"a": {"b": "/(/"}, "c": ">1"})) and not list(pattern_problems({"a": "(", "b": ">x"}))
    path = write_suite(cases=[{"input": "a", "expected": "a", "forbidden": [{"tool": "t", "arguments": {"x": "/(/"}}]}])
    with pytest.raises(ProblemsError, match="is not a regular expression"):
        pipeline.load(path)
