"""`bedrock_api`: models on Amazon Bedrock, through its Converse API."""

from __future__ import annotations

import asyncio
import os
import re
from base64 import b64encode
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import quote

import msgspec

from fairtrial.core.answer import Answer, Failure
from fairtrial.core.errors import NotInstalledError, TargetUnusableError
from fairtrial.core.experiment import TargetSpec
from fairtrial.core.file import File
from fairtrial.core.target import Options
from fairtrial.providers.aws_frames import DamagedError, Frame, Frames
from fairtrial.providers.conversation import BAD_TURN, Conversation, Turn, merge, read_call, without_ranges
from fairtrial.providers.embeddings import EmbeddingCall, Vector
from fairtrial.providers.errors import error_of_status, failed_mid_stream, unreadable, unreadable_event
from fairtrial.providers.params import PENALTIES, Api, sheet_behind
from fairtrial.providers.reasoning import Reasoning
from fairtrial.providers.replies import bedrock_usage, decode_or_none, finish_of, text_or_none
from fairtrial.providers.sheet import Sheet
from fairtrial.providers.sigv4 import Credentials, signed_headers
from fairtrial.providers.streamed import Collected, Streamed
from fairtrial.providers.streams import EventParser
from fairtrial.providers.tools import ToolResult, ToolRound
from fairtrial.providers.transport import HttpTarget, as_answer

if TYPE_CHECKING:
    from yarl import URL

_NAMES = {"max_tokens": "maxTokens", "temperature": "temperature", "top_p": "topP", "stop": "stopSequences"}
_LONGEST = 2048  # tokens: Bedrock reserves what a model could write at most, so a limit is always sent
_STATUS = {
    "throttlingException": 429,
    "internalServerException": 500,
    "serviceUnavailableException": 503,
    "modelStreamErrorException": 424,
    "modelTimeoutException": 408,
    "validationException": 400,
}
_EXTRA = "bedrock"
_REGION = "us-east-1"


class BedrockOptions(Options, frozen=True, kw_only=True):
    """`region` comes before AWS_REGION; `model` is the model behind an inference profile with another name."""

    region: str | None = None
    model: str | None = None


class _Reply(msgspec.Struct, rename="camel"):
    output: Any = None
    stop_reason: Any = None
    usage: msgspec.Raw = msgspec.Raw()


class _Event(msgspec.Struct, rename="camel"):
    content_block_start: Any = None
    content_block_delta: Any = None
    message_stop: Any = None
    metadata: Any = None
    exception: Any = None


_decode = msgspec.json.Decoder(_Reply).decode
_decode_event = msgspec.json.Decoder(_Event).decode


class BedrockConversation(Conversation):
    """A conversation in the format of Converse."""

    def message(self, role: str, text: str, files: Sequence[File] = ()) -> dict[str, Any]:
        return {"role": role, "content": [*map(self.file_part, files), {"text": text}]}

    def file_part(self, file: File) -> dict[str, Any]:
        source = {"bytes": b64encode(file.body).decode()}
        form = file.media.rpartition("/")[2]
        if file.is_image:
            return {"image": {"format": form, "source": source}}
        name = re.sub(r"[^A-Za-z0-9 ()\[\]-]+", "-", file.name) or "file"  # nothing else is allowed in it
        return {"document": {"format": form, "name": name, "source": source}}

    def body(self) -> dict[str, Any]:
        request = self.request
        params = self.params()
        extra, reasoning = params.pop("extra", {}), params.pop("reasoning", None)
        body: dict[str, Any] = {
            "messages": self.messages,
            "inferenceConfig": {_NAMES[name]: value for name, value in params.items() if name in _NAMES},
        }
        if request.system:
            body["system"] = [{"text": request.system}]
        body = merge(body, _reasoning(reasoning, sheet_behind(self.spec)))
        if request.schema is not None and sheet_behind(self.spec).schemas:  # older Claude models need it in the prompt
            schema = msgspec.json.encode(without_ranges(request.schema)).decode()
            shape = {"type": "json_schema", "structure": {"jsonSchema": {"name": "reply", "schema": schema}}}
            body = merge(body, {"outputConfig": {"textFormat": shape}})
        if self.tools:
            tools = [
                {"name": tool.name, "description": tool.description, "inputSchema": {"json": tool.schema}}
                for tool in self.tools
            ]
            body["toolConfig"] = {"tools": [{"toolSpec": tool} for tool in tools]}
        return merge(body, extra)

    @staticmethod
    def read(reply: bytes) -> Turn | Failure:
        try:
            decoded = _decode(reply)
            blocks = decoded.output["message"]["content"]
            texts = [block["text"] for block in blocks if "text" in block]
            thoughts = [_thought(block["reasoningContent"]) for block in blocks if "reasoningContent" in block]
            calls = [block["toolUse"] for block in blocks if "toolUse" in block]
            return Turn(
                text="".join(texts),
                finish_reason=finish_of(decoded.stop_reason),
                usage=bedrock_usage(decode_or_none(decoded.usage)),
                calls=tuple(read_call(call.get("toolUseId"), call["name"], call.get("input")) for call in calls),
                thinking="".join(thoughts),
                raw=reply,
            )
        except BAD_TURN as error:
            return unreadable(reply, "reply of Converse", error)

    def said(self, turn: Turn) -> list[Any]:
        return [msgspec.json.decode(turn.raw)["output"]["message"]]

    def called(self, step: ToolRound) -> list[Any]:
        texts = [{"text": step.text}] if step.text else []
        calls = [
            {"toolUse": {"toolUseId": call.id, "name": call.name, "input": call.arguments}} for call in step.calls()
        ]
        return [{"role": "assistant", "content": [*texts, *calls]}]

    def returned(self, results: Sequence[ToolResult]) -> list[Any]:
        answers = [
            {
                "toolResult": {
                    "toolUseId": result.call.id,
                    "content": [{"text": result.text}],
                    "status": "error" if result.error else "success",
                }
            }
            for result in results
        ]
        return [{"role": "user", "content": answers}]


def _reasoning(setting: Reasoning | None, sheet: Sheet) -> dict[str, Any]:
    if setting is None:
        return {}
    if setting in (0, "none"):
        off = sheet.reasoning.off if sheet.reasoning else "disabled"
        return {"additionalModelRequestFields": {"thinking": {"type": off}}}
    if isinstance(setting, str):
        return {"outputConfig": {"effort": setting}}
    return {"additionalModelRequestFields": {"thinking": {"type": "enabled", "budget_tokens": setting}}}


def _thought(content: Any) -> str:
    return text_or_none((content.get("reasoningText") or {}).get("text")) or ""


class _Events:
    """Finds the events in AWS frames: JSON objects, each under the name of its event."""

    def __init__(self) -> None:
        self._frames = Frames()

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        try:
            yield from map(_event, self._frames.feed(chunk))
        except DamagedError as error:
            yield msgspec.json.encode({"exception": {"message": str(error)}})

    def end(self) -> tuple[bytes, ...]:
        return ()


class BedrockStreamed(Streamed):
    """A reply assembled from events; token counts come last."""

    def __init__(self, collected: Collected) -> None:
        super().__init__(collected)
        self._usage: Any = None

    def take(self, data: bytes) -> Answer | Failure | None:
        try:
            event = _decode_event(data)
            if event.exception is not None:
                return _failure_in(event.exception)
            self._take(event)
        except BAD_TURN as error:
            return unreadable_event(error)
        return None

    def _take(self, event: _Event) -> None:
        if event.content_block_delta is not None:
            delta, place = event.content_block_delta["delta"], event.content_block_delta.get("contentBlockIndex")
            if delta.get("text"):
                self.collected.say(delta["text"])
            elif "reasoningContent" in delta:
                self.collected.think(text_or_none(delta["reasoningContent"].get("text")) or "")
            elif "toolUse" in delta:
                self.add_call(place, arguments=delta["toolUse"].get("input"))
        elif event.content_block_start is not None:
            call = (event.content_block_start.get("start") or {}).get("toolUse")
            if call:
                self.add_call(event.content_block_start.get("contentBlockIndex"), call["toolUseId"], call["name"])
        elif event.message_stop is not None:
            self.finish = finish_of(event.message_stop.get("stopReason"))
        elif event.metadata is not None:
            self._usage, self.done = event.metadata.get("usage"), self.finish is not None

    def turn(self) -> Turn:
        return Turn(
            text=self.collected.text,
            finish_reason=self.finish,
            usage=bedrock_usage(self._usage),
            calls=self.calls,
            thinking=self.collected.thinking,
        )


def _failure_in(exception: dict[str, Any]) -> Answer | Failure:
    """Return the failure for an error in the middle of a stream."""
    if exception.get("type") is None:
        return unreadable_event(ValueError(exception.get("message")))
    status = _STATUS.get(str(exception["type"]), 500)
    return failed_mid_stream(as_answer(error_of_status(status, msgspec.json.encode(exception))))


class BedrockApi(HttpTarget):
    """A model on Bedrock; requests are signed with your AWS credentials, or have a Bedrock API key."""

    options_type: ClassVar[type[Options]] = BedrockOptions
    api: ClassVar[Api] = Api(refuses=PENALTIES | {"seed"}, longest=_LONGEST, without_neutral=True, blank_stops=False)
    conversation: ClassVar[type[Conversation]] = BedrockConversation
    streamed: ClassVar[type[Streamed]] = BedrockStreamed
    stream_media: ClassVar[str] = "application/vnd.amazon.eventstream"
    event_parser: ClassVar[type[EventParser]] = _Events

    takes_chats: ClassVar[bool] = True
    takes_files: ClassVar[bool] = True
    embeds: ClassVar[bool] = True

    def __init__(self, spec: TargetSpec, options: BedrockOptions, folder: Path) -> None:
        super().__init__(spec, options, folder)
        self._region = options.region or ""
        self._credentials: Any = None
        self._lasting: Credentials | None = None  # if they do not expire
        self._base = spec.base_url

    async def open(self, concurrency: int) -> None:
        if not _botocore():
            raise NotInstalledError("Bedrock", _EXTRA)
        await asyncio.to_thread(self._sign_in)  # credentials may come from files, programs or the network
        await super().open(concurrency)

    def _sign_in(self) -> None:
        import botocore.session

        session = botocore.session.get_session()
        # AWS_REGION is what machines of AWS set; botocore itself reads AWS_DEFAULT_REGION and profiles.
        self._region = self._region or os.environ.get("AWS_REGION") or session.get_config_variable("region") or _REGION
        self._base = self.spec.base_url or f"https://bedrock-runtime.{self._region}.amazonaws.com"
        if self.spec.api_key:
            return
        self._credentials = session.get_credentials()
        if self._credentials is None:
            advice = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS_PROFILE or AWS_BEARER_TOKEN_BEDROCK"
            raise TargetUnusableError(f"{self.spec.id}: no AWS credentials; {advice}")
        if not hasattr(self._credentials, "refresh_needed"):
            self._lasting = _frozen(self._credentials.get_frozen_credentials())

    def origin(self) -> str:
        return self._base

    def embedding(self, text: str) -> EmbeddingCall:
        if "cohere." in self.spec.model:
            body = {"texts": [text], "input_type": "clustering", "embedding_types": ["float"]}
            return EmbeddingCall(self._url("invoke"), body, lambda reply: Vector(reply["embeddings"]["float"][0]))
        return EmbeddingCall(
            self._url("invoke"),
            {"inputText": text},
            lambda reply: Vector(reply["embedding"], reply.get("inputTextTokenCount")),
        )

    def url(self, *, stream: bool = False) -> URL:
        return self._url("converse-stream" if stream else "converse")

    def _url(self, call: str) -> URL:
        from yarl import URL

        return URL(f"{self._base.rstrip('/')}/model/{quote(self.spec.model, safe='')}/{call}", encoded=True)

    async def signed(self, url: str | URL, body: bytes) -> dict[str, str] | None:
        if self._credentials is None:
            return None
        own = self._lasting or await self._current()
        return signed_headers(url, body, own, self._region, "bedrock")

    async def _current(self) -> Credentials:
        if self._credentials.refresh_needed():  # over the network
            return _frozen(await asyncio.to_thread(self._credentials.get_frozen_credentials))
        return _frozen(self._credentials.get_frozen_credentials())


def _frozen(credentials: Any) -> Credentials:
    return Credentials(credentials.access_key, credentials.secret_key, credentials.token)


def _event(frame: Frame) -> bytes:
    event = frame.headers.get(":event-type")
    if event:
        return b'{"%s":%s}' % (str(event).encode(), frame.payload)
    message = decode_or_none(msgspec.Raw(frame.payload))
    message = message if isinstance(message, dict) else {}
    return msgspec.json.encode({"exception": {**message, "type": frame.headers.get(":exception-type")}})


def _botocore() -> bool:
    return find_spec("botocore") is not None
