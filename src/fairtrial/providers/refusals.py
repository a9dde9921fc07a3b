"""Reading which parameter a server refuses, so that an unknown model can be asked without it."""

from __future__ import annotations

import re
from collections.abc import Collection

_REFUSES = re.compile(
    r"not support|unsupported|deprecated|unrecognized|unknown (?:name|parameter|field)|extra inputs|not permitted"
    r"|not enabled|not allowed|only the default|cannot both|may only be set|is invalid",
    re.IGNORECASE,
)
# Our names of parameters, and those that APIs have for them.
_NAMES: dict[str, tuple[str, ...]] = {
    "reasoning": ("reasoning_effort", "reasoning.effort", "reasoningEffort", "thinking", "thinking_budget", "effort"),
    "temperature": ("temperature",),
    "top_p": ("top_p", "topP"),
    "stop": ("stop", "stop_sequences", "stopSequences"),
    "seed": ("seed", "random_seed"),
    "frequency_penalty": ("frequency_penalty", "frequencyPenalty", "penalty"),
    "presence_penalty": ("presence_penalty", "presencePenalty", "penalty"),
}
_INSTEAD = re.compile(r"use ['\"`](max_completion_tokens)['\"`] instead", re.IGNORECASE)


def refused_parameter(message: str, sent: Collection[str]) -> str:
    """Return which of the parameters that were sent a server refuses by this message; empty if it names none."""
    if not _REFUSES.search(message):
        return ""
    return next((name for name in _NAMES if name in sent and _mentions(message, name)), "")


def _mentions(message: str, name: str) -> bool:
    words = "|".join(map(re.escape, _NAMES[name]))
    return re.search(rf"(?<![\w.])(?:{words})(?![\w])", message, re.IGNORECASE) is not None


def renamed_limit(message: str) -> str:
    """Return the name that a server wants instead of `max_tokens`, if that is why it refuses."""
    found = _INSTEAD.search(message)
    return found[1] if found else ""
