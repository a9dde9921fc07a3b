"""Parameters as APIs take them: one place for plain models and for agents around them."""

from __future__ import annotations

import re
from typing import Any

from fairtrial.core.answer import Request
from fairtrial.core.suite import TargetSpec

# Models of OpenAI that accept no sampling parameters but their own defaults.
_REASONING = re.compile(r"^(o\d|gpt-[5-9](?!.*chat))")
_SAMPLING = ("temperature", "top_p", "frequency_penalty", "presence_penalty")
_MESSAGES_NAMES = {"temperature": "temperature", "top_p": "top_p", "stop": "stop_sequences"}
_LONGEST = 2048  # Messages wants to be told


def openai_params(spec: TargetSpec, request: Request) -> dict[str, Any]:
    """For chat completions; `extra` as it is."""
    openai = spec.provider == "openai"
    fixed = openai and bool(_REASONING.match(spec.model))
    found: dict[str, Any] = {}
    for name, value in request.params.items():
        if name == "max_tokens":  # OpenAI itself has renamed this one; the others have not followed
            found["max_completion_tokens" if openai else "max_tokens"] = value
        elif name == "extra":
            found |= value
        elif not (fixed and name in _SAMPLING and name in request.defaulted):
            found[name] = value
    return found


def anthropic_params(request: Request) -> dict[str, Any]:
    """For Messages; `extra` as it is."""
    params = request.params
    found: dict[str, Any] = {"max_tokens": params.get("max_tokens", _LONGEST)}
    for name, theirs in _MESSAGES_NAMES.items():
        # Messages refuses temperature and top_p together; a top_p of 1 says nothing anyway.
        if params.get(name) is not None and not (name == "top_p" and params[name] == 1):
            found[theirs] = params[name]
    found |= params.get("extra", {})
    return found
