"""Calls of tools and retrieved texts in traces come over into the cases."""

import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from fairtrial import pipeline
from fairtrial.tracks.interchange.import_traces import TraceOptions, import_traces
from fairtrial.tracks.interchange.traces import asides_of, calls_of
from fairtrial.tracks.interchange.traces.tools import texts_in, tool_calls_in
from tests.tracks.interchange.traces.test_traces import MODEL, call, otlp, span

QUESTION = {"role": "user", "content": "Weather in Rome?"}
CALLED = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Rome"}'}}
OPENAI = [
    QUESTION,
    {"role": "assistant", "content": None, "tool_calls": [CALLED]},
    {"role": "tool", "tool_call_id": "c1", "content": "sunny, ask ann@example.com"},
]
PARTS = [
    {"role": "user", "parts": [{"type": "text", "content": "Weather in Rome?"}]},
    {
        "role": "assistant",
        "parts": [{"type": "tool_call", "id": "c1", "name": "weather", "arguments": {"city": "Rome"}}],
    },
    {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "sunny, ask ann@example.com"}]},
]
ANTHROPIC = [
    QUESTION,
    {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "weather", "input": {"city": "Rome"}}]},
    {"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "sunny, ask ann@example.com"}]}]},
]  # fmt: skip
RESPONSES = [
    QUESTION,
    {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": '{"city": "Rome"}'},
    {"type": "function_call_output", "call_id": "c1", "output": "sunny, ask ann@example.com"},
]
OLD = {
    **MODEL,
    "gen_ai.prompt.0.role": "user",
    "gen_ai.prompt.0.content": "Weather in Rome?",
    "gen_ai.prompt.1.role": "assistant",
    "gen_ai.prompt.1.tool_calls.0.id": "c1",
    "gen_ai.prompt.1.tool_calls.0.name": "weather",
    "gen_ai.prompt.1.tool_calls.0.arguments": '{"city": "Rome"}',
    "gen_ai.prompt.2.role": "tool",
    "gen_ai.prompt.2.tool_call_id": "c1",
    "gen_ai.prompt.2.content": "sunny, ask ann@example.com",
    "gen_ai.completion.0.content": "Sunny.",
}
OPEN_INFERENCE = {
    "openinference.span.kind": "LLM",
    "llm.model_name": "gpt-5",
    "llm.input_messages.0.message.role": "user",
    "llm.input_messages.0.message.content": "Weather in Rome?",
    "llm.input_messages.1.message.tool_calls.0.tool_call.id": "c1",
    "llm.input_messages.1.message.tool_calls.0.tool_call.function.name": "weather",
    "llm.input_messages.1.message.tool_calls.0.tool_call.function.arguments": '{"city": "Rome"}',
    "llm.input_messages.2.message.role": "tool",
    "llm.input_messages.2.message.tool_call_id": "c1",
    "llm.input_messages.2.message.content": "sunny, ask ann@example.com",
    "llm.output_messages.0.message.content": "Sunny.",
}
EVENTS = [
    ("gen_ai.user.message", {"content": "Weather in Rome?"}),
    ("gen_ai.assistant.message", {"tool_calls": json.dumps([CALLED])}),
    ("gen_ai.tool.message", {"id": "c1", "content": "sunny, ask ann@example.com"}),
    ("gen_ai.choice", {"message": json.dumps({"role": "assistant", "content": "Sunny."})}),
]


def written(folder, *spans):
    path = folder / "traces.json"
    path.write_text(json.dumps(otlp(*spans)))
    return path


@pytest.mark.parametrize("messages", [OPENAI, PARTS, ANTHROPIC, RESPONSES, [*OPENAI, *OPENAI[1:]]])
def test_calls_and_results_in_messages(messages):
    (called,) = tool_calls_in(messages)
    assert (called.tool, called.arguments) == ("weather", {"city": "Rome"})
    assert called.result == "sunny, ask ann@example.com" and not called.error


@pytest.mark.parametrize(
    "recorded",
    [span(1, OLD), span(1, OPEN_INFERENCE), span(1, MODEL, EVENTS),
     span(1, {**MODEL, "gen_ai.input.messages": json.dumps(PARTS), "gen_ai.output.messages": "[]"})],
    ids=["old", "openinference", "events", "new"],
)  # fmt: skip
def test_every_convention_has_tools(recorded, tmp_path):
    (one,) = calls_of(written(tmp_path, recorded))
    (called,) = one.tool_calls
    assert (called.tool, called.arguments) == ("weather", {"city": "Rome"}) and called.result.startswith("sunny")
    assert one.questions == ["Weather in Rome?"] and one.columns()["tool_names"] == ["weather"]


AGENT = """
def answer(input):
    called = {"tool": "weather", "arguments": {"city": "Rome" if "Rome" in input else "Oslo"}, "result": "sunny"}
    return {"text": "Sunny.", "tool_calls": [called]}
"""


def test_recorded_calls_of_tools_are_what_is_expected(tmp_path, capsys):
    other = json.dumps(OPENAI).replace("Weather in Rome", "Weather in Paris")
    spans = [span(n, {**MODEL, "gen_ai.input.messages": text}) for n, text in enumerate([json.dumps(OPENAI), other])]
    plain = span(9, {**MODEL, "gen_ai.input.messages": json.dumps([{"role": "user", "content": "Hello?"}])})
    path = written(tmp_path, *spans, plain)
    (tmp_path / "agent.py").write_text(AGENT)
    target = ["--target", "python:agent.py:answer"]
    assert call("import", "traces", path, "--expected", "tools", *target, "-o", "suite.yaml") == 0
    assert "2 cases with tool calls" in capsys.readouterr().err
    suite = yaml.safe_load((tmp_path / "suite.yaml").read_text())
    first, _, last = suite["cases"]
    assert json.loads(first["expected"]) == [{"name": "weather", "arguments": {"city": "Rome"}}]
    (kept,) = first["metadata"]["recorded"]["tool_calls"]
    assert kept["result"].startswith("sunny, ask") and "ann@" not in kept["result"]
    assert "expected" not in last and "tool_calls" not in last["metadata"].get("recorded", {})
    assert call("validate", "suite.yaml") == 0 and call("run", "suite.yaml", "--quiet") == 0
    scores = [(trial.scorer, trial.score) for trial in pipeline.Run.find().trials()]
    assert scores == [("tool_calls", 1.0), ("tool_calls", 0.0), ("length", 1.0)]


RETRIEVER = {
    "openinference.span.kind": "RETRIEVER",
    "retrieval.documents.0.document.content": "Rome is in Italy.",
    "retrieval.documents.1.document.content": "Ask ann@example.com.",
}
TOOL = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "weather",
        "gen_ai.tool.call.arguments": '{"city": "Rome"}', "gen_ai.tool.call.result": "sunny"}  # fmt: skip


def test_what_was_retrieved_is_a_variable(tmp_path, capsys):
    asked = {**MODEL, "gen_ai.input.messages": json.dumps([QUESTION])}
    hello = {**MODEL, "gen_ai.input.messages": json.dumps([{"role": "user", "content": "Hello?"}])}
    path = written(tmp_path, span(0, asked), span(1, RETRIEVER), span(0, TOOL), span(4, hello))
    assert len(list(calls_of(path))) == 2 and len(list(asides_of(path))) == 2
    read = import_traces([path], tmp_path / "suite.yaml", TraceOptions(target="mock:echo"))
    assert (read.with_context, read.with_tools) == (1, 0)  # tools beside a call are part of its trace
    suite = (tmp_path / "suite.yaml").read_text()
    assert "Rome is in Italy." in suite and "ann@" not in suite
    (tmp_path / "suite.yaml").write_text('prompts: {grounded: "{{ context }}|{{ input }}"}\n' + suite)
    assert call("run", "suite.yaml", "--quiet") == 0
    answers = [trial.answer for trial in pipeline.Run.find().trials()]
    assert answers[0].startswith("Rome is in Italy.\n\nAsk ") and answers[1] == "|Hello?"
    read = import_traces([path], tmp_path / "cases.jsonl", TraceOptions(by="trace"))
    row = json.loads((tmp_path / "cases.jsonl").read_text().splitlines()[0])
    assert read.with_tools == 1 and row["tool_calls"][0]["arguments"] == {"city": "Rome"}
    assert row["context"].startswith("Rome is in Italy.")


def test_langfuse_tools_and_retrievers(tmp_path):
    rows = [
        {
            "id": "r",
            "traceId": "t",
            "type": "RETRIEVER",
            "input": "Rome",
            "output": [{"page_content": "Rome is in Italy."}],
        },
        {"id": "w", "traceId": "t", "type": "TOOL", "name": "weather", "input": {"city": "Rome"}, "output": "sunny"},
        {"id": "g", "traceId": "t", "type": "GENERATION", "input": [QUESTION], "output": "Sunny."},
    ]
    whole = [{"id": "t", "input": "x", "output": "y", "observations": rows}]
    for name, content in (("flat.json", rows), ("whole.json", whole)):
        (tmp_path / name).write_text(json.dumps(content))
        read = import_traces([tmp_path / name], tmp_path / "s.yaml", TraceOptions(by="trace", target="mock:echo"))
        (case,) = yaml.safe_load((tmp_path / "s.yaml").read_text())["cases"]
        assert case["vars"]["context"] == "Rome is in Italy." and read.with_tools == 1
        assert case["metadata"]["recorded"]["tool_calls"][0]["tool"] == "weather"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["role", "type", "content", "parts", "tool_calls", "function", "name", "arguments", "id", "text"]
            ),
            inner | st.sampled_from(["tool", "tool_call", "tool_result", "user"]),
            max_size=5,
        )
    ),
    max_leaves=20,
)


@pytest.mark.slow
@given(JSON)
def test_whatever_stands_in_messages_is_read_or_passed_over(value):
    assert all(called.tool for called in tool_calls_in(value))
    assert all(isinstance(text, str) and text for text in texts_in(value))
