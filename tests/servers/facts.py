"""A stdio MCP server for tests: it knows facts, and how to misbehave. Behaviour by the environment variable BEHAVE."""

import os
import sys
import time

from mcp.server.mcpserver import MCPServer

BEHAVE = os.environ.get("BEHAVE", "")
server = MCPServer("facts", version="1.2.3")


@server.tool()
def lookup(topic: str) -> str:
    """What is known about a topic."""
    if BEHAVE == "error":
        raise ValueError("the shelf is empty")
    if BEHAVE == "die":
        os._exit(3)
    if BEHAVE == "hang":
        time.sleep(3600)
    if BEHAVE == "flood":
        return "x" * 20_000_000
    return f"The {topic} is 4711."


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


if __name__ == "__main__":
    if BEHAVE == "no start":
        sys.stderr.write("cannot find the shelf\n")
        sys.exit(4)
    server.run()
