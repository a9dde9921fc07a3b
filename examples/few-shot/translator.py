"""Stands in for a model: it knows three words, and chats unless it was shown or told to be brief."""

WORDS = {"into French: wine": "vin", "into French: good morning": "bonjour", "into German: water": "Wasser"}


def query(user_query, system_prompt, mcp_servers, messages):
    """Answer the last message; `messages` is the whole chat, with its examples."""
    word = next(word for question, word in WORDS.items() if user_query.endswith(question))
    shown = any(message["role"] == "assistant" for message in messages)
    return word if shown or "only" in system_prompt else f"With pleasure! It is «{word}»."
