"""Where the models of a provider live, as templates: keys and addresses come from the environment."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec


class Provider(msgspec.Struct, frozen=True, kw_only=True):
    """How to reach a provider: which adapter, which address, which key."""

    kind: str
    base_url: str = ""
    api_key: str = ""
    headers: dict[str, str] = {}


KNOWN: dict[str, Provider] = {
    "openai": Provider(
        kind="openai_api",
        base_url="${OPENAI_BASE_URL:-https://api.openai.com/v1}",
        api_key="${OPENAI_API_KEY}",
    ),
    "anthropic": Provider(
        kind="anthropic_api",
        base_url="${ANTHROPIC_BASE_URL:-https://api.anthropic.com}",
        api_key="${ANTHROPIC_API_KEY}",
    ),
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


def find_provider(
    name: str, own: Mapping[str, Provider], environment: Mapping[str, str], plugins: list[str]
) -> Provider | None:
    """The suite's own provider, a known one, one given by NAME_BASE_URL, or a plugged-in kind of target."""
    if name in own:
        return own[name]
    if name in KNOWN:
        return KNOWN[name]
    variable = name.upper().replace("-", "_")
    if environment.get(f"{variable}_BASE_URL"):
        return Provider(
            kind="openai_api",
            base_url=f"${{{variable}_BASE_URL}}",
            api_key=f"${{{variable}_API_KEY:-}}",
        )
    return Provider(kind=name) if name in plugins else None


def split_name(target: str) -> tuple[str, str]:
    """`provider:model` or `provider/model` into its two parts; an agent's name stands alone."""
    ends = [position for position in (target.find(":"), target.find("/")) if position > 0]
    if not ends:
        return target, ""
    return target[: min(ends)], target[min(ends) + 1 :]
