"""Embeddings: what providers are sent for one, and how they reply."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from fairtrial.core.answer import Answer, Failure, Usage
from fairtrial.providers.errors import unreadable
from fairtrial.providers.replies import UNREADABLE, tokens

if TYPE_CHECKING:
    from yarl import URL

PATH = "/embeddings"  # of OpenAI's API, below a provider's base URL


class Vector(NamedTuple):
    """An embedding, and the tokens that it took, if the provider tells."""

    values: list[float]
    tokens: Any = None


class EmbeddingCall(NamedTuple):
    """A request for an embedding: its address and body, and how the decoded reply is read."""

    url: str | URL
    body: dict[str, Any]
    read: Callable[[Any], Vector]


def openai_vector(reply: Any) -> Vector:
    """Read a reply of OpenAI's API."""
    return Vector(reply["data"][0]["embedding"], (reply.get("usage") or {}).get("prompt_tokens"))


def read_embedding(call: EmbeddingCall, body: bytes, latency_ms: float) -> Answer | Failure:
    """Read a reply; the embedding is the text of the answer."""
    try:
        vector = call.read(msgspec.json.decode(body))
        values = msgspec.convert(vector.values, list[float])
    except (*UNREADABLE, KeyError, IndexError, TypeError, AttributeError) as error:
        return unreadable(body, "embedding", error)
    prompt = tokens(vector.tokens)
    return Answer(
        text=msgspec.json.encode(values).decode(),
        finish_reason="stop",
        usage=None if prompt is None else Usage(prompt=prompt),
        latency_ms=latency_ms,
    )
