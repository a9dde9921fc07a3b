"""Cases, conditions and judges as data."""

import msgspec
import pytest

from fairtrial.core.answer import Usage
from fairtrial.core.expected import read_expected, show_expected
from fairtrial.core.experiment import Condition, McpServer, TargetSpec, ToolUse
from fairtrial.core.file import media_of
from fairtrial.core.judge import judge_key
from fairtrial.core.money import Cost
from fairtrial.core.options import read
from fairtrial.core.settings import JudgeSpec
from fairtrial.core.trace import short
from fairtrial.text.numbers import find_numbers


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


def test_usage_adds_up():
    one, other = Usage(prompt=1, completion=2, reasoning=3), Usage(prompt=10, completion=20)
    assert one + other == Usage(prompt=11, completion=22, reasoning=3)


def test_costs_are_subtracted_part_by_part():
    spent, before = Cost(known=3.0, charged=5.0, unknown=4), Cost(known=1.0, charged=2.0, unknown=1)
    assert spent - before == Cost(known=2.0, charged=3.0, unknown=3) and spent - before + before == spent


def test_half_a_percent_may_be_meant_as_a_number_or_a_share():
    (found,) = find_numbers("1/2 %")
    assert found.readings == pytest.approx((0.5, 0.005))


def test_a_problem_inside_a_value_says_where():
    class Options(msgspec.Struct):
        weights: dict[str, list[int]]

    problems = []
    assert read(Options, {"weights": {"a": [1, "x"]}}, problems) is None
    assert [message for _, message in problems] == ["must be a whole number (at [...][1]), not {'a': [1, 'x']}"]


def test_pictures_are_known_by_their_first_bytes():
    webp = b"RIFF\x10\x00\x00\x00WEBPVP8 "
    assert media_of(webp) == "image/webp" and media_of(webp.replace(b"WEBP", b"WAVE")) is None
    assert media_of(b"\x89PNG\r\n\x1a\n") == "image/png" and media_of(b"PNG") is None


def test_whether_a_server_is_told_of_the_workspace_is_part_of_what_is_asked():
    plain = McpServer(name="s", command="x")
    told = msgspec.structs.replace(plain, roots=True)
    assert told.identity() == {**plain.identity(), "roots": True} and "roots" not in plain.identity()
