"""`google_api`: Google's Gemini API."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Sequence
from typing import Any, ClassVar
from urllib.parse import quote, urlsplit, urlunsplit

import msgspec

from fairtrial.core.answer import FILTERED, Answer, Failure
from fairtrial.core.experiment import TargetSpec
from fairtrial.core.file import File
from fairtrial.providers.batch import BatchApi
from fairtrial.providers.batches.google import GoogleBatches
from fairtrial.providers.conversation import Conversation, Turn, merge, read_call
from fairtrial.providers.embeddings import EmbeddingCall, Vector
from fairtrial.providers.errors import error_of_status, failed_mid_stream, malformed, unreadable, unreadable_event
from fairtrial.providers.params import Api
from fairtrial.providers.reasoning import Reasoning
from fairtrial.providers.replies import UNREADABLE, decode_or_none, google_usage, is_first, place_of_first, text_or_none
from fairtrial.providers.streamed import Collected, Streamed
from fairtrial.providers.tools import RequestedCall, ToolResult, ToolRound
from fairtrial.providers.transport import HttpTarget, as_answer

_NAMES = {
    "max_tokens": "maxOutputTokens",
    "temperature": "temperature",
    "top_p": "topP",
    "stop": "stopSequences",
    "seed": "seed",
    "presence_penalty": "presencePenalty",
    "frequency_penalty": "frequencyPenalty",
}
_FINISH = {"STOP": "stop", "MAX_TOKENS": "length"}
_FILTERS = frozenset(
    {"SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT"}
)

_UNSIGNED = re.compile(r"(gemini-[12]\b|gemma-)")  # models that do not ask for signatures of the calls they made
_NO_SIGNATURE = "skip_thought_signature_validator"  # documented for calls whose signature is not there any more


class _Part(msgspec.Struct, rename="camel"):
    text: str | None = None
    thought: Any = None
    function_call: Any = None


class _Content(msgspec.Struct):
    parts: list[_Part] | None = None


class _Candidate(msgspec.Struct, rename="camel"):
    index: Any = None
    content: _Content | None = None
    finish_reason: Any = None


class _Reply(msgspec.Struct, rename="camel"):
    candidates: list[_Candidate] | None = None
    prompt_feedback: Any = None
    error: Any = None
    usage_metadata: msgspec.Raw = msgspec.Raw()
    model_version: msgspec.Raw = msgspec.Raw()


_decode = msgspec.json.Decoder(_Reply).decode


class GoogleConversation(Conversation):
    """A conversation in the format of `generateContent`."""

    call_ids: ClassVar[bool] = False  # they are optional, and not every version of the API on Vertex knows them

    def message(self, role: str, text: str, files: Sequence[File] = ()) -> dict[str, Any]:
        parts = [*map(self.file_part, files), {"text": text}]
        return {"role": "model" if role == "assistant" else "user", "parts": parts}

    def file_part(self, file: File) -> dict[str, Any]:
        return {"inlineData": {"mimeType": file.media, "data": b64encode(file.body).decode()}}

    def body(self) -> dict[str, Any]:
        request = self.request
        params = self.params()
        extra, reasoning = params.pop("extra", {}), params.pop("reasoning", None)
        settings: dict[str, Any] = {_NAMES[name]: value for name, value in params.items() if name in _NAMES}
        if reasoning is not None:
            settings["thinkingConfig"] = _thinking(reasoning)
        if request.schema is not None:
            settings |= {"responseMimeType": "application/json", "responseJsonSchema": request.schema}
        body: dict[str, Any] = {"contents": self.messages}
        if settings:
            body["generationConfig"] = settings
        if request.system:
            body["systemInstruction"] = {"parts": [{"text": request.system}]}
        if self.tools:
            tools = [
                {"name": tool.name, "description": tool.description, "parametersJsonSchema": tool.schema}
                for tool in self.tools
            ]
            body["tools"] = [{"functionDeclarations": tools}]
        return merge(body, extra)

    @staticmethod
    def read(reply: bytes) -> Turn | Failure:
        try:
            decoded = _decode(reply)
        except UNREADABLE as error:
            return unreadable(reply, "reply of Gemini", error)
        if decoded.error is not None:
            return failure_in(decoded.error)
        if not decoded.candidates and decoded.prompt_feedback is None:
            return malformed("the reply has no candidates")
        candidates = decoded.candidates or [_Candidate()]
        candidate = candidates[place_of_first([one.index for one in candidates])]
        parts = (candidate.content.parts if candidate.content else None) or []
        blocked = _block_reason(decoded.prompt_feedback) if not decoded.candidates else ""
        return Turn(
            text=blocked or "".join(part.text for part in parts if part.text and not part.thought),
            finish_reason=FILTERED if blocked else _finish(candidate.finish_reason),
            usage=google_usage(decode_or_none(decoded.usage_metadata)),
            model=text_or_none(decode_or_none(decoded.model_version)),
            calls=tuple(_call(part) for part in parts if isinstance(part.function_call, dict)),
            thinking="".join(part.text for part in parts if part.text and part.thought),
            raw=reply,
        )

    def said(self, turn: Turn) -> list[Any]:
        # With its signatures: newer models refuse thoughts that come back without them.
        candidates = msgspec.json.decode(turn.raw)["candidates"]
        return [candidates[place_of_first([one.get("index") for one in candidates])]["content"]]

    def called(self, step: ToolRound) -> list[Any]:
        texts = [{"text": step.text}] if step.text else []
        calls: list[dict[str, Any]] = [
            {"functionCall": {"name": call.name, "args": call.arguments}} for call in step.calls()
        ]
        if not _UNSIGNED.match(self.spec.model):
            calls[0]["thoughtSignature"] = _NO_SIGNATURE
        return [{"role": "model", "parts": [*texts, *calls]}]

    def returned(self, results: Sequence[ToolResult]) -> list[Any]:
        answers = [
            {
                "functionResponse": {
                    **({"id": result.call.id} if result.call.id else {}),
                    "name": result.call.name,
                    "response": {"error" if result.error else "result": result.text},
                }
            }
            for result in results
        ]
        return [{"role": "user", "parts": answers}]


def _thinking(setting: Reasoning) -> dict[str, Any]:
    if setting == 0:
        return {"thinkingBudget": 0}
    how = {"thinkingLevel": setting} if isinstance(setting, str) else {"thinkingBudget": setting}
    return {**how, "includeThoughts": True}


def _call(part: _Part) -> RequestedCall:
    call = part.function_call
    return read_call(call.get("id"), call.get("name"), call.get("args"))


def _finish(reason: Any) -> str | None:
    if not isinstance(reason, str):
        return None
    return FILTERED if reason in _FILTERS else _FINISH.get(reason, reason.lower())


def _block_reason(feedback: Any) -> str:
    """Return why a prompt was blocked; it is the text of the answer, as there is no other."""
    reason = feedback.get("blockReason") if isinstance(feedback, dict) else None
    return str(reason or "the prompt was blocked")


def failure_in(error: Any) -> Failure:
    """Return the failure for an error that came with status 200, as in the middle of a stream."""
    code = error.get("code") if isinstance(error, dict) else None
    status = code if isinstance(code, int) and 400 <= code < 600 else 500
    result = as_answer(error_of_status(status, msgspec.json.encode({"error": error})))
    assert isinstance(result, Failure), "Gemini reports filters in the reply"
    return result


class GoogleStreamed(Streamed):
    """A reply assembled from chunks; the last one says why it ended."""

    def __init__(self, collected: Collected) -> None:
        super().__init__(collected)
        self._blocked = ""
        self.usage = self.model = msgspec.Raw()

    def take(self, data: bytes) -> Answer | Failure | None:
        try:
            reply = _decode(data)
        except UNREADABLE as error:
            return unreadable_event(error)
        self.usage = reply.usage_metadata or self.usage
        self.model = reply.model_version or self.model
        if reply.error is not None:
            return failed_mid_stream(failure_in(reply.error), google_usage(decode_or_none(self.usage)))
        if reply.candidates:
            for candidate in reply.candidates:
                if is_first(candidate.index):  # others are answers that nobody asked for
                    self._take_candidate(candidate)
        elif reply.prompt_feedback is not None:
            self._blocked, self.done, self.finish = _block_reason(reply.prompt_feedback), True, FILTERED
        return None

    def _take_candidate(self, candidate: _Candidate) -> None:
        for part in (candidate.content.parts if candidate.content else None) or ():
            if part.text:
                (self.collected.think if part.thought else self.collected.say)(part.text)
            elif isinstance(part.function_call, dict):
                call = part.function_call
                arguments = msgspec.json.encode(call.get("args") or {}).decode()
                self.add_call(len(self._calls), call.get("id"), call.get("name"), arguments)
        if candidate.finish_reason is not None:
            self.finish, self.done = _finish(candidate.finish_reason), True

    def turn(self) -> Turn:
        return Turn(
            text=self._blocked or self.collected.text,
            finish_reason=self.finish,
            usage=google_usage(decode_or_none(self.usage)),
            model=text_or_none(decode_or_none(self.model)),
            calls=self.calls,
            thinking=self.collected.thinking,
        )


class GoogleApi(HttpTarget):
    """A model behind the Gemini API."""

    api: ClassVar[Api] = Api(without_neutral=True)
    conversation: ClassVar[type[Conversation]] = GoogleConversation
    streamed: ClassVar[type[Streamed]] = GoogleStreamed
    batch_api: ClassVar[type[BatchApi] | None] = GoogleBatches

    takes_chats: ClassVar[bool] = True
    takes_files: ClassVar[bool] = True

    embeds: ClassVar[bool] = True

    @staticmethod
    def headers(spec: TargetSpec) -> dict[str, str]:
        return {"x-goog-api-key": spec.api_key}

    def embedding(self, text: str) -> EmbeddingCall:
        model = f"models/{self.spec.model}"
        one = {"model": model, "content": {"parts": [{"text": text}], "role": "user"}}
        return EmbeddingCall(self._url(":batchEmbedContents"), {"requests": [one]}, _vector)

    def url(self, *, stream: bool = False) -> str:
        return self._url(method(stream), sse(stream))

    def _url(self, call: str, query: str = "") -> str:
        base = urlsplit(self.spec.base_url)
        path = base.path.rstrip("/")
        if not re.search(r"/v\d\w*$", path):  # aliases such as `gemini-flash-latest` are only known to v1beta
            path += "/v1beta" if self.spec.model.endswith("-latest") else "/v1"
        return urlunsplit(base._replace(path=f"{path}/models/{quote(self.spec.model)}{call}", query=query))


def _vector(reply: Any) -> Vector:
    """Read the only embedding of a reply; Gemini says how many tokens it took for some models."""
    return Vector(reply["embeddings"][0]["values"], (reply.get("usageMetadata") or {}).get("promptTokenCount"))


def method(stream: bool) -> str:
    """Return the end of the path of a call."""
    return ":streamGenerateContent" if stream else ":generateContent"


def sse(stream: bool) -> str:
    """Return the query of a call: without it, a stream would be a JSON array."""
    return "alt=sse" if stream else ""
