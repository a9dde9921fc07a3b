"""Runs whose trials did something: of an agent with a real MCP server, and of a program that reports whatever it likes."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from typing import Any

from tests.scripted import Say, Turn

FACTS = {"command": sys.executable, "args": [str(Path(__file__).parents[1] / "servers" / "facts.py")]}
# What agents and servers write is data: nothing of this may do anything, wherever it is shown.
HTML = "<img src=x onerror=alert(1)><script>alert(2)</script>"
ESCAPES = "\x1b[31mred\x1b[0m\x1b]0;title\x07\x9b2J"
BIDI = "allow\u202etxt.exe\u2066deny"


def searching(turn: Turn) -> Say:
    """A model that looks things up; told to be hasty, it forgets the topic first, and adds where nobody asked it to."""
    tools = {name.rpartition("__")[2]: name for name in turn.tools}
    done = len(turn.results)
    if "hasty" in turn.system:
        plan: list[Any] = [
            ("look_around", {}),
            ("lookup", {}),
            ("add", {"a": 4, "b": 7}),
            ("lookup", {"topic": "code"}),
        ]
        first, second = plan[:3], plan
    else:
        first = second = [("look_around", {}), ("lookup", {"topic": "code"})]
    plan = first + second if "Thanks" in turn.question else first  # it sees what it called before
    if done < len(plan):
        name, arguments = plan[done]
        return Say(f"Step {done + 1}.", ((tools[name], arguments),))
    return Say(f"It is {turn.results[-1]}")


def agents(**more: Any) -> dict[str, Any]:
    """A suite of two arms of an agent with a server: one looks up the code, the other fails and says 11."""
    return {
        "name": "agents",
        "targets": [{"id": "m", "target": "tool-agent:openai:m"}],
        "mcp_servers": {"facts": FACTS},
        "conditions": {
            "careful": {"system": "Be careful.", "mcp": ["facts"]},
            "hasty": {"system": "Be hasty.", "mcp": ["facts"]},
        },
        "scorer": "contains",
        "cases": [
            {"id": "code", "input": "What is the code?", "expected": "4711"},
            {"id": "talk", "turns": ["What is the code?", "Thanks. And again?"], "expected": "4711"},
        ],
        **more,
    }


def reporting(folder: Path, events: str, **more: Any) -> dict[str, Any]:
    """A suite of a program that reports these events, as Python code in which `input` is the question."""
    name = f"reporter_{hashlib.sha256(events.encode()).hexdigest()[:12]}"  # a module is imported once
    (folder / f"{name}.py").write_text(
        f"def answer(input):\n    return {{'text': 'done', 'trace': {{'events': {events}}}}}\n"
    )
    cases = [{"id": "one", "input": "Do it.", "expected": "done"}]
    return {"targets": [{"id": "r", "target": f"python:{name}.py:answer"}], "cases": cases, **more}


def hostile() -> list[dict[str, Any]]:
    """A list in which everything is hostile that can be: names, texts, arguments, results, paths, in a subagent too."""
    nasty = f"{HTML} {ESCAPES} {BIDI}"
    return [
        {"type": "message", "text": nasty, "role": "system"},
        {"type": "reasoning", "text": f"{nasty}\n{nasty}"},
        {"type": "call", "id": "1", "tool": nasty, "server": nasty, "arguments": {nasty: [nasty, {"deep": nasty}]}},
        {"type": "call", "id": "2", "tool": "Task", "arguments": nasty * 40, "within": "1", "agent": nasty},
        {"type": "result", "call": "2", "text": nasty * 40, "error": True, "within": "1", "agent": nasty},
        {"type": "result", "call": "1", "text": nasty, "rejected": True},
        {"type": "change", "path": nasty, "how": "added"},
        {"type": "error", "text": nasty, "kind": nasty},
        {"type": "note", "text": nasty},
        {"type": "limit", "kind": "time", "limit": 3.0},
    ]


LONG = (
    "[event for n in range(5000) for event in ("
    "{'type': 'call', 'id': str(n), 'tool': 'read', 'server': 'files', 'arguments': {'path': f'src/{n}.py'}, 'at': n / 10},"
    "{'type': 'result', 'call': str(n), 'text': f'{n} ' * 120, 'error': n == 4321, 'ms': 50.0, 'at': n / 10 + 0.05})]"
)
