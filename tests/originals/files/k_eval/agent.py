"""An agent behind the interface that k-eval describes: a question, a system prompt and MCP servers in, a text out.

Every answer carries the marks that it deserves, so that whoever reads it can say what a judge must have said.
"""

import hashlib
from collections import Counter
from typing import Any

_ASKED: Counter[tuple[str, str]] = Counter()


def query(user_query: str, system_prompt: str, mcp_servers: dict[str, Any], steps: list[Any]) -> str:
    """Answer; the same question under the same condition gets another answer every time."""
    _ASKED[user_query, system_prompt] += 1
    number = _ASKED[user_query, system_prompt]
    drawn = hashlib.sha256(f"{user_query}/{sorted(mcp_servers)}/{number}".encode()).digest()
    if mcp_servers and drawn[3] % 4:  # a quarter of the answers are given without looking anything up
        steps.append(
            {"server": "graph", "tool": "lookup", "arguments": {"topic": user_query}, "result": "SECRET RESULT"}
        )
    marks = [min(5, 1 + byte % 5 + len(mcp_servers)) for byte in drawn[:3]]
    claim = f" It also holds on line {drawn[4] % 3}." if drawn[4] % 3 else ""
    return f"Run `store help` and wait. <{marks[0]}{marks[1]}{marks[2]}>{claim}"
