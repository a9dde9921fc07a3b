"""A stdio MCP server for tests: it knows facts, and how to misbehave. Behaviour by the environment variable BEHAVE.

Tests start it a hundred times: it is written out in messages, because the protocol's library takes two seconds to import.
"""

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

UNTIL = os.environ.get("BEHAVE_UNTIL")  # a file with which it begins to behave well
BEHAVE = "" if UNTIL and Path(UNTIL).exists() else os.environ.get("BEHAVE", "")


def lookup(topic: str) -> str:
    """What is known about a topic."""
    if "LEAVES" in os.environ:  # a file that shows that it was asked
        Path(os.environ["LEAVES"]).write_text("4711")
    if BEHAVE == "error":
        raise ValueError("the shelf is empty")
    if BEHAVE == "die":
        os._exit(3)
    if BEHAVE == "hang":
        if "HANGS" in os.environ:  # a file that tells a test when it does
            Path(os.environ["HANGS"]).touch()
        time.sleep(3600)
    if BEHAVE == "flood":
        return "x" * 4_000_000
    return f"The {topic} is 4711."


def look_around() -> str:
    """Where the server is, and what it sees of the environment."""
    return f"{os.getcwd()} {sorted(os.environ)}"


def get_dotted() -> str:
    """One of two tools whose names differ only in a sign."""
    return "dotted"


def get_plain() -> str:
    """The other one."""
    return "plain"


def paper() -> list[dict[str, Any]]:
    """A text that is no text block, and a link."""
    text = {"uri": "memo://1", "text": "the memo says 4711", "mimeType": "text/plain"}
    return [{"type": "resource", "resource": text}, {"type": "resource_link", "name": "m", "uri": "memo://2"}]


def add(a: int, b: int) -> str:
    """Add two numbers."""
    return str(a + b)


TOOLS: dict[str, Callable[..., Any]] = {
    "lookup": lookup,
    "look_around": look_around,
    "get.item": get_dotted,
    "get_item": get_plain,
    "paper": paper,
    "add": add,
}
TYPES = {int: "integer", str: "string"}


def describe(name: str) -> dict[str, Any]:
    arguments = {key: kind for key, kind in TOOLS[name].__annotations__.items() if key != "return"}
    properties = {key: {"type": TYPES[kind]} for key, kind in arguments.items()}
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return {"name": name, "description": TOOLS[name].__doc__, "inputSchema": schema}


def call(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    try:
        found = TOOLS[name](**arguments)
    except Exception as error:
        text = f"Error executing tool {name}: {error}"
        return {"content": [{"type": "text", "text": text}], "isError": True}
    return {"content": found if isinstance(found, list) else [{"type": "text", "text": found}]}


def answer(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    if method == "initialize":
        info = {"name": "facts", "version": "1.2.3"}
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": info}
    if method == "tools/list":
        return {"tools": [describe(name) for name in TOOLS]}
    if method == "tools/call":
        return call(params["name"], params.get("arguments") or {})
    return {} if method == "ping" else None


if __name__ == "__main__":
    if BEHAVE == "no start":
        sys.stderr.write("cannot find the shelf\n")
        sys.exit(4)
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message and "method" in message:
            result = answer(message["method"], message.get("params") or {})
            missing = {"error": {"code": -32601, "message": "Method not found"}}
            reply = {"jsonrpc": "2.0", "id": message["id"], **(missing if result is None else {"result": result})}
            print(json.dumps(reply), flush=True)
