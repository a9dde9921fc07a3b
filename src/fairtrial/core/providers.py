"""Who provides models: names, addresses and keys, as templates that are filled in from the environment.

The table is `providers.json`, one row for each name that a suite can use. Who makes models comes before who serves
them, and both before who passes questions on: a model without its provider is taken to be of the first that has it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from fairtrial.core import registry

_TABLE = Path(__file__).with_name("providers.json")
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-[^}]*)?\}")
_DEFAULT = re.compile(r"\$\{\w+:-([^}]*)\}")
_ADDRESS = re.compile(r"(?:https?://)?\$\{([A-Za-z_][A-Za-z0-9_]*)")  # the variable with which a template begins
_HOST = re.compile(r"https?://([a-z0-9.-]+)")
_THIS_MACHINE = ("127.0.0.1", "localhost", "::1", "0.0.0.0")  # noqa: S104


class Provider(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How to reach a provider, and where it differs from others with the same API."""

    kind: str
    base_url: str = ""
    api_key: str = ""
    headers: dict[str, str] = {}
    # Templates that take the place of one of its variables: the first whose own variable is set.
    instead: dict[str, tuple[str, ...]] = {}
    signs_in: tuple[str, ...] = ()  # variables that its own library reads: one of them is enough
    # Variables with an empty default that are needed unless another way in is set: what the target's `check` says.
    usual: tuple[str, ...] = ()
    prices: str = ""  # its name in the price list, if it has another one there
    refuses: frozenset[str] = frozenset()  # parameters that none of its models accept
    schemas: bool = True  # whether it accepts a JSON schema for replies; otherwise the prompt has to do
    stream_usage: bool = True  # whether it must be asked for token counts in a stream (`stream_options`)
    reasoning: str = "reasoning_effort"  # the key that sets how much its models reason
    wants_thoughts: bool = False  # whether its models refuse earlier calls without the reasoning that led to them
    batches: bool = True  # whether it has the batch API that others with its API have
    local: bool = False  # whether it is a server of one's own, which needs no key and bills nobody
    hosts: tuple[str, ...] = ()  # in addition to that of its address: of its regions, resources and earlier names
    also: tuple[str, ...] = ()  # what other tools call it
    promptfoo: tuple[str, ...] = ()  # what it is called in configurations of promptfoo only
    litellm: str = ""  # its name in LiteLLM, if it has another one there
    ended: str = ""  # the day on which it was switched off

    @property
    def variable(self) -> str:
        """The variable that holds its key; empty if it needs none."""
        found = _VARIABLE.fullmatch(self.api_key)
        return found[1] if found and ":-" not in self.api_key else ""

    @property
    def variables(self) -> tuple[str, ...]:
        """All variables that it reads, for documentation."""
        others = (template for templates in self.instead.values() for template in templates)
        texts = (self.api_key, self.base_url, *others)
        return tuple(dict.fromkeys([*(name for text in texts for name in _VARIABLE.findall(text)), *self.signs_in]))

    @property
    def needed(self) -> tuple[str, ...]:
        """The variables that must be set."""
        names = (
            match[1]
            for text in (self.api_key, self.base_url)
            for match in _VARIABLE.finditer(text)
            if ":-" not in match[0]
        )
        return tuple(dict.fromkeys(names))

    @property
    def address(self) -> str:
        """Its usual address, in which only those variables are left that must be set."""
        return _DEFAULT.sub(r"\1", self.base_url)

    @property
    def addresses(self) -> tuple[str, ...]:
        """The variables that say to which server its key is sent."""
        first = _ADDRESS.match(self.base_url)
        if first is None:
            return ()
        others = (_ADDRESS.match(template) for template in self.instead.get(first[1], ()))
        return (first[1], *(other[1] for other in others if other))

    def ready(self, environment: Mapping[str, str]) -> bool:
        """Return whether it can be used with the variables in this environment."""
        needed = self.resolved(environment).needed
        if not needed and not self.local:  # it signs in by itself, or is a gateway: something says that it is wanted
            return any(environment.get(name) for name in self.variables)
        return all(environment.get(name) for name in needed)

    def resolved(self, environment: Mapping[str, str]) -> Provider:
        """Return the provider with the variables that are set in this environment."""
        if not self.instead:
            return self

        def replacement(match: re.Match[str]) -> str:
            candidates = self.instead.get(match[1], ())
            return next((text for text in candidates if _is_set(text, environment)), match[0])

        return msgspec.structs.replace(
            self,
            base_url=_VARIABLE.sub(replacement, self.base_url),
            api_key=_VARIABLE.sub(replacement, self.api_key),
        )


def _is_set(template: str, environment: Mapping[str, str]) -> bool:
    return all(environment.get(name) for name in _VARIABLE.findall(template))


# Stands in imported suites whose original names no model: not a provider, so that `validate` asks for one.
TO_CHOOSE = "choose:a-model"
CHOOSE_A_MODEL = f"unknown provider `choose`: put PROVIDER:MODEL in place of `{TO_CHOOSE}`"
# Agents around a model that is named as a target itself: `opencode:openai:gpt-6.1-sol`.
AROUND_A_MODEL = ("tool-agent", "opencode")


@cache
def api_kinds() -> tuple[str, ...]:
    """Return the target kinds for models behind an API: the files `targets/*_api.py`, and plug-ins named alike."""
    return tuple(name for name in registry.names("targets") if name.endswith("_api"))


@cache
def known_providers() -> dict[str, Provider]:
    """Return the providers by name: those of the table, and one for each further `NAME_api` of a plug-in."""
    table = msgspec.json.decode(_TABLE.read_bytes(), type=dict[str, Provider])
    plugged = ((kind, cls) for kind, cls in registry.plugged_parts("targets").items() if kind in api_kinds())
    others = {kind.removesuffix("_api").replace("_", "-"): getattr(cls, "provider", None) for kind, cls in plugged}
    return table | {name: provider for name, provider in others.items() if provider is not None}


def api_providers() -> dict[str, Provider]:
    """Return the known providers of models behind an API that can be asked today."""
    found = known_providers().items()
    return {name: provider for name, provider in found if provider.kind in api_kinds() and not provider.ended}


@cache
def address_variables() -> frozenset[str]:
    """Return the variables that say to which server a provider's key is sent."""
    return frozenset(name for provider in known_providers().values() for name in provider.addresses)


@cache
def _synonyms() -> dict[str, str]:
    return {other: name for name, provider in known_providers().items() for other in provider.also}


def plain_name(provider: str) -> str:
    """Return our name of a provider that other tools call differently, such as `vertex` for `vertex_ai`."""
    return _synonyms().get(provider, provider)


def provider_at(base_url: str) -> str | None:
    """Return whose API an address is, by its host; None for gateways and servers that could be anyone's."""
    host = urlsplit(base_url).hostname
    if not host or host in _THIS_MACHINE:
        return None
    return next((name for pattern, name in _hosts() if fnmatchcase(host, pattern)), None)


@cache
def _hosts() -> tuple[tuple[str, str], ...]:
    """Return patterns of hosts with the providers that are there."""
    return tuple(
        (pattern, name)
        for name, provider in api_providers().items()
        for pattern in (*_HOST.findall(provider.base_url), *provider.hosts)
    )


def find_provider(name: str, own: Mapping[str, Provider], environment: Mapping[str, str]) -> Provider | None:
    """Find a provider: the suite's own, a known one, one set by NAME_BASE_URL, or a target kind of a plug-in."""
    if name in own:
        return own[name]
    variable = re.sub(r"\W", "_", name.upper())
    known = known_providers().get(plain_name(name))
    if known is not None:
        return _as_named(known, variable, environment).resolved(environment)
    if environment.get(f"{variable}_BASE_URL"):
        return Provider(
            kind="openai_api",
            base_url=f"${{{variable}_BASE_URL}}",
            api_key=f"${{{variable}_API_KEY:-}}",
        )
    return Provider(kind=name) if name in plugged_in() else None


def _as_named(provider: Provider, variable: str, environment: Mapping[str, str]) -> Provider:
    """Return a provider with NAME_BASE_URL and NAME_API_KEY where these are set, whatever its own variables are."""
    if provider.kind != "openai_api":
        return provider
    set_ = {key for key in (f"{variable}_BASE_URL", f"{variable}_API_KEY") if environment.get(key)}
    other = set_ - {*provider.variables}
    return msgspec.structs.replace(
        provider,
        base_url=f"${{{variable}_BASE_URL}}" if f"{variable}_BASE_URL" in other else provider.base_url,
        api_key=f"${{{variable}_API_KEY}}" if f"{variable}_API_KEY" in other else provider.api_key,
    )


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
