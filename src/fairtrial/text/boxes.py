"""`\\boxed{…}` in LaTeX, with nested braces."""

from __future__ import annotations

import re

_TOKEN = re.compile(r"\\(?:boxed|fbox)(?![A-Za-z])\s*(?P<open>\{)?|\\.|[{}]", re.DOTALL)
_BARE = re.compile(r"[^\s$\\]+")


def last_boxed(text: str) -> str | None:
    """Return what is in the last complete `\\boxed{…}` or `\\fbox{…}` of a text, or None; read in one pass."""
    best: tuple[int, int] | None = None
    stack: list[int | None] = []  # where the open braces' boxes start; None for a brace of something else
    for token in _TOKEN.finditer(text):
        if token["open"]:
            stack.append(token.end())
        elif token[0] == "{":
            stack.append(None)
        elif token[0] == "}":
            start = stack.pop() if stack else None
            if start is not None and (best is None or start > best[0]):
                best = (start, token.start())
        elif token[0][-1].isspace() and len(token[0]) > 2 and (bare := _BARE.match(text, token.end())):
            best = bare.span()  # \boxed 5
    return text[slice(*best)].strip() if best else None
