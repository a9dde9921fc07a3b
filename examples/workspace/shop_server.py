"""An MCP server with one tool: it reads a SQLite database. Its path is the first argument."""

import sqlite3
import sys

from mcp.server.mcpserver import MCPServer

server = MCPServer("shop")


@server.tool()
def query(sql: str) -> str:
    """Run a SELECT statement on the table orders(customer, item, quantity); one row per line."""
    with sqlite3.connect(f"file:{sys.argv[1]}?mode=ro", uri=True) as database:
        return "\n".join(" ".join(map(str, row)) for row in database.execute(sql))


if __name__ == "__main__":
    server.run()
