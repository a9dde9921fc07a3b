"""A small MCP server on stdin and stdout: what is known about a product that nobody outside has heard of.

With a folder as its argument, it can also write files there.
"""

import re
import sys
from pathlib import Path

from mcp.server.mcpserver import MCPServer

FACTS = {
    "search limit": "The search API of Lumen takes 100 requests a minute per key.",
    "regions": "A Lumen project can live in eu-west or us-east.",
    "retention": "Lumen keeps deleted records for 35 days.",
    "upload size": "The largest upload to Lumen is 250 MB.",
    "owner": "Lumen is looked after by the Tidewater team.",
    "license": "Lumen is licensed by seat, with at least five seats.",
}

server = MCPServer("lumen-graph", version="1.0.0")


@server.tool()
def search(text: str) -> str:
    """The fact that has most words in common with a text."""
    wanted = _words(text)
    best = max(FACTS, key=lambda name: len(wanted & _words(f"{name} {FACTS[name]}")))
    return FACTS[best]


@server.tool()
def topics() -> list[str]:
    """Everything that something is known about."""
    return sorted(FACTS)


def save(name: str, text: str) -> str:
    """Write a text into a file."""
    (FOLDER / Path(name).name).write_text(text, "utf-8")
    return f"written to {Path(name).name}"


def _words(text: str) -> set[str]:
    return {word.removesuffix("s") for word in re.findall(r"[a-z]{4,}", text.lower())} - {"lumen"}


if __name__ == "__main__":
    if sys.argv[1:]:
        FOLDER = Path(sys.argv[1])
        server.tool()(save)
    server.run()
