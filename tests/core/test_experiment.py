"""Cases, conditions and judges as data."""

import msgspec
import pytest

from fairtrial.core.experiment import Condition, JudgeSpec, TargetSpec, ToolUse, read_expected, show_expected
from fairtrial.core.judge import judge_key
from fairtrial.core.trace import short


@pytest.mark.parametrize(
    ("value", "read", "shown"),
    [
        (None, None, ""),
        ("4", "4", "4"),
        (4, "4", "4"),
        ([], None, ""),
        (["4"], "4", "4"),
        (["4", "four", None, "4"], ("4", "four"), "4\nor\nfour"),
    ],
)
def test_what_is_expected(value, read, shown):
    assert read_expected(value) == read and show_expected(read_expected(value)) == shown


@pytest.mark.parametrize(
    ("keys", "tools", "missing"),
    [
        ({}, None, ""),
        ({}, {}, ""),
        ({"require_tool_use": True}, None, "the target does not report which tools were used"),
        ({"require_tool_use": True}, {}, "no tool was used"),
        ({"require_tool_use": True}, {"s.t": (1, 1)}, ""),
        ({"require_tool_success": True}, None, "the target does not report which tools were used"),
        ({"require_tool_success": True}, {"s.t": (2, 2)}, "no tool call succeeded"),
        ({"require_tool_success": True}, {"s.t": (2, 1)}, ""),
    ],
)
def test_tool_use_that_a_condition_requires(keys, tools, missing):
    assert Condition(**keys).missing(None if tools is None else ToolUse(tools=tools)) == missing


def test_a_judge_that_sees_is_another_judge():
    judge = JudgeSpec(name="j", target=TargetSpec(id="j", kind="mock", provider="mock", model="x"))
    keys = [judge_key(msgspec.structs.replace(judge, vision=vision)) for vision in (None, True, False)]
    assert len(set(keys)) == 3 and keys[0] == judge_key(msgspec.structs.replace(judge, name="other"))


def test_long_results_are_cut_between_words():
    text = "word " * 10_000
    found = short(text)
    assert found.endswith("word … (50000 characters)") and len(found) < len(text)
    assert short("x" * 50_000).startswith("x" * 100) and short("short") == "short"
