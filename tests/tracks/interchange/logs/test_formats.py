"""Logs of real sessions, format by format: what happened is told once, in order, with what it took."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from fairtrial.core.answer import Usage
from fairtrial.core.events import CallEvent, ChangeEvent, ErrorEvent, MessageEvent, NoteEvent, ResultEvent
from fairtrial.core.trace import tool_calls
from fairtrial.foreign.logs import LoggedSession
from fairtrial.foreign.source import Source
from fairtrial.tracks.interchange.import_sessions import sessions_in
from fairtrial.tracks.interchange.logs import claude_code, codex, harbor
from tests.tracks.interchange.logs import DATA

CLAUDE = next((DATA / "claude-code/projects/-project").glob("*.jsonl"))
CODEX = next((DATA / "codex/sessions/2026/11/19").glob("*.jsonl"))
CODEX_OLD = next((DATA / "codex/sessions/2026/11/18").glob("*.jsonl"))
GEMINI = next((DATA / "gemini-cli/tmp/project/chats").glob("*.jsonl"))
OPENCODE = DATA / "opencode/export.json"
JOB = DATA / "harbor/demo-job"


def one(path: Path, form: str | None = None) -> LoggedSession:
    (session,) = sessions_in(path, form)
    return session


def lines(*entries: dict) -> str:
    return "".join(json.dumps(entry) + "\n" for entry in entries)


class TestClaudeCode:
    def test_a_session_with_a_refusal_a_subagent_and_a_compaction(self):
        session = one(CLAUDE)
        assert (session.agent, session.version, session.model) == ("claude-code", "2.1.325", "claude-sonnet-5")
        assert (session.folder, session.branch) == ("/project", "main")
        assert session.said == ["Write hello into b.txt, then delegate: count files.", "Thanks!"]
        assert session.answer == "You are welcome." and session.failure is None
        calls = {call.tool: call for call in tool_calls(session.events)}
        assert not calls["Write"].error and calls["Write"].arguments["file_path"] == "/project/b.txt"
        rejected = [e for e in session.events if isinstance(e, ResultEvent) and e.rejected]
        assert [e.call for e in rejected] == ["toolu_2_0"] and "needs approval" in rejected[0].text
        assert [(e.path, e.how) for e in session.events if isinstance(e, ChangeEvent)] == [("b.txt", "added")]
        assert [e.text for e in session.events if isinstance(e, NoteEvent)] == ["The agent shortened its context."]
        assert session.unknown == {}

    def test_a_subagent_is_told_within_the_call_that_started_it(self):
        events = one(CLAUDE).events
        inner = [event for event in events if event.within]
        assert {(event.within, event.agent) for event in inner} == {("toolu_3_0", "general-purpose")}
        assert [e.text for e in inner if isinstance(e, MessageEvent)] == [
            "A subtask: Count the files.",
            "I count.",
            "There are 1 files.",
        ]
        assert [e.tool for e in inner if isinstance(e, CallEvent)] == ["Bash"]

    def test_tokens_are_counted_once_for_each_reply_although_its_lines_repeat_them(self):
        replies = set()
        for path in (CLAUDE, *(path for path in claude_code.companions(Source(CLAUDE)) if path.suffix == ".jsonl")):
            for line in path.read_text("utf-8").splitlines():
                entry = json.loads(line)
                if entry["type"] == "assistant":
                    replies.add(entry["message"]["id"])
        assert len(replies) == 8
        assert one(CLAUDE).usage == Usage(prompt=8 * 140, completion=8 * 7, cache_read=8 * 40)

    def test_its_cost_is_the_last_that_it_says(self):
        costs = [entry["totalCostUSD"] for entry in map(json.loads, CLAUDE.read_text("utf-8").splitlines())
                 if entry["type"] == "cost-state"]  # fmt: skip
        assert len(costs) > 1 and one(CLAUDE).cost_usd == costs[-1]

    def test_a_folder_of_projects_has_each_session_once(self):
        assert len(list(sessions_in(DATA / "claude-code"))) == 1

    def test_the_file_of_a_subagent_can_be_read_by_itself(self):
        path = next(path for path in claude_code.companions(Source(CLAUDE)) if path.suffix == ".jsonl")
        session = one(path)
        assert session.said == ["A subtask: Count the files."] and not any(event.within for event in session.events)

    def test_subagents_in_older_logs_are_in_the_same_file(self, tmp_path):
        usage = {"input_tokens": 1, "output_tokens": 1}

        def of(uuid, kind, content, **more):
            message = {"role": kind, "content": content, "id": uuid, "usage": usage}
            return {"type": kind, "uuid": uuid, "parentUuid": None, "sessionId": "s", "message": message, **more}

        call = [{"type": "tool_use", "id": "t1", "name": "Task", "input": {}}]
        result = [{"type": "tool_result", "tool_use_id": "t1", "content": "done"}]
        path = tmp_path / "s.jsonl"
        path.write_text(lines(
            of("1", "user", "Go."), of("2", "assistant", call),
            of("3", "user", "Do it.", isSidechain=True), of("4", "assistant", [{"type": "text", "text": "Did."}], isSidechain=True),
            of("5", "user", result), of("6", "assistant", [{"type": "text", "text": "All done."}]),
        ))  # fmt: skip
        session = one(path)
        assert session.said == ["Go."] and session.answer == "All done."
        assert [event.within for event in session.events if isinstance(event, MessageEvent)] == [
            "",
            "sidechain",
            "sidechain",
            "",
        ]

    def test_an_error_of_the_api_is_a_failure_only_if_nothing_came_after(self, tmp_path):
        broken = {"type": "assistant", "uuid": "b", "sessionId": "s", "parentUuid": "a", "isApiErrorMessage": True,
                  "message": {"id": "x", "content": [{"type": "text", "text": "API Error: 529 overloaded"}]}}  # fmt: skip
        asked = {"type": "user", "uuid": "a", "sessionId": "s", "parentUuid": None, "message": {"content": "Hi"}}
        said = {"type": "assistant", "uuid": "c", "sessionId": "s", "parentUuid": "b",
                "message": {"id": "y", "content": [{"type": "text", "text": "Hello"}]}}  # fmt: skip
        path = tmp_path / "s.jsonl"
        path.write_text(lines(asked, broken))
        session = one(path)
        assert session.failure is not None and isinstance(session.events[-1], ErrorEvent)
        path.write_text(lines(asked, broken, said))
        assert one(path).failure is None and one(path).answer == "Hello"


class TestCodex:
    def test_two_turns_with_a_command_that_was_rejected(self):
        session = one(CODEX)
        assert (session.agent, session.version, session.model) == ("codex", "0.166.0", "m1")
        assert (session.folder, session.branch) == ("/project", "main")
        assert session.said == ["Write hello into b.txt, then delegate: count files.", "Thanks!"]
        said = [event.text for event in session.events if isinstance(event, MessageEvent) and event.role == "assistant"]
        assert said == ["I write it.", "Now I remove everything.", "Done: b.txt says hello.", "You are welcome."]
        first, second = tool_calls(session.events)
        assert (first.tool, first.error, first.arguments["cmd"]) == ("exec_command", False, "echo hello > b.txt")
        assert second.rejected and "Rejected(" in second.result
        assert session.usage == Usage(prompt=400, completion=28, cache_read=160) and session.unknown == {}

    def test_another_version(self):
        session = one(CODEX_OLD)
        assert (session.version, session.said) == ("0.169.0", ["What is 2+2? Use the shell."])
        (call,) = tool_calls(session.events)
        assert call.result.endswith("Output:\n4\n") and session.answer == "The answer is 4."
        assert session.usage == Usage(prompt=200, completion=40, cache_read=80, reasoning=10)

    def test_old_versions_show_messages_by_events_of_their_own(self, tmp_path):
        def event(kind, **payload):
            return {"timestamp": "2025-10-01T10:00:00Z", "type": "event_msg", "payload": {"type": kind, **payload}}

        def item(kind, **payload):
            return {"timestamp": "2025-10-01T10:00:01Z", "type": "response_item", "payload": {"type": kind, **payload}}

        def text(role, words):
            return item("message", role=role, content=[{"type": "input_text", "text": words}])

        output = json.dumps({"output": "no such file", "metadata": {"exit_code": 2, "duration_seconds": 0.5}})
        path = tmp_path / "rollout.jsonl"
        path.write_text(lines(
            {"timestamp": "2025-10-01T10:00:00Z", "type": "session_meta", "payload": {"id": "i", "cli_version": "0.40"}},
            text("user", "<environment_context>\n</environment_context>"), text("user", "Yes"), event("user_message", message="Yes"),
            item("function_call", name="shell", arguments='{"command": ["ls"]}', call_id="c1"),
            item("function_call_output", call_id="c1", output=output),
            event("agent_message", message="Same"), text("assistant", "Same"), event("agent_message", message="Same"),
            text("assistant", "Same"), text("user", "Yes"), event("user_message", message="Yes"),
            event("turn_aborted", reason="interrupted"), event("thing_of_tomorrow"), {"type": "compacted", "payload": {"message": ""}},
        ))  # fmt: skip
        session = one(path)
        assert session.said == ["Yes", "Yes"]
        assert [e.text for e in session.events if isinstance(e, MessageEvent) and e.role == "assistant"] == ["Same"] * 2
        (call,) = tool_calls(session.events)
        assert (call.tool, call.result, call.error, call.duration_ms) == ("shell", "no such file", True, 500.0)
        notes = [e.text for e in session.events if isinstance(e, NoteEvent)]
        assert notes == ["The turn was ended: interrupted", "The agent shortened its context."]
        assert session.unknown == {"event thing_of_tomorrow": 1}

    def test_tokens_of_a_session_that_goes_on_from_0_are_added(self, tmp_path):
        def total(count):
            usage = {"total_token_usage": {"input_tokens": count, "output_tokens": 1}}
            return {"type": "event_msg", "payload": {"type": "token_count", "info": usage}}

        asked = {"type": "event_msg", "payload": {"type": "user_message", "message": "Hi"}}
        path = tmp_path / "rollout.jsonl"
        path.write_text(lines({"type": "session_meta", "payload": {}}, asked, total(100), total(250), total(30)))
        assert one(path).usage == Usage(prompt=280, completion=2)

    def test_servers_and_patches(self, tmp_path):
        call = {"type": "function_call", "namespace": "mcp__shop", "name": "find", "arguments": "{}", "call_id": "c"}
        patch = {"type": "patch_apply_end", "call_id": "p", "success": True,
                 "changes": {"/w/a.py": {"add": {"content": ""}}, "/w/b.py": {"type": "update"}}}  # fmt: skip
        path = tmp_path / "rollout.jsonl"
        path.write_text(lines(
            {"type": "session_meta", "payload": {"cwd": "/w"}}, {"type": "response_item", "payload": call},
            {"type": "event_msg", "payload": patch},
        ))  # fmt: skip
        (session,) = codex.sessions(Source(path))
        (made,) = tool_calls(session.events)
        assert (made.server, made.tool, made.unfinished) == ("shop", "find", True)
        changes = [(e.path, e.how) for e in session.events if isinstance(e, ChangeEvent)]
        assert changes == [("a.py", "added"), ("b.py", "modified")]


class TestGemini:
    def test_messages_that_come_again_are_told_once_with_their_calls(self):
        session = one(GEMINI)
        assert (session.agent, session.folder) == ("gemini-cli", "/project")
        assert session.said == ["Write hello into b.txt, then delegate: count files.", "Thanks!"]
        first, second = tool_calls(session.events)
        assert (first.tool, first.error) == ("write_file", False) and (second.tool, second.error) == ("replace", True)
        assert [(e.path, e.how) for e in session.events if isinstance(e, ChangeEvent)] == [("b.txt", "added")]
        assert session.usage == Usage(prompt=400, completion=28, cache_read=160) and session.unknown == {}
        assert session.worked_ms is not None and 0 < session.worked_ms < 60_000  # not the time between the two prompts

    def test_older_versions_write_one_document(self, tmp_path):
        messages = [
            {"id": "1", "type": "user", "content": "Hi", "timestamp": "2025-09-01T10:00:00Z"},
            {"id": "2", "type": "gemini", "content": "Hello", "thoughts": [{"subject": "S", "description": "D"}],
             "tokens": {"input": 5, "output": 2, "thoughts": 3, "cached": 1, "tool": 0}, "model": "gemini-old",
             "toolCalls": [{"id": "c", "name": "x", "args": {}, "status": "cancelled", "displayName": "x (shop MCP Server)"}]},
        ]  # fmt: skip
        path = tmp_path / "session-1.json"
        path.write_text(json.dumps({"sessionId": "s", "projectHash": "h", "messages": messages}))
        session = one(path)
        (call,) = tool_calls(session.events)
        assert (call.server, call.tool, call.rejected) == ("shop", "x", True) and session.answer == "Hello"
        assert session.usage == Usage(prompt=5, completion=5, cache_read=1, reasoning=3)

    def test_what_was_taken_back_is_not_told(self, tmp_path):
        head = {"sessionId": "s", "projectHash": "h"}

        def said(name, text):
            return {"id": name, "type": "user", "content": text}

        path = tmp_path / "session-1.jsonl"
        path.write_text(lines(head, said("1", "Keep"), said("2", "Drop"), {"$rewindTo": "2"}, said("3", "Instead")))
        assert one(path).said == ["Keep", "Instead"]


def test_opencode():
    session = one(OPENCODE)
    assert (session.agent, session.version, session.model, session.folder) == (
        "opencode",
        "1.18.18",
        "x/m1",
        "/project",
    )
    write, bash = tool_calls(session.events)
    assert (write.tool, write.error, bash.tool, bash.rejected) == ("write", False, "bash", True)
    assert [(e.path, e.how) for e in session.events if isinstance(e, ChangeEvent)] == [("b.txt", "added")]
    assert session.usage == Usage(prompt=300, completion=21, cache_read=120)
    assert session.cost_usd == pytest.approx(0.000222) and session.unknown == {} and session.finish_reason == "stop"


class TestAtif:
    @pytest.mark.parametrize("agent", ["claude-code", "codex"])
    def test_what_harbor_wrote_of_a_session_says_the_same_as_its_log(self, agent):
        converted = one(DATA / f"harbor/trajectory.{agent}.json")
        assert converted.said == ["What is 2+2? Use the shell."] and converted.answer == "The answer is 4."
        assert len(tool_calls(converted.events)) == 1 and converted.usage is not None and converted.unknown == {}
        if agent == "codex":
            native = one(CODEX_OLD)
            assert (converted.usage, converted.folder) == (native.usage, native.folder)
            assert [(c.tool, c.arguments, c.result) for c in tool_calls(converted.events)] == [
                (c.tool, c.arguments, c.result) for c in tool_calls(native.events)
            ]

    @pytest.mark.parametrize("version", [f"ATIF-v1.{minor}" for minor in range(10)])
    def test_every_version(self, version, tmp_path):
        path = tmp_path / "t.json"
        step = {"step_id": 1, "source": "user", "message": [{"type": "text", "text": "Hi"}, {"type": "image"}]}
        path.write_text(
            json.dumps({"schema_version": version, "agent": {"name": "a", "version": "1"}, "steps": [step]})
        )
        assert one(path).said == ["Hi\n[image]"] and one(path).unknown == {}

    def test_subagents_copied_context_and_what_is_unknown(self, tmp_path):
        inner = {"trajectory_id": "i", "agent": {"name": "helper", "version": "1"},
                 "steps": [{"step_id": 1, "source": "agent", "message": "I count."}]}  # fmt: skip
        call = {"tool_call_id": "c", "function_name": "mcp__shop__find", "arguments": {}}
        result = {"source_call_id": "c", "content": "3", "subagent_trajectory_ref": [{"trajectory_id": "i"}]}
        steps = [
            {"source": "user", "message": "Go"},
            {"source": "agent", "message": "old", "is_copied_context": True, "metrics": {"prompt_tokens": 5}},
            {"source": "agent", "message": "", "tool_calls": [call], "observation": {"results": [result]},
             "metrics": {"prompt_tokens": 7, "completion_tokens": 1}, "of_tomorrow": 1},
        ]  # fmt: skip
        document = {
            "schema_version": "ATIF-v1.7",
            "agent": {"name": "a"},
            "steps": steps,
            "subagent_trajectories": [inner],
        }
        path = tmp_path / "t.json"
        path.write_text(json.dumps(document))
        session = one(path)
        assert [(e.text, e.within, e.agent) for e in session.events if isinstance(e, MessageEvent)] == [
            ("Go", "", ""), ("I count.", "c", "helper"),
        ]  # fmt: skip
        (made,) = tool_calls(session.events)
        assert (made.server, made.tool, made.result) == ("shop", "find", "3")
        assert session.usage == Usage(prompt=7, completion=1) and session.unknown == {"field of_tomorrow of a step": 1}

    def test_files_that_a_trajectory_names_are_read_only_in_its_folder(self, tmp_path):
        folder = tmp_path / "here"
        folder.mkdir()

        def document(text, **more):
            step = {"source": "user", "message": text}
            return json.dumps({"schema_version": "ATIF-v1.6", "agent": {"name": "a"}, "steps": [step], **more})

        (tmp_path / "secret.json").write_text(document("secret"))
        (folder / "two.json").write_text(document("second"))
        (folder / "one.json").write_text(document("first", continued_trajectory_ref="two.json"))
        assert [session.said for session in sessions_in(folder)] == [["first", "second"]]
        (folder / "one.json").write_text(document("first", continued_trajectory_ref="../secret.json"))
        assert one(folder / "one.json").said == ["first"]


class TestHarbor:
    def test_a_job(self):
        found = {session.id: session for session in map(_only, sorted(JOB.glob("*/result.json")))}
        assert {name: session.scores for name, session in found.items()} == {
            "sum__JjbFxw7": {}, "sum__VKnpez4": {"reward": 1.0}, "sum__g2mznwJ": {"reward": 1.0}, "sum__pRvTTvD": {"reward": 0.0},
        }  # fmt: skip
        assert {session.agent for session in found.values()} == {"nop", "oracle"}
        failure = found["sum__JjbFxw7"].failure
        assert failure is not None and "sandbox gave up" in failure.message
        assert {session.case for session in found.values()} == {"sum@b30704a6d7b0"}

    @pytest.mark.parametrize(
        ("exception", "valid"),
        [("AgentTimeoutError", True), ("ContextWindowExceededError", True), ("AgentSafetyRefusalError", True),
         ("VerifierTimeoutError", False), ("ApiOverloadedError", False), ("NonZeroAgentExitCodeError", False), ("New", False)],
    )  # fmt: skip
    def test_a_reward_beside_an_exception_counts_only_if_the_agent_is_the_cause(self, exception, valid, tmp_path):
        result = json.loads((JOB / "sum__VKnpez4/result.json").read_text())
        result["exception_info"] = {"exception_type": exception, "exception_message": "m"}
        (tmp_path / "result.json").write_text(json.dumps(result))
        session = _only(tmp_path / "result.json")
        assert (session.failure is None) is valid and session.scores == {"reward": 1.0}
        assert session.events, "what ended it is one of its events"

    def test_no_reward_is_a_failure_and_never_a_0(self, tmp_path):
        result = json.loads((JOB / "sum__VKnpez4/result.json").read_text())
        result["verifier_result"] = None
        (tmp_path / "result.json").write_text(json.dumps(result))
        session = _only(tmp_path / "result.json")
        assert session.failure is not None and session.scores == {}

    def test_the_trajectory_of_its_agent_is_part_of_a_trial(self, tmp_path):
        shutil.copytree(JOB / "sum__VKnpez4", tmp_path / "trial")
        shutil.copy(DATA / "harbor/trajectory.codex.json", tmp_path / "trial/agent/trajectory.json")
        (session,) = sessions_in(tmp_path)
        assert session.said == ["What is 2+2? Use the shell."] and session.scores == {"reward": 1.0}
        assert session.agent == "oracle" and session.case == "sum@b30704a6d7b0"


def _only(path: Path) -> LoggedSession:
    (session,) = harbor.sessions(Source(path))
    return session


def test_otlp_of_others(tmp_path):
    """Spans as agents' instrumentations write them: the history is repeated, calls are in messages and in spans."""

    def text(role, words):
        return {"role": role, "parts": [{"type": "text", "content": words}]}

    call = {"type": "tool_call", "id": "c1", "name": "find", "arguments": {"q": 1}}
    asked = [text("user", "Where?")]
    answered = [{"role": "assistant", "parts": [{"type": "reasoning", "content": "Hm."}, call]}]
    more = [
        *asked,
        *answered,
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "there"}]},
    ]

    def span(name, parent, operation, start, end, **attributes):
        values = {
            "gen_ai.operation.name": operation,
            **{key.replace("__", "."): value for key, value in attributes.items()},
        }
        listed = [{"key": key, "value": {"stringValue": value if isinstance(value, str) else json.dumps(value)}}
                  for key, value in values.items()]  # fmt: skip
        return {"traceId": "t", "spanId": name, "parentSpanId": parent, "name": operation, "attributes": listed,
                "startTimeUnixNano": str(start * 10**9), "endTimeUnixNano": str(end * 10**9)}  # fmt: skip

    spans = [
        span("4", "1", "chat", 4, 5, gen_ai__input__messages=more, gen_ai__output__messages=[text("assistant", "There.")],
             gen_ai__usage__input_tokens="9", gen_ai__usage__output_tokens="2"),
        span("1", "", "invoke_agent", 1, 5, gen_ai__agent__name="finder"),
        span("2", "1", "chat", 1, 2, gen_ai__input__messages=asked, gen_ai__output__messages=answered, gen_ai__request__model="m",
             gen_ai__usage__input_tokens="5", gen_ai__usage__output_tokens="3"),
        span("3", "1", "execute_tool", 2, 3, gen_ai__tool__name="find", gen_ai__tool__call__id="c1",
             gen_ai__tool__call__arguments={"q": 1}, gen_ai__tool__call__result="there"),
    ]  # fmt: skip
    path = tmp_path / "spans.json"
    path.write_text(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}))
    session = one(path)
    assert (session.agent, session.model, session.said, session.answer) == ("finder", "m", ["Where?"], "There.")
    assert [type(event).__name__ for event in session.events] == [
        "MessageEvent", "ReasoningEvent", "CallEvent", "ResultEvent", "MessageEvent",
    ]  # fmt: skip
    (made,) = tool_calls(session.events)
    assert (made.tool, made.arguments, made.result, made.duration_ms) == ("find", {"q": 1}, "there", 1000.0)
    assert session.usage == Usage(prompt=14, completion=5)
