"""A Python file beside the suite: what users of promptfoo wrote in Python or JavaScript, as fairtrial calls it."""

from __future__ import annotations

import ast
import textwrap
from pathlib import Path
from typing import Any

from fairtrial.importers import FileRef

NAME = "promptfoo_code.py"
_HEAD = '''\
"""Checks, providers and transforms of a promptfoo configuration, in the form in which fairtrial calls them."""

import importlib.util
import json
import sys
from functools import lru_cache
from pathlib import Path

FOLDER = Path(__file__).resolve().parent


@lru_cache
def load(file, name):
    """Return a function of another file."""
    path = (FOLDER / file).resolve()
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))
    spec = importlib.util.spec_from_file_location(f"promptfoo_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name)


def grade(check, facts, config=None):
    """Call a check as promptfoo does, and return its result as a score."""
    messages = facts.get("messages") or []
    prompt = messages[-1]["content"] if messages else facts["input"]
    given = {"vars": facts["vars"], "prompt": prompt, "test": {"vars": facts["vars"]}, "config": config or {}}
    result = check(facts["response"], given)
    if hasattr(result, "__dict__"):
        result = vars(result)
    if isinstance(result, dict):
        passed = result.get("pass", result.get("pass_", result.get("passed")))
        return {**({} if passed is None else {"pass": passed}),
                **{key: result[key] for key in ("score", "reason") if result.get(key) is not None}}
    if isinstance(result, str):
        word = result.strip().lower()
        return word == "true" if word in ("true", "false") else float(word)
    return result


def ask(call, options, messages):
    """Call a provider as promptfoo does, and return its answer."""
    prompt = messages[0]["content"] if len(messages) == 1 else json.dumps(messages)
    reply = call(prompt, {"config": options}, {"vars": {}})
    if isinstance(reply, str):
        return reply
    if reply.get("error"):
        raise RuntimeError(reply["error"])
    output = reply.get("output")
    tokens = reply.get("tokenUsage") or {}
    return {
        "text": output if isinstance(output, str) else json.dumps(output),
        **({"cost_usd": reply["cost"]} if reply.get("cost") is not None else {}),
        **({"usage": {"prompt_tokens": tokens["prompt"], "completion_tokens": tokens["completion"]}}
           if {"prompt", "completion"} <= tokens.keys() else {}),
    }


def as_text(value):
    """Return what a transform made of an answer as text; None if there is nothing."""
    return value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def javascript(code, output):
    """Return the result of a JavaScript function of the answer (`pip install 'fairtrial[javascript]'`)."""
    import quickjs

    engine = quickjs.Context()
    engine.set_memory_limit(64 * 2**20)
    engine.set_time_limit(5)
    engine.set("__output", output)
    result = engine.eval(f"JSON.stringify(({code})(__output, {{vars: {{}}, metadata: {{}}}}) ?? null)")
    return as_text(json.loads(result))
'''
_MARKUP = '''

def is_xml(response, elements=(), inside=False):
    """Return whether an answer is XML, or has XML in it, with these elements (`root.child`)."""
    import re
    import xml.etree.ElementTree as ET

    pieces = [response.strip()]
    if inside:
        pieces = [match[0] for match in re.finditer(r"<(\\w[\\w.:-]*)\\b[^>]*>.*</\\1\\s*>", response, re.DOTALL)]
    for piece in pieces:
        try:
            root = ET.fromstring(piece)
        except ET.ParseError:
            continue
        if all(_has(root, element.split(".")) for element in elements):
            return True
    return False


def _has(root, path):
    return root.tag == path[0] and (len(path) == 1 or root.find("/".join(path[1:])) is not None)
'''
_HTTP = '''

def call_address(prompt, url, method, headers, body, answer):
    """Send a prompt to an address, and return the part of the reply that is the answer."""
    import os
    import re
    import urllib.request

    def fill(value):
        if isinstance(value, dict):
            return {key: fill(item) for key, item in value.items()}
        if isinstance(value, list):
            return [fill(item) for item in value]
        if not isinstance(value, str):
            return value
        value = re.sub(r"\\{\\{\\s*env\\.(\\w+)\\s*\\}\\}", lambda match: os.environ[match[1]], value)
        return re.sub(r"\\{\\{\\s*prompt\\s*\\}\\}", lambda _: prompt, value)

    sent = fill(body)
    if sent is not None and not isinstance(sent, str):
        sent = json.dumps(sent)
    request = urllib.request.Request(fill(url), None if sent is None else sent.encode(), fill(headers), method=method)
    with urllib.request.urlopen(request, timeout=600) as reply:
        text = reply.read().decode()
    try:
        data = json.loads(text)
    except ValueError:
        return text
    if answer:
        function = f"(reply) => {{ const {{json, text}} = JSON.parse(reply); return {answer}; }}"
        return javascript(function, json.dumps({"json": data, "text": text}))
    return as_text(data)
'''


class CodeFile:
    """Collects functions; each is added once, and referred to as `file:function`."""

    def __init__(self) -> None:
        self._pieces: list[str | FileRef] = []
        self._numbers: dict[str, int] = {}
        self._known: dict[str, str] = {}
        self._markup = False
        self._http = False

    def pieces(self) -> list[str | FileRef]:
        """Return the parts of the file's text; empty if nothing needs it."""
        if not self._pieces and not self._markup:
            return []
        return [_HEAD, *([_MARKUP] if self._markup else []), *([_HTTP] if self._http else []), *self._pieces]

    def inline_check(self, code: str, config: Any) -> str | None:
        """Add a check in Python: an expression, or the body of a function; None if it cannot be read."""
        body = textwrap.dedent(code).strip("\n")
        try:
            ast.parse(body.strip(), mode="eval")
            body = f"return (\n{textwrap.indent(body.strip(), '    ')}\n)"
        except SyntaxError:
            pass
        function = "def check(output, context):\n" + textwrap.indent(body, "    ")
        try:
            ast.parse(function)
        except SyntaxError:
            return None
        text = textwrap.indent(function, "    ") + f"\n\n    return grade(check, facts, {config!r})\n"
        return self._add("check", "**facts", [text])

    def file_check(self, path: Path, function: str, config: Any) -> str:
        """Add a check that stands in a file of the user's."""
        text: list[str | FileRef] = [
            "    return grade(load(",
            FileRef(path, "{!r}"),
            f", {function!r}), facts, {config!r})\n",
        ]
        return self._add("check", "**facts", text)

    def provider(self, path: Path, function: str, config: Any) -> str:
        """Add a provider that stands in a file of the user's."""
        options = f", {function!r}), {config!r}, messages)\n"
        text: list[str | FileRef] = ["    return ask(load(", FileRef(path, "{!r}"), options]
        return self._add("provider", "user_query, system_prompt, mcp_servers, messages", text)

    def address(self, url: str, method: str, headers: Any, body: Any, answer: str) -> str:
        """Add a provider that is an address."""
        self._http = True
        call = f"    return call_address(prompt, {url!r}, {method!r}, {headers!r}, {body!r}, {answer!r})\n"
        prompt = "    prompt = messages[0]['content'] if len(messages) == 1 else json.dumps(messages)\n"
        return self._add("provider", "user_query, system_prompt, mcp_servers, messages", [prompt, call])

    def transform(self, function: str) -> str:
        """Add a transform of answers: a function in JavaScript."""
        return self._add("transform", "text", [f"    return javascript({function!r}, text)\n"])

    def file_transform(self, path: Path, function: str) -> str:
        """Add a transform of answers that stands in a Python file of the user's."""
        text: list[str | FileRef] = [
            "    return as_text(load(",
            FileRef(path, "{!r}"),
            f", {function!r})(text, {{'vars': {{}}}}))\n",
        ]
        return self._add("transform", "text", text)

    def xml_check(self) -> str:
        """Add the check for XML."""
        self._markup = True
        return f"{NAME}:is_xml"

    def _add(self, kind: str, parameters: str, text: list[str | FileRef]) -> str:
        key = repr((kind, text))
        if key not in self._known:
            number = self._numbers[kind] = self._numbers.get(kind, 0) + 1
            self._pieces += [f"\n\ndef {kind}_{number}({parameters}):\n", *text]
            self._known[key] = f"{NAME}:{kind}_{number}"
        return self._known[key]
