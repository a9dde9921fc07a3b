"""Vendors of models by promptfoo's names: which of ours they are, and what LiteLLM calls those that we do not reach."""

from __future__ import annotations

import re
from functools import cache
from typing import Any, NamedTuple

from fairtrial.core.providers import Provider, known_providers, plain_name
from fairtrial.tracks.interchange.importers._promptfoo.nunjucks import variable

_VARIABLE = re.compile(r"\$\{(\w+)(?::-([^}]*))?\}")


class Server(NamedTuple):
    """An OpenAI-compatible server, and the variable that has its key."""

    base_url: str
    key: str


# What vendors with an API of their own have next to it: the settings of promptfoo's users are often for this one.
_OTHER_DOORS = {
    "azure": Server(f"https://{variable('AZURE_API_HOST')}/openai/v1", "AZURE_API_KEY"),
    "google": Server("https://generativelanguage.googleapis.com/v1beta/openai", "GOOGLE_API_KEY"),
}
_KEYS = {"vercel": "VERCEL_AI_GATEWAY_API_KEY", "litellm-proxy": "LITELLM_API_KEY"}  # where promptfoo reads another one
_ADDRESSES = {"DATABRICKS_HOST": "DATABRICKS_WORKSPACE_URL", "LITELLM_PROXY_API_BASE": "LITELLM_API_BASE"}
_COMPATIBLE = ("openai_api", "mistral_api")  # APIs that take what promptfoo sends to OpenAI
KINDS = (  # the part of a name that selects an API
    "chat", "messages", "completion", "text-generation", "text", "converse", "chat-completion", "openai", "llama",
    "anthropic", "jumpstart", "huggingface", "custom", "language",
)  # fmt: skip
NOT_CHAT = (
    "embedding", "embeddings", "image", "assistant", "moderation", "realtime", "speech", "transcription", "video",
    "codex-sdk", "codex-app-server", "claude-agent-sdk", "agents", "chatkit", "tts", "live", "feature-extraction",
    "text-classification", "token-classification", "sentence-similarity", "openai-image", "nova-sonic", "agent", "kb",
    "agents-python", "api", "foundry-agent", "nova-reel", "luma-ray", "voice", "text-to-speech", "interactions",
)  # fmt: skip
_ONE_API = ("sagemaker", "bedrock", "cloudflare", "databricks")  # whose names have a kind that is part of the API


@cache
def _names() -> dict[str, str]:
    return {other: name for name, provider in known_providers().items() for other in provider.promptfoo}


def our_name(vendor: str) -> str:
    """Return our name of a provider of promptfoo's; one that is not known here keeps its own."""
    return _names().get(vendor) or plain_name(vendor)


def compatible(provider: str) -> Provider | None:
    """Return a provider that takes what promptfoo sends to OpenAI, and is reached by its name here."""
    known = known_providers().get(provider)
    return known if known is not None and known.kind in _COMPATIBLE else None


def with_variables(template: str) -> str:
    """Return an address of ours as it is in imported suites: with the variables that promptfoo reads."""
    return _VARIABLE.sub(lambda match: variable(_ADDRESSES.get(match[1], match[1]), match[2]), template)


def server_of(provider: str) -> Server | None:
    """Return the OpenAI-compatible server of a provider at its usual address, if it has one."""
    known = compatible(provider)
    if known is None:
        return _OTHER_DOORS.get(provider)
    return Server(with_variables(known.address), _KEYS.get(provider, known.variable))


def through_litellm(provider: str) -> bool:
    """Return whether LiteLLM reaches a provider that has no server of this kind, or more than that can do."""
    known = known_providers().get(provider)
    return known is not None and known.kind in ("litellm", "google_api", "vertex_api", "bedrock_api")


def litellm_name(provider: str) -> str:
    """Return what LiteLLM calls a provider, with the stroke that goes before the model."""
    known = known_providers().get(our_name(provider))
    return f"{(known.litellm if known else '') or provider}/"


def vertex(config: dict[str, Any]) -> Server:
    """Return the server of Vertex AI for a region and a project."""
    region = config.get("region") or variable("VERTEX_REGION", "us-central1")
    project = config.get("projectId") or variable("VERTEX_PROJECT_ID")
    host = "https://aiplatform.googleapis.com" if region == "global" else f"https://{region}-aiplatform.googleapis.com"
    return Server(f"{host}/v1/projects/{project}/locations/{region}/endpoints/openapi", "VERTEX_ACCESS_TOKEN")


def is_kind(provider: str, kind: str) -> bool:
    """Return whether the second part of a name selects an API, and is not part of the model's name."""
    if kind in ("openai", "llama", "anthropic", "jumpstart", "huggingface", "custom", "language"):
        return provider in _ONE_API
    return kind in KINDS
