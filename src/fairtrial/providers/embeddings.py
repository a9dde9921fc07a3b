"""Embeddings from servers with OpenAI's API."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import msgspec

from fairtrial.core.answer import Answer, Failure, Request, Usage
from fairtrial.core.experiment import TargetSpec
from fairtrial.providers.errors import error_of, failure_of, unreadable
from fairtrial.providers.replies import UNREADABLE, tokens
from fairtrial.providers.streams import read_body
from fairtrial.providers.transport import as_answer, endpoint

if TYPE_CHECKING:
    from aiohttp import ClientSession

_PATH = "/embeddings"


class _Item(msgspec.Struct):
    embedding: list[float]


class _Reply(msgspec.Struct):
    data: list[_Item]
    usage: Any = None


_decode = msgspec.json.Decoder(_Reply).decode


async def post_embedding(session: ClientSession, spec: TargetSpec, request: Request) -> Answer | Failure:
    """Ask a server for the embedding of a text, once."""
    body = msgspec.json.encode({"model": spec.model, "input": request.input})
    started = time.perf_counter()
    answering = False
    try:
        async with session.post(endpoint(spec.base_url, _PATH), data=body, allow_redirects=False) as response:
            if response.status != 200:
                return as_answer(await error_of(response, streaming=False), started)
            answering = True
            return _read(await read_body(response), started)
    except Exception as error:  # `failure_of` re-raises everything that is not a network error
        return failure_of(error, answering=answering, streaming=False)


def _read(body: bytes, started: float) -> Answer | Failure:
    try:
        reply = _decode(body)
        vector = reply.data[0].embedding
    except (*UNREADABLE, IndexError) as error:
        return unreadable(body, "embedding", error)
    prompt = tokens(reply.usage.get("prompt_tokens")) if isinstance(reply.usage, dict) else None
    return Answer(
        text=msgspec.json.encode(vector).decode(),
        finish_reason="stop",
        usage=None if prompt is None else Usage(prompt=prompt),
        latency_ms=(time.perf_counter() - started) * 1000,
    )
