"""Trajectories go out in ATIF and as OpenTelemetry spans, which others' validators take, and come back the same."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

import fairtrial as ft
from fairtrial.analyse.run import Run
from fairtrial.core.errors import FairtrialError
from fairtrial.core.events import (
    CallEvent,
    ChangeEvent,
    ErrorEvent,
    Event,
    LimitEvent,
    MessageEvent,
    NoteEvent,
    ReasoningEvent,
    ResultEvent,
    as_data,
)
from fairtrial.reports.export import export
from fairtrial.reports.formats import format_named
from fairtrial.store import Store
from fairtrial.tracks.interchange.exports.trajectory_steps import trajectories
from fairtrial.tracks.interchange.import_sessions import import_logs
from tests.lazily import Library
from tests.tracks.interchange.logs import DATA

atif = Library("atif")
json_format = Library("google.protobuf.json_format")
trace_service = Library("opentelemetry.proto.collector.trace.v1.trace_service_pb2")

# Everything that an event can say, in an order that no step of a format has by itself.
EVENTS: tuple[Event, ...] = (
    MessageEvent(text="Do it.", role="user", at=0.0),
    MessageEvent(text="Be careful.", role="system", at=0.1),
    ReasoningEvent(text="Hm.", at=0.2),
    MessageEvent(text="First I look.", model="m1", at=0.3),
    CallEvent(id="a", tool="find", server="shop", arguments={"q": [1, None, {"x": "é"}]}, at=0.4),
    CallEvent(id="b", tool="Agent", arguments="free text", at=0.5),
    MessageEvent(text="Count.", role="user", within="b", agent="helper", at=0.6),
    ReasoningEvent(text="One.", within="b", agent="helper"),
    CallEvent(id="c", tool="Agent", within="b", agent="helper", arguments=None),
    MessageEvent(text="Deeper.", within="c", agent="deep"),
    ResultEvent(call="c", text="deep", within="b", agent="helper", ms=2.5, source="mock"),
    ResultEvent(call="b", text="", error=True, rejected=True, at=0.9),
    NoteEvent(text="The agent shortened its context.", at=0.95),
    ResultEvent(call="a", text="late\n", ms=500.0, source="recorded", at=1.0),
    ChangeEvent(path="a b.txt", how="added", at=1.1),
    CallEvent(id="d", tool="never", arguments={}, at=1.2),
    ErrorEvent(text="The model's server failed.", kind="server", at=1.3),
    MessageEvent(text="", at=1.4),
    MessageEvent(text="And?", role="user", turn=2, at=0.0),
    MessageEvent(text="Twice.", turn=2, at=0.2),
    MessageEvent(text="Twice.", turn=2),
    LimitEvent(kind="turns", limit=2.0, turn=2),
    ResultEvent(call="of nobody", text="lost", turn=2),
)


def acting(input: str) -> dict[str, Any]:
    """An agent of a user that tells a trace."""
    return {"text": "Twice.", "trace": {"events": as_data(EVENTS), "session_id": "s-1"}}


def told(run: Run) -> list[Any]:
    """What a run's trials say that can be told again elsewhere."""
    return [
        (one.told.trial.case_id, one.told.trial.arm, one.told.trial.repeat, one.told.trial.score, one.told.trial.answer,
         one.told.trial.failure_kind, one.told.trial.prompt_tokens, one.told.trial.cost_usd, one.events)
        for one in trajectories(run)
    ]  # fmt: skip


def written(run: Run, form: str, folder: Path) -> Path:
    """The run in a format: as lines, as a folder, as spans."""
    if form == "folder":
        return export(run, f"{folder}/atif/", format_named("atif"))
    return export(run, folder / ("run.atif.jsonl" if form == "lines" else "run.otlp.json"))


FORMS = ("lines", "folder", "spans")


@pytest.fixture
async def agents(tmp_path):
    """A run with an agent, a model whose calls fail, and plain questions under a system prompt."""
    down = {"id": "down", "target": "mock:echo", "options": {"faults": {"500": 1.0}}}
    suite = {
        "name": "acts",
        "targets": [acting, "mock:echo", down],
        "system": "Answer briefly.",
        "scorer": "contains",
        "retry": {"attempts": 1},
        "cases": [
            {"id": "one/é", "input": "Do it.", "expected": "Twice."},
            {"id": "two", "input": "Do it again.", "expected": "Do"},
        ],
    }
    return await ft.arun(suite, store=str(tmp_path / "agents.db"), progress=False)


@pytest.fixture
def logged(tmp_path):
    """A run of everything that was recorded."""
    (done,) = import_logs(DATA, store=Store(str(tmp_path / "logged.db")))
    return done.run


@pytest.mark.parametrize("form", FORMS)
class TestThereAndBack:
    async def test_agents_and_plain_questions(self, form, agents, tmp_path):
        (back,) = import_logs(written(agents, form, tmp_path), store=Store(str(tmp_path / "back.db")))
        assert sorted(told(back.run), key=str) == sorted(told(agents), key=str)
        assert [note for note in back.origin["notes"] if "not understood" in note] == []

    def test_logs(self, form, logged, tmp_path):
        (back,) = import_logs(written(logged, form, tmp_path), store=Store(str(tmp_path / "back.db")))
        assert sorted(told(back.run), key=str) == sorted(told(logged), key=str)

    async def test_written_again_it_is_the_same(self, form, agents, tmp_path):
        bodies = []
        for name in ("first", "second"):
            (tmp_path / name).mkdir()
            path = written(agents, form, tmp_path / name)
            files = sorted(path.rglob("*.json")) if path.is_dir() else [path]
            bodies.append([file.read_bytes() for file in files])
        assert bodies[0] == bodies[1]


def test_the_agent_of_these_tests_does_everything_that_an_event_can_say():
    assert {type(event) for event in EVENTS} == set(Event.__args__)


class TestAtif:
    async def test_its_models_take_every_trajectory(self, agents, logged, tmp_path):
        for number, run in enumerate((agents, logged)):
            folder = tmp_path / str(number)
            folder.mkdir()
            files = list(written(run, "folder", folder).glob("*.atif.json"))
            assert len(files) == len(list(run.trials()))
            for file in files:
                read = atif.Trajectory.model_validate_json(file.read_bytes())
                assert [step.step_id for step in read.steps] == list(range(1, len(read.steps) + 1))
                _check_references(json.loads(file.read_text()))

    def test_its_models_take_what_we_have_as_samples(self):
        """They are the reference here: what they take, we read."""
        for path in DATA.glob("harbor/trajectory.*.json"):
            assert atif.Trajectory.model_validate_json(path.read_bytes()).steps

    async def test_others_see_messages_calls_results_and_subagents(self, agents, tmp_path):
        (path,) = (
            file
            for file in written(agents, "folder", tmp_path).glob("*.json")
            if "one" in file.name and "acting" in file.read_text()
        )
        document = json.loads(path.read_text())
        said = [(step["source"], step["message"]) for step in document["steps"]]
        assert said[0] == ("system", "Answer briefly.") and ("user", "Do it.") in said and said[-3][1] == "Twice."
        (step,) = [step for step in document["steps"] if step.get("message") == "First I look."]
        assert step["reasoning_content"] == "Hm."
        assert [call["function_name"] for call in step["tool_calls"]] == ["mcp__shop__find", "Agent"]
        assert [result.get("content") for result in step["observation"]["results"]] == ["late\n", ""]
        (inner,) = document["subagent_trajectories"]
        assert inner["agent"]["name"] == "helper" and len(inner["subagent_trajectories"]) == 1

    async def test_one_file_holds_one_trial(self, agents, tmp_path):
        with pytest.raises(FairtrialError, match=r"--format atif -o trajectories/"):
            ft.export(agents, tmp_path / "x.atif.json")


def _check_references(document: dict[str, Any]) -> None:
    """Results belong to calls of the same step, and subagents are where they are named: the models do not check it."""
    known = {one["trajectory_id"] for one in document.get("subagent_trajectories", ())}
    named = set()
    for step in document["steps"]:
        calls = {call["tool_call_id"] for call in step.get("tool_calls") or ()}
        for result in (step.get("observation") or {}).get("results", ()):
            assert result["source_call_id"] in calls
            named |= {ref["trajectory_id"] for ref in result.get("subagent_trajectory_ref", ())}
    assert named == known
    for one in document.get("subagent_trajectories", ()):
        _check_references(one)


class TestSpans:
    async def test_the_protocol_takes_them(self, agents, logged, tmp_path):
        for number, run in enumerate((agents, logged)):
            path = ft.export(run, tmp_path / f"{number}.otlp.json")
            document = json.loads(path.read_text())
            for span in _spans(document):  # ids are hexadecimal in OTLP, and base64 in the JSON of protobuf
                for key, size in (("traceId", 16), ("spanId", 8), ("parentSpanId", 8)):
                    if key in span:
                        raw = bytes.fromhex(span[key])
                        assert len(raw) == size
                        span[key] = base64.b64encode(raw).decode()
            request = json_format.ParseDict(document, trace_service.ExportTraceServiceRequest())
            assert len(request.resource_spans[0].scope_spans[0].spans) == len(_spans(document))

    async def test_they_are_a_tree_for_each_trial_with_the_names_of_the_conventions(self, agents, tmp_path):
        spans = _spans(json.loads(ft.export(agents, tmp_path / "x.otlp.json").read_text()))
        assert len({span["spanId"] for span in spans}) == len(spans)
        roots = [span for span in spans if "parentSpanId" not in span]
        assert len(roots) == len(list(agents.trials())) == len({span["traceId"] for span in spans})
        ids = {span["spanId"]: span for span in spans}
        for span in spans:
            assert int(span["startTimeUnixNano"]) <= int(span["endTimeUnixNano"])
            above = ids.get(span.get("parentSpanId", ""))
            assert above is None or above["traceId"] == span["traceId"]
        assert {span["name"].split()[0] for span in spans} == {"invoke_agent", "chat", "execute_tool"}
        tool = next(_facts(span) for span in spans if span["name"] == "execute_tool find")
        assert tool["gen_ai.tool.call.id"] == "a" and json.loads(tool["gen_ai.tool.call.arguments"])["q"][0] == 1
        assert tool["gen_ai.tool.call.result"] == "late\n"
        failed = [_facts(span) for span in roots if span.get("status")]
        assert [facts["error.type"] for facts in failed] == ["server", "server"]
        scored = [event for span in roots for event in span["events"] if event["name"] == "gen_ai.evaluation.result"]
        assert len(scored) == 4

    async def test_they_can_be_made_into_cases_again(self, agents, tmp_path):
        path = ft.export(agents, tmp_path / "x.otlp.json")
        read = ft.import_traces(path, tmp_path / "asked.yaml", target="mock:echo")
        assert read.cases >= 2 and "Do it again." in (tmp_path / "asked.yaml").read_text()


def _spans(document: dict[str, Any]) -> list[dict[str, Any]]:
    return document["resourceSpans"][0]["scopeSpans"][0]["spans"]


def _facts(span: dict[str, Any]) -> dict[str, Any]:
    return {item["key"]: next(iter(item["value"].values())) for item in span["attributes"]}
