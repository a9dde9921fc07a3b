"""Recorded calls of other tools become cases that validate and run."""

import csv
import gzip
import json
import tracemalloc

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from fairtrial import pipeline
from fairtrial.cli.main import main
from fairtrial.core.errors import FairtrialError
from fairtrial.tracks.interchange.import_traces import TraceOptions, import_traces
from fairtrial.tracks.interchange.traces import calls_of, format_of
from fairtrial.tracks.interchange.traces.redact import Redactor
from fairtrial.tracks.interchange.traces.stream import _Scanner


def call(*arguments):
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    return ended.value.code


def attribute(name, value):
    kind = {str: "stringValue", int: "intValue", bool: "boolValue", float: "doubleValue"}[type(value)]
    return {"key": name, "value": {kind: str(value) if kind == "intValue" else value}}


def span(number, attributes, events=(), **fields):
    return {
        "traceId": f"{number // 2:032x}",
        "spanId": f"{number:016x}",
        "name": "chat gpt-5",
        "startTimeUnixNano": "1794809329000000000",
        "attributes": [attribute(name, value) for name, value in attributes.items()],
        "events": [
            {"name": name, "attributes": [attribute(key, value) for key, value in own.items()]} for name, own in events
        ],
        **fields,
    }


def otlp(*spans):
    return {"resourceSpans": [{"resource": {"attributes": []}, "scopeSpans": [{"scope": {}, "spans": list(spans)}]}]}


MODEL = {"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": "gpt-5"}
NEW = {
    **MODEL,
    "gen_ai.system_instructions": json.dumps([{"type": "text", "content": "Be brief."}]),
    "gen_ai.input.messages": json.dumps(
        [{"role": "user", "parts": [{"type": "text", "content": "Capital of France?"}]}]
    ),
    "gen_ai.output.messages": json.dumps(
        [{"role": "assistant", "parts": [{"type": "text", "content": "Paris"}], "finish_reason": "stop"}]
    ),
}
OLD = {
    "gen_ai.system": "openai",
    "gen_ai.request.model": "gpt-4o",
    "gen_ai.prompt.0.role": "system",
    "gen_ai.prompt.0.content": "Be brief.",
    "gen_ai.prompt.1.role": "user",
    "gen_ai.prompt.1.content": "Capital of France?",
    "gen_ai.completion.0.role": "assistant",
    "gen_ai.completion.0.content": "Paris",
}
OPEN_INFERENCE = {
    "openinference.span.kind": "LLM",
    "llm.model_name": "gpt-4o",
    "llm.input_messages.0.message.role": "system",
    "llm.input_messages.0.message.content": "Be brief.",
    "llm.input_messages.1.message.role": "user",
    "llm.input_messages.1.message.contents.0.message_content.text": "Capital of France?",
    "llm.output_messages.0.message.content": "Paris",
}
EVENTS = [
    ("gen_ai.system.message", {"content": "Be brief."}),
    ("gen_ai.user.message", {"content": "Capital of France?"}),
    ("gen_ai.choice", {"message": json.dumps({"role": "assistant", "content": "Paris"})}),
]
EARLIER_EVENTS = [
    ("gen_ai.content.prompt", {"gen_ai.prompt": json.dumps([{"role": "system", "content": "Be brief."},
                                                            {"role": "user", "content": "Capital of France?"}])}),
    ("gen_ai.content.completion", {"gen_ai.completion": json.dumps([{"role": "assistant", "content": "Paris"}])}),
]  # fmt: skip
DETAILS = [("gen_ai.client.inference.operation.details", NEW)]


@pytest.mark.parametrize(
    "recorded",
    [span(1, NEW), span(1, OLD), span(1, OPEN_INFERENCE), span(1, MODEL, EVENTS), span(1, MODEL, EARLIER_EVENTS),
     span(1, MODEL, DETAILS)],
    ids=["new", "old", "openinference", "events", "earlier-events", "details"],
)  # fmt: skip
def test_every_convention_says_the_same(recorded, tmp_path):
    file = tmp_path / "traces.json"
    file.write_text(json.dumps(otlp(recorded)))
    assert format_of(file) == "otlp"
    [one] = calls_of(file)
    assert (one.system, one.questions, one.answer) == ("Be brief.", ["Capital of France?"], "Paris")
    assert one.id == f"{1:016x}" and one.started_at.startswith("2026-")


def test_lines_of_a_collector_and_packed_files(tmp_path):
    file = tmp_path / "traces.jsonl.gz"
    file.write_bytes(gzip.compress("\n".join(json.dumps(otlp(span(n, NEW))) for n in range(3)).encode()))
    assert len(list(calls_of(file))) == 3


def test_spans_that_are_no_calls_of_a_model_are_passed_over(tmp_path):
    agent = span(1, {**NEW, "gen_ai.operation.name": "invoke_agent"})
    chain = span(2, {"openinference.span.kind": "CHAIN", "input.value": "x", "output.value": "y"})
    (tmp_path / "t.json").write_text(json.dumps(otlp(agent, chain, span(3, {"http.method": "GET"}))))
    assert list(calls_of(tmp_path / "t.json")) == []
    with pytest.raises(FairtrialError, match="no recorded call"):
        import_traces([tmp_path / "t.json"], tmp_path / "suite.yaml")


LANGFUSE = [
    {"id": "o1", "traceId": "t1", "type": "GENERATION", "name": "answer", "model": "gpt-5",
     "startTime": "2026-11-16T10:00:00.000Z", "input": {"messages": [{"role": "user", "content": "Hello"}]},
     "output": {"role": "assistant", "content": "Hi"}, "metadata": {"expected_output": "Hi there"}},
    {"id": "o2", "traceId": "t1", "type": "SPAN", "name": "search", "input": {"q": "x"}, "output": "y"},
    {"id": "o3", "traceId": "t2", "type": "GENERATION", "name": "answer", "model": "gpt-5", "level": "ERROR",
     "statusMessage": "overloaded", "input": [{"role": "user", "content": [{"type": "text", "text": "Bye"}]}],
     "output": None},
]  # fmt: skip


def test_langfuse_as_list_lines_csv_and_trace(tmp_path):
    (tmp_path / "a.json").write_text(json.dumps(LANGFUSE))
    (tmp_path / "b.jsonl").write_text("\n".join(map(json.dumps, LANGFUSE)))
    with (tmp_path / "c.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, ["id", "traceId", "type", "name", "model", "input", "output", "metadata"],
                                extrasaction="ignore")  # fmt: skip
        writer.writeheader()
        for row in LANGFUSE:
            writer.writerow({k: json.dumps(v) if isinstance(v, dict | list) else v for k, v in row.items()})
    trace = {"id": "t1", "tags": ["vip"], "sessionId": "s", "observations": LANGFUSE,
             "scores": [{"name": "liked", "value": 1}]}  # fmt: skip
    (tmp_path / "d.json").write_text(json.dumps([trace]))
    for name in ("a.json", "b.jsonl", "c.csv", "d.json"):
        assert format_of(tmp_path / name) == "langfuse"
        first, second = calls_of(tmp_path / name)
        assert (first.questions, first.answer, first.expected) == (["Hello"], "Hi", "Hi there"), name
        assert second.questions == ["Bye"] and second.answer is None
    assert (first.tags, first.scores, first.session) == (("vip",), {"liked": 1}, "s")
    assert second.error == "overloaded"


def test_logfire_rows(tmp_path):
    events = [
        {"event.name": "gen_ai.user.message", "content": "Hello", "role": "user"},
        {"event.name": "gen_ai.choice", "message": {"role": "assistant", "content": "Hi"}},
    ]
    attributes = {"gen_ai.request.model": "gpt-5", "events": events}
    older = {"request_data": {"messages": [{"role": "user", "content": "Hello"}]},
             "response_data": {"message": {"role": "assistant", "content": "Hi"}}}  # fmt: skip
    rows = [
        {"trace_id": "t", "span_id": str(n), "span_name": "chat", "start_timestamp": "2026-11-16", "tags": ["a"],
         "attributes": a} for n, a in enumerate((attributes, older, {"http.method": "GET"}))
    ]  # fmt: skip
    (tmp_path / "a.json").write_text(json.dumps({"rows": rows}))
    with (tmp_path / "b.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(
            {k: json.dumps(v) if isinstance(v, dict | list) else v for k, v in row.items()} for row in rows
        )
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    pq.write_table(
        pa.Table.from_pylist([{**r, "attributes": json.dumps(r["attributes"])} for r in rows]), tmp_path / "c.parquet"
    )
    for name in ("a.json", "b.csv", "c.parquet"):
        assert format_of(tmp_path / name) == "logfire"
        assert [(one.questions, one.answer) for one in calls_of(tmp_path / name)] == [(["Hello"], "Hi")] * 2, name


@pytest.fixture
def recorded(tmp_path):
    """Six calls: two equal ones, a conversation, and data that must not get out."""
    talk = [{"role": "user", "content": "I am Ann."}, {"role": "assistant", "content": "Hello Ann."},
            {"role": "user", "content": "Who am I? ${HOME} {{ x }}"}]  # fmt: skip
    private = "Mail ann@example.com or call +49 170 1234567, card 4111 1111 1111 1111, key sk-abcdefghijklmnop1234"
    inputs = [
        "What is 6 x 7?",
        "What is 6 x 7?",
        talk,
        private,
        [{"role": "system", "content": "Sing."}, *talk[:1]],
        "Bye",
    ]
    rows = [
        {"id": f"o{n}", "traceId": f"t{n}", "type": "GENERATION", "model": "gpt-5" if n < 5 else "other", "input": text,
         "output": "42", "metadata": {"expected_output": "42"} if n == 0 else {}, "tags": ["prod"], "name": "support"}
        for n, text in enumerate(inputs)
    ]  # fmt: skip
    path = tmp_path / "traces.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


def test_a_suite_of_traces_validates_and_runs(recorded, tmp_path, capsys):
    assert call("import", "traces", recorded, "--target", "mock:echo", "-o", "suite.yaml") == 0
    said = capsys.readouterr().err
    assert "6 recorded calls, 5 cases, 1 duplicate left out" in said and "1 conversation" in said
    for kind in ("e-mail address", "phone number", "card number", "API key"):
        assert f"1 × {kind}" in said
    text = (tmp_path / "suite.yaml").read_text()
    assert not any(secret in text for secret in ("ann@", "4111 1111", "1234567", "sk-abc"))
    cases = {case["id"]: case for case in yaml.safe_load(text)["cases"]}
    assert cases["o0"]["expected"] == "42" and cases["o0"]["tags"] == ["prod"]
    assert cases["o2"]["turns"] == ["I am Ann.", "Who am I? $${HOME} {{ x }}"]
    assert call("validate", "suite.yaml") == 0
    assert call("run", "suite.yaml", "--quiet") == 0
    trials = {trial.case_id: trial for trial in pipeline.Run.find().trials()}
    assert trials["o2"].answer == "Who am I? ${HOME} {{ x }}" and len(trials) == 5
    assert trials["o0"].scorer == "match" and trials["o5"].scorer == "length"


def test_a_dataset_of_traces(recorded, tmp_path):
    read = import_traces([recorded], tmp_path / "cases.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "cases.jsonl").read_text().splitlines()]
    assert read.left_out == 1 and [row["id"] for row in rows] == ["o0", "o3", "o4", "o5"]
    assert rows[2]["system_prompt"] == "Sing."


def test_which_calls(recorded, tmp_path):
    def ids(**options):
        import_traces([recorded], tmp_path / "x.jsonl", TraceOptions(**options))
        return [json.loads(line)["id"] for line in (tmp_path / "x.jsonl").read_text().splitlines()]

    assert ids(where={"model": "other"}) == ["o5"]
    assert ids(where={"turns": {"max": 1}, "system": "Sing."}) == ["o4"]
    two = ids(sample=2, seed=3, where={"turns": 1})
    assert len(two) == 2 and two == ids(sample=2, seed=3, where={"turns": 1})
    with pytest.raises(FairtrialError, match="no column `modell`"):
        ids(where={"modell": "x"})
    with pytest.raises(FairtrialError, match="selects none of the 6"):
        ids(where={"model": "nobody"})


def test_the_longest_call_of_a_session(tmp_path):
    def messages(count):
        return [{"role": "user", "content": f"{n}"} for n in range(count)]

    rows = [{"id": f"{s}{n}", "traceId": f"{s}{n}", "sessionId": s, "type": "GENERATION", "input": messages(n),
             "output": "x"} for s in "ab" for n in (1, 3, 2)]  # fmt: skip
    (tmp_path / "t.json").write_text(json.dumps(rows))
    import_traces([tmp_path / "t.json"], tmp_path / "s.yaml", TraceOptions(by="trace", target="mock:echo"))
    read = import_traces([tmp_path / "t.json"], tmp_path / "s.yaml", TraceOptions(by="session", target="mock:echo"))
    assert (read.calls, read.cases, read.duplicates) == (6, 1, 1)  # both sessions say the same


def test_recorded_answers_only_on_request(recorded, tmp_path):
    read = import_traces([recorded], tmp_path / "s.yaml", TraceOptions(expected="answer", target="mock:echo"))
    cases = yaml.safe_load((tmp_path / "s.yaml").read_text())["cases"]
    assert read.labelled == 5 and {case["expected"] for case in cases} == {"42"}
    assert cases[1]["scorer"] == "f1"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[{"id": "1", "traceId": "t", "input": "x", "output": "y"}, {"id": "2", "inp', "middle of a record"),
        ('{"resourceSpans": [{"scopeSpans": [{"spans": [{"name": 1 2}]}]}]}', "not valid JSON"),
        ('{"resourceSpans": [}', "not valid JSON"),
        ("hello", "not a known file of traces"),
        ("", "not a known file of traces"),
    ],
)
def test_damage_is_one_sentence(text, message, tmp_path, capsys):
    (tmp_path / "t.json").write_text(text)
    assert call("import", "traces", "t.json") == 1
    said = capsys.readouterr().err
    assert message in said and said.count("\n") == 1 and not (tmp_path / "suite.yaml").exists()


def test_mistakes_of_the_user(recorded, tmp_path, capsys):
    for arguments, message in (
        (["--redact", "("], "not a regular expression"),
        (["--redact", "off", "--redact", "x"], "goes with no other"),
        (["--where", "model"], "COLUMN: CONDITION"),
        (["--where", "turns: {least: 1}"], "min, max, not"),
        (["-o", "x.txt"], "write a suite"),
    ):
        assert call("import", "traces", recorded, *arguments) == 1
        assert message in capsys.readouterr().err
    (tmp_path / "suite.yaml").write_text("mine")
    assert call("import", "traces", recorded) == 1
    assert "--force" in capsys.readouterr().err


def test_redaction_can_be_widened_and_switched_off():
    own = Redactor(["CASE-\\d+"])
    assert own.text("CASE-12 of a@b.de") == "[redacted] of [e-mail address]" and own.counts.total() == 2
    assert Redactor(["off"]).text("a@b.de") == "a@b.de"
    plain = "In 2026 version 1.2.3 of 10.0.0.1 had 12345678 rows, 4111 1111 1111 1112, at 12:30 on 2026-11-17"
    assert Redactor().text(plain) == plain


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.slow
@given(st.lists(st.dictionaries(st.text(max_size=4), JSON, max_size=3), max_size=5), st.integers(1, 40), st.booleans())
def test_objects_are_found_wherever_a_file_is_cut(items, size, escaped):
    document = json.dumps({"x": [{"spans": 1}], "a": {"spans": items}, "y": "spans"}, ensure_ascii=escaped).encode()
    scanner = _Scanner(frozenset({"spans"}))
    found = [text for n in range(0, len(document), size) for text in scanner.feed(document[n : n + size])]
    assert [json.loads(text) for text in found] == items and scanner.done


@pytest.mark.slow
def test_a_large_file_is_not_held_in_memory(tmp_path):
    filler = "x" * 20_000
    with (tmp_path / "big.json").open("w") as file:
        file.write('{"resourceSpans": [{"scopeSpans": [{"spans": [')
        for number in range(200):  # 4 MB in one line
            own = {**OLD, "gen_ai.prompt.1.content": f"{number} {filler}"}
            file.write(("," if number else "") + json.dumps(span(number, own)))
        file.write("]}]}]}")
    tracemalloc.start()
    read = import_traces([tmp_path / "big.json"], tmp_path / "s.jsonl", TraceOptions(sample=5))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (read.calls, read.cases) == (200, 5) and peak < 4_000_000


def test_from_python(recorded, tmp_path):
    import fairtrial as ft

    read = ft.import_traces(recorded, tmp_path / "s.jsonl", where={"model": "other"}, sample=5)
    assert (read.cases, read.path) == (1, tmp_path / "s.jsonl")
    with pytest.raises(FairtrialError, match="by"):
        ft.import_traces(recorded, tmp_path / "s.jsonl", by="name")


def test_what_stands_in_traces_stays_in_its_place(tmp_path):
    """The name of a model is somebody else's text: it must not become a line of the suite."""
    row = {
        "id": "1",
        "traceId": "t",
        "type": "GENERATION",
        "model": "x\ntargets: [command]",
        "input": "q",
        "output": "a",
    }
    (tmp_path / "t.jsonl").write_text(json.dumps(row))
    import_traces([tmp_path / "t.jsonl"], tmp_path / "s.yaml", TraceOptions(target="mock:echo"))
    assert yaml.safe_load((tmp_path / "s.yaml").read_text())["targets"] == ["mock:echo"]
