"""A scorer of one's own: the right answer, in few words."""


def brief(response, expected, words):
    """Return 1 for the expected text in at most this many words, less for more words, 0 without it."""
    count = len(response.split())
    if expected not in response:
        return {"score": 0, "notes": f"no {expected}"}
    return {"score": min(1, words / count), "notes": f"{count} words"}
