"""What vendors say to a conversation whose calls and results do not belong together, in the shapes of their APIs."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from typing import Any, NamedTuple

from benchmarks.strict import Refusal


class Said(NamedTuple):
    """One message: its role, its texts, the calls in it as (id, name, arguments), and the results as (id, text)."""

    role: str
    text: str = ""
    calls: tuple[tuple[str, str, Any], ...] = ()
    results: tuple[tuple[str, str], ...] = ()


def conversation(path: str, body: Any) -> list[Said]:
    """What a request to any of the APIs says, message by message."""
    if "messages" in body and "/model/" in path:
        return [_converse(message) for message in body["messages"]]
    if re.search(r"/messages(\?|$)|awPredict", path):
        return [_claude(message) for message in body["messages"]]
    if "messages" in body:
        return [_chat(message) for message in body["messages"]]
    if "contents" in body:
        return [_gemini(message) for message in body["contents"]]
    return [_response(item) for item in body["input"]] if isinstance(body.get("input"), list) else []


def _chat(message: Any) -> Said:
    calls = [
        (call["id"], call["function"]["name"], json.loads(call["function"]["arguments"]))
        for call in message.get("tool_calls") or ()
    ]
    content = message.get("content")
    if message["role"] == "tool":
        return Said("tool", results=((message["tool_call_id"], content),))
    return Said(message["role"], content if isinstance(content, str) else "", tuple(calls))


def _response(item: Any) -> Said:
    kind = item.get("type", "message")
    if kind == "function_call":
        return Said("assistant", calls=((item["call_id"], item["name"], json.loads(item["arguments"])),))
    if kind == "function_call_output":
        return Said("tool", results=((item["call_id"], item["output"]),))
    content = item.get("content")
    parts = content if isinstance(content, list) else []
    text = content if isinstance(content, str) else "".join(part.get("text", "") for part in parts)
    return Said(item.get("role", kind), text)


def _claude(message: Any) -> Said:
    blocks = message["content"]
    if isinstance(blocks, str):
        return Said(message["role"], blocks)
    calls = [(block["id"], block["name"], block["input"]) for block in blocks if block["type"] == "tool_use"]
    results = [(block["tool_use_id"], block["content"]) for block in blocks if block["type"] == "tool_result"]
    text = "".join(block["text"] for block in blocks if block["type"] == "text")
    return Said(message["role"], text, tuple(calls), tuple(results))


def _converse(message: Any) -> Said:
    blocks = message["content"]
    calls = [block["toolUse"] for block in blocks if "toolUse" in block]
    results = [block["toolResult"] for block in blocks if "toolResult" in block]
    return Said(
        message["role"],
        "".join(block["text"] for block in blocks if "text" in block),
        tuple((call["toolUseId"], call["name"], call["input"]) for call in calls),
        tuple((result["toolUseId"], result["content"][0]["text"]) for result in results),
    )


def _gemini(message: Any) -> Said:
    """Its results belong to the calls by their places."""
    parts = message["parts"]
    calls = [part["functionCall"] for part in parts if "functionCall" in part]
    results = [part["functionResponse"] for part in parts if "functionResponse" in part]
    return Said(
        {"model": "assistant"}.get(message.get("role"), "user"),
        "".join(part["text"] for part in parts if "text" in part and not part.get("thought")),
        tuple((str(place), call["name"], call["args"]) for place, call in enumerate(calls)),
        tuple((str(place), str(*result["response"].values())) for place, result in enumerate(results)),
    )


def unpaired(path: str, body: Any) -> Refusal | None:
    """What an API says to calls without results, and to results without calls."""
    if not isinstance(body, dict):
        return None
    waiting: list[str] = []
    for said in conversation(path, body):
        answered = [identity for identity, _ in said.results]
        if unknown := [identity for identity in answered if identity not in waiting]:
            return _refused(f"there is no call for the result {unknown[0]}")
        waiting = [identity for identity in waiting if identity not in answered]
        if waiting and said.role in ("user", "assistant") and not (answered or _more_calls(path, said)):
            return _refused(f"there is no result for the call {waiting[0]}")
        waiting += [identity for identity, _, _ in said.calls]
    if waiting:
        return _refused(f"there is no result for the call {waiting[0]}")
    return _ids(path, body) or _roles(path, body) or _signatures(path, body)


def _more_calls(path: str, said: Said) -> bool:
    """In Responses, each call is an item of its own."""
    return bool(said.calls) and "/responses" in path


def _ids(path: str, body: Any) -> Refusal | None:
    wanted = r"[a-zA-Z0-9]{9}" if path.startswith("/mistral") else r"[a-zA-Z0-9_-]{1,64}"
    for said in conversation(path, body):
        for identity, _, _ in said.calls:
            if not re.fullmatch(wanted, identity):
                return _refused(f"Tool call id was {identity} but must match {wanted}")
    return None


def _roles(path: str, body: Any) -> Refusal | None:
    roles = [said.role for said in conversation(path, body)] if "/model/" in path else []
    alternate = all(one != next_one for one, next_one in pairwise(roles))
    return None if alternate else _refused("A conversation must alternate between user and assistant roles.")


def _signatures(path: str, body: Any) -> Refusal | None:
    if not re.search(r"models/gemini-[3-9]", path):
        return None
    for message in body.get("contents", ()):
        calls = [part for part in message["parts"] if "functionCall" in part]
        if calls and not calls[0].get("thoughtSignature"):
            return _refused("Function call is missing a thought_signature in functionCall parts.")
    return None


def _refused(message: str) -> Refusal:
    return Refusal(
        400, {"error": {"message": message, "type": "invalid_request_error", "code": 400}, "message": message}
    )
