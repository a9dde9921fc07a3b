"""An agent that looks for a file and reads it."""


def ask(user_query, system_prompt, mcp_servers):
    """Return the answer, and the calls that led to it."""
    calls = [{"tool": "search", "arguments": {"name": "a*"}}, {"tool": "read", "arguments": {"path": "a.txt"}}]
    return {"text": "It says hello.", "tool_calls": calls}
