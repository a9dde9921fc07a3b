"""Built-in suites."""

from __future__ import annotations

from pathlib import Path

from fairtrial.core.errors import FairtrialError

_FOLDER = Path(__file__).parent


def suite_path(name: str) -> Path:
    """Return the path of a built-in suite."""
    path = _FOLDER / f"{name}.yaml"
    if not path.is_file():
        raise FairtrialError(f"there is no built-in suite `{name}`")
    return path
