"""A stdio MCP server for tests with a state: it counts what is bought, and leaves a mark when it starts."""

import json
import os
import sys
from pathlib import Path

STOCK = {"apple": 3, "pear": 5}
BOUGHT: list[str] = []
VERSION = os.environ.get("SHOP_VERSION", "1")
PIECES = {"type": "integer", "default": 1}
THING = {"type": "string"}
TOOLS = [
    {
        "name": "stock",
        "description": "How many there are.",
        "inputSchema": {"type": "object", "properties": {"thing": THING}, "required": ["thing"]},
        "annotations": {"readOnlyHint": True},
    },
    {
        "name": "buy",
        "description": "Buy some." if VERSION == "1" else "Buy some, at once.",
        "inputSchema": {
            "type": "object",
            "properties": {"thing": THING, "pieces": PIECES, **({} if VERSION == "1" else {"colour": THING})},
            "required": ["thing"],
        },
    },
    {"name": "secret", "description": "Tells a key.", "inputSchema": {"type": "object", "properties": {}}},
    {"name": "large", "description": "Tells a lot.", "inputSchema": {"type": "object", "properties": {}}},
    {
        "name": "where",
        "description": "Where a file is.",
        "inputSchema": {"type": "object", "properties": {"path": THING}},
    },
    *([] if VERSION == "1" else [{"name": "sell", "description": "Sell.", "inputSchema": {"type": "object"}}]),
]


def call(name: str, given: dict) -> dict:
    if name == "stock":
        text = f"{STOCK[given['thing']] - BOUGHT.count(given['thing'])} of {given['thing']}"
    elif name == "buy":
        BOUGHT.extend([given["thing"]] * given.get("pieces", 1))
        text = f"you have {len(BOUGHT)}"
    elif name == "where":
        text = f"{given['path']} is in {Path(given['path']).parent}"
    elif name == "large":
        text = "x" * 2_000_000
    else:
        text = f"the key is {os.environ.get('SHOP_KEY')}"
    return {"content": [{"type": "text", "text": text}]}


if __name__ == "__main__":
    if "SHOP_MARKS" in os.environ:
        Path(os.environ["SHOP_MARKS"], str(os.getpid())).touch()
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        method, params = message["method"], message.get("params") or {}
        info = {"name": "shop", "version": VERSION}
        if method == "initialize":
            started = {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": info}
            reply = {"result": {**started, "instructions": "Ask before you buy."}}
        elif method == "tools/list":
            reply = {"result": {"tools": TOOLS}}
        elif method == "tools/call":
            if "SHOP_CALLS" in os.environ:
                with open(os.environ["SHOP_CALLS"], "a") as file:
                    file.write(f"{params['name']}\n")
            if BOUGHT and "SHOP_REPAIRED" in os.environ and not Path(os.environ["SHOP_REPAIRED"]).exists():
                sys.stdin.readline()  # nothing comes
            reply = {"result": call(params["name"], params.get("arguments") or {})}
        else:
            reply = {"error": {"code": -32601, "message": "Method not found"}}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **reply}), flush=True)
