"""Addresses and keys of providers, as templates that are filled in from the environment."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

import msgspec

from fairtrial.core import registry

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-[^}]*)?\}")


class Provider(msgspec.Struct, frozen=True, kw_only=True):
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
    batches: bool = True  # whether it has the batch API that others with its API have

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

    def ready(self, environment: Mapping[str, str]) -> bool:
        """Return whether it can be used with the variables in this environment."""
        needed = self.resolved(environment).needed
        if not needed and self.signs_in:
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


def _compatible(name: str, url: str, key: str = "", **differences: object) -> Provider:
    """Return a provider with OpenAI's chat API, with `NAME_BASE_URL` for another address."""
    return Provider(
        kind="openai_api",
        base_url=f"${{{name}_BASE_URL:-{url}}}",
        api_key=f"${{{key or f'{name}_API_KEY'}}}",
        batches=False,
        **differences,  # type: ignore[arg-type]
    )


_PENALTIES = frozenset({"frequency_penalty", "presence_penalty"})

# Providers that use another provider's API, and targets that are not an API.
_OTHERS: dict[str, Provider] = {
    "openrouter": _compatible("OPENROUTER", "https://openrouter.ai/api/v1", reasoning="reasoning"),
    "groq": _compatible("GROQ", "https://api.groq.com/openai/v1", refuses=_PENALTIES),
    "xai": _compatible("XAI", "https://api.x.ai/v1", prices="x-ai"),
    "deepseek": _compatible("DEEPSEEK", "https://api.deepseek.com/v1", schemas=False, refuses=frozenset({"seed"})),
    "together": _compatible("TOGETHER", "https://api.together.xyz/v1"),
    "fireworks": _compatible("FIREWORKS", "https://api.fireworks.ai/inference/v1"),
    "cerebras": _compatible("CEREBRAS", "https://api.cerebras.ai/v1", refuses=_PENALTIES),
    "perplexity": _compatible(
        "PERPLEXITY", "https://api.perplexity.ai", refuses=frozenset({"seed", "stop"}), stream_usage=False
    ),
    "huggingface": msgspec.structs.replace(
        _compatible("HF", "https://router.huggingface.co/v1", "HF_TOKEN"),
        instead={"HF_TOKEN": ("${HUGGINGFACE_API_KEY}", "${HUGGING_FACE_HUB_TOKEN}")},
    ),
    "ollama": Provider(
        kind="openai_api",
        base_url="${OLLAMA_BASE_URL:-http://127.0.0.1:11434/v1}",
        api_key="${OLLAMA_API_KEY:-}",
        batches=False,
    ),
    "litellm": Provider(kind="litellm"),
    "http": Provider(kind="http"),
    "https": Provider(kind="http"),
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
        usual=("ANTHROPIC_API_KEY",),
    ),
    "codex": Provider(kind="codex", base_url="${OPENAI_BASE_URL:-}", api_key="${OPENAI_API_KEY:-}", prices="openai"),
    "gemini-cli": Provider(
        kind="gemini_cli",
        base_url="${GOOGLE_GEMINI_BASE_URL:-}",
        api_key="${GOOGLE_API_KEY:-}",
        instead={"GOOGLE_API_KEY": ("${GEMINI_API_KEY}",)},
        prices="google",
    ),
    "opencode": Provider(kind="opencode"),
}
# Stands in imported suites whose original names no model: not a provider, so that `validate` asks for one.
TO_CHOOSE = "choose:a-model"
CHOOSE_A_MODEL = f"unknown provider `choose`: put PROVIDER:MODEL in place of `{TO_CHOOSE}`"
# Agents around a model that is named as a target itself: `opencode:openai:gpt-5`.
AROUND_A_MODEL = ("tool-agent", "opencode")
# Names under which other tools know a provider.
_SYNONYMS = {
    "gemini": "google",
    "vertex_ai": "vertex",
    "vertexai": "vertex",
    "azure_openai": "azure",
    "together_ai": "together",
    "fireworks_ai": "fireworks",
    "grok": "xai",
}


@cache
def api_kinds() -> tuple[str, ...]:
    """Return the target kinds for models behind an API: the files `targets/*_api.py`, and plug-ins named alike."""
    return tuple(name for name in registry.names("targets") if name.endswith("_api"))


@cache
def known_providers() -> dict[str, Provider]:
    """Return the providers by name: one for each API (`targets/NAME_api.py` serves `NAME:model`), and the others."""
    by_api = {_served_by(kind): registry.load("targets", kind).provider for kind in api_kinds()}
    return {name: provider for name, provider in by_api.items() if provider is not None} | _OTHERS


def _served_by(kind: str) -> str:
    return kind.removesuffix("_api").replace("_", "-")


def api_providers() -> dict[str, Provider]:
    """Return the known providers of models behind an API."""
    return {name: provider for name, provider in known_providers().items() if provider.kind in api_kinds()}


def plain_name(provider: str) -> str:
    """Return our name of a provider that other tools call differently, such as `vertex` for `vertex_ai`."""
    return _SYNONYMS.get(provider, provider)


def find_provider(name: str, own: Mapping[str, Provider], environment: Mapping[str, str]) -> Provider | None:
    """Find a provider: the suite's own, a known one, one set by NAME_BASE_URL, or a target kind of a plug-in."""
    if name in own:
        return own[name]
    known = known_providers().get(plain_name(name))
    if known is not None:
        return known.resolved(environment)
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
