"""Calls side by side: what both made is on one line, in the order of both, and nothing of either is lost."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from fairtrial.analyse.alignment import MOST_CALLS, align
from fairtrial.analyse.steps import Step, Steps
from fairtrial.core.events import CallEvent, MessageEvent, ResultEvent
from fairtrial.present.words.side_by_side import line_words, parting_words


def steps(*calls: tuple[str, Any]) -> tuple[Step, ...]:
    events: list[Any] = [MessageEvent(text="Begin.", role="user")]
    for number, (tool, arguments) in enumerate(calls):
        events.append(CallEvent(id=str(number), tool=tool, server="s", arguments=arguments))
        events.append(ResultEvent(call=str(number), text=f"{tool} gave {arguments}"))
    return Steps(events).all


def shape(found: Any) -> list[tuple[Any, Any, bool]]:
    def name(step: Step | None) -> Any:
        return step and f"{step.event.tool}{step.event.arguments}"  # type: ignore[union-attr]

    return [(name(line.a), name(line.b), line.same) for line in found.lines]


def test_they_part_where_arguments_or_tools_differ() -> None:
    found = align(
        steps(("look", 1), ("read", 2), ("save", 3)), steps(("look", 1), ("read", 5), ("add", 1), ("save", 3))
    )
    assert shape(found) == [
        ("look1", "look1", True),
        ("read2", "read5", False),
        (None, "add1", False),
        ("save3", "save3", True),
    ]
    assert found.parts == 1 and found.shared == 2
    assert (
        parting_words(found, "a", "b") == "the first call is the same; then both call s.read, with different arguments"
    )
    assert [line.kind for line in line_words(found.lines)] == ["same", "arguments", "one", "same"]


def test_keys_of_arguments_have_no_order_and_results_are_compared() -> None:
    a, b = steps(("t", {"x": 1, "y": 2})), steps(("t", {"y": 2, "x": 1}))
    (line,) = align(a, b).lines
    assert line.same and not line.same_result
    assert parting_words(align(a, b), "a", "b") == "the only call is the same; 1 with another result"
    assert parting_words(align(steps(), steps()), "a", "b") == "neither called a tool"
    assert parting_words(align(a, steps()), "a", "b") == "then a calls s.t, and b calls nothing more"


@given(st.lists(st.sampled_from("abcd"), max_size=30), st.lists(st.sampled_from("abcd"), max_size=30), st.booleans())
def test_no_call_is_lost_and_the_order_is_kept(one: list[str], other: list[str], same: bool) -> None:
    a = steps(*((tool, n % 3) for n, tool in enumerate(one)))
    b = a if same else steps(*((tool, n % 2) for n, tool in enumerate(other)))
    found = align(a, b)
    assert [line.a for line in found.lines if line.a] == [step for step in a if isinstance(step.event, CallEvent)]
    assert [line.b for line in found.lines if line.b] == [step for step in b if isinstance(step.event, CallEvent)]
    assert all(line.a or line.b for line in found.lines)
    assert found.parts is None if same else found.shared <= min(len(one), len(other))


def test_a_list_longer_than_can_be_compared_is_compared_as_far_as_that() -> None:
    many = steps(*(("t", n) for n in range(MOST_CALLS + 7)))
    found = align(many, many[:100])
    assert found.shared == 99 and found.left_out == (7, 0)
