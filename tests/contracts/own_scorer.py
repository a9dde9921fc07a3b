"""A user's own scorers, for the tests."""

import threading

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
    threading.Event().wait()


not_a_function = 3


def same(response, expected):
    return Score(value=float(response == expected), notes=f"held against {expected}")


def picky(response, expected):
    if expected == "trouble":
        raise RuntimeError("trouble")
    return response == expected
