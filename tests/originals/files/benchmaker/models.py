"""Two models that answer from memory, now better and now worse: the number of calls so far decides."""

import random
from pathlib import Path

CALLS = Path(__file__).with_name("calls.txt")
ANSWERS = {
    "Peru": ["Lima", "lima", "It is Lima.", "the city of LIMA, I think", "Limo", "Quito"],
    "Vienna": ["Danube", "The Danube", "the danube river", "Dunabe", "Rhine"],
    "moon": ["1969-07-20", "In short:\n1969-07-20.", "20 July 1969", "1969-07-21"],
    "prime": ["23", "29 is one", "27", "thirty-one"],
    "17 times": ["391", "about 390", "17 * 23 = 401", "it is 500", "no idea", "3.91e2"],
    "light": ["299792458", "2.9e8", "300000 km/s", "roughly 3.2e8"],
    "yellow": ["Green.", "GREEN", "brown", "evergreen"],
    "whatever": ["hello", "no"],
    "sky": ["Air scatters blue light more than red.", "Because it reflects the sea.", "Light."],
}


def _answer(query: str, luck: float) -> str:
    calls = int(CALLS.read_text()) + 1 if CALLS.exists() else 1
    CALLS.write_text(str(calls))
    answers = next(found for words, found in ANSWERS.items() if words in query)
    draws = random.Random(calls)
    return answers[int(len(answers) * draws.random() ** luck)]


def careful(user_query: str, system_prompt: str, mcp_servers: list) -> str:
    return _answer(user_query, 2.0)


def hasty(user_query: str, system_prompt: str, mcp_servers: list) -> str:
    return _answer(user_query, 0.7)
