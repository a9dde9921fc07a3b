"""MCP servers: start them so that they never outlive fairtrial, list their tools, and call them."""
