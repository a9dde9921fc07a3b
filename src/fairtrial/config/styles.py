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


# Sentences of 2 to 9 words without a tone: what a short wording is padded with.
_PADDING = (
    "",
    "",
    "It follows.",
    "Here it is.",
    "It is stated below.",
    "The problem is stated below.",
    "The problem in question is below.",
    "The problem in question is stated below.",
    "The problem to be solved is stated below.",
    "The problem to be solved is stated in full.",
)
_LONGEST = len(_PADDING) - 1


def padded(template: str, words: int) -> str:
    """Return a wording with this many more words in neutral sentences before the problem; one alone cannot be added."""
    sentences = []
    while words > 1:
        take = words if words <= _LONGEST else _LONGEST if words - _LONGEST != 1 else _LONGEST - 1
        sentences.append(_PADDING[take])
        words -= take
    if not sentences:
        return template
    match = INPUT.search(template)
    assert match is not None
    before = template[: match.start()].rstrip()
    return f"{before}{' ' if before else ''}{' '.join(sentences)}\n\n{template[match.start() :]}"


def added_words(template: str) -> int:
    """Return how many words a wording adds to the problem."""
    return len(INPUT.sub(" ", template).split())


def matched(wordings: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """Return the wordings of all styles made equally long, to within a word: as long as the longest."""
    longest = max((added_words(text) for texts in wordings.values() for text in texts), default=0)
    return {
        name: tuple(padded(text, longest - added_words(text)) for text in texts) for name, texts in wordings.items()
    }


def confounded(template: str) -> str | None:
    """Return a word of a style about the format, which would change more than the tone; None if there is none."""
    match = _FORMAT_WORDS.search(INPUT.sub("", template))
    return None if match is None else match.group()
