"""Prompt styles: several wordings of the same tone around the same problem."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

from fairtrial.core.experiment import INPUT

_FORMAT_WORDS = re.compile(
    r"json|yaml|xml|markdown|objective_value|\bkeys\b|\bfield|\bformat|```|\bdecimal|\bdigits?\b|\bround(ed)?\b|\blist\b"
    r"|\barray\b|nothing else|\bonly with\b|no explanation|\brequirements?\b|\binstructions?\b",
    re.IGNORECASE,
)


@lru_cache
def styles() -> dict[str, tuple[str, ...]]:
    """Return the built-in styles, each with its wordings."""
    import yaml

    document = yaml.safe_load((Path(__file__).parent / "styles.yaml").read_text("utf-8"))
    return {name: tuple(wordings) for name, wordings in document.items()}


def confounded(template: str) -> str | None:
    """Return a word of a style about the format, which would change more than the tone; None if there is none."""
    match = _FORMAT_WORDS.search(INPUT.sub("", template))
    return None if match is None else match.group()
