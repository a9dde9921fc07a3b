"""`mistral_api`: Mistral's chat API, which is close to OpenAI's."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from typing import Any, ClassVar

from fairtrial.core.answer import Answer, Failure, Request
from fairtrial.core.file import File
from fairtrial.providers.batch import BatchApi
from fairtrial.providers.conversation import Conversation, Turn
from fairtrial.providers.params import Api
from fairtrial.providers.streamed import Streamed
from fairtrial.providers.tools import ToolResult, ToolRound
from fairtrial.targets.openai_api import OpenaiApi, OpenaiConversation, OpenaiStreamed

_BROKEN = Failure(kind="server", message="Mistral ended the answer with an error", retryable=True, maybe_billed=True)


class MistralConversation(OpenaiConversation):
    """A conversation in Mistral's format."""

    def body(self) -> dict[str, Any]:
        body = super().body()
        if "seed" in body:
            body["random_seed"] = body.pop("seed")
        body["stream"] = False
        return body

    def file_part(self, file: File) -> dict[str, Any]:
        data = f"data:{file.media};base64,{b64encode(file.body).decode()}"
        kind = "image_url" if file.is_image else "document_url"
        return {"type": kind, kind: data}

    @staticmethod
    def read(reply: bytes) -> Turn | Failure:
        turn = OpenaiConversation.read(reply)
        return _BROKEN if isinstance(turn, Turn) and turn.finish_reason == "error" else turn

    def called(self, step: ToolRound) -> list[Any]:
        (message,) = super().called(step)
        return [{**message, "content": step.text}]  # an empty text, where others send none

    def returned(self, results: Sequence[ToolResult]) -> list[Any]:
        return [
            {"role": "tool", "tool_call_id": result.call.id, "name": result.call.name, "content": result.text}
            for result in results
        ]


class MistralStreamed(OpenaiStreamed):
    """A completion assembled from stream chunks."""

    def take(self, data: bytes) -> Answer | Failure | None:
        return super().take(data) or (_BROKEN if self.finish == "error" else None)


class MistralApi(OpenaiApi):
    """A model behind Mistral's API."""

    batch_api: ClassVar[type[BatchApi] | None] = None
    api: ClassVar[Api] = Api(without_neutral=True)
    conversation: ClassVar[type[Conversation]] = MistralConversation
    streamed: ClassVar[type[Streamed]] = MistralStreamed

    def body(self, request: Request) -> dict[str, Any]:
        body = self.talk(request, self.sent(request)).body()
        body["stream"] = request.stream
        body.pop("stream_options", None)
        return body
