"""What agents of one's own report: costs, tokens and tool calls in whatever shape; believed where it makes sense."""

import json
import math
import sys
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairtrial import pipeline
from fairtrial.cli.main import _run
from fairtrial.core.answer import Answer, Failure, Usage
from fairtrial.core.errors import FairtrialError
from fairtrial.core.experiment import McpServer
from fairtrial.core.trace import tool_use
from fairtrial.reports.export import export
from fairtrial.targets._reported import as_answer
from tests.targets.test_agents import CASES, conditions, facts

GRAPH = McpServer(name="graph", tools=("search", "get_node"))
FILES = McpServer(name="my-files", tools=("read", "search_files", "search"))


def used(*calls, servers=(GRAPH, FILES)) -> dict:
    """What is counted of these calls."""
    answer = as_answer({"text": "x", "tool_calls": list(calls)}, servers, 1.0)
    return {name: count for name, (count, _) in tool_use(answer.trace, [s.name for s in servers]).tools.items()}


class TestToolCalls:
    @pytest.mark.parametrize(
        ("call", "counted"),
        [
            ({"server": "graph", "tool": "search"}, "graph.search"),
            ({"name": "get_node", "args": {"id": 1}}, "graph.get_node"),
            ({"name": "read", "args": {}}, "my-files.read"),
            ("get_node", "graph.get_node"),
            ({"type": "function", "function": {"name": "get_node", "arguments": '{"id": 1}'}}, "graph.get_node"),
            ({"name": "graph__search", "input": {}}, "graph.search"),
            ({"name": "mcp__graph__search"}, "graph.search"),
            ({"tool_name": "mcp_graph_search", "parameters": {}}, "graph.search"),
            ({"tool": "my-files_read"}, "my-files.read"),
            ({"name": "my-files.read"}, "my-files.read"),
            ({"name": "search"}, None),  # both have it: nobody knows whose it was
            ({"name": "bash"}, None),
            ({"name": "graphics_draw"}, None),
            ({"name": "graph_unknown"}, None),
            ({"server": "other", "tool": "read"}, None),
            ({"server": None, "tool": None}, None),
            (17, None),
        ],
    )
    def test_whose_it_was(self, call, counted):
        assert used(call) == ({counted: 1} if counted else {})

    def test_the_longest_name_of_a_server_wins(self):
        servers = (McpServer(name="a"), McpServer(name="a_b"))
        assert used({"name": "a_b__c"}, servers=servers) == {"a_b.c": 1}

    @pytest.mark.parametrize(
        "call",
        [
            {"name": "get_node", "args": {"id": 1}, "output": "found"},
            {"function": {"name": "get_node", "arguments": '{"id": 1}'}, "result": "found"},
            {"tool": "get_node", "input": {"id": 1}, "content": "found"},
            SimpleNamespace(model_dump=lambda: {"name": "get_node", "args": {"id": 1}, "result": "found"}),
        ],
    )
    def test_one_shape_in_the_record(self, call):
        (made,) = as_answer({"text": "x", "tool_calls": [call]}, [GRAPH], 1.0).trace["tool_calls"]
        shape = {"tool": "get_node", "server": "graph", "arguments": {"id": 1}, "result": "found", "error": False}
        assert made == shape

    @pytest.mark.parametrize("failed", [{"error": "boom"}, {"is_error": True}, {"status": "error"}])
    def test_failed_calls(self, failed):
        answer = as_answer({"text": "x", "tool_calls": [{"name": "get_node", **failed}]}, [GRAPH], 1.0)
        assert tool_use(answer.trace, ["graph"]).errors == 1

    def test_what_is_no_list_is_left_out(self):
        answer = as_answer({"text": "x", "tool_calls": 5}, [GRAPH], 1.0)
        assert answer.trace == {"left_out": ["tool_calls left out: int is not a list"]}
        assert tool_use(answer.trace, ["graph"]) is None


class TestMoney:
    @pytest.mark.parametrize(
        "report",
        [
            {"text": "x", "cost_usd": 0.25, "prompt_tokens": 10, "completion_tokens": 2},
            {"text": "x", "cost_usd": 0.25, "usage": {"prompt_tokens": 10, "completion_tokens": 2}},
            {"text": "x", "cost_usd": 0.25, "usage": {"input_tokens": 10, "output_tokens": 2}},
            SimpleNamespace(text="x", cost_usd=0.25, prompt_tokens=10, completion_tokens=2),
            Answer(text="x", cost_usd=0.25, usage=Usage(prompt=10, completion=2)),
        ],
    )
    def test_what_is_said_is_taken(self, report):
        answer = as_answer(report, (), 7.0)
        assert (answer.text, answer.cost_usd, answer.latency_ms) == ("x", 0.25, 7.0)
        assert answer.usage == Usage(prompt=10, completion=2) and not answer.trace

    @pytest.mark.parametrize("cost", [-1, math.nan, math.inf, -math.inf, "0.1", True, [1], 1e12])
    def test_a_bad_cost_is_none_and_said_so(self, cost):
        for report in ({"text": "x", "cost_usd": cost}, Answer(text="x", cost_usd=cost)):
            answer = as_answer(report, (), 1.0)
            assert answer.cost_usd is None and "cost_usd left out" in answer.trace["left_out"][0]

    @pytest.mark.parametrize("count", [-1, math.nan, math.inf, 0.5, "12", True, 10**30])
    def test_bad_numbers_of_tokens(self, count):
        answer = as_answer({"text": "x", "prompt_tokens": count, "completion_tokens": 3}, (), 1.0)
        assert answer.usage == Usage(completion=3) and "prompt_tokens left out" in answer.trace["left_out"][0]
        answer = as_answer(Answer(text="x", usage=Usage(prompt=count)), (), 1.0)
        assert answer.usage is None and "tokens left out" in answer.trace["left_out"][0]

    @pytest.mark.parametrize("result", [None, 17, {}, {"text": 3}, {"answer": "x"}, b"x"])
    def test_no_text_no_answer(self, result):
        assert as_answer(result, (), 1.0).kind == "malformed"


TEXTS = ("", "x", "search", "graph__search", "{", "\ud800")
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(TEXTS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(TEXTS), inner, max_size=3),
    max_leaves=10,
)
names = st.sampled_from(["text", "cost_usd", "usage", "tool_calls", "trace", "prompt_tokens", "model", "x"])
calls = st.lists(
    st.dictionaries(st.sampled_from(["name", "tool", "server", "function", "args", "error"]), anything, max_size=4),
    max_size=2,
)


@pytest.mark.slow
@given(st.dictionaries(names, anything | calls, max_size=6))
def test_whatever_comes_is_an_answer_or_a_failure(report):
    answer = as_answer(report, (GRAPH,), 1.0)
    if isinstance(answer, Failure):
        return
    assert answer.cost_usd is None or answer.cost_usd >= 0
    assert answer.usage is None or min(answer.usage.prompt, answer.usage.completion) >= 0


class TestInARun:
    @pytest.mark.slow
    async def test_its_report_can_be_shown(self, run_suite, tmp_path, store):
        """Whatever is in a trace, or missing in it."""
        (tmp_path / "odd.py").write_text(
            "def lone(*_):\n    return {'text': 'x', 'mood': 'good', 'left_out': 7}\n"
            "def liar(*_):\n    return {'text': 'x', 'cost_usd': -1, 'tool_calls': 5}\n"
        )
        run = await run_suite(targets=["python:odd.py:lone", "python:odd.py:liar"], cases=CASES)
        export(run, tmp_path / "run.html")
        for trial in run.trials():
            assert _run(["show", "--trial", trial.trial_id, "--store", store.address]) == 0

    @pytest.mark.slow
    async def test_a_function_says_what_it_cost(self, run_suite, tmp_path, capsys):
        (tmp_path / "dear.py").write_text(
            "def query(user_query, system_prompt, mcp_servers):\n"
            "    calls = [{'name': 'lookup', 'args': {'topic': 'code'}}] if mcp_servers else []\n"
            "    return {'text': '4711', 'cost_usd': 0.5, 'prompt_tokens': 9, 'completion_tokens': 1,\n"
            "            'tool_calls': calls}\n"
        )
        run = await run_suite(
            targets=["python:dear:query"],
            mcp_servers={"facts": facts()},
            conditions=conditions(require_tool_use=True),
            cases=CASES,
        )
        assert [(arm.cost_usd, arm.prompt_tokens) for arm in run.arms] == [(0.5, 9), (0.5, 9)]
        tools = run.arms[1].tools
        assert (tools.used, tools.marked, tools.tools) == (1, 0, {"facts.lookup": (1, 0)})

    async def test_who_does_not_say_what_it_cost_is_not_free(self, run_suite, capsys, tmp_path):
        (tmp_path / "liar.py").write_text("def query(*_):\n    return {'text': 'x', 'cost_usd': -3}\n")
        command = {"id": "echo", "target": "command", "options": {"command": ["echo", "hello"]}}
        run = await run_suite(targets=[command, "python:liar:query"], cases=CASES)
        assert [arm.cost_usd for arm in run.arms] == [None, None]
        assert _run(["show", "--store", run.store.address]) == 0
        shown = " ".join(capsys.readouterr().out.split())
        assert "echo, python:liar:query does not report its cost" in shown and "add the price" not in shown
        trial = next(trial for trial in run.trials() if trial.target != "echo")
        assert _run(["show", "--trial", trial.trial_id, "--store", run.store.address]) == 0
        assert "note cost_usd left out: -3 is not a cost in dollars" in " ".join(capsys.readouterr().out.split())

    async def test_what_costs_nothing_can_say_so_in_the_suite(self, run_suite):
        command = {"id": "echo", "target": "command", "options": {"command": ["echo", "hello"]}}
        free = {"echo": {"input": 0, "output": 0}}
        run = await run_suite(targets=[command], cases=CASES, prices=free, budget_usd=1)
        assert run.arms[0].cost_usd == 0 and run.status == "completed"

    def test_a_budget_needs_a_price_where_nobody_would_tell(self, write_suite):
        command = {"id": "echo", "target": "command", "options": {"command": ["echo", "hello"]}}
        with pytest.raises(FairtrialError, match=r"price of echo.*0 if it is free"):
            pipeline.load(write_suite(targets=[command], budget_usd=1))

    async def test_tokens_of_a_program_have_the_price_of_the_suite(self, run_suite, tmp_path):
        report = {"text": "4711", "prompt_tokens": 1000, "completion_tokens": 100}
        (tmp_path / "agent.py").write_text(f"print({json.dumps(report)!r})")
        options = {"command": [sys.executable, "agent.py"], "output": "json"}
        run = await run_suite(
            targets=[{"id": "mine", "target": "command", "options": options}],
            prices={"mine": {"input": 1000, "output": 10_000}},
            cases=CASES,
        )
        assert run.arms[0].cost_usd == pytest.approx(2.0)

    async def test_what_a_program_may_print(self, run_suite, tmp_path):
        (tmp_path / "agent.py").write_text(
            "import os\n"
            "print({'nan': '{\"text\": \"4711\", \"cost_usd\": NaN}', 'list': '[]', 'number': '{\"text\": 4}'}"
            "[os.environ['FAIRTRIAL_CASE_ID']])"
        )
        options = {"command": [sys.executable, "agent.py"], "output": "json"}
        cases = [{"id": name, "input": "x", "expected": "4711"} for name in ("nan", "list", "number")]
        run = await run_suite(targets=[{"target": "command", "options": options}], cases=cases)
        nan, *others = run.trials()
        assert nan.answer == "4711" and nan.cost_usd is None and "nan is not a cost" in nan.trace["left_out"][0]
        assert all("a JSON object with a string `text`" in trial.failure_message for trial in others)


class TestEvents:
    """What happened, in its order; what makes no sense is left out, and said."""

    LIST = (
        {"type": "message", "text": "Let me look.", "at": 0.5},
        {"type": "call", "id": "1", "tool": "graph__search", "arguments": {"text": "Paris"}},
        {"type": "call", "id": "2", "tool": "bash", "arguments": {"command": "rm -f x"}},
        {"type": "result", "call": "1", "text": "3 nodes", "ms": 120},
        {"type": "result", "call": "2", "text": "not allowed", "rejected": True},
        {"type": "limit", "kind": "turns", "limit": 20},
    )

    def test_calls_and_messages_follow_from_them(self):
        answer = as_answer({"text": "x", "events": list(self.LIST)}, (GRAPH,), 1.0)
        searched, removed = answer.trace["tool_calls"]
        assert (searched["server"], searched["tool"], searched["result"]) == ("graph", "search", "3 nodes")
        assert (removed["rejected"], removed["error"], removed["server"]) == (True, True, None)
        assert answer.trace["messages"] == [{"role": "assistant", "text": "Let me look."}]
        assert [event["type"] for event in answer.trace["events"]] == [event["type"] for event in self.LIST]
        assert "left_out" not in answer.trace
        assert tool_use(answer.trace, ["graph"]).tools == {"graph.search": (1, 0)}

    @pytest.mark.parametrize(
        ("event", "reason"),
        [
            ({"type": "dream", "text": "x"}, "event 7 left out: "),
            ({"text": "x"}, "event 7 left out: "),
            ("lookup", "event 7 left out: "),
            ({"type": "message", "text": 5}, "event 7 left out: "),
            ({"type": "limit", "kind": "patience"}, "event 7 left out: "),
            ({"type": "call", "id": "1", "tool": "t"}, "there was a call `1` before"),
            ({"type": "result", "call": "9"}, "no call `9` waits for a result"),
            ({"type": "result", "call": "1"}, "no call `1` waits for a result"),
        ],
    )
    def test_what_makes_no_sense_is_left_out(self, event, reason):
        answer = as_answer({"text": "x", "events": [*self.LIST, event]}, (GRAPH,), 1.0)
        assert len(answer.trace["events"]) == len(self.LIST) and len(answer.trace["tool_calls"]) == 2
        (note,) = answer.trace["left_out"]
        assert reason in note

    def test_they_come_before_a_list_of_calls(self):
        answer = as_answer({"text": "x", "events": list(self.LIST), "tool_calls": ["other"]}, (GRAPH,), 1.0)
        assert [call["tool"] for call in answer.trace["tool_calls"]] == ["search", "bash"]
        assert answer.trace["left_out"] == ["tool_calls left out: the events have the calls"]

    @pytest.mark.parametrize("events", ["many", {"type": "message"}, [], ["none"]])
    def test_without_any_that_can_be_read_the_calls_count(self, events):
        answer = as_answer({"text": "x", "events": events, "tool_calls": ["search"]}, (GRAPH,), 1.0)
        assert [call["tool"] for call in answer.trace["tool_calls"]] == ["search"]
        assert ("left_out" in answer.trace) == bool(events)

    def test_a_very_long_result_is_shortened(self):
        events = [self.LIST[1], {"type": "result", "call": "1", "text": "word " * 9000}]
        answer = as_answer({"text": "x", "events": events}, (GRAPH,), 1.0)
        assert answer.trace["tool_calls"][0]["result"].endswith("(45000 characters)")

    @pytest.mark.slow
    @pytest.mark.parametrize("kind", ["python", "command"])
    async def test_they_are_stored_for_functions_and_programs(self, run_suite, tmp_path, kind):
        report = {"text": "4711", "events": list(self.LIST)}
        (tmp_path / "mine.py").write_text(
            f"import json\ndef query(_):\n    return {report!r}\n"
            "if __name__ == '__main__':\n    print(json.dumps(query('')))\n"
        )
        command = {"target": "command", "options": {"command": [sys.executable, "mine.py"], "output": "json"}}
        case = {**CASES[0], "scorer": {"type": "tool_calls", "forbidden": ["bash"]}}
        run = await run_suite(targets=["python:mine.py:query" if kind == "python" else command], cases=[case])
        (trial,) = run.trials()
        assert trial.score == 0 and [event["type"] for event in trial.trace["events"]][-1] == "limit"
