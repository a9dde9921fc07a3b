"""Addresses and keys of providers, as templates that are filled in from the environment."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import msgspec

from fairtrial.core import registry


class Provider(msgspec.Struct, frozen=True, kw_only=True):
    """How to reach a provider: adapter, address and key."""

    kind: str
    base_url: str = ""
    api_key: str = ""
    headers: dict[str, str] = {}


# Providers that use another provider's API, and targets that are not an API.
_OTHERS: dict[str, Provider] = {
    "openrouter": Provider(
        kind="openai_api",
        base_url="${OPENROUTER_BASE_URL:-https://openrouter.ai/api/v1}",
        api_key="${OPENROUTER_API_KEY}",
    ),
    "ollama": Provider(
        kind="openai_api",
        base_url="${OLLAMA_BASE_URL:-http://127.0.0.1:11434/v1}",
        api_key="${OLLAMA_API_KEY:-}",
    ),
    "local": Provider(kind="local"),
    "mock": Provider(kind="mock"),
    "replay": Provider(kind="replay"),
    "python": Provider(kind="python_call"),
    "command": Provider(kind="command"),
    "tool-agent": Provider(kind="tool_agent"),
    "claude-code": Provider(
        kind="claude_code",
        base_url="${ANTHROPIC_BASE_URL:-}",
        api_key="${ANTHROPIC_API_KEY:-}",
    ),
}


@cache
def api_kinds() -> tuple[str, ...]:
    """Return the target kinds for models behind an API: the files `targets/*_api.py`, and plug-ins named alike."""
    return tuple(name for name in registry.names("targets") if name.endswith("_api"))


@cache
def known_providers() -> dict[str, Provider]:
    """Return the providers by name: one for each API (`targets/NAME_api.py` serves `NAME:model`), and the others."""
    by_api = {kind.removesuffix("_api"): registry.load("targets", kind).provider for kind in api_kinds()}
    return {name: provider for name, provider in by_api.items() if provider is not None} | _OTHERS


def find_provider(name: str, own: Mapping[str, Provider], environment: Mapping[str, str]) -> Provider | None:
    """Find a provider: the suite's own, a known one, one set by NAME_BASE_URL, or a target kind of a plug-in."""
    if name in own:
        return own[name]
    if name in known_providers():
        return known_providers()[name]
    variable = name.upper().replace("-", "_")
    if environment.get(f"{variable}_BASE_URL"):
        return Provider(
            kind="openai_api",
            base_url=f"${{{variable}_BASE_URL}}",
            api_key=f"${{{variable}_API_KEY:-}}",
        )
    return Provider(kind=name) if name in plugged_in() else None


@cache
def plugged_in() -> tuple[str, ...]:
    """Return the target kinds that suites name directly, because no provider stands for them."""
    provided = {provider.kind for provider in known_providers().values()}
    return tuple(name for name in registry.names("targets") if name not in provided and name not in api_kinds())


def split_name(target: str) -> tuple[str, str]:
    """Split `provider:model` or `provider/model` into its two parts; an agent's name has no second part."""
    separators = [position for position in (target.find(":"), target.find("/")) if position > 0]
    if not separators:
        return target, ""
    return target[: min(separators)], target[min(separators) + 1 :]
