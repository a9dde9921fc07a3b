"""MCP servers: started so that they never outlive us, asked what they offer, and called."""
