"""One ordered list of events per trial: read off traces, joined over turns, stored without what follows from it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fairtrial.core.events import (
    CallEvent,
    ChangeEvent,
    MessageEvent,
    ReasoningEvent,
    ResultEvent,
    as_data,
    read_events,
)
from fairtrial.core.trace import (
    Trace,
    events_of,
    join_turns,
    tool_calls,
    whole_trace,
    with_changes,
    with_views,
    without_views,
)
from fairtrial.core.trajectory import Exchanged, trajectory
from fairtrial.store.rows import decode, encode, packed

LOOKED = (
    ReasoningEvent(text="I look it up."),
    CallEvent(id="1", tool="lookup", server="shop", arguments={"order": 17}),
    ResultEvent(call="1", text="paid", ms=3.5),
    MessageEvent(text="It is paid."),
)
OLD = {  # as versions before lists had it
    "tool_calls": [
        {"tool": "lookup", "server": "shop", "arguments": {"order": 17}, "result": "paid", "error": False},
        {"tool": "refund", "server": "shop", "arguments": {}, "result": "", "error": False, "unfinished": True},
    ],
    "messages": [{"role": "assistant", "thinking": "Hm."}, {"role": "assistant", "text": "Done."}],
    "servers": {"shop": "connected"},
    "session_id": "s1",
}
texts = st.text(max_size=20)
names = st.text(alphabet="abc", min_size=1, max_size=2)
calls = st.builds(CallEvent, id=names, tool=names, server=st.none() | names, arguments=st.none() | st.integers())
events = st.lists(
    st.one_of(
        st.builds(MessageEvent, text=texts, role=st.sampled_from(["user", "assistant", "system"])),
        st.builds(ReasoningEvent, text=texts),
        calls,
        st.builds(ResultEvent, call=names, text=texts, error=st.booleans(), rejected=st.booleans()),
        st.builds(ChangeEvent, path=texts),
    ),
    min_size=1,
    max_size=8,
)


@given(events)
def test_events_come_back_from_json_and_from_the_store(found):
    assert read_events(as_data(found)) == tuple(found)
    trace = Trace(events=tuple(found)).as_dict()
    stored = without_views(trace)
    assert "tool_calls" not in stored and "messages" not in stored
    assert with_views(decode(packed(encode(stored)))) == trace


def test_long_traces_are_compressed_and_older_ones_are_read():
    trace = Trace(events=tuple(MessageEvent(text=f"step {number}") for number in range(2000))).as_dict()
    text = encode(without_views(trace))
    assert len(packed(text)) < len(text) / 4
    assert decode(packed(text)) == decode(text)
    assert packed(b"{}") == b"{}"


def test_calls_and_messages_follow_from_the_events():
    trace = Trace(events=LOOKED).as_dict()
    (call,) = trace["tool_calls"]
    assert (call["server"], call["tool"], call["result"], call["unfinished"]) == ("shop", "lookup", "paid", False)
    assert trace["messages"] == [
        {"role": "assistant", "thinking": "I look it up."},
        {"role": "assistant", "text": "It is paid."},
    ]


def test_a_rejected_call_is_an_error_and_says_so():
    (call,) = tool_calls([CallEvent(id="1", tool="shell"), ResultEvent(call="1", rejected=True)])
    assert (call.error, call.rejected, call.unfinished) == (True, True, False)


def test_a_trace_without_a_list_has_one_as_far_as_it_goes():
    kinds = [type(event).__name__ for event in events_of(OLD)]
    assert kinds == ["ReasoningEvent", "CallEvent", "ResultEvent", "CallEvent", "MessageEvent"]
    assert events_of(None) is None
    assert events_of({"spans": []}) is None
    assert events_of({"tool_calls": ["nonsense", {"name": "x"}]}) == ()


def test_a_conversation_has_the_calls_of_all_turns():
    joined = join_turns([OLD, Trace(events=LOOKED, session_id="s2").as_dict(), {"tool_calls": []}])
    assert [(call["tool"], call["turn"]) for call in joined["tool_calls"]] == [
        ("lookup", 1),
        ("refund", 1),
        ("lookup", 2),
    ]
    assert "not_told" not in joined


def test_ids_of_calls_stay_apart_over_turns():
    joined = join_turns([Trace(events=LOOKED).as_dict()] * 3)
    assert len({event.id for event in events_of(joined) if isinstance(event, CallEvent)}) == 3
    assert [call["result"] for call in joined["tool_calls"]] == ["paid"] * 3


def test_a_turn_whose_calls_are_not_told_leaves_them_unknown():
    joined = join_turns([Trace(events=LOOKED).as_dict(), None])
    assert joined["not_told"] == [2]
    assert "tool_calls" not in joined  # not an empty list: nobody knows
    assert "tool_calls" not in with_views(without_views(joined))


def test_plain_answers_have_no_trace():
    assert join_turns([None, None]) is None
    assert join_turns([None]) is None


def test_older_conversations_are_put_together_when_they_are_read():
    whole = whole_trace(OLD, [OLD])
    assert [(call["tool"], call["turn"]) for call in whole["tool_calls"]] == [
        *(("lookup", 1), ("refund", 1)),
        *(("lookup", 2), ("refund", 2)),
    ]
    assert whole_trace(whole, [OLD]) == whole  # what is whole already does not grow


def test_changed_files_come_last():
    trace = with_changes(Trace(events=LOOKED).as_dict(), {"added": ["a.py"], "removed": ["b.py"], "diff": ""})
    assert [(event.how, event.path) for event in events_of(trace)[-2:]] == [("added", "a.py"), ("removed", "b.py")]
    assert with_changes(None, {"diff": "x"}) == {"workspace": {"diff": "x"}}


def test_a_trajectory_has_questions_and_answers_once():
    joined = join_turns([Trace(events=LOOKED).as_dict(), {"tool_calls": []}])
    turns = [Exchanged("Is order 17 paid?", "It is paid."), Exchanged("Thanks", "You are welcome.", "Be kind.")]
    found = trajectory(turns, joined)
    assert [(event.turn, type(event).__name__, getattr(event, "text", "")) for event in found] == [
        (1, "MessageEvent", "Is order 17 paid?"),
        (1, "ReasoningEvent", "I look it up."),
        (1, "CallEvent", ""),
        (1, "ResultEvent", "paid"),
        (1, "MessageEvent", "It is paid."),
        (2, "MessageEvent", "Thanks"),
        (2, "ReasoningEvent", "Be kind."),
        (2, "MessageEvent", "You are welcome."),
    ]


def test_a_plain_model_has_a_trajectory_too():
    found = trajectory([Exchanged("2 + 2?", "4")], None)
    assert [(event.role, event.text) for event in found] == [("user", "2 + 2?"), ("assistant", "4")]


def test_what_a_program_means_by_events_is_left_alone():
    trace = {"events": [{"type": "click"}], "tool_calls": []}
    assert with_views(trace) == trace
    assert without_views(trace) == trace
