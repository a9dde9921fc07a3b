"""`litellm`: models of any provider that the LiteLLM library knows and fairtrial does not."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterable
from typing import Any, ClassVar

import msgspec

from fairtrial.core.answer import Answer, Failure, Request
from fairtrial.core.errors import NotInstalledError
from fairtrial.core.target import Target
from fairtrial.providers.errors import cut_off, error_of_status, failure_of
from fairtrial.providers.params import Api, supported_params
from fairtrial.providers.streamed import Collected
from fairtrial.providers.transport import as_answer
from fairtrial.targets.openai_api import OpenaiConversation, OpenaiStreamed

_EXTRA = "litellm"


class Litellm(Target):
    """A model through LiteLLM, with the variables that it reads; the name is LiteLLM's, such as `litellm:cohere/…`."""

    api: ClassVar[Api] = Api()
    priced: ClassVar[bool] = True
    takes_chats: ClassVar[bool] = True
    takes_files: ClassVar[bool] = True

    @classmethod
    def accepts(cls, spec: Any) -> Api:
        return cls.api

    @classmethod
    def check(cls, spec: Any, options: Any, folder: Any) -> Iterable[str]:
        if not spec.model:
            yield "name a model as LiteLLM does: `litellm:cohere/command-a`"

    @property
    def lane(self) -> str:
        return f"litellm:{self.spec.model.partition('/')[0]}"

    async def open(self, concurrency: int) -> None:
        os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # or it would fetch prices when it is imported
        try:
            self._litellm: Any = await asyncio.to_thread(__import__, "litellm")  # which takes seconds
        except ImportError:
            raise NotInstalledError("LiteLLM", _EXTRA) from None
        self._litellm.suppress_debug_info = True

    def sent(self, request: Request) -> dict[str, Any]:
        return supported_params(self.spec, request.params)

    def versions(self) -> dict[str, str]:
        from importlib.metadata import version

        return {"litellm": version("litellm")}

    async def ask(self, request: Request) -> Answer | Failure:
        body = OpenaiConversation(self.spec, request).body()
        more = {"stream_options": {"include_usage": True}} if request.stream else {}
        started = time.perf_counter()
        try:
            reply = await self._litellm.acompletion(**body, **more, stream=request.stream, num_retries=0, max_retries=0)
            if request.stream:
                return await _read_stream(reply, Collected(request.listener, started))
        except Exception as error:  # LiteLLM has an exception for each status
            return _failure(error, started)
        turn = OpenaiConversation.read(reply.model_dump_json().encode())
        return turn if isinstance(turn, Failure) else turn.answer((time.perf_counter() - started) * 1000)


async def _read_stream(chunks: Any, collected: Collected) -> Answer | Failure:
    streamed = OpenaiStreamed(collected)
    async for chunk in chunks:
        if (ended := streamed.take(chunk.model_dump_json().encode())) is not None:
            return ended
    if not streamed.done:
        return cut_off()
    return streamed.turn().answer(collected.latency_ms, collected.first_token_ms)


def _failure(error: Exception, started: float) -> Answer | Failure:
    status = getattr(error, "status_code", None)
    if not isinstance(status, int):
        return failure_of(error, answering=False, streaming=False)
    kind = type(error).__name__
    code = "content_filter" if kind == "ContentPolicyViolationError" else ""
    body = msgspec.json.encode({"error": {"message": getattr(error, "message", None) or str(error), "code": code}})
    headers = getattr(getattr(error, "response", None), "headers", None)
    return as_answer(error_of_status(status, body, headers), started)
