"""Paths into JSON, such as `answer.items[0].name`, `[-1]["a key"]` or `$.answer`."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

_STEP = re.compile(
    r"""\.?(?P<key>[^.\[\]"'\s][^.\[\]]*)
    | \[\s*(?P<index>-?\d+)\s*\]
    | \[\s*(?:"(?P<double>[^"]*)"|'(?P<single>[^']*)')\s*\]""",
    re.VERBOSE,
)
Step = str | int


@lru_cache(maxsize=256)
def parse_path(path: str) -> tuple[Step, ...]:
    """Return the keys and indices of a path; raise ValueError with one sentence if it is not one."""
    text = path.strip()
    if text == "$" or text.startswith(("$.", "$[")):
        text = text[1:]
    steps: list[Step] = []
    position = 0
    while position < len(text):
        match = _STEP.match(text, position)
        if match is None or (not position and text.startswith(".") and path.strip()[0] != "$"):
            raise ValueError(f"`{path}` is not a path such as `answer.items[0].name`")
        position = match.end()
        key = next((match[name] for name in ("key", "double", "single") if match[name] is not None), None)
        steps.append(int(match["index"]) if key is None else key.strip())
    return tuple(steps)


def follow(value: Any, steps: tuple[Step, ...]) -> Any:
    """Return the value at a path; raise LookupError if there is none."""
    for step in steps:
        if isinstance(value, list) and isinstance(step, str) and step.isdecimal():
            step = int(step)  # noqa: PLW2901  # `items.0` is a common spelling of `items[0]`
        if not isinstance(value, list if isinstance(step, int) else dict):
            raise LookupError(step)
        value = value[step]  # type: ignore[index]  # checked just above
    return value
