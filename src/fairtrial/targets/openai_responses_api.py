"""`openai_responses_api`: OpenAI's Responses API, which keeps reasoning and tools together."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from typing import Any, ClassVar

import msgspec

from fairtrial.core.answer import FILTERED, REFUSED, Answer, Failure, Request
from fairtrial.core.file import File
from fairtrial.providers.batch import BatchApi
from fairtrial.providers.batches.openai import OpenaiBatches
from fairtrial.providers.conversation import BAD_TURN, Conversation, Turn, merge, read_call
from fairtrial.providers.errors import error_of_status, failed_mid_stream, malformed, unreadable, unreadable_event
from fairtrial.providers.params import PENALTIES, Api, sheet_behind
from fairtrial.providers.replies import UNREADABLE, decode_or_none, finish_of, responses_usage, text_or_none
from fairtrial.providers.streamed import Collected, Streamed
from fairtrial.providers.tools import ToolResult, ToolRound
from fairtrial.providers.transport import HttpTarget, as_answer

_STATUS = {"rate_limit_exceeded": 429, "server_error": 500, "invalid_prompt": 400, "insufficient_quota": 429}
_TEXT = "response.output_text.delta"
_THOUGHTS = ("response.reasoning_summary_text.delta", "response.reasoning_text.delta")
_ENDS = ("response.completed", "response.incomplete", "response.failed")


class _Response(msgspec.Struct):
    status: Any = None
    output: list[dict[str, Any]] | None = None
    error: Any = None
    incomplete_details: Any = None
    usage: msgspec.Raw = msgspec.Raw()
    model: msgspec.Raw = msgspec.Raw()


class _Event(msgspec.Struct):
    type: Any = ""
    delta: Any = None
    response: msgspec.Raw = msgspec.Raw()
    code: Any = None


_decode = msgspec.json.Decoder(_Response).decode
_decode_event = msgspec.json.Decoder(_Event).decode


class ResponsesConversation(Conversation):
    """A conversation in the format of Responses."""

    path: ClassVar[str] = "/responses"

    def message(self, role: str, text: str, files: Sequence[File] = ()) -> dict[str, Any]:
        parts = [*map(self.file_part, files), {"type": "input_text", "text": text}]
        return {"role": role, "content": parts if files else text}

    def file_part(self, file: File) -> dict[str, Any]:
        data = f"data:{file.media};base64,{b64encode(file.body).decode()}"
        if file.is_image:
            return {"type": "input_image", "image_url": data}
        return {"type": "input_file", "filename": file.name, "file_data": data}

    def body(self) -> dict[str, Any]:
        request = self.request
        params = self.params()
        extra, reasoning = params.pop("extra", {}), params.pop("reasoning", None)
        if "max_tokens" in params:
            params["max_output_tokens"] = params.pop("max_tokens")
        body: dict[str, Any] = {"model": self.spec.model, "input": self.messages, "store": False, **params}
        if request.system:
            body["instructions"] = request.system
        if reasoning is not None:
            body["reasoning"] = {"effort": reasoning}
        if request.schema is not None:
            shape = {"type": "json_schema", "name": "reply", "strict": True, "schema": request.schema}
            body["text"] = {"format": shape}
        if self.tools:
            body["tools"] = [
                {
                    "type": "function",
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": tool.schema,
                    "strict": False,
                }
                for tool in self.tools
            ]
            if sheet_behind(self.spec).reasoning is not None and reasoning != "none":
                # nothing is stored there, so its thoughts must be sent back
                body["include"] = ["reasoning.encrypted_content"]
        return merge(body, extra)

    @staticmethod
    def read(reply: bytes) -> Turn | Failure:
        try:
            response = _decode(reply)
            return _failure_in(response.error) if response.error else _turn(response, reply)
        except BAD_TURN as error:
            return unreadable(reply, "response", error)

    def said(self, turn: Turn) -> list[Any]:
        output: list[Any] = msgspec.json.decode(turn.raw)["output"]
        return output

    def called(self, step: ToolRound) -> list[Any]:
        calls = [
            {
                "type": "function_call",
                "call_id": call.id,
                "name": call.name,
                "arguments": msgspec.json.encode(call.arguments).decode(),
            }
            for call in step.calls()
        ]
        return [*([self.message("assistant", step.text)] if step.text else []), *calls]

    def returned(self, results: Sequence[ToolResult]) -> list[Any]:
        return [
            {"type": "function_call_output", "call_id": result.call.id, "output": result.text} for result in results
        ]


def _turn(response: _Response, raw: bytes) -> Turn | Failure:
    if response.output is None or response.status not in ("completed", "incomplete"):
        reason = "the reply has no output" if response.output is None else f"its status is {response.status}"
        return malformed(reason)
    texts, refusals, thoughts, calls = [], [], [], []
    for item in response.output:
        if item.get("type") == "message":
            texts += [part["text"] for part in item["content"] if part["type"] == "output_text"]
            refusals += [part["refusal"] for part in item["content"] if part["type"] == "refusal"]
        elif item.get("type") == "reasoning":
            thoughts += [part["text"] for part in (*(item.get("content") or ()), *(item.get("summary") or ()))]
        elif item.get("type") == "function_call":
            calls.append(read_call(item.get("call_id"), item["name"], item.get("arguments")))
    return Turn(
        text="\n".join(filter(None, ("".join(texts), "".join(refusals)))),
        finish_reason=REFUSED if refusals else _finish(response),
        usage=responses_usage(decode_or_none(response.usage)),
        model=text_or_none(decode_or_none(response.model)),
        calls=tuple(calls),
        thinking="\n".join(thoughts),
        raw=raw,
    )


def _finish(response: _Response) -> str | None:
    details = response.incomplete_details
    return finish_of(details.get("reason")) if isinstance(details, dict) else "stop"


def _failure_in(error: Any) -> Turn | Failure:
    code = str(error.get("code")) if isinstance(error, dict) else ""
    status = 400 if code == FILTERED else _STATUS.get(code, 500)
    result = as_answer(error_of_status(status, msgspec.json.encode({"error": error})))
    return Turn(text=result.text, finish_reason=result.finish_reason) if isinstance(result, Answer) else result


class ResponsesStreamed(Streamed):
    """A response of which the pieces are passed on; its last event has all of it once more."""

    def __init__(self, collected: Collected) -> None:
        super().__init__(collected)
        self._whole: Turn = Turn(text="")

    def take(self, data: bytes) -> Answer | Failure | None:
        try:
            event = _decode_event(data)
        except UNREADABLE as error:
            return unreadable_event(error)
        if event.type == _TEXT and isinstance(event.delta, str):
            self.collected.say(event.delta)
        elif event.type in _THOUGHTS and isinstance(event.delta, str):
            self.collected.think(event.delta)
        elif event.type == "error":
            return self._failed(_failure_in(msgspec.json.decode(data)))
        elif event.type in _ENDS:
            turn = ResponsesConversation.read(bytes(event.response))
            if isinstance(turn, Failure):
                return self._failed(turn)
            self._whole, self.done, self.over = turn, True, True
        return None

    def _failed(self, result: Turn | Failure) -> Answer | Failure:
        return failed_mid_stream(result) if isinstance(result, Failure) else result.answer(self.collected.latency_ms)

    def turn(self) -> Turn:
        return self._whole


class OpenaiResponsesApi(HttpTarget):
    """A model behind OpenAI's Responses API; nothing is stored there."""

    api: ClassVar[Api] = Api(refuses=PENALTIES | {"seed", "stop"}, endpoint="responses")
    conversation: ClassVar[type[Conversation]] = ResponsesConversation
    streamed: ClassVar[type[Streamed]] = ResponsesStreamed
    batch_api: ClassVar[type[BatchApi] | None] = OpenaiBatches

    takes_chats: ClassVar[bool] = True
    takes_files: ClassVar[bool] = True

    def body(self, request: Request) -> dict[str, Any]:
        body = super().body(request)
        return {**body, "stream": True} if request.stream else body
