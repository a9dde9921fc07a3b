"""A Python file beside the suite: what users of promptfoo wrote in Python or JavaScript, as fairtrial calls it."""

from __future__ import annotations

import ast
import textwrap
from pathlib import Path
from typing import Any

from fairtrial.importers import FileRef, read_text
from fairtrial.importers._promptfoo import runtime

NAME = "promptfoo_code.py"
_ASKED = "user_query, system_prompt, mcp_servers, messages, vars"
Piece = str | FileRef


class CodeFile:
    """Collects functions; each is added once, and referred to as `file:function`. `runtime.py` is what they use."""

    def __init__(self) -> None:
        self._pieces: list[Piece] = []
        self._numbers: dict[str, int] = {}
        self._known: dict[str, str] = {}
        self._used = False

    def pieces(self) -> list[Piece]:
        """Return the parts of the file's text; empty if nothing needs it."""
        return [read_text(Path(runtime.__file__)), *self._pieces] if self._used else []

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
        """Add a check that stands in a Python file of the user's."""
        return self._add(
            "check", "**facts", ["    return grade(load(", *_quoted(path, function), f"), facts, {config!r})\n"]
        )

    def node_check(self, path: Path | None, function: str, config: Any, code: str | None = None) -> str:
        """Add a check in JavaScript that needs Node: a function of a file, or the body of one."""
        text = ["    return grade_in_node(", *_quoted(path, function), f", facts, {config!r}, {code!r})\n"]
        return self._add("check", "**facts", text)

    def provider(self, path: Path, function: str, config: Any) -> str:
        """Add a provider that stands in a Python file of the user's."""
        text = ["    return ask(load(", *_quoted(path, function), f"), {config!r}, messages, vars)\n"]
        return self._add("provider", _ASKED, text)

    def node_provider(self, path: Path, function: str, config: Any, kind: str = "provider") -> str:
        """Add a provider that stands in a file of JavaScript."""
        text = ["    return ask_in_node(", *_quoted(path, function), f", {config!r}, messages, vars, kind={kind!r})\n"]
        return self._add("provider", _ASKED, text)

    def call(self, function: str, *values: Any, where: str = "", **options: Any) -> str:
        """Add a provider that is a call of a function in `runtime.py`."""
        given = [*map(repr, values), "messages", *(["vars"] if where else [])]
        pieces: list[Piece] = [f"    return {function}({', '.join(given)}"]
        for name, value in options.items():
            pieces += [f", {name}=", *_shown(value)]
        return self._add("provider", _ASKED, [*pieces, ")\n"])

    def prompt(self, path: Path, function: str, config: Any) -> str:
        """Add a prompt function that stands in a file of the user's."""
        context = f"{{'vars': vars, 'provider': {{}}, 'config': {config!r}}}"
        if path.suffix == ".py":
            text = ["    return prompted(load(", *_quoted(path, function or "get_prompt"), f")({context}))\n"]
        else:
            text = ["    return prompted(node(", *_quoted(path, function), f", [{context}]))\n"]
        return self._add("prompt", "vars", text)

    def computed_prompt(self, made: Any, programs: dict[str, Path]) -> str:
        """Add a prompt whose variables are made by programs: a template, a chat of templates, or a function."""
        pieces: list[Piece] = [f"    return prompted(with_programs({made!r}, vars, {{"]
        for text, path in programs.items():
            pieces += [f"{text!r}: ", FileRef(path, "{!r}"), ", "]
        return self._add("prompt", "vars", [*pieces, "}))\n"])

    def transform(self, function: str) -> str:
        """Add a transform of answers: a function in JavaScript."""
        return self._add("transform", "text", [f"    return transform({function!r}, text)\n"])

    def node_transform(self, path: Path | None, function: str, code: str | None = None) -> str:
        """Add a transform of answers that needs Node."""
        text = ["    return as_text(node(", *_quoted(path, function), f", [text, {{'vars': {{}}}}], code={code!r}))\n"]
        return self._add("transform", "text", text)

    def file_transform(self, path: Path, function: str) -> str:
        """Add a transform of answers that stands in a Python file of the user's."""
        text = ["    return as_text(load(", *_quoted(path, function), ")(text, {'vars': {}}))\n"]
        return self._add("transform", "text", text)

    def webhook(self, url: str) -> str:
        """Add a check that an address makes."""
        return self._add("check", "**facts", [f"    return call_webhook({url!r}, facts)\n"])

    def function(self, name: str) -> str:
        """Return a function of `runtime.py` that fairtrial calls itself."""
        self._used = True
        return f"{NAME}:{name}"

    def _add(self, kind: str, parameters: str, text: list[Piece]) -> str:
        self._used = True
        key = repr((kind, text))
        if key not in self._known:
            number = self._numbers[kind] = self._numbers.get(kind, 0) + 1
            self._pieces += [f"\n\ndef {kind}_{number}({parameters}):\n", *text]
            self._known[key] = f"{NAME}:{kind}_{number}"
        return self._known[key]


def _quoted(path: Path | None, function: str) -> list[Piece]:
    """Return a file and a name as two arguments of a call."""
    return ["None" if path is None else FileRef(path, "{!r}"), f", {function!r}"]


def _shown(value: Any) -> list[Piece]:
    """Return a value as Python; a file in a pair is written relative to the suite."""
    if isinstance(value, tuple) and isinstance(value[0], Path):
        return ["[", *_quoted(value[0], value[1]), "]"]
    return [repr(value)]
