"""What agents by name tell of a session, from the real programs: the order, what was rejected, subagents, limits."""

import sys

import pytest

from docs.names import named_models
from fairtrial.core.events import CallEvent, LimitEvent, MessageEvent, NoteEvent, ResultEvent, read_events
from fairtrial.core.trace import tool_calls
from tests.programs import needed
from tests.scripted import Say, look_up
from tests.targets.test_agents import FACTS

AGENTS = {
    "claude-code": "claude-code:claude-test-1",
    "codex": "codex:m1",
    "gemini-cli": "gemini-cli:m1",
    "opencode": "opencode:openai:m1",
    "tool-agent": "tool-agent:openai:m1",
}
SHELLS = {"claude-code": "Bash", "codex": "exec_command", "gemini-cli": "run_shell_command", "opencode": "bash"}
# How each is told that it may run `ls`, and not `rm`; Codex thinks so anyway.
FORBIDDING = {
    "claude-code": {"tools": ["Bash"], "sdk": {"disallowed_tools": ["Bash(rm:*)"]}},
    "codex": {"tools": ["shell"]},
    "gemini-cli": {"tools": ["run_shell_command(ls)"]},
    "opencode": {
        "tools": ["bash"],
        "settings": {"agent": {"trial": {"permission": {"bash": {"*": "allow", "rm *": "deny"}}}}},
    },
}
SHOP = {
    "mcp_servers": {"facts": {"command": sys.executable, "args": [FACTS], "env": {"BEHAVE": ""}}},
    "conditions": {"with-facts": {"mcp": ["facts"]}},
}

pytestmark = pytest.mark.slow


@pytest.fixture
def session(run_suite, model, tmp_path, monkeypatch):
    """Run one case with an agent, whose model follows a script; returns the trial, its events and the server."""
    monkeypatch.setenv("FAIRTRIAL_CACHE_DIR", str(tmp_path / "cache"))

    async def ask(name, script, *, target="", case=None, more=None, **options):
        served = await model(script)
        if name not in ("claude-code", "tool-agent"):
            options["program"] = needed(name)
        asked = {"expected": "done", "scorer": "contains", **(case or {"input": "Do it."})}
        targets = [{"id": "t", "target": target or AGENTS[name], "options": options}]
        run = await run_suite(targets=targets, cases=[{"id": "a", **asked}], retry={"attempts": 1}, **(more or {}))
        (trial,) = run.trials()
        return trial, read_events(trial.trace["events"]), served

    return ask


@pytest.mark.parametrize("name", AGENTS)
async def test_a_session_is_told_in_its_order(session, name):
    trial, events, _ = await session(name, look_up, more=SHOP, case={"input": "What is the code?"})
    assert "4711" in trial.answer
    told = [event for event in events if isinstance(event, MessageEvent | CallEvent | ResultEvent)]
    assert [type(event) for event in told] == [MessageEvent, CallEvent, ResultEvent, MessageEvent]
    first, call, result, last = told
    assert (first.text, last.text) == ("Let me look.", trial.answer)
    assert (call.server, call.tool, call.arguments, result.call) == ("facts", "lookup", {"topic": "code"}, call.id)
    times = [event.at for event in told]
    assert times == sorted(times) and times[0] >= 0


@pytest.mark.parametrize("name", FORBIDDING)
async def test_a_call_that_was_not_allowed_is_rejected(session, name):
    """It is in the list, at its place, with the reason; the next one is carried out."""

    def script(turn):
        shell = next(tool for tool in turn.tools if tool == SHELLS[name])
        command = "command" if name != "codex" else "cmd"
        for place, (text, line) in enumerate((("I remove it.", "rm -f x.txt"), ("I look.", "ls"))):
            if len(turn.results) == place:
                return Say(text, ((shell, {command: line, "description": "x"}),))
        return Say("done")

    trial, events, served = await session(name, script, **FORBIDDING[name])
    assert trial.answer == "done", trial.failure_message
    removing, looking = tool_calls(events)
    assert removing.rejected and removing.error and "rm -f x.txt" in removing.arguments["command"]
    assert any(word in removing.result for word in ("reject", "denied", "prevents"))
    assert not (looking.rejected or looking.error) and "ls" in looking.arguments["command"]
    story = [event.text if isinstance(event, MessageEvent) else type(event).__name__ for event in events]
    assert story == ["I remove it.", "CallEvent", "ResultEvent", "I look.", "CallEvent", "ResultEvent", "done"]
    assert len(served.bodies) == 3 and trial.trace["turns"] == 3


async def test_what_codex_rejects_beside_other_calls(session):
    def script(turn):
        if turn.results:
            return Say("done")
        return Say("", tuple(("exec_command", {"cmd": line}) for line in ("echo 1", "rm -rf y", "echo 2")))

    _, events, _ = await session("codex", script, tools=["shell"])
    made = [(call.rejected, call.arguments["command"].split(" -lc ")[1]) for call in tool_calls(events)]
    # Calls of one turn are carried out at the same time, in no certain order.
    assert sorted(made) == [(False, "'echo 1'"), (False, "'echo 2'"), (True, "'rm -rf y'")]


async def test_where_codex_shortens_its_context(session):
    said = []

    def script(turn):
        said.append(turn)
        looks = Say("I look.", (("exec_command", {"cmd": "ls"}),))
        return {1: looks, 2: Say("A summary."), 3: Say("done")}[len(said)]

    settings = {"model_auto_compact_token_limit": 90}  # of the 107 that every reply of the script counts
    trial, events, _ = await session("codex", script, tools=["shell"], settings=settings)
    assert trial.answer == "done"
    story = [event.text if isinstance(event, MessageEvent | NoteEvent) else "" for event in events]
    assert story == ["I look.", "", "", "Codex shortened its context", "done"]


@pytest.mark.parametrize("name", AGENTS)
@pytest.mark.parametrize("most", [1, 2])
async def test_max_turns_is_how_often_the_model_is_asked(session, name, most):
    """An agent that never ends is stopped after so many replies; its calls are kept, and the limit is in the list."""
    asked = []

    def script(turn):
        asked.append(turn)
        tool = next(tool for tool in turn.tools if tool.endswith("lookup"))
        return Say("Again.", ((tool, {"topic": f"{len(asked)}"}),))

    limit = {"max_steps" if name == "tool-agent" else "max_turns": most}
    trial, events, _ = await session(name, script, more=SHOP, **limit)
    # Codex and opencode go on until they are stopped, which takes as long as the machine is busy: without a stop they
    # never end. What reached the server until then is recorded.
    late = name in ("codex", "opencode")
    made = len(tool_calls(events))
    assert trial.failure_message is None and (made >= most if late else made == most)
    assert (trial.limit, trial.limit_value) == ("turns", most)
    (reached,) = [event for event in events if isinstance(event, LimitEvent)]
    assert (reached.kind, reached.limit) == ("turns", most)
    assert made <= len(asked) if late else len(asked) == most


@pytest.mark.parametrize("name", AGENTS)
async def test_an_answer_in_the_last_turn_counts(session, name):
    trial, _, served = await session(
        name, look_up, more=SHOP, case={"input": "What is the code?"},
        **{"max_steps" if name == "tool-agent" else "max_turns": 2},
    )  # fmt: skip
    assert trial.failure_message is None and "4711" in trial.answer and len(served.bodies) == 2


async def test_several_calls_in_one_turn_are_one_turn(session):
    def script(turn):
        if turn.results:
            return Say("done")
        tool = next(tool for tool in turn.tools if tool.endswith("lookup"))
        return Say("", ((tool, {"topic": "a"}), (tool, {"topic": "b"})))

    for name in ("claude-code", "opencode"):
        trial, events, _ = await session(name, script, more=SHOP, max_turns=2)
        assert trial.answer == "done" and len(tool_calls(events)) == 2 and trial.trace["turns"] in (2, 3)


class TestSubagents:
    @staticmethod
    def script(turn):
        if "Count the files" in turn.question and "Do it" not in turn.question:  # the subagent
            shell = next(tool for tool in turn.tools if tool.lower() == "bash")
            counting = {"command": "ls", "description": "count"}
            return Say("I counted: 0.") if turn.results else Say("I count.", ((shell, counting),))
        if len(turn.results) < turn.question.count("Do it"):
            task = {"description": "count", "prompt": "Count the files."}
            if "task" in turn.tools:
                return Say("I delegate.", (("task", {**task, "subagent_type": "general"}),))
            asked = {**task, "subagent_type": "general-purpose", "run_in_background": False}
            return Say("I delegate.", (("Agent", asked),))
        return Say("done")

    @pytest.mark.parametrize(
        ("name", "options", "kind"),
        [
            ("claude-code", {"tools": ["Task", "Bash"]}, "general-purpose"),
            ("opencode", {"tools": ["task", "bash"]}, "general"),
        ],
    )
    async def test_what_it_does_is_within_its_call(self, session, name, options, kind):
        trial, events, served = await session(name, self.script, **options)
        assert trial.answer == "done"
        calls = {event.tool.lower(): event for event in events if isinstance(event, CallEvent)}
        outer, inner = calls["agent" if name == "claude-code" else "task"], calls["bash"]
        assert (outer.within, outer.agent) == ("", "") and (inner.within, inner.agent) == (outer.id, kind)
        (result,) = [event for event in events if isinstance(event, ResultEvent) and event.call == inner.id]
        assert result.within == outer.id
        own = [event.text for event in events if isinstance(event, MessageEvent) and not event.within]
        assert own == ["I delegate.", "done"]
        # Four replies, two of them to the subagent: each is counted, and once.
        prompt = 140 if name == "claude-code" else 100
        assert len(served.bodies) == 4 and trial.trace["turns"] == 2
        assert (trial.prompt_tokens, trial.completion_tokens, trial.cache_read_tokens) == (4 * prompt, 4 * 7, 4 * 40)

    async def test_where_opencode_keeps_nothing_the_tokens_are_unknown(self, session, monkeypatch):
        from fairtrial.targets import _opencode_sessions

        monkeypatch.setattr(_opencode_sessions, "_PLACE", ".local/share/opencode/elsewhere.db")
        trial, events, _ = await session("opencode", self.script, tools=["task", "bash"])
        assert trial.answer == "done" and trial.prompt_tokens is None and trial.cost_usd is None
        assert "subagent" in next(event.text for event in events if isinstance(event, NoteEvent))

    async def test_the_turns_of_a_conversation_are_counted_once(self, session):
        """Claude Code's own sums go on from turn to turn."""
        priced = named_models()["claude-small"].target.replace("anthropic:", "claude-code:")
        one, _, _ = await session("claude-code", lambda turn: Say("done"), target=priced)
        case = {"turns": ["Do it.", "And again: Do it.", "Do it."]}
        trial, _, served = await session("claude-code", lambda turn: Say("done"), target=priced, case=case)
        assert one.cost_usd > 0 and trial.cost_usd == pytest.approx(3 * one.cost_usd) and len(served.bodies) == 3
        assert (trial.prompt_tokens, trial.completion_tokens) == (3 * 140, 3 * 7)


async def test_a_shortened_context_is_noted():
    """As Claude Code's SDK has it; a context that is long enough is too long for a test."""
    from claude_agent_sdk import SystemMessage

    from fairtrial.agents.record import Record
    from fairtrial.targets._claude_messages import ClaudeMessages

    record = Record([])
    data = {"subtype": "compact_boundary", "compact_metadata": {"trigger": "auto", "pre_tokens": 155_000}}
    ClaudeMessages(record, {}).take(SystemMessage(subtype="compact_boundary", data=data))
    (event,) = record.events()
    assert isinstance(event, NoteEvent) and "shortened its context" in event.text
