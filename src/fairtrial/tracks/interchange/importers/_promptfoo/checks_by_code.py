"""Assertions that are code, or that a service makes."""

from __future__ import annotations

import json
import re
from typing import Any

from fairtrial.foreign.suites import FileRef
from fairtrial.tracks.interchange.importers._promptfoo.assertion import Assertion, Converted, Make, limited
from fairtrial.tracks.interchange.importers._promptfoo.conversion import NODE, dict_of
from fairtrial.tracks.interchange.importers._promptfoo.files import PREFIX
from fairtrial.tracks.interchange.importers._promptfoo.nunjucks import converted
from fairtrial.tracks.interchange.importers._promptfoo.prompts import JAVASCRIPT
from fairtrial.tracks.interchange.importers._promptfoo.transforms import is_body, is_structured

_NODE = re.compile(
    r"\brequire\s*\(|\bawait\b|\basync\b|\bPromise\b|\bfetch\s*\(|\bprocess\.\w|^\s*import\s", re.MULTILINE
)
_OF_CALL = re.compile(r"\b(?:metadata|providerResponse|logProbs)\b")  # what QuickJS is not told
_MODULE = re.compile(r"^\s*export\s+(?!default\b)", re.MULTILINE)


def javascript(check: Assertion) -> Converted | None:
    value, config = check.value, check.entry.get("config")
    if not isinstance(value, str):
        return None
    if value.startswith(JAVASCRIPT):  # a function of a configuration in JavaScript
        value = f"return ({value.removeprefix(JAVASCRIPT)})(output, context);"
    if value.startswith(PREFIX):
        return _javascript_file(check, value, config)
    if _NODE.search(value) or _OF_CALL.search(value):
        return _in_node(check, check.at.code.node_check(None, "", config, _as_body(value)))
    code = _with_structure(value) if is_structured(value) else value
    if config:
        code = f"context.config = {json.dumps(config)};\n{_as_body(code)}"
    return Converted(limited({"type": "javascript", "code": code}, check.threshold))


def _javascript_file(check: Assertion, value: str, config: Any) -> Converted:
    name, _, function = value.removeprefix(PREFIX).partition(":")
    path, source = check.at.folder.find(name)[0], check.at.folder.text(name)
    plain = path.suffix in (".js", ".cjs") and not function and not config
    if plain and not any(pattern.search(source) for pattern in (_NODE, _OF_CALL, _MODULE)):
        return Converted(limited({"type": "javascript", "file": FileRef(path)}, check.threshold))
    return _in_node(check, check.at.code.node_check(path, function, config))


def _in_node(check: Assertion, made: str) -> Converted:
    check.at.notes.differs(NODE)
    if _OF_CALL.search(repr(check.value)):
        check.at.notes.differs(
            "checks that look at `metadata` or `providerResponse` see what the target reports as its trace"
        )
    return Converted(limited({"type": "python", "function": made}, check.threshold))


def _as_body(code: str) -> str:
    return code if is_body(code) or "return" in code else f"return (\n{code.strip().rstrip(';')}\n);"


def python(check: Assertion) -> Converted | None:
    value, config, code = check.value, check.entry.get("config"), check.at.code
    if not isinstance(value, str):
        return None
    if value.startswith(PREFIX):
        name, _, function = value.removeprefix(PREFIX).partition(".py")
        path = check.at.folder.find(f"{name}.py")[0]
        made: str | None = code.file_check(path, function.lstrip(":") or "get_assert", config)
    else:
        made = code.inline_check(value, config)
    if made is None:
        check.at.notes.lost("a `python` assertion that is not valid Python", "correct it and import again", check.where)
        return None
    return Converted(limited({"type": "python", "function": made}, check.threshold))


def webhook(check: Assertion) -> Converted | None:
    if not isinstance(check.value, str):
        return None
    return Converted(limited({"type": "python", "function": check.at.code.webhook(check.value)}, check.threshold))


def moderation(check: Assertion) -> Converted:
    check.at.notes.differs("`moderation` asks OpenAI's moderation endpoint: set OPENAI_API_KEY")
    return check.by_function("is_harmless", **({"categories": check.texts} if check.value else {}))


def classifier(check: Assertion) -> Converted | None:
    if not check.provider.startswith("huggingface:"):
        return None
    model, endpoint = check.provider.rpartition(":")[2], dict_of(check.entry.get("provider")).get("config")
    endpoint = dict_of(endpoint).get("apiEndpoint")
    address = {"address": converted(str(endpoint))} if endpoint else {}
    check.at.notes.differs("`classifier` asks the model at Hugging Face: set HF_TOKEN")
    return check.by_function("classify", model=model, label=check.text, threshold=check.limit(1.0), **address)


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
