"""A Python file next to the suite: what users of promptfoo wrote in Python or JavaScript, as fairtrial calls it."""

from __future__ import annotations

import ast
import textwrap
from pathlib import Path
from types import ModuleType
from typing import Any

from fairtrial.foreign.suites import FileRef, read_text
from fairtrial.tracks.interchange.importers._promptfoo import (
    runtime,
    runtime_browser,
    runtime_checks,
    runtime_http,
    runtime_models,
    runtime_traces,
)

_ASKED = "user_query, system_prompt, mcp_servers, messages, vars, files=()"
_CHAT = "with_files(messages, files)"
_PARTS = (runtime_http, runtime_models, runtime_browser, runtime_checks, runtime_traces)
Piece = str | FileRef


class CodeFile:
    """Collects functions; each is added once, and referred to as `file:function`.

    `runtime.py` is what they use, with those of the files next to it that are needed.
    """

    def __init__(self, name: str = "promptfoo_code.py") -> None:
        self.name = name
        self._pieces: list[Piece] = []
        self._numbers: dict[str, int] = {}
        self._known: dict[str, str] = {}
        self._used = False
        self._parts: set[str] = set()  # of what they use
        self.tracing = 0  # the port at which providers of the user's send spans

    def pieces(self) -> list[Piece]:
        """Return the parts of the file's text; empty if nothing needs it."""
        if not self._used:
            return []
        parts = [_without_imports(part) for part in _PARTS if part.__name__ in self._parts]
        return [read_text(Path(runtime.__file__)), *parts, *self._pieces]

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
        """Add a check that is in a Python file of the user's."""
        return self._add(
            "check", "**facts", ["    return grade(load(", *_quoted(path, function), f"), facts, {config!r})\n"]
        )

    def node_check(self, path: Path | None, function: str, config: Any, code: str | None = None) -> str:
        """Add a check in JavaScript that needs Node: a function of a file, or the body of one."""
        text = ["    return grade_in_node(", *_quoted(path, function), f", facts, {config!r}, {code!r})\n"]
        return self._add("check", "**facts", text)

    def provider(self, path: Path, function: str, config: Any) -> str:
        """Add a provider that is in a Python file of the user's."""
        return self._provider(["ask(load(", *_quoted(path, function), f"), {config!r}, {_CHAT}, vars"])

    def node_provider(self, path: Path, function: str, config: Any, kind: str = "provider") -> str:
        """Add a provider that is in a file of JavaScript."""
        return self._provider(
            ["ask_in_node(", *_quoted(path, function), f", {config!r}, {_CHAT}, vars"], f", kind={kind!r}"
        )

    def package_provider(self, name: str, function: str, folder: Path, config: Any) -> str:
        """Add a provider that is in a package of Node's."""
        made = f"ask_in_node({f'package:{name}'!r}, {function!r}, {config!r}, {_CHAT}, vars"
        return self._provider([made], ", within=", FileRef(folder, "{!r}"))

    def _provider(self, call: list[Piece], *options: Piece) -> str:
        """Add a provider of the user's, with a trace of its own if it reports spans."""
        if not self.tracing:
            return self._add("provider", _ASKED, ["    return ", *call, *options, ")\n"])
        self._parts.add(runtime_traces.__name__)
        traced = [f"    return traced({self.tracing}, lambda context: ", *call, ", context", *options, "))\n"]
        return self._add("provider", _ASKED, traced)

    def call(self, function: str, *values: Any, where: str = "", **options: Any) -> str:
        """Add a provider that is a call of a function in `runtime.py`."""
        self._need(function)
        given: list[list[Piece]] = [*map(_shown, values), [_CHAT]]
        given += [["vars"]] if where else []
        pieces: list[Piece] = [f"    return {function}(", *_joined(given)]
        for name, value in options.items():
            pieces += [f", {name}=", *_shown(value)]
        return self._add("provider", _ASKED, [*pieces, ")\n"])

    def prompt(self, path: Path, function: str, config: Any) -> str:
        """Add a prompt function that is in a file of the user's."""
        context = f"{{'vars': vars, 'provider': {{}}, 'config': {config!r}}}"
        if path.suffix == ".py":
            text = ["    return prompted(load(", *_quoted(path, function or "get_prompt"), f")({context}))\n"]
        else:
            text = ["    return prompted(node(", *_quoted(path, function), f", [{context}]))\n"]
        return self._add("prompt", "vars", text)

    def computed_prompt(self, made: Any, programs: dict[str, Path], filters: dict[str, Path] | None = None) -> str:
        """Add a prompt (a template, or a chat of them) with variables that programs make, or with filters."""
        pieces: list[Piece] = [f"    return prompted(with_programs({made!r}, vars, "]
        return self._add("prompt", "vars", [*pieces, *_shown(programs), ", ", *_shown(filters or {}), "))\n"])

    def printed_prompt(self, words: list[Any], config: Any) -> str:
        """Add a prompt that a program prints."""
        return self._add("prompt", "vars", ["    return printed(", *_shown(words), f", vars, {config!r})\n"])

    def node_prompt(self, code: str) -> str:
        """Add a prompt function in JavaScript."""
        body = f"return await ({code})(output);"
        context = "{'vars': vars, 'provider': {}, 'config': {}}"
        return self._add("prompt", "vars", [f"    return prompted(node(None, '', [{context}, {{}}], code={body!r}))\n"])

    def code_provider(self, code: str) -> str:
        """Add a provider that is a function in JavaScript."""
        body = f"return await ({code})(output, context);"
        text = f"    return reported(node(None, '', [prompt_text({_CHAT}), {{'vars': vars}}], code={body!r}))\n"
        return self._add("provider", _ASKED, [text])

    def scoring(self, path: Path, function: str) -> str:
        """Add a function of a file that makes one score of several."""
        made = ["    return combine(", *_shown((path, function)), ", parts, facts)\n"]
        return self._add("combined", "parts, **facts", made)

    def transform(self, function: str) -> str:
        """Add a transform of answers: a function in JavaScript."""
        return self._add("transform", "text", [f"    return transform({function!r}, text)\n"])

    def file_transform(self, path: Path, function: str) -> str:
        """Add a transform of answers that is in a Python file of the user's."""
        text = ["    return as_text(load(", *_quoted(path, function), ")(text, {'vars': {}}))\n"]
        return self._add("transform", "text", text)

    def webhook(self, url: str) -> str:
        """Add a check that an address makes."""
        self._need("call_webhook")
        return self._add("check", "**facts", [f"    return call_webhook({url!r}, facts)\n"])

    def function(self, name: str) -> str:
        """Return a function of the runtime that fairtrial calls itself."""
        self._used = True
        self._need(name)
        return f"{self.name}:{name}"

    def _need(self, function: str) -> None:
        self._parts |= {part.__name__ for part in _PARTS if function in vars(part)}

    def _add(self, kind: str, parameters: str, text: list[Piece]) -> str:
        self._used = True
        key = repr((kind, text))
        if key not in self._known:
            number = self._numbers[kind] = self._numbers.get(kind, 0) + 1
            self._pieces += [f"\n\ndef {kind}_{number}({parameters}):\n", *text]
            self._known[key] = f"{self.name}:{kind}_{number}"
        return self._known[key]


def _quoted(path: Path | None, function: str) -> list[Piece]:
    """Return a file and a name as two arguments of a call."""
    return ["None" if path is None else FileRef(path, "{!r}"), f", {function!r}"]


def _shown(value: Any) -> list[Piece]:
    """Return a value as Python; files in it are written relative to the suite."""
    if isinstance(value, Path):
        return [FileRef(value, "{!r}")]
    if isinstance(value, dict):
        items = [[f"{key!r}: ", *_shown(item)] for key, item in value.items()]
        return ["{", *_joined(items), "}"]
    if isinstance(value, list | tuple):
        return ["[", *_joined([_shown(item) for item in value]), "]"]
    return [repr(value)]


def _joined(items: list[list[Piece]]) -> list[Piece]:
    return [piece for number, item in enumerate(items) for piece in ([", "] if number else []) + item]


def _without_imports(part: ModuleType) -> str:
    """Return the text of a part of the runtime as it is in one file with the others."""
    text = read_text(Path(str(part.__file__)))
    lines = text.splitlines()
    for node in ast.parse(text).body:
        ours = isinstance(node, ast.ImportFrom) and str(node.module).startswith(("fairtrial.", "__future__"))
        if ours or isinstance(node, ast.Expr):
            lines[node.lineno - 1 : node.end_lineno] = [""] * (int(node.end_lineno or 0) - node.lineno + 1)
    return "\n\n" + "\n".join(lines).strip() + "\n"
