"""Lists of models that can be fetched, one per file: those of providers, and public tables of many providers.

A file has `LIST`, which says where it is, and `read`, which makes rows of the sheet from what is there. The list of a
provider says what its API does; a public table is read for dates, limits and prices only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date
from typing import Any

import msgspec

from fairtrial.core.settings import PriceSpec

Row = dict[str, Any]
PER_MILLION = 1_000_000

# Providers, and agents by name, that ask a vendor's own API.
AT_THE_VENDOR = {
    "openai": ("openai", "openai-responses", "codex"),
    "anthropic": ("anthropic", "claude-code"),
    "google": ("google", "gemini-cli"),
}
# Providers that public tables call as we do.
SAME_NAMES = {name: (name,) for name in ("azure", "mistral", "xai", "deepseek", "groq", "cerebras", "perplexity")}
PROVIDERS = ("openai", "anthropic", "google", "mistral", "openrouter")  # a file each
TABLES = ("litellm", "models_dev")  # a file each


class ModelList(msgspec.Struct, frozen=True, kw_only=True):
    """Where a list is: a path at a provider's address, or an address that a variable can change."""

    name: str  # of the provider or the table, and of the file that is kept
    path: str = ""
    headers: Callable[[str], dict[str, str]] | None = None  # with the provider's key
    address: str = ""
    variable: str = ""
    following: Callable[[Mapping[str, Any]], str] = lambda page: ""  # what is asked for the next page; empty: the last

    @property
    def public(self) -> bool:
        """Whether it is someone else's table."""
        return bool(self.address)


def providers_named(name: str) -> list[str]:
    """Return the providers for which the list of a vendor speaks."""
    return list(AT_THE_VENDOR.get(name, (name,)))


def bearer(key: str) -> dict[str, str]:
    """Return the header in which most APIs want their key."""
    return {"Authorization": f"Bearer {key}"}


def objects(page: Any, key: str = "data") -> list[dict[str, Any]]:
    """Return the objects of a list; raise ValueError if it is none."""
    found = page.get(key) if isinstance(page, dict) else None
    if not isinstance(found, list):
        raise ValueError(f"it has no list `{key}`")
    return [item for item in found if isinstance(item, dict)]


def day_of(value: Any) -> str | None:
    """Return the day of a date or a time as text; None if it is none."""
    if not isinstance(value, str):
        return None
    try:
        return date.fromisoformat(value[:10]).isoformat()
    except ValueError:
        return None


def whole_number(value: Any) -> int | None:
    """Return a number of tokens; None if it is none."""
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) and value >= 1 else None


def price(rates: Mapping[str, Any], names: Mapping[str, str], times: float = 1.0) -> dict[str, float] | None:
    """Return a price per million tokens from rates under other names; None without one for prompt and completion."""
    found = {}
    for ours, theirs in names.items():
        try:
            value = float(rates[theirs]) * times
        except (KeyError, TypeError, ValueError):
            continue
        if value < 0:  # it depends on the model that is chosen
            return None
        found[ours] = round(value, 9)
    return msgspec.to_builtins(PriceSpec(**found)) if {"input", "output"} <= set(found) else None


def stated(**facts: Any) -> Row:
    """Return the facts that are known."""
    return {name: value for name, value in facts.items() if value is not None}
