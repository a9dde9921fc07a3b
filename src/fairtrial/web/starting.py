"""Texts of new suites, one for each kind of experiment."""

from __future__ import annotations

from pathlib import Path

import yaml

from fairtrial.suites import suite_path

_FOLDER = Path(__file__).parent / "starts"
STARTS = {
    "questions": "Questions and answers",
    "example": "An example with mock models, no key needed",
    "template": "A commented example of every option",
    "agents": "An agent under several conditions, with MCP servers",
    "styles": "Prompt styles on optimisation problems",
    "pages": "Web pages written by models",
}


def start_text(start: str, name: str) -> str:
    """Return the text of a new suite with the given name."""
    if start == "template":
        return suite_path("template").read_text("utf-8")
    path = _FOLDER / f"{start if start in STARTS else 'questions'}.yaml"
    return path.read_text("utf-8").replace("name: NAME", f"name: {_scalar(name)}", 1)


def _scalar(text: str) -> str:
    return yaml.safe_dump(text, allow_unicode=True, width=10**6).strip().removesuffix("...").strip()
