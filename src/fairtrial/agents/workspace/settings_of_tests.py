"""What files of a project say about how pytest runs: the part of an agent's work that must not decide its own check."""

from __future__ import annotations

import re
import tomllib
from typing import NamedTuple

HAVE_SETTINGS = frozenset(
    {"pyproject.toml", "setup.cfg", "tox.ini"}
)  # among other things: they are not set aside whole
_HEADER = re.compile(r"\s*\[")
_OF_PYTEST = re.compile(r"\s*\[+\s*(?:tool\s*[.:]\s*)?pytest\s*[\].]")


class Divided(NamedTuple):
    """A file without what it says about pytest, and just that."""

    rest: str
    settings: str


def without_agents(name: str, text: str, before: str | None) -> str | None:
    """Return a file as a check should find it: the agent's, but with the settings of pytest from before.

    None: what the agent wrote cannot be told apart, so that the file has to be as it was before.
    """
    agents, earlier = _divided(text), _divided(before or "")
    if agents.settings == earlier.settings and not _hides(name, agents.rest):
        return text
    if _hides(name, agents.rest) or _hides(name, earlier.rest):
        return None
    return agents.rest + ("\n" + earlier.settings if earlier.settings else "")


def _divided(text: str) -> Divided:
    rest: list[str] = []
    settings: list[str] = []
    into = rest
    for line in text.splitlines(keepends=True):
        if _HEADER.match(line):
            into = settings if _OF_PYTEST.match(line.replace('"', "").replace("'", "")) else rest
        into.append(line)
    return Divided("".join(rest), "".join(settings))


def _hides(name: str, rest: str) -> bool:
    """Return whether more about pytest is in a file than in sections of its own, or nobody can tell."""
    if not name.endswith(".toml"):
        return False
    try:
        tools = tomllib.loads(rest).get("tool")
    except ValueError:
        return True
    return isinstance(tools, dict) and "pytest" in tools
