"""A small MCP server of a shop, on stdin and stdout: tools, a resource and a prompt.

It is written out in messages, without a library, so that it starts at once. Yours can be written with any.
"""

import json
import sys
from typing import Any

CUSTOMERS = {"Ada": "customer since 2019, 4 orders", "Linus": "customer since 2023, 1 order"}
ORDERS = {"A-17": "shipped on 3 May, 42 EUR", "B-20": "in the warehouse, 17 EUR", "C-03": "delivered, 99 EUR"}
STOCK = {"lamp": "12 in stock", "chair": "sold out"}
TOOLS = {  # by name: what it does, its argument, and what it knows
    "find_customer": ("Find a customer by name.", "name", CUSTOMERS),
    "find_order": ("Find an order by its number.", "number", ORDERS),
    "stock": ("How many of an article are in stock.", "article", STOCK),
    "cancel_order": ("Cancel an order. This cannot be undone.", "number", {}),
}
TERMS = "Goods can be returned within 30 days. Shipping is free from 50 EUR."


def initialize(params: dict[str, Any]) -> dict[str, Any]:
    """Say who this is and what it offers."""
    offers: dict[str, Any] = {"tools": {}, "resources": {}, "prompts": {}}
    info = {"name": "shop", "version": "2.1.0"}
    return {"protocolVersion": params["protocolVersion"], "capabilities": offers, "serverInfo": info}


def list_tools(params: dict[str, Any]) -> dict[str, Any]:
    """Describe the tools."""
    tools = []
    for name, (description, argument, _) in TOOLS.items():
        schema = {"type": "object", "properties": {argument: {"type": "string"}}, "required": [argument]}
        tools.append({"name": name, "description": description, "inputSchema": schema})
    return {"tools": tools}


def call_tool(params: dict[str, Any]) -> dict[str, Any]:
    """Look something up."""
    _, argument, known = TOOLS[params["name"]]
    found = known.get(params["arguments"].get(argument))
    text = found or f"nothing is known about {params['arguments']}"
    return {"content": [{"type": "text", "text": text}], "isError": found is None}


ANSWERS = {
    "initialize": initialize,
    "tools/list": list_tools,
    "tools/call": call_tool,
    "resources/list": lambda _: {"resources": [{"uri": "shop://terms", "name": "terms of sale"}]},
    "resources/templates/list": lambda _: {"resourceTemplates": []},
    "resources/read": lambda params: {"contents": [{"uri": params["uri"], "text": TERMS}]},
    "prompts/list": lambda _: {"prompts": [{"name": "apologise", "description": "An apology to a customer."}]},
    "ping": lambda _: {},
}

for line in sys.stdin:
    message = json.loads(line)
    if "id" in message and "method" in message:
        answer = ANSWERS.get(message["method"])
        missing = {"error": {"code": -32601, "message": "Method not found"}}
        reply = {"result": answer(message.get("params") or {})} if answer else missing
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], **reply}) + "\n")
        sys.stdout.flush()
