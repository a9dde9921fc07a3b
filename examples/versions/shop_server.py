"""A small MCP server of a shop, on stdin and stdout; what it says of its tools is in the file that it is started with.

It is written out in messages, without a library, so that it starts at once. Yours can be written with any.
"""

import json
import sys
from pathlib import Path
from typing import Any

ORDERS = {
    "A-17": "shipped, 42 EUR",
    "A-18": "shipped, 12 EUR",
    "B-20": "in the warehouse, 17 EUR",
    "B-21": "in the warehouse, 180 EUR",
    "C-03": "delivered, 99 EUR",
    "C-04": "delivered, 250 EUR",
}
ARTICLES = {"lamp": "12 in stock", "chair": "sold out", "table": "3 in stock", "carpet": "sold out"}
ARGUMENTS = {"find_article": {"name": "string"}, "find_order": {"number": "string"}}
ARGUMENTS["refund"] = {"number": "string", "amount": "number"}
TEXTS = json.loads(Path(sys.argv[1]).read_text("utf-8"))


def list_tools(params: dict[str, Any]) -> dict[str, Any]:
    """Describe the tools, in the words of the file."""
    tools = []
    for name, arguments in ARGUMENTS.items():
        properties = {argument: {"type": kind} for argument, kind in arguments.items()}
        schema = {"type": "object", "properties": properties, "required": list(arguments)}
        tools.append({"name": name, "description": TEXTS[name], "inputSchema": schema})
    return {"tools": tools}


def call_tool(params: dict[str, Any]) -> dict[str, Any]:
    """Look something up, or pay money back."""
    given = params["arguments"]
    if params["name"] == "refund":
        found: str | None = f"{given['amount']} EUR were paid back"
    else:
        found = ARTICLES.get(given.get("name")) if params["name"] == "find_article" else ORDERS.get(given.get("number"))
    return {"content": [{"type": "text", "text": found or f"nothing is known about {given}"}], "isError": found is None}


def initialize(params: dict[str, Any]) -> dict[str, Any]:
    """Say who this is."""
    info = {"name": "shop", "version": Path(sys.argv[1]).stem}
    return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": info}


ANSWERS = {"initialize": initialize, "tools/list": list_tools, "tools/call": call_tool, "ping": lambda _: {}}

for line in sys.stdin:
    message = json.loads(line)
    if "id" in message and "method" in message:
        answer = ANSWERS.get(message["method"])
        missing = {"error": {"code": -32601, "message": "Method not found"}}
        reply = {"result": answer(message.get("params") or {})} if answer else missing
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], **reply}) + "\n")
        sys.stdout.flush()
