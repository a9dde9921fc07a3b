"""The built-in prompts of the Code Arena, with checks, and two models' prepared answers to try it without any model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

_FOLDER = Path(__file__).parent
ENDING = "Answer with one HTML document that holds its own CSS and JavaScript and loads nothing from anywhere."
DEMO_MODELS = ("careful", "hasty")


def cases() -> list[dict[str, Any]]:
    """The cases as a suite file would have them."""
    found = yaml.safe_load((_FOLDER / "cases.yaml").read_text("utf-8"))
    return [{**case, "input": f"{case['input'].strip()}\n\n{ENDING}"} for case in found]


def samples() -> list[dict[str, Any]]:
    """Pages whose worth is known: id, question, answer, score and perhaps tolerance."""
    asked = {case["id"]: case["input"] for case in cases()}
    found = yaml.safe_load((_FOLDER / "samples.yaml").read_text("utf-8"))
    return [
        {
            "question": asked[item["case"]],
            "answer": demo_answers(item["model"])[item["case"]],
            **{key: value for key, value in item.items() if key not in ("case", "model")},
        }
        for item in found
    ]


def demo_answers(model: str) -> dict[str, str]:
    """What a prepared model says to each prompt, by case."""
    return {path.stem: path.read_text("utf-8") for path in sorted((_FOLDER / model).glob("*.md"))}
