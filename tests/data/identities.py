"""Prints the identities of functions of many kinds: run by every Python, they are the same (and nothing else is imported)."""

import dataclasses
import enum
import functools
import json
import operator
import re
import sys

from fairtrial.core.fingerprint import code_hash

GREETING = "Guten Tag"
WORDS = ("yes", "no")
PATTERN = re.compile(r"(\d+)")


@functools.lru_cache
def helper(text, times=2):
    return text * times


class Tone(enum.Enum):
    POLITE = "please"
    CURT = ""


def globals_of_the_module(input):
    found = PATTERN.search(input)
    return helper(GREETING) if found and found[1] not in WORDS else Tone.CURT.value


def shout(function):
    @functools.wraps(function)
    def louder(*args, **kwargs):
        return function(*args, **kwargs).upper()

    return louder


@shout
def decorated(input: str, *, style: str = "plain") -> str:
    """Say it."""
    return f"{style!r:>10}: {input}" if input in {"a", "b", "c"} else ""


def closed(word, kinds=frozenset("abc")):
    def inner(input):
        return [word + letter for letter in input if letter in kinds and (lambda one: one != word)(letter)]

    return inner


async def waits(input):
    async with input as opened:
        return [part async for part in opened]


def matches(input):
    match input:
        case {"a": [first, *_]} if first:
            return first
        case _:
            raise ValueError(-1.5, 2j, b"\xff", ...)


class Bot:
    prompts = {"a": 1, "b": 2}

    def __init__(self, model, api_key="sk-1"):
        self.model, self.api_key = model, api_key

    def __call__(self, input):
        return f"{GREETING} {self.model} {self.tone}"

    @property
    def tone(self):
        return Tone.POLITE

    @staticmethod
    def plain(input):
        return input

    @classmethod
    def named(cls, input):
        return cls.__name__

    def ask(self, input):
        @dataclasses.dataclass
        class Reply(str):
            kind = GREETING

        return Reply(input)


class Better(Bot):
    def ask(self, input):
        return super().ask(input) + "!"


@dataclasses.dataclass
class Setting:
    model: str
    temperature: float = 0.5
    seeds: list = dataclasses.field(default_factory=list)

    def __call__(self, input):
        return self.model


one, other = (lambda q: "a"), (lambda q: "b")
nested, sums = (lambda: lambda: 1), (lambda x, y=1, *z, k: x + y if k else [*z])

FUNCTIONS = {
    "globals": globals_of_the_module,
    "cached": helper,
    "decorated": decorated,
    "closed": closed("x"),
    "closed otherwise": closed("y"),
    "other default": closed("x", frozenset("ab")),
    "async": waits,
    "match": matches,
    "object": Bot("m"),
    "other object": Bot("n"),
    "subclass": Better("m"),
    "bound": Better("m").ask,
    "static": Bot.plain,
    "classmethod": Bot.named,
    "dataclass": Setting("m"),
    "partial": functools.partial(decorated, style="bold"),
    "other partial": functools.partial(decorated, style="italic"),
    "one": one,
    "other": other,
    "nested": nested,
    "inner": nested(),
    "sums": sums,
    "getter": operator.itemgetter("a"),
    "other getter": operator.itemgetter("b"),
    "lookup": {"a": "b"}.get,
    "other lookup": {"a": "c"}.get,
    "search": PATTERN.search,
    "builtin": str.upper,
    "other builtin": str.lower,
}

if __name__ == "__main__":
    json.dump({name: code_hash(function) for name, function in FUNCTIONS.items()}, sys.stdout)
