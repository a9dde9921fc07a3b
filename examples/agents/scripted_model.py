"""A model that follows a script, for agents without a key: `python scripted_model.py COMMAND…` runs a command with it.

While the command runs, the model is served on this machine, and the variables by which agents find their model lead
to it. It speaks the APIs that agents use: OpenAI's Responses (Codex) and chat completions (opencode, tool-agent),
Anthropic's Messages (Claude Code) and Gemini's (Gemini CLI).

The script: look the question up with the first tool that can search, write what was found down if there is a tool for
that, then say it.
"""

import itertools
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

PORT = 8321
_PROMPT, _CACHED, _COMPLETION = 100, 40, 7  # tokens of every reply


class Turn(NamedTuple):
    """What the model has before it: the texts so far, the tools it may call, and what they returned."""

    system: str
    question: str
    tools: list[str]
    results: list[str]


class Say(NamedTuple):
    """What the model says next: a text, and calls of tools as (name, arguments)."""

    text: str = ""
    calls: tuple[tuple[str, dict[str, Any]], ...] = ()


def search(turn: Turn) -> Say:
    """Look the question up and write down what was found, as far as there are tools for it; then say it."""
    lookup = next((name for name in turn.tools if name.endswith("search")), None)
    save = next((name for name in turn.tools if name.endswith("save")), None)
    if lookup and not turn.results:
        return Say("", ((lookup, {"text": turn.question}),))
    if save and len(turn.results) == 1:
        return Say("", ((save, {"name": "answer.txt", "text": turn.results[0]}),))
    return Say(turn.results[0] if turn.results else "I do not know.")


def read_turn(path: str, body: dict[str, Any]) -> Turn:
    """Read a request of any of the APIs."""
    if path.endswith("/responses"):
        return _read_responses(body)
    if path.endswith("/messages"):
        return _read_messages(body)
    if path.endswith("/chat/completions"):
        return _read_chat(body)
    return _read_gemini(body)


def reply(path: str, body: dict[str, Any], said: Say, number: int) -> Iterator[dict[str, Any]]:
    """Write a reply as the events of a stream; `number` tells replies apart."""
    if path.endswith("/responses"):
        return _responses(body, said, number)
    if path.endswith("/messages"):
        return _messages(body, said, number)
    if path.endswith("/chat/completions"):
        return _chat(body, said, number)
    return _gemini(said)


def stream(path: str, body: dict[str, Any], said: Say, number: int) -> bytes:
    """Return a whole stream, as it goes over the wire."""
    end = b"data: [DONE]\n\n" if path.endswith("/chat/completions") else b""
    events = reply(path, body, said, number)
    return b"".join(_line(event, named=not end) for event in events) + end


def whole(path: str, body: dict[str, Any], said: Say, number: int) -> dict[str, Any]:
    """Return a reply to a request that asks for no stream."""
    if path.endswith("/responses"):
        return _response(body, said, number)
    if path.endswith("/messages"):
        return _message(body, said, number)
    return _completion(body, said, number) if path.endswith("/chat/completions") else next(_gemini(said))


def _line(event: dict[str, Any], *, named: bool) -> bytes:
    name = f"event: {event['type']}\n" if named and "type" in event else ""
    return f"{name}data: {json.dumps(event)}\n\n".encode()


# --- OpenAI's Responses: tools of an MCP server come in a namespace -------------------------------------------------

_RESPONSES_USAGE = {
    "input_tokens": _PROMPT,
    "input_tokens_details": {"cached_tokens": _CACHED},
    "output_tokens": _COMPLETION,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": _PROMPT + _COMPLETION,
}


def _responses_tools(body: dict[str, Any]) -> dict[str, dict[str, str]]:
    """Return how each tool is called, by one name for it."""
    found = {}
    for tool in body.get("tools") or ():
        if tool.get("type") == "namespace":
            names = [inner["name"] for inner in tool["tools"]]
            found |= {f"{tool['name']}__{name}": {"namespace": tool["name"], "name": name} for name in names}
        elif "name" in tool:
            found[tool["name"]] = {"name": tool["name"]}
    return found


def _read_responses(body: dict[str, Any]) -> Turn:
    system, questions, results = [body.get("instructions") or ""], [], []
    for item in body["input"]:
        if item.get("type") == "function_call_output":
            results.append(_plain(item["output"]))
        elif item.get("role") in ("developer", "system"):
            system.append(_plain(item.get("content")))  # some have none: Codex' `additional_tools`
        elif item.get("role") == "user":
            questions.append(_plain(item["content"]))
    return Turn("\n".join(filter(None, system)), "\n".join(questions), list(_responses_tools(body)), results)


def _items(body: dict[str, Any], said: Say, number: int) -> list[dict[str, Any]]:
    tools = _responses_tools(body)
    items: list[dict[str, Any]] = []
    if said.text:
        content = [{"type": "output_text", "text": said.text, "annotations": []}]
        items.append({"type": "message", "id": f"msg_{number}", "role": "assistant", "content": content})
    for place, (name, arguments) in enumerate(said.calls):
        call = {"id": f"fc_{number}_{place}", "call_id": f"call_{number}_{place}", "arguments": json.dumps(arguments)}
        items.append({"type": "function_call", **call, **tools.get(name, {"name": name})})
    return items


def _responses(body: dict[str, Any], said: Say, number: int) -> Iterator[dict[str, Any]]:
    yield {"type": "response.created", "response": {"id": f"resp_{number}"}}
    for place, item in enumerate(_items(body, said, number)):
        at = {"output_index": place, "item_id": item["id"]}
        empty = {"content": []} if item["type"] == "message" else {"arguments": ""}
        yield {"type": "response.output_item.added", "output_index": place, "item": {**item, **empty}}
        if item["type"] == "message":
            yield {"type": "response.output_text.delta", **at, "content_index": 0, "delta": said.text}
        else:
            yield {"type": "response.function_call_arguments.delta", **at, "delta": item["arguments"]}
        yield {"type": "response.output_item.done", "output_index": place, "item": {**item, "status": "completed"}}
    yield {"type": "response.completed", "response": {"id": f"resp_{number}", "usage": _RESPONSES_USAGE}}


# --- Anthropic's Messages -------------------------------------------------------------------------------------------


def _read_messages(body: dict[str, Any]) -> Turn:
    questions, results = [], []
    for message in body["messages"]:
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        for block in blocks if message["role"] == "user" else ():
            if block["type"] == "tool_result":
                results.append(_plain(block.get("content")))
            elif block["type"] == "text":
                questions.append(block["text"])
    tools = [tool["name"] for tool in body.get("tools") or ()]
    return Turn(_plain(body.get("system"), "\n"), "\n".join(questions), tools, results)


def _messages(body: dict[str, Any], said: Say, number: int) -> Iterator[dict[str, Any]]:
    usage = {"input_tokens": _PROMPT, "cache_read_input_tokens": _CACHED, "cache_creation_input_tokens": 0}
    start = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": body["model"], "content": []}
    yield {
        "type": "message_start",
        "message": {**start, "stop_reason": None, "usage": {**usage, "output_tokens": 1}},
    }
    blocks: list[tuple[dict[str, Any], dict[str, Any]]] = []
    if said.text:
        blocks.append(({"type": "text", "text": ""}, {"type": "text_delta", "text": said.text}))
    for place, (name, arguments) in enumerate(said.calls):
        block = {"type": "tool_use", "id": f"toolu_{number}_{place}", "name": name, "input": {}}
        blocks.append((block, {"type": "input_json_delta", "partial_json": json.dumps(arguments)}))
    for index, (block, delta) in enumerate(blocks):
        yield {"type": "content_block_start", "index": index, "content_block": block}
        yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    reason = "tool_use" if said.calls else "end_turn"
    yield {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": _COMPLETION}}
    yield {"type": "message_stop"}


# --- OpenAI's chat completions --------------------------------------------------------------------------------------


def _read_chat(body: dict[str, Any]) -> Turn:
    texts: dict[str, list[str]] = {"system": [], "user": [], "tool": []}
    for message in body["messages"]:
        texts.setdefault(message["role"], []).append(_plain(message.get("content")))
    tools = [tool["function"]["name"] for tool in body.get("tools") or ()]
    return Turn("\n".join(texts["system"]), "\n".join(texts["user"]), tools, texts["tool"])


def _chat(body: dict[str, Any], said: Say, number: int) -> Iterator[dict[str, Any]]:
    calls = [
        {
            "index": place,
            "id": f"call_{number}_{place}",
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(arguments)},
        }
        for place, (name, arguments) in enumerate(said.calls)
    ]
    delta = {"role": "assistant", "content": said.text or None, **({"tool_calls": calls} if calls else {})}
    shared = {"id": f"chat_{number}", "object": "chat.completion.chunk", "model": body["model"]}
    yield {**shared, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    yield {**shared, "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls" if calls else "stop"}]}
    usage = {"prompt_tokens": _PROMPT, "completion_tokens": _COMPLETION, "total_tokens": _PROMPT + _COMPLETION}
    yield {**shared, "choices": [], "usage": {**usage, "prompt_tokens_details": {"cached_tokens": _CACHED}}}


# --- Gemini ---------------------------------------------------------------------------------------------------------


def _read_gemini(body: dict[str, Any]) -> Turn:
    questions, results = [], []
    for content in body["contents"]:
        for part in content["parts"] if content.get("role") == "user" else ():
            if "functionResponse" in part:
                returned = part["functionResponse"]["response"]
                results.append(_plain(returned.get("output") or returned.get("error") or returned))
            elif "text" in part:
                questions.append(part["text"])
    tools = [tool["name"] for group in body.get("tools") or () for tool in group.get("functionDeclarations") or ()]
    system = _plain((body.get("systemInstruction") or {}).get("parts"))
    return Turn(system, "\n".join(questions), tools, results)


def _gemini(said: Say) -> Iterator[dict[str, Any]]:
    parts: list[dict[str, Any]] = [{"text": said.text}] if said.text else []
    parts += [{"functionCall": {"name": name, "args": arguments}} for name, arguments in said.calls]
    usage = {
        "promptTokenCount": _PROMPT,
        "cachedContentTokenCount": _CACHED,
        "candidatesTokenCount": _COMPLETION,
        "totalTokenCount": _PROMPT + _COMPLETION,
    }
    candidate = {"index": 0, "content": {"role": "model", "parts": parts}, "finishReason": "STOP"}
    yield {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "scripted-1"}


# --- replies in one piece -------------------------------------------------------------------------------------------


def _message(body: dict[str, Any], said: Say, number: int) -> dict[str, Any]:
    blocks: list[dict[str, Any]] = [{"type": "text", "text": said.text}] if said.text else []
    blocks += [
        {"type": "tool_use", "id": f"toolu_{number}_{place}", "name": name, "input": arguments}
        for place, (name, arguments) in enumerate(said.calls)
    ]
    usage = {"input_tokens": _PROMPT, "cache_read_input_tokens": _CACHED, "cache_creation_input_tokens": 0}
    shared = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": body["model"]}
    return {
        **shared,
        "content": blocks,
        "stop_reason": "tool_use" if said.calls else "end_turn",
        "usage": {**usage, "output_tokens": _COMPLETION},
    }


def _response(body: dict[str, Any], said: Say, number: int) -> dict[str, Any]:
    shared = {"id": f"resp_{number}", "object": "response", "created_at": 0, "status": "completed", "error": None}
    output = [{**item, "status": "completed"} for item in _items(body, said, number)]
    return {**shared, "model": body["model"], "output": output, "usage": _RESPONSES_USAGE}


def _completion(body: dict[str, Any], said: Say, number: int) -> dict[str, Any]:
    calls = [
        {
            "id": f"call_{number}_{place}",
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(arguments)},
        }
        for place, (name, arguments) in enumerate(said.calls)
    ]
    message = {"role": "assistant", "content": said.text or None, **({"tool_calls": calls} if calls else {})}
    reason = "tool_calls" if calls else "stop"
    usage = {"prompt_tokens": _PROMPT, "completion_tokens": _COMPLETION, "total_tokens": _PROMPT + _COMPLETION}
    usage_details = {"prompt_tokens_details": {"cached_tokens": _CACHED}}
    choices = [{"index": 0, "message": message, "finish_reason": reason}]
    shared = {"id": f"chat_{number}", "object": "chat.completion", "created": 0, "model": body["model"]}
    return {**shared, "choices": choices, "usage": {**usage, **usage_details}}


def _plain(content: Any, between: str = "") -> str:
    """Return the text of a message or of a tool's result, whose content may be a list of blocks."""
    if isinstance(content, list):
        return between.join(block if isinstance(block, str) else block.get("text") or "" for block in content)
    return content if isinstance(content, str) else json.dumps(content) if content else ""


class Handler(BaseHTTPRequestHandler):
    """Answers every POST, with a stream if one is asked for."""

    protocol_version = "HTTP/1.1"
    numbers = itertools.count(1)

    def do_POST(self) -> None:
        """Reply as the script says."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        path = self.path.partition("?")[0]
        said, number = search(read_turn(path, body)), next(self.numbers)
        in_one_piece = not body.get("stream") and not path.endswith(":streamGenerateContent")
        if in_one_piece:
            content = json.dumps(whole(path, body, said, number)).encode()
        else:
            content = stream(path, body, said, number)
        self.send_response(200)
        self.send_header("Content-Type", "application/json" if in_one_piece else "text/event-stream")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        """Stay quiet."""


def main(command: list[str]) -> int:
    """Run a command with the model, and return its exit code."""
    try:
        server = ThreadingHTTPServer(("127.0.0.1", PORT), Handler)
    except OSError:  # somebody else has this port
        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    addresses = {"OPENAI_BASE_URL": f"{url}/v1", "ANTHROPIC_BASE_URL": url, "GOOGLE_GEMINI_BASE_URL": url}
    keys = dict.fromkeys(("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"), "no-key-is-needed")
    return subprocess.run(command, env={**os.environ, **addresses, **keys}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
