"""Built-in suites."""

from __future__ import annotations

from pathlib import Path

_FOLDER = Path(__file__).parent
KINDS = {
    "qa": "questions with right answers",
    "judge": "open answers, marked by a judge",
    "agent": "an agent with and without an MCP server",
    "rag": "questions with passages and citations",
    "code": "web pages, opened in a browser",
    "optimisation": "prompt styles on problems with certified optima",
}


def suite_path(name: str) -> Path:
    """Return the path of a built-in suite."""
    path = _FOLDER / f"{name}.yaml"
    if not path.is_file():
        from fairtrial.core.errors import FairtrialError  # msgspec: what is typed does without

        raise FairtrialError(f"there is no built-in suite `{name}`")
    return path


def files_of_kind(kind: str) -> dict[str, str]:
    """Return the files of a suite to start from, by name: `suite.yaml` and the files next to it."""
    if kind == "qa":
        return {"suite.yaml": suite_path("template").read_text("utf-8")}
    return {
        path.name: path.read_text("utf-8") for path in sorted((_FOLDER / "kinds" / kind).iterdir()) if path.is_file()
    }
