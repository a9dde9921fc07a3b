"""How much a model reasons: one parameter, `reasoning: none | low | medium | high | … | N` tokens, for every provider.

A model takes a level or a number of tokens. What a suite says is translated to the nearest that the model takes, and
that is recorded. Reasoning counts as completion, so `max_tokens` is raised by the room that it needs.
"""

from __future__ import annotations

import msgspec

LEVELS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")  # from least to most
_TOKENS = {"none": 0, "minimal": 512, "low": 2048, "medium": 8192, "high": 24_576, "xhigh": 32_768, "max": 65_536}
_ROOM = {"none": 0, "minimal": 2048, "low": 4096, "medium": 16_384, "high": 32_768, "xhigh": 49_152, "max": 65_536}

Reasoning = str | int  # a level, or a number of tokens


class Thinking(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a model's reasoning can be set: by levels or by tokens."""

    levels: tuple[str, ...] = ()  # from least to most
    tokens: tuple[int, int] | None = None  # the fewest and the most
    default: str = "none"  # the level if nothing is said
    off: str = "disabled"  # how Claude is told not to think; with tokens, empty: it cannot be switched off

    def nearest(self, wanted: Reasoning) -> Reasoning:
        """Return the nearest setting that the model takes."""
        if self.tokens is None:
            level = _level_of(wanted)
            return min(self.levels, key=lambda known: abs(LEVELS.index(known) - LEVELS.index(level)))
        fewest, most = self.tokens
        count = _TOKENS[wanted] if isinstance(wanted, str) else wanted
        return 0 if count <= 0 and self.off else min(max(count, fewest), most)

    def in_words(self) -> str:
        """Return what the model takes."""
        if self.tokens is not None:
            return f"{self.tokens[0]:,}–{self.tokens[1]:,} tokens"
        return ", ".join(self.levels)


def _level_of(wanted: Reasoning) -> str:
    """Return a level; of a number of tokens, the least that has this many."""
    if isinstance(wanted, str):
        return wanted
    return next((level for level in ("none", "low", "medium") if wanted <= _ROOM[level]), "high")


def room_for(setting: Reasoning) -> int:
    """Return how many completion tokens to allow for reasoning."""
    return _ROOM[setting] if isinstance(setting, str) else setting
