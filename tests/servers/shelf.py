"""A stdio MCP server that reads files from its own folder, unless the client announces folders: then only from those.

Servers of files do so; it is written out in messages, so that nothing but its own words decides what it sees.
"""

import json
import sys
from pathlib import Path
from urllib.parse import unquote, urlparse

TOOL = {
    "name": "read",
    "description": "A file's text.",
    "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
}
folders = [Path(sys.argv[1]).resolve()]
announced = False


def say(**message: object) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def result(request: dict, **found: object) -> None:
    say(id=request["id"], result=found)


def read(path: Path) -> dict:
    if not any(path.resolve().is_relative_to(folder) for folder in folders):
        shown = ", ".join(map(str, folders))
        return {"content": [{"type": "text", "text": f"Access denied: {path} not in {shown}"}], "isError": True}
    return {"content": [{"type": "text", "text": path.read_text()}]}


for line in sys.stdin:
    message = json.loads(line)
    method = message.get("method")
    if method == "initialize":
        announced = "roots" in message["params"]["capabilities"]
        info = {"name": "shelf", "version": "1"}
        version = message["params"]["protocolVersion"]
        result(message, protocolVersion=version, capabilities={"tools": {}}, serverInfo=info)
    elif method == "notifications/initialized" and announced:
        say(id="roots", method="roots/list")
    elif message.get("id") == "roots":
        folders = [Path(unquote(urlparse(root["uri"]).path)).resolve() for root in message["result"]["roots"]]
    elif method == "tools/list":
        result(message, tools=[TOOL])
    elif method == "tools/call":
        result(message, **read(Path(message["params"]["arguments"]["path"])))
    elif "id" in message and method:
        say(id=message["id"], error={"code": -32601, "message": "Method not found"})
