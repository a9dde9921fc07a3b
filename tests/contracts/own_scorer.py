"""A user's own scorers, for the tests."""

import time

from fairtrial import Score


def length(response):
    return min(1.0, len(response) / 100)


async def polite(response, expected, shout=False):
    return Score(value=float("please" in response.lower()), notes="SHOUTED" if shout else "")


def too_much(response):
    return 7


def broken(response):
    raise RuntimeError("no idea")


def slow(response):
    time.sleep(0.3)
    return 1


not_a_function = 3


def same(response, expected):
    return Score(value=float(response == expected), notes=f"held against {expected}")


def picky(response, expected):
    if expected == "trouble":
        raise RuntimeError("trouble")
    return response == expected
