"""Assertions that are code, or that a service makes."""

from __future__ import annotations

import json
import re
from typing import Any

from fairtrial.foreign.suites import FileRef
from fairtrial.tracks.interchange.importers._promptfoo.check import (
    Check,
    Make,
    Result,
    Workshop,
    given_or,
    limited,
    text_of,
    words_of,
)
from fairtrial.tracks.interchange.importers._promptfoo.files import PREFIX
from fairtrial.tracks.interchange.importers._promptfoo.nunjucks import converted
from fairtrial.tracks.interchange.importers._promptfoo.prompts import JAVASCRIPT
from fairtrial.tracks.interchange.importers._promptfoo.transforms import is_body, is_structured

_NODE = re.compile(
    r"\brequire\s*\(|\bawait\b|\basync\b|\bPromise\b|\bfetch\s*\(|\bprocess\.\w|^\s*import\s", re.MULTILINE
)
_OF_CALL = re.compile(r"\b(?:metadata|providerResponse|logProbs)\b")  # what QuickJS is not told
_MODULE = re.compile(r"^\s*export\s+(?!default\b)", re.MULTILINE)


def javascript(check: Check, at: Workshop) -> Result | None:
    value, config = check.value, check.entry.get("config")
    if not isinstance(value, str):
        return None
    if value.startswith(JAVASCRIPT):  # a function of a configuration in JavaScript
        value = f"return ({value.removeprefix(JAVASCRIPT)})(output, context);"
    if value.startswith(PREFIX):
        return _javascript_file(check, value, config, at)
    if _NODE.search(value) or _OF_CALL.search(value):
        return _in_node(check, at.code.node_check(None, "", config, _as_body(value)), at)
    code = _with_structure(value) if is_structured(value) else value
    if config:
        code = f"context.config = {json.dumps(config)};\n{_as_body(code)}"
    return Result(limited({"type": "javascript", "code": code}, check.threshold))


def _javascript_file(check: Check, value: str, config: Any, at: Workshop) -> Result:
    name, _, function = value.removeprefix(PREFIX).partition(":")
    path = at.folder.find(name)[0]
    source = at.folder.text(name)
    plain = path.suffix in (".js", ".cjs") and not function and not config
    if plain and not any(pattern.search(source) for pattern in (_NODE, _OF_CALL, _MODULE)):
        return Result(limited({"type": "javascript", "file": FileRef(path)}, check.threshold))
    return _in_node(check, at.code.node_check(path, function, config), at)


def _in_node(check: Check, made: str, at: Workshop) -> Result:
    at.notes.differs("code in JavaScript is run with `node`, TypeScript with `npx tsx`: install Node.js")
    if _OF_CALL.search(repr(check.value)):
        at.notes.differs(
            "checks that look at `metadata` or `providerResponse` see what the target reports as its trace"
        )
    return Result(limited({"type": "python", "function": made}, check.threshold))


def _as_body(code: str) -> str:
    return code if is_body(code) or "return" in code else f"return (\n{code.strip().rstrip(';')}\n);"


def python(check: Check, at: Workshop) -> Result | None:
    value, config = check.value, check.entry.get("config")
    if not isinstance(value, str):
        return None
    if value.startswith(PREFIX):
        name, _, function = value.removeprefix(PREFIX).partition(".py")
        path = at.folder.find(f"{name}.py")[0]
        made: str | None = at.code.file_check(path, function.lstrip(":") or "get_assert", config)
    else:
        made = at.code.inline_check(value, config)
    if made is None:
        at.notes.lost("a `python` assertion that is not valid Python", "correct it and import again", check.where)
        return None
    return Result(limited({"type": "python", "function": made}, check.threshold))


def webhook(check: Check, at: Workshop) -> Result | None:
    if not isinstance(check.value, str):
        return None
    return Result(limited({"type": "python", "function": at.code.webhook(check.value)}, check.threshold))


def moderation(check: Check, at: Workshop) -> Result:
    at.notes.differs("`moderation` asks OpenAI's moderation endpoint: set OPENAI_API_KEY")
    arguments = {"categories": words_of(check.value, several=False)} if check.value else {}
    return Result({"type": "python", "function": at.code.function("is_harmless"), "arguments": arguments})


def classifier(check: Check, at: Workshop) -> Result | None:
    provider = check.entry.get("provider")
    name = str(provider.get("id") if isinstance(provider, dict) else provider or "")
    if not name.startswith("huggingface:"):
        return None
    arguments: dict[str, Any] = {"model": name.rpartition(":")[2], "label": text_of(check.value),
                                 "threshold": given_or(check.threshold, 1.0)}  # fmt: skip
    config = provider.get("config") if isinstance(provider, dict) else None
    if isinstance(config, dict) and config.get("apiEndpoint"):
        arguments["address"] = converted(str(config["apiEndpoint"]))
    at.notes.differs("`classifier` asks the model at Hugging Face: set HF_TOKEN")
    return Result({"type": "python", "function": at.code.function("classify"), "arguments": arguments})


def _with_structure(code: str) -> str:
    """Return code that sees an answer in JSON, or tool calls without a text, as promptfoo has them."""
    body = code if is_body(code) else f"return (\n{code.strip().rstrip(';')}\n);"
    return (
        f"const check = (output) => {{\n{body}\n}};\n"
        "const calls = tool_calls.map((call) => ({name: call.tool, arguments: JSON.stringify(call.arguments),\n"
        "  type: 'function', function: {name: call.tool, arguments: JSON.stringify(call.arguments)},\n"
        "  functionCall: {name: call.tool, args: call.arguments}, input: call.arguments}));\n"
        "let value = output.trim() || !calls.length ? output : calls;\n"
        "try { value = JSON.parse(value); } catch (error) { /* not JSON */ }\n"
        "return check(value);"
    )


CODE: dict[str, Make] = {
    "javascript": javascript,
    "python": python,
    "webhook": webhook,
    "moderation": moderation,
    "classifier": classifier,
}
