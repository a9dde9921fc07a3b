"""A suite of prompt styles on optimisation problems from a few choices, for the command line and the web page."""

from __future__ import annotations

import msgspec
import yaml


class StyleSuite(msgspec.Struct, frozen=True, kw_only=True):
    """What is chosen; everything else is the default of such suites."""

    targets: tuple[str, ...]
    styles: tuple[str, ...] = ("polite", "strict")
    match_length: bool = False
    problems: tuple[str, ...] = ()
    families: tuple[str, ...] = ()
    sizes: tuple[int, ...] = ()
    difficulties: tuple[str, ...] = ()
    count: int | None = None
    seed: int | None = None
    partial_credit: bool = False
    answer: str = ""  # `code`: a program instead of numbers
    max_tokens: int = 8192
    repeats: int = 5
    name: str = "optimisation"

    def text(self) -> str:
        """Return the suite as YAML."""
        chosen = {
            "problems": list(self.problems),
            "family": list(self.families),
            "n": list(self.sizes),
            "difficulty": list(self.difficulties),
            "count": self.count,
            "seed": self.seed,
            "match_length": self.match_length,
            "partial_credit": self.partial_credit,
            "answer": self.answer,
        }
        selection = {name: value for name, value in chosen.items() if value}
        document = {
            "name": self.name,
            "targets": list(self.targets),
            "repeats": self.repeats,
            "params": {"max_tokens": self.max_tokens},
            "suite": {"kind": "optimisation", "styles": list(self.styles), **selection},
        }
        return yaml.safe_dump(document, sort_keys=False, allow_unicode=True)
