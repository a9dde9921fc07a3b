"""MCP servers: start them, list their tools, and call them."""
