"""The suite whose runs are measured at size: five arms, answers that are right more or less often.

Case N has difficulty N % 10; an arm answers those below its skill, and the one at its skill only in every other repeat.
With more arms, those after the first five take turns in skill, and always say the same if they are really run.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

ARMS = 5
KINDS = ("math", "logic", "geo", "history")
LEVELS = ("easy", "medium", "hard")
STEPS = 10
FAILING = 0.01  # the share of calls that are refused
RIGHT = "Let me see. Adding the two numbers one digit at a time, carrying where it is needed, I get the sum: the answer is 42."
WRONG = "Let me see. Adding the two numbers one digit at a time, I may have missed a carry; I would say that it is 41."


def case_row(number: int) -> dict[str, Any]:
    """One row of the dataset."""
    return {
        "id": f"c{number}",
        "q": f"Question {number} (step {number % STEPS}): what do the two numbers of page {number % 977} add up to?",
        "a": "42",
        "cat": KINDS[number % len(KINDS)],
        "level": LEVELS[number % len(LEVELS)],
        "group": f"page-{number % 977}",
    }


def skill(arm: int) -> int:
    """The first step that an arm does not always get right."""
    return 4 + arm if arm < ARMS else 2 + arm % 7


def answers(arm: int) -> dict[str, list[str]]:
    """The answers by what the prompt contains; repeats take turns."""
    first = skill(arm)
    return {
        f"(step {step})": [RIGHT, RIGHT] if step < first else [RIGHT, WRONG] if step == first else [WRONG, WRONG]
        for step in range(STEPS)
    }


def write_suite(folder: Path, cases: int, repeats: int = 2, concurrency: int = 50, arms: int | None = None) -> Path:
    """Write the suite and its dataset."""
    with (folder / "cases.jsonl").open("w", encoding="utf-8") as file:
        for number in range(cases):
            file.write(json.dumps(case_row(number)) + "\n")
    targets = [
        {
            "id": f"arm-{arm}",
            "target": f"mock:arm-{arm}",
            "options": {"answers": answers(arm), "seed": arm, "faults": {"refused": FAILING}}
            if arm < ARMS
            else {"answer": RIGHT},
        }
        for arm in range(ARMS if arms is None else arms)
    ]
    document = {
        "name": "size",
        "targets": targets,
        "scorer": "numeric",
        "repeats": repeats,
        "concurrency": concurrency,
        "dataset": {
            "path": "cases.jsonl",
            "id": "id",
            "input": "q",
            "expected": "a",
            "category": "cat",
            "difficulty": "level",
        },
    }
    path = folder / "size.yaml"
    path.write_text(yaml.safe_dump(document, sort_keys=False), "utf-8")
    return path
