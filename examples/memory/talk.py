"""Stand in for models that remember everything, and only the last two messages."""

import re


def attentive(user_query, system_prompt, mcp_servers, messages):
    """Answer from the whole conversation."""
    return _answer(user_query, messages)


def forgetful(user_query, system_prompt, mcp_servers, messages):
    """Answer from the last three messages."""
    return _answer(user_query, messages[-3:])


def _answer(question, messages):
    said = [message["content"] for message in messages if message["role"] == "user"]
    names = re.findall(r"I am (\w+)\.", " ".join(said))
    if "?" not in question:
        return "I see."
    return f"You are {names[-1]}." if names else "I do not know."
