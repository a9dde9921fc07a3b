"""A target and a scorer of one's own."""


def backwards(user_query, system_prompt, mcp_servers):
    """Answer with the question, backwards."""
    return user_query[::-1]


def same_letters(response, expected):
    """The share of the expected letters that the answer has, in whatever order."""
    left = list(response)
    for letter in expected:
        if letter in left:
            left.remove(letter)
    return 1 - len(left) / max(len(response), 1)
