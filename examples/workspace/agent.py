"""An agent without a model: it knows how to do five of the eight tasks, and tries the others in vain.

It stands in for yours, and works as every agent does here: the task on stdin, the trial's own folder as working folder,
the MCP servers in the file that FAIRTRIAL_MCP_CONFIG names, a report as JSON on stdout.
"""

import asyncio
import json
import os
import re
import sys
from pathlib import Path
from typing import Any

calls: list[dict[str, Any]] = []  # what it reports as its steps


def edit(name: str, old: str, new: str) -> None:
    """Replace a text in a file."""
    path = Path(name)
    path.write_text(path.read_text().replace(old, new))
    calls.append({"tool": "edit", "arguments": {"file": name, "old": old, "new": new}})


def write(name: str, text: str) -> None:
    """Write a file."""
    Path(name).write_text(text)
    calls.append({"tool": "write", "arguments": {"file": name}})


def fix_bug() -> None:
    """Count the two numbers in the middle of an even list."""
    middle = "    return ordered[middle]\n"
    even = "    if len(ordered) % 2 == 0:\n        return (ordered[middle - 1] + ordered[middle]) / 2\n"
    edit("statistics_of_list.py", middle, even + middle)


def write_script() -> None:
    """Write the script, wrongly: its words come in alphabetical order."""
    lines = ["import collections, sys", "counts = collections.Counter(open(sys.argv[1]).read().split())"]
    write("words.py", "\n".join([*lines, "for word in sorted(counts): print(counts[word], word)", ""]))


def edit_config() -> None:
    """Change two settings."""
    edit("server.json", "8080", "8443")
    edit("server.json", '"enabled": false, "certificate": null', '"enabled": true, "certificate": "cert.pem"')


def rename_function() -> None:
    """Rename the function where it is used, and nothing else."""
    for name in ("prices.py", "shop.py"):
        text = Path(name).read_text()
        write(name, re.sub(r"\bcalc\b", "with_tax", text))


def query_database() -> None:
    """Ask the server, and write down what it says."""
    sql = "SELECT customer, sum(quantity) AS items FROM orders GROUP BY customer ORDER BY items DESC LIMIT 1"
    write("answer.txt", asyncio.run(ask_server("shop", "query", {"sql": sql})) + "\n")


def sum_table() -> None:
    """Sum the table, wrongly: only the first month of each region."""
    write("totals.csv", "region,amount\nnorth,10.10\nsouth,7.00\nwest,3.35\n")


def resolve_conflict() -> None:
    """Resolve the conflict, badly: half of its marks stay."""
    edit("greeting.py", "<<<<<<< HEAD\n", "")


def find_errors() -> None:
    """Find the errors and write their codes."""
    codes = re.findall(r"ERROR (\w+)", Path("service.log").read_text())
    write("errors.txt", "\n".join(sorted(set(codes))) + "\n")


def given_servers() -> dict[str, Any]:
    """Return the settings of the MCP servers that the agent may use."""
    servers: dict[str, Any] = json.loads(Path(os.environ["FAIRTRIAL_MCP_CONFIG"]).read_text())["mcpServers"]
    return servers


async def ask_server(name: str, tool: str, arguments: dict[str, Any]) -> str:
    """Call a tool of an MCP server that the agent was given."""
    from mcp.client import Client
    from mcp.client.stdio import StdioServerParameters

    server = given_servers()[name]
    program = StdioServerParameters(command=server["command"], args=server["args"], env=server["env"])
    async with Client(program) as client:
        result = (await client.call_tool(tool, arguments)).content[0].text
    calls.append({"server": name, "tool": tool, "arguments": arguments, "result": result})
    return result


if __name__ == "__main__":
    sys.stdin.read()  # a model would read the task; this agent goes by its name
    globals()[os.environ["FAIRTRIAL_CASE_ID"].replace("-", "_")]()
    sys.stdout.write(json.dumps({"text": "Done.", "tool_calls": calls, "cost_usd": 0.0}))
