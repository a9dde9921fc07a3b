"""Every vendor's API on loopback, as strict as the real one; what it says is a script. Official clients accept it.

It logs each request with its headers. A path decides on the dialect, as at the vendors.
"""

from __future__ import annotations

import json
import re
import struct
import zlib
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from aiohttp import web

from benchmarks.strict import Refusal, refusal
from benchmarks.strict_vendors import signature_is_right
from tests.servers.pairing import unpaired

SECRET = "aws-secret-0001"  # the key that signs requests to Bedrock
DEPLOYED = {"my-dep": "gpt-5.1"}  # what is behind a deployment on Azure; `dep-MODEL` is a deployment of any model


@dataclass
class Say:
    """What a model says next, or the error that there is instead."""

    text: str = "ok"
    thinking: str = ""
    calls: tuple[tuple[str, dict[str, Any]], ...] = ()
    finish: str = "stop"  # length, refusal, filter, blocked (the prompt is stopped)
    error: tuple[int, Any] | None = None  # status and body
    headers: dict[str, str] = field(default_factory=dict)
    status: int = 200  # of an answer
    counts: tuple[Any, Any] | None = None  # the tokens of prompt and completion that are reported; None: 14 and 30
    cut: bool = False  # the stream ends before its time
    fails: bool = False  # an error in the middle of the stream


class Heard(NamedTuple):
    path: str
    headers: dict[str, str]
    body: Any


class Vendors:
    """The server: `say` is what it answers with, or a list of what it answers with one after the other."""

    def __init__(self) -> None:
        self.say: Any = Say()
        self.heard: list[Heard] = []
        self.refused: list[tuple[Heard, Refusal]] = []  # requests that were refused because of what they ask for
        self.alike: dict[str, str] = {}  # models that nobody knows: each refuses what another refuses
        self.url = ""

    async def serve(self, request: web.Request) -> web.StreamResponse:
        raw = await request.read()
        headers = {name.lower(): value for name, value in request.headers.items()}
        path = request.raw_path
        body = json.loads(raw) if raw else None
        self.heard.append(Heard(path, headers, body))
        speak = dialect_of(path)
        if speak is None:
            return web.json_response({"error": {"message": f"nothing at {path}"}}, status=404)
        refused = self._unauthorized(path, headers, raw)
        if not refused and (refused := speak.refusal(path, headers, body, self.alike) or unpaired(path, body)):
            self.refused.append((self.heard[-1], refused))
        if refused and refused.status == 200:  # an error that comes as an event
            return web.Response(body=b"".join(sse(refused.body, named=True)), content_type=speak.media)
        if refused:
            return web.json_response(refused.body, status=refused.status, headers=refused.headers)
        say = self.say.pop(0) if isinstance(self.say, list) else self.say
        if say.error:
            return web.json_response(say.error[1], status=say.error[0], headers=say.headers)
        if not speak.streams(path, body):
            status, value = speak.whole(say, body)
            return web.json_response(value, status=say.status if status == 200 else status, headers=say.headers)
        response = web.StreamResponse(status=say.status, headers={"Content-Type": speak.media, **say.headers})
        await response.prepare(request)
        pieces = list(speak.pieces(say, body))
        for piece in pieces[: -speak.after_cut] if say.cut else pieces:
            await response.write(piece)
        return response

    def _unauthorized(self, path: str, headers: dict[str, str], raw: bytes) -> Refusal | None:
        signed = headers.get("authorization", "").startswith("AWS4")
        if signed and not signature_is_right(f"http://x{path}", headers, raw, SECRET):
            wrong = "The request signature we calculated does not match the signature you provided."
            return Refusal(403, {"message": wrong})
        given = headers.get("authorization") or headers.get("x-api-key") or headers.get("api-key")
        given = given or headers.get("x-goog-api-key")
        return None if given else Refusal(401, {"error": {"message": "no key", "type": "authentication_error"}})


def deployed(names: dict[str, str], name: str) -> dict[str, str]:
    """Which models names stand for, with one more if it is that of a deployment."""
    return {name: name.removeprefix("dep-"), **DEPLOYED, **names}


def sse(*events: Any, named: bool = False) -> Iterator[bytes]:
    for event in events:
        name = f"event: {event['type']}\n" if named else ""
        yield f"{name}data: {json.dumps(event)}\n\n".encode()


_PROMPT = {"prompt_tokens", "input_tokens", "promptTokenCount", "inputTokens"}
_COMPLETION = {"completion_tokens", "output_tokens", "candidatesTokenCount", "outputTokens"}


def counted(say: Say, usage: dict[str, Any]) -> dict[str, Any]:
    """The usage, with other counts if a test says so."""
    if say.counts is None:
        return usage
    prompt, completion = say.counts
    return {name: prompt if name in _PROMPT else completion for name in usage if name in _PROMPT | _COMPLETION}


def _halves(text: str) -> list[str]:
    middle = len(text) // 2
    return [piece for piece in (text[:middle], text[middle:]) if piece]


class Chat:
    """OpenAI's chat completions, and Azure's."""

    media = "text/event-stream"
    after_cut = 3  # the events at the end that a cut stream lacks: finish, usage, [DONE]

    def refusal(
        self, path: str, headers: dict[str, str], body: Any, alike: dict[str, str] | None = None
    ) -> Refusal | None:
        return refusal(path, headers, body, alike=deployed(alike or {}, str(body.get("model"))))

    def streams(self, path: str, body: Any) -> bool:
        return bool(body.get("stream"))

    def usage(self) -> dict[str, Any]:
        return {
            "prompt_tokens": 14,
            "completion_tokens": 30,
            "total_tokens": 44,
            "prompt_tokens_details": {"cached_tokens": 8, "cache_write_tokens": 2},
            "completion_tokens_details": {"reasoning_tokens": 20},
        }

    def base(self, kind: str) -> dict[str, Any]:
        return {"id": "c1", "object": kind, "created": 1, "model": "served"}

    def finish(self, say: Say) -> str:
        return "tool_calls" if say.calls else {"filter": "content_filter", "length": "length"}.get(say.finish, "stop")

    def calls(self, say: Say) -> list[dict[str, Any]]:
        return [
            {"id": f"call_{i}", "index": i, "type": "function", "function": {"name": n, "arguments": json.dumps(a)}}
            for i, (n, a) in enumerate(say.calls)
        ]

    def whole(self, say: Say, body: Any) -> tuple[int, Any]:
        if say.finish == "blocked":
            message = "The response was filtered due to the prompt triggering a content management policy."
            return 400, {"error": {"message": message, "code": "content_filter", "param": "prompt"}}
        message: dict[str, Any] = {"role": "assistant", "content": say.text or None}
        if say.finish == "refusal":
            message |= {"content": None, "refusal": say.text}
        if say.calls:
            message["tool_calls"] = self.calls(say)
        if say.thinking:
            message["reasoning_content"] = say.thinking
        choice = {"index": 0, "message": message, "finish_reason": self.finish(say), "logprobs": None}
        return 200, {**self.base("chat.completion"), "choices": [choice], "usage": counted(say, self.usage())}

    def pieces(self, say: Say, body: Any) -> Iterator[bytes]:
        def chunk(delta: Any, finish: str | None = None) -> dict[str, Any]:
            return {
                **self.base("chat.completion.chunk"),
                "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
            }

        yield from sse(chunk({"role": "assistant", "content": ""}))
        for piece in _halves(say.thinking):
            yield from sse(chunk({"reasoning_content": piece}))
        for piece in _halves(say.text):
            yield from sse(chunk({"refusal" if say.finish == "refusal" else "content": piece}))
        if say.fails:
            yield from sse({"error": {"message": "broken", "code": 500}})
        if say.calls:
            yield from sse(chunk({"tool_calls": self.calls(say)}))
        yield from sse(chunk({}, self.finish(say)))
        yield from sse({**self.base("chat.completion.chunk"), "choices": [], "usage": counted(say, self.usage())})
        yield b"data: [DONE]\n\n"


class Mistral(Chat):
    """Mistral's thoughts are a part of the content, its counts come with the last chunk, and ids have nine letters."""

    after_cut = 2

    def calls(self, say: Say) -> list[dict[str, Any]]:
        return [{**call, "id": f"mistral{i:02}"} for i, call in enumerate(super().calls(say))]

    def whole(self, say: Say, body: Any) -> tuple[int, Any]:
        status, reply = super().whole(Say(**{**vars(say), "thinking": ""}), body)
        message = reply["choices"][0]["message"] if status == 200 else {}
        if say.thinking:
            thought = {"type": "thinking", "thinking": [{"type": "text", "text": say.thinking}]}
            message["content"] = [thought, {"type": "text", "text": say.text}]
        elif message.get("content") is None and status == 200:
            message["content"] = ""
        return status, reply

    def pieces(self, say: Say, body: Any) -> Iterator[bytes]:
        *events, finish, _, done = super().pieces(Say(**{**vars(say), "thinking": ""}), body)
        yield events[0]
        if say.thinking:
            part = [{"type": "thinking", "thinking": [{"type": "text", "text": say.thinking}]}]
            base = self.base("chat.completion.chunk")
            yield from sse({**base, "choices": [{"index": 0, "delta": {"content": part}, "finish_reason": None}]})
        yield from events[1:]
        last = json.loads(finish[6:])
        yield from sse({**last, "usage": counted(say, self.usage())})
        yield done


class Responses(Chat):
    """OpenAI's Responses."""

    after_cut = 1

    def response(self, say: Say) -> dict[str, Any]:
        output: list[dict[str, Any]] = []
        if say.thinking:
            output.append(
                {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": say.thinking}]}
            )
        part = {"type": "output_text", "text": say.text, "annotations": []}
        if say.finish == "refusal":
            part = {"type": "refusal", "refusal": say.text}
        if say.text:
            output.append({"type": "message", "id": "m", "status": "completed", "role": "assistant", "content": [part]})
        output += [
            {"type": "function_call", "id": f"fc_{i}", "call_id": f"call_{i}", "name": n, "arguments": json.dumps(a)}
            for i, (n, a) in enumerate(say.calls)
        ]
        reason = {"length": "max_output_tokens", "filter": "content_filter"}.get(say.finish)
        usage = {
            "input_tokens": 14,
            "input_tokens_details": {"cached_tokens": 8, "cache_write_tokens": 2},
            "output_tokens": 30,
            "output_tokens_details": {"reasoning_tokens": 20},
            "total_tokens": 44,
        }
        return {
            "id": "resp_1", "object": "response", "created_at": 1, "model": "served", "output": output,
            "usage": counted(say, usage),
            "status": "incomplete" if reason else "completed", "error": None,
            "incomplete_details": {"reason": reason} if reason else None,
            "parallel_tool_calls": True, "tool_choice": "auto", "tools": [],
        }  # fmt: skip

    def whole(self, say: Say, body: Any) -> tuple[int, Any]:
        if say.finish == "blocked":
            return super().whole(say, body)
        return 200, self.response(say)

    def pieces(self, say: Say, body: Any) -> Iterator[bytes]:
        done = self.response(say)
        yield from sse(
            {
                "type": "response.created",
                "sequence_number": 0,
                "response": {**done, "status": "in_progress", "output": []},
            },
            named=True,
        )
        place = {"item_id": "m", "output_index": 0, "content_index": 0}
        for piece in _halves(say.thinking):
            yield from sse(
                {
                    "type": "response.reasoning_summary_text.delta",
                    "sequence_number": 1,
                    "delta": piece,
                    "item_id": "r",
                    "output_index": 0,
                    "summary_index": 0,
                },
                named=True,
            )
        if say.fails:
            yield from sse(
                {"type": "error", "sequence_number": 1, "code": "server_error", "message": "broken", "param": None},
                named=True,
            )
        for number, piece in enumerate(_halves(say.text)):
            kind = "refusal" if say.finish == "refusal" else "output_text"
            yield from sse(
                {
                    "type": f"response.{kind}.delta",
                    "sequence_number": number + 2,
                    "delta": piece,
                    "logprobs": [],
                    **place,
                },
                named=True,
            )
        yield from sse({"type": f"response.{done['status']}", "sequence_number": 9, "response": done}, named=True)


class Messages(Chat):
    """Anthropic's Messages, at home and on Vertex."""

    after_cut = 2

    def message(self, say: Say) -> dict[str, Any]:
        blocks: list[dict[str, Any]] = []
        if say.thinking:
            blocks.append({"type": "thinking", "thinking": say.thinking, "signature": "sig"})
        if say.text:
            blocks.append({"type": "text", "text": say.text})
        blocks += [
            {"type": "tool_use", "id": f"toolu_{i}", "name": n, "input": a} for i, (n, a) in enumerate(say.calls)
        ]
        reason = {"length": "max_tokens", "refusal": "refusal"}.get(say.finish, "tool_use" if say.calls else "end_turn")
        usage = {
            "input_tokens": 4,
            "cache_read_input_tokens": 8,
            "cache_creation_input_tokens": 2,
            "output_tokens": 30,
            "output_tokens_details": {"thinking_tokens": 20},
        }
        return {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "served",
            "content": blocks,
            "stop_reason": reason,
            "stop_sequence": None,
            "usage": counted(say, usage),
        }

    def whole(self, say: Say, body: Any) -> tuple[int, Any]:
        return 200, self.message(say)

    def pieces(self, say: Say, body: Any) -> Iterator[bytes]:
        done = self.message(say)
        start = {**done, "content": [], "stop_reason": None, "usage": {**done["usage"], "output_tokens": 1}}
        yield from sse({"type": "message_start", "message": start}, named=True)
        for index, block in enumerate(done["content"]):
            key = {"text": "text", "thinking": "thinking", "tool_use": "input"}[block["type"]]
            empty = {**block, key: {} if key == "input" else ""}
            yield from sse({"type": "content_block_start", "index": index, "content_block": empty}, named=True)
            if say.fails:
                yield from sse(
                    {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, named=True
                )
            text = json.dumps(block[key]) if key == "input" else block[key]
            delta, field_name = {
                "text": ("text_delta", "text"),
                "thinking": ("thinking_delta", "thinking"),
                "input": ("input_json_delta", "partial_json"),
            }[key]
            for piece in _halves(text):
                yield from sse(
                    {"type": "content_block_delta", "index": index, "delta": {"type": delta, field_name: piece}},
                    named=True,
                )
            yield from sse({"type": "content_block_stop", "index": index}, named=True)
        delta = {"stop_reason": done["stop_reason"], "stop_sequence": None}
        yield from sse(
            {"type": "message_delta", "delta": delta, "usage": done["usage"]}, {"type": "message_stop"}, named=True
        )


class Gemini(Chat):
    """Gemini, at home and on Vertex."""

    after_cut = 1

    def refusal(
        self, path: str, headers: dict[str, str], body: Any, alike: dict[str, str] | None = None
    ) -> Refusal | None:
        if ":stream" in path and "alt=sse" not in path:
            return Refusal(400, {"error": {"code": 400, "message": "this fake streams server-sent events only"}})
        return super().refusal(path, headers, body, alike)

    def streams(self, path: str, body: Any) -> bool:
        return ":streamGenerateContent" in path

    def reply(self, say: Say, parts: list[Any] | None, finish: str | None) -> dict[str, Any]:
        usage = {
            "promptTokenCount": 14,
            "cachedContentTokenCount": 8,
            "candidatesTokenCount": 10,
            "thoughtsTokenCount": 20,
            "totalTokenCount": 44,
        }
        candidate = {
            "index": 0,
            **({"content": {"role": "model", "parts": parts}} if parts else {}),
            **({"finishReason": finish} if finish else {}),
        }
        return {
            "candidates": [candidate],
            "usageMetadata": counted(say, usage),
            "modelVersion": "served",
            "responseId": "r",
        }

    def parts(self, say: Say) -> list[Any]:
        thoughts = [{"text": say.thinking, "thought": True}] if say.thinking else []
        texts = [{"text": say.text}] if say.text and say.finish != "filter" else []
        return [
            *thoughts,
            *texts,
            *(
                {"functionCall": {"id": f"c{i}", "name": n, "args": a}, **({} if i else {"thoughtSignature": "c2ln"})}
                for i, (n, a) in enumerate(say.calls)
            ),
        ]

    def finish(self, say: Say) -> str:
        return {"filter": "SAFETY", "length": "MAX_TOKENS"}.get(say.finish, "STOP")

    def whole(self, say: Say, body: Any) -> tuple[int, Any]:
        if say.finish == "blocked":
            return 200, {
                "promptFeedback": {"blockReason": "PROHIBITED_CONTENT"},
                "usageMetadata": {"promptTokenCount": 14, "totalTokenCount": 14},
            }
        return 200, self.reply(say, self.parts(say), self.finish(say))

    def pieces(self, say: Say, body: Any) -> Iterator[bytes]:
        if say.finish == "blocked":
            yield from sse(self.whole(say, body)[1])
            return
        if say.fails:
            yield from sse({"error": {"code": 503, "message": "overloaded", "status": "UNAVAILABLE"}})
        *first, last = self.parts(say) or [None]
        yield from sse(*(self.reply(say, [part], None) for part in first))
        if last and "text" in last and not last.get("thought"):
            start, last = last["text"][:1], {"text": last["text"][1:]}
            yield from sse(self.reply(say, [{"text": start}], None))
        yield from sse(self.reply(say, [last] if last else None, self.finish(say)))


class Converse(Chat):
    """Bedrock, with its binary event stream."""

    media = "application/vnd.amazon.eventstream"
    after_cut = 1

    def streams(self, path: str, body: Any) -> bool:
        return path.endswith("/converse-stream")

    USAGE = {
        "inputTokens": 4,
        "outputTokens": 30,
        "totalTokens": 44,
        "cacheReadInputTokens": 8,
        "cacheWriteInputTokens": 2,
    }

    def finish(self, say: Say) -> str:
        return {"length": "max_tokens", "filter": "content_filtered"}.get(
            say.finish, "tool_use" if say.calls else "end_turn"
        )

    def whole(self, say: Say, body: Any) -> tuple[int, Any]:
        blocks: list[dict[str, Any]] = []
        if say.thinking:
            blocks.append({"reasoningContent": {"reasoningText": {"text": say.thinking, "signature": "sig"}}})
        if say.text:
            blocks.append({"text": say.text})
        blocks += [{"toolUse": {"toolUseId": f"t{i}", "name": n, "input": a}} for i, (n, a) in enumerate(say.calls)]
        message = {"role": "assistant", "content": blocks}
        return 200, {
            "output": {"message": message},
            "stopReason": self.finish(say),
            "usage": counted(say, self.USAGE),
            "metrics": {"latencyMs": 5},
        }

    def pieces(self, say: Say, body: Any) -> Iterator[bytes]:
        yield frame("messageStart", {"role": "assistant"})
        for piece in _halves(say.thinking):
            yield frame("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"reasoningContent": {"text": piece}}})
        for piece in _halves(say.text):
            yield frame("contentBlockDelta", {"contentBlockIndex": 1, "delta": {"text": piece}})
        if say.fails:
            yield frame("modelStreamErrorException", {"message": "broken"}, exception=True)
        for i, (name, arguments) in enumerate(say.calls):
            yield frame(
                "contentBlockStart",
                {"contentBlockIndex": 2 + i, "start": {"toolUse": {"toolUseId": f"t{i}", "name": name}}},
            )
            for piece in _halves(json.dumps(arguments)):
                yield frame("contentBlockDelta", {"contentBlockIndex": 2 + i, "delta": {"toolUse": {"input": piece}}})
        yield frame("messageStop", {"stopReason": self.finish(say)})
        yield frame("metadata", {"usage": counted(say, self.USAGE), "metrics": {"latencyMs": 5}})


class Embedding(Chat):
    """Embeddings of every vendor, by the path."""

    def refusal(
        self, path: str, headers: dict[str, str], body: Any, alike: dict[str, str] | None = None
    ) -> Refusal | None:
        keys = {"model", "input", "encoding_format"}
        if "/model/" in path:
            keys = {"inputText"}
        if "EmbedContents" in path:
            keys = {"requests"}
        more = set(body) - keys
        return Refusal(400, {"error": {"message": f"unknown: {more}"}}) if more else None

    def streams(self, path: str, body: Any) -> bool:
        return False

    def whole(self, say: Say, body: Any) -> tuple[int, Any]:
        values = [1.0, 0.5]
        if "inputText" in body:
            return 200, {"embedding": values, "inputTextTokenCount": 3}
        if "requests" in body:
            return 200, {"embeddings": [{"values": values} for _ in body["requests"]]}
        item = {"object": "embedding", "index": 0, "embedding": values}
        usage = {"prompt_tokens": 3, "total_tokens": 3, "completion_tokens": 0}
        return 200, {"id": "e", "object": "list", "data": [item], "model": "served", "usage": usage}


def frame(event: str, value: Any, *, exception: bool = False) -> bytes:
    """One message of AWS's event stream."""
    kind = "exception" if exception else "event"
    names = {f":{kind}-type": event, ":content-type": "application/json", ":message-type": kind}
    headers = b"".join(
        bytes([len(name)]) + name.encode() + b"\x07" + struct.pack(">H", len(text)) + text.encode()
        for name, text in names.items()
    )
    payload = json.dumps(value).encode()
    prelude = struct.pack(">II", 16 + len(headers) + len(payload), len(headers))
    message = prelude + struct.pack(">I", zlib.crc32(prelude)) + headers + payload
    return message + struct.pack(">I", zlib.crc32(message))


_DIALECTS: tuple[tuple[str, Chat], ...] = (
    (r"^/model/[^/]*claude[^/]*/invoke$", Messages()),
    (r"/embeddings(\?.*)?$|:batchEmbedContents$|^/model/[^/]+/invoke$", Embedding()),
    (r"^/mistral/.*chat/completions$", Mistral()),
    (r"/chat/completions(\?.*)?$", Chat()),
    (r"/responses(\?.*)?$", Responses()),
    (r"/messages(\?.*)?$|:(r|streamR)awPredict$", Messages()),
    (r":(g|streamG)enerateContent(\?.*)?$", Gemini()),
    (r"^/model/[^/]+/converse(-stream)?$", Converse()),
)


def dialect_of(path: str) -> Chat | None:
    return next((dialect for pattern, dialect in _DIALECTS if re.search(pattern, path)), None)


@asynccontextmanager
async def vendors() -> AsyncIterator[Vendors]:
    """Serve until the block ends."""
    async with served(Vendors(), 2**26) as model:
        yield model


@asynccontextmanager
async def served(model: Any, largest: int) -> AsyncIterator[Any]:
    """Serve a model of APIs until the block ends; it takes requests of at most so many bytes."""
    app = web.Application(client_max_size=largest)
    app.router.add_route("*", "/{path:.*}", model.serve)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)  # some calls hang on purpose
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    model.url = f"http://{host}:{port}"
    try:
        yield model
    finally:
        await runner.cleanup()
