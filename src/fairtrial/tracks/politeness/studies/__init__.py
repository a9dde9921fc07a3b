"""The politeness studies again: 50 questions, five tones, ten runs (Dobariya and Kumar, arXiv:2510.04950).

Questions and wordings are our own.
"""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path
from typing import Any

import yaml

_FOLDER = Path(__file__).parent
_FORMAT = "Answer with the letter of the right choice, A, B, C or D, and nothing else."
_SEED = 7
_CHANGES = 0.25  # share of wordings that change what the scripted model knows
RUNS = 10


@cache
def questions() -> list[dict[str, Any]]:
    """Return the questions: id, domain, question, choices, answer."""
    found: list[dict[str, Any]] = yaml.safe_load((_FOLDER / "questions.yaml").read_text("utf-8"))
    return found


@cache
def tones() -> dict[str, list[str]]:
    """Return the wordings of every tone, from very polite to very rude."""
    found: dict[str, list[str]] = yaml.safe_load((_FOLDER / "tones.yaml").read_text("utf-8"))
    return found


def document(targets: list[Any], *, runs: int = RUNS) -> dict[str, Any]:
    """Return the suite: every question in every tone, `runs` times. Only what comes before the question differs."""
    return {
        "name": "politeness",
        "targets": targets,
        "repeats": runs,
        "prompts": {tone: f"{{{{ {tone} }}}}\n\n{{{{ input }}}}\n\n{_FORMAT}" for tone in tones()},
        "scorer": "choice",
        "cases": [_case(question, place) for place, question in enumerate(questions())],
    }


def _case(question: dict[str, Any], place: int) -> dict[str, Any]:
    return {
        "id": question["id"],
        "input": _asked(question),
        "expected": question["answer"],
        "category": question["domain"],
        "vars": {tone: wordings[place % len(wordings)] for tone, wordings in tones().items()},
    }


def _asked(question: dict[str, Any]) -> str:
    choices = (f"{letter}) {choice}" for letter, choice in zip("ABCD", question["choices"], strict=True))
    return "\n".join([question["question"], *choices])


def demo_target(runs: int = RUNS) -> dict[str, Any]:
    """Return a scripted model that is indifferent to tone.

    As real models do, it knows most answers for sure or not at all, and now and then changes its mind with the exact
    wording of a question. But no tone is better than another: what a test finds in these questions is not in others.
    """
    chance = random.Random(_SEED)  # only a script
    answers = {}
    for place, question in enumerate(questions()):
        usual = _knowledge(chance)
        for wordings in tones().values():
            own = _knowledge(chance) if chance.random() < _CHANGES else usual
            wrong = [letter for letter in "ABCD" if letter != question["answer"]]
            drawn = [question["answer"] if chance.random() < own else chance.choice(wrong) for _ in range(runs)]
            answers[f"{wordings[place % len(wordings)]}\n\n{_asked(question)}"] = drawn
    # A prompt without a tone is part of all others, so that it must be looked for last.
    in_order = dict(sorted(answers.items(), key=lambda item: item[0].startswith("\n")))
    return {"id": "indifferent", "target": "mock:indifferent", "options": {"answers": in_order}}


def _knowledge(chance: random.Random) -> float:
    """Return how likely a right answer is: most often nearly 1, sometimes nearly 0."""
    return chance.betavariate(1.2, 0.4)
