"""What the events of an agent's program mean, as the real programs print them; a script prints them here."""

import json
import shlex
from pathlib import Path

import pytest

from fairtrial.agents.program import version_of
from fairtrial.core.answer import Answer, Failure, Request, Usage
from fairtrial.core.experiment import McpServer, TargetSpec
from fairtrial.engine.targets import build_target

AGENTS = ("codex", "gemini_cli", "opencode")
GRAPH = McpServer(name="graph", transport="http", url="http://127.0.0.1:9/mcp")

CODEX = [
    {"type": "thread.started", "thread_id": "t1"},
    {"type": "item.completed", "item": {"id": "item_0", "type": "error", "message": "Model metadata not found."}},
    {"type": "turn.started"},
    {"type": "item.completed", "item": {"id": "item_1", "type": "reasoning", "text": "hm"}},
    {
        "type": "item.started",
        "item": {"id": "item_2", "type": "mcp_tool_call", "server": "graph", "tool": "search", "arguments": {"q": 1}},
    },
    {
        "type": "item.completed",
        "item": {
            "id": "item_2",
            "type": "mcp_tool_call",
            "server": "graph",
            "tool": "search",
            "arguments": {"q": 1},
            "result": {"content": [{"type": "text", "text": "found"}], "structured_content": None},
            "error": None,
            "status": "completed",
        },
    },
    {
        "type": "item.completed",
        "item": {
            "id": "item_3",
            "type": "command_execution",
            "command": "ls",
            "aggregated_output": "no",
            "exit_code": 2,
        },
    },
    {"type": "item.completed", "item": {"id": "item_4", "type": "agent_message", "text": "Paris"}},
]
CODEX_END = {
    "type": "turn.completed",
    "usage": {"input_tokens": 200, "cached_input_tokens": 80, "output_tokens": 14, "reasoning_output_tokens": 3},
}
GEMINI = [
    {"type": "init", "session_id": "s1", "model": "m1"},
    {"type": "message", "role": "user", "content": "q"},
    {"type": "tool_use", "tool_name": "mcp_graph_search", "tool_id": "1", "parameters": {"q": 1}},
    {"type": "tool_result", "tool_id": "1", "status": "success", "output": "found"},
    {"type": "tool_use", "tool_name": "run_shell_command", "tool_id": "2", "parameters": {"command": "ls"}},
    {"type": "tool_result", "tool_id": "2", "status": "error", "error": {"message": "no"}},
    {"type": "message", "role": "assistant", "content": "Par", "delta": True},
    {"type": "message", "role": "assistant", "content": "is", "delta": True},
]
GEMINI_END = {
    "type": "result",
    "status": "success",
    "stats": {"total_tokens": 217, "input_tokens": 200, "output_tokens": 14, "cached": 80, "models": {"m-1": {}}},
}
STEP = {"input": 60, "output": 7, "reasoning": 0, "cache": {"read": 40, "write": 0}}


def part(kind: str, **fields) -> dict:
    return {"type": kind, "sessionID": "s1", "part": {"type": kind, **fields}}


def opencode_call(name: str, tool: str, **state) -> dict:
    return part("tool_use", tool=tool, callID=name, state={"time": {"start": 5, "end": 12}, **state})


OPENCODE = [
    part("step_start"),
    opencode_call("1", "graph_search", status="completed", input={"q": 1}, output="found"),
    opencode_call("2", "bash", status="error", input={"command": "ls"}, error="no"),
    part("step_finish", reason="tool-calls", tokens=STEP, cost=0),
    part("text", text="Paris"),
]
OPENCODE_END = part("step_finish", reason="stop", tokens={**STEP, "reasoning": 3}, cost=0)
EVENTS = {"codex": CODEX, "gemini_cli": GEMINI, "opencode": OPENCODE}
ENDS = {"codex": CODEX_END, "gemini_cli": GEMINI_END, "opencode": OPENCODE_END}


def program(folder: Path, events: list, code: int = 0, errors: str = "", more: str = "") -> Path:
    """A script that prints these events."""
    (folder / "events").write_text("a line that is no event\n" + "".join(json.dumps(event) + "\n" for event in events))
    path = folder / "agent"
    lines = [
        '[ "$1" = --version ] && { echo agent-cli 9.9.9; exit; }',
        '[ "$1" = debug ] && exit',
        f"cat {shlex.quote(str(folder / 'events'))}",
    ]
    lines += [f"echo {shlex.quote(errors)} >&2", more, f"exit {code}"]
    path.write_text("#!/bin/sh\n" + "\n".join(lines) + "\n")
    path.chmod(0o755)
    return path


async def ask(kind: str, program: Path, allowance=None, **options) -> Answer | Failure:
    spec = TargetSpec(
        id="a",
        kind=kind,
        provider=kind,
        model="m1",
        base_url="http://127.0.0.1:9/v1",
        api_key="sk-secret-000001",
        api="openai_api" if kind == "opencode" else "",
        options={"program": str(program), **options},
    )
    target = build_target(spec, program.parent)
    await target.open(1)
    try:
        assert list(target.versions().values()) == ["9.9.9"]
        return await target.ask(Request(trial_id="t", case_id="c", input="q", mcp=(GRAPH,), allowance=allowance))
    finally:
        await target.close()


@pytest.mark.parametrize("kind", AGENTS)
class TestEveryAgent:
    async def test_answer_trace_and_tokens(self, kind, tmp_path):
        answer = await ask(kind, program(tmp_path, [*EVENTS[kind], ENDS[kind]]))
        assert isinstance(answer, Answer), answer
        assert (answer.text, answer.finish_reason, answer.cost_usd) == ("Paris", "stop", None)
        found, refused = answer.trace["tool_calls"]
        assert (found["server"], found["tool"], found["arguments"], found["result"]) == (
            "graph",
            "search",
            {"q": 1},
            "found",
        )
        assert (refused["server"], refused["result"], refused["error"]) == (None, "no", True)
        assert answer.trace["session_id"] in ("t1", "s1") and answer.trace["servers"] == {"graph": "not observed"}
        assert answer.usage == Usage(prompt=200, completion=14 if kind == "codex" else 17, cache_read=80, reasoning=3)

    async def test_an_end_without_a_word_is_a_failure_that_keeps_what_was_done(self, kind, tmp_path):
        """Whatever the exit code: Gemini CLI has 0 also where it was stopped."""
        failure = await ask(kind, program(tmp_path, EVENTS[kind][:-1], errors="out of luck"))
        assert isinstance(failure, Failure) and failure.kind == "crashed", failure
        assert "out of luck" in failure.message and len(failure.trace["tool_calls"]) == 2
        assert failure.usage is not None or failure.maybe_billed  # what it cost is unknown, and not 0

    async def test_what_another_version_may_tell(self, kind, tmp_path):
        odd = (
            {"type": "item.completed", "item": ["x"]},
            {"type": "tool_use", "part": ["x"]},
            {"type": "result", "stats": ["x"]},
        )
        failure = await ask(kind, program(tmp_path, [*EVENTS[kind], *odd]))
        assert failure.kind == "malformed" and len(failure.trace["tool_calls"]) >= 2

    async def test_what_is_missing_is_said_before_the_run(self, kind, tmp_path):
        target = type(build_target(TargetSpec(id="a", kind=kind, provider=kind), tmp_path))
        options = target.options_type(program="./nowhere/agent")
        problems = list(target.check(TargetSpec(id="a", kind=kind, provider=kind), options, tmp_path))
        assert problems[0] == "there is no program `./nowhere/agent`"
        assert kind == "opencode" or any("no credentials: set" in problem for problem in problems)


@pytest.mark.parametrize(
    ("kind", "events", "code", "failed", "retryable"),
    [
        (
            "codex",
            [{"type": "turn.failed", "error": {"message": "unexpected status 401 Unauthorized: no"}}],
            1,
            "auth",
            False,
        ),
        (
            "codex",
            [{"type": "turn.failed", "error": {"message": "last status: 429 Too Many Requests"}}],
            1,
            "rate_limited",
            True,
        ),
        ("codex", [{"type": "turn.failed", "error": {"message": "it broke"}}], 1, "crashed", False),
        (
            "gemini_cli",
            [{"type": "result", "status": "error", "error": {"message": 'x {"code":401}'}}],
            145,
            "auth",
            False,
        ),
        ("gemini_cli", [{"type": "result", "status": "error", "error": {"message": "no"}}], 173, "rate_limited", True),
        ("gemini_cli", [{"type": "result", "status": "error", "error": {"message": "no"}}], 244, "server", True),
        ("opencode", [{"type": "error", "error": {"data": {"message": "no", "statusCode": 500}}}], 1, "server", True),
        ("opencode", [{"type": "error", "error": {"name": "Unknown"}}], 1, "crashed", False),
        ("opencode", [part("step_finish", reason="unknown", tokens={})], 0, "stream", True),
    ],
)
async def test_errors_have_their_kind(kind, events, code, failed, retryable, tmp_path):
    failure = await ask(kind, program(tmp_path, events, code))
    assert (failure.kind, failure.retryable) == (failed, retryable), failure


async def test_an_endless_agent_is_stopped(tmp_path):
    """Codex has no limit of its own."""
    calls = [
        {"type": f"item.{how}", "item": {"id": f"i{n}", "type": "mcp_tool_call", "server": "graph", "tool": "search"}}
        for n in range(3)
        for how in ("started", "completed")
    ]
    said = {"type": "item.completed", "item": {"id": "m", "type": "agent_message", "text": "Looking."}}
    answer = await ask("codex", program(tmp_path, [said, *calls], more="sleep 3600"), max_turns=2)
    assert (answer.limit, answer.limit_value, answer.text) == ("turns", 2, "Looking.")
    assert len(answer.trace["tool_calls"]) == 2 and answer.trace["events"][-1]["type"] == "limit"


async def test_gemini_cli_says_that_it_had_no_turns_left(tmp_path):
    said = [{"type": "init"}, {"type": "message", "role": "assistant", "content": "Looking."}]
    answer = await ask("gemini_cli", program(tmp_path, said, 53), max_turns=7)
    assert (answer.limit, answer.limit_value, answer.text) == ("turns", 7, "Looking.")
    assert answer.trace["events"][-1]["kind"] == "turns"


@pytest.mark.parametrize(("calls", "kind"), [(0, "Failure"), (1, "Answer")])
async def test_whoever_fills_the_context_of_its_model_has_reached_a_limit(tmp_path, calls, kind):
    """A question that is too long by itself is a failure; what an agent read on top of it is its own doing."""
    read = {"type": "tool_use", "part": {"tool": "read", "callID": "1", "state": {"status": "completed"}}}
    data = {"message": "This model's maximum context length is 8192 tokens", "statusCode": 400}
    result = await ask("opencode", program(tmp_path, [read] * calls + [{"type": "error", "error": {"data": data}}], 1))
    assert type(result).__name__ == kind, result
    assert (result.limit if calls else result.kind) == ("tokens" if calls else "context")


async def test_opencode_is_stopped_before_it_costs_too_much(tmp_path):
    class Poor:
        usd = 0.01

        def bears(self, spent, prompt_bytes, completion_tokens):
            return spent.prompt < 100

    answer = await ask("opencode", program(tmp_path, OPENCODE, more="sleep 3600"), allowance=Poor())
    assert (answer.limit, answer.limit_value, answer.usage.prompt) == ("money", 0.01, 100)


class TestSettings:
    """What is written for an agent: nothing of it on the command line, where everybody could read it."""

    async def seen(self, kind: str, tmp_path, **options) -> str:
        more = f'cat > /dev/null; echo "$@" > {tmp_path}/arguments; env > {tmp_path}/env; cp -r "$HOME" {tmp_path}/home'
        await ask(kind, program(tmp_path, [], more=more), **options)
        assert "sk-secret" not in (tmp_path / "arguments").read_text()
        name = {"codex": "config.toml", "gemini_cli": ".gemini/settings.json", "opencode": "opencode.json"}[kind]
        return (tmp_path / "home" / name).read_text()

    async def test_codex(self, tmp_path):
        import tomllib

        settings = tomllib.loads(await self.seen("codex", tmp_path, settings={"model_verbosity": "low"}))
        assert settings["mcp_servers"]["graph"]["required"] and settings["model_verbosity"] == "low"
        assert settings["model_providers"]["fairtrial"]["base_url"] == "http://127.0.0.1:9/v1"
        assert "--disable shell_tool" in (tmp_path / "arguments").read_text()

    async def test_gemini(self, tmp_path):
        settings = json.loads(
            await self.seen("gemini_cli", tmp_path, tools=["read_file"], settings={"general": {"vimMode": True}})
        )
        assert settings["tools"]["core"] == ["read_file", "mcp_graph_*"]
        assert settings["general"]["vimMode"] and settings["general"]["maxAttempts"] == 1

    async def test_opencode(self, tmp_path):
        settings = json.loads(await self.seen("opencode", tmp_path, tools=["bash"], max_turns=3))
        agent = settings["agent"]["trial"]
        assert agent["permission"] == {"*": "deny", "bash": "allow", "graph_*": "allow"} and agent["steps"] == 3
        assert "FAIRTRIAL_MODEL_KEY=sk-secret-000001" in (tmp_path / "env").read_text()
        assert "sk-secret" not in json.dumps(settings)

    async def test_tools_that_codex_does_not_have(self, tmp_path):
        from fairtrial.targets.codex import Codex

        spec = TargetSpec(id="a", kind="codex", provider="codex", model="m", api_key="k")
        problems = list(Codex.check(spec, Codex.options_type(program="sh", tools=["bash"]), tmp_path))
        assert problems == [
            "Codex has no tool `bash`; it has shell, view_image, image_generation, multi_agent, goals, apply_patch, web_search"
        ]


@pytest.mark.parametrize("package", ["agent", "@vendor/agent"])
async def test_the_version_of_a_package_is_read_without_a_start(package, tmp_path):
    folder = tmp_path / "node_modules" / package
    (folder / "bin").mkdir(parents=True)
    real = program(folder / "bin", [])
    assert await version_of(str(real)) == "9.9.9"
    (folder / "package.json").write_text('{"version": "1.2.3-beta.1"}')
    (folder / "bin/package.json").write_text('{"type": "module"}')
    (tmp_path / "linked").symlink_to(real)
    assert await version_of(str(tmp_path / "linked")) == "1.2.3-beta.1"
