"""A small MCP server on stdin and stdout. Replace it by yours."""

import re

from mcp.server.mcpserver import MCPServer

FACTS = (
    "Lumen keeps deleted records for 35 days.",
    "The largest upload to Lumen is 250 MB.",
    "Lumen is looked after by the Tidewater team.",
)
server = MCPServer("facts", version="1.0.0")


@server.tool()
def search(text: str) -> str:
    """Return the fact that has most words in common with a text."""
    wanted = set(re.findall(r"\w{4,}", text.lower()))
    return max(FACTS, key=lambda fact: len(wanted & set(re.findall(r"\w{4,}", fact.lower()))))


if __name__ == "__main__":
    server.run()
