"""What programs of a task look like if they only pretend: a stub, one that ends at once, a test that tests nothing."""

from __future__ import annotations

import ast
import re
from pathlib import PurePosixPath
from typing import NamedTuple

SCORE = '{"score": 100, "notes": "all passed"}'
_LINES = ("ok", "OK", "PASS", "PASSED", "1 passed", "All tests passed", SCORE)
_SHEBANG = re.compile(rb"#!.*?\b(python|node|sh|bash|dash)[\d.]*\b")
_BY_SUFFIX = {
    **dict.fromkeys((".py",), "python"),
    **dict.fromkeys((".sh", ".bash"), "sh"),
    **dict.fromkeys((".js", ".cjs", ".mjs"), "node"),
}


class Language(NamedTuple):
    """Programs that pretend."""

    ends: str  # at once, as if all were well
    boasts: str  # prints what checks print when all is well, and ends
    skips: str  # a test that is skipped
    passes: str  # a test that tests nothing


def _printing(call: str) -> str:
    return "".join(call.format(line=line) for line in _LINES)


_SHELL = Language(
    ends="exit 0\n",
    boasts=_printing("echo '{line}'\n") + "exit 0\n",
    skips="exit 0\n",
    passes="exit 0\n",
)
_LANGUAGES = {
    "python": Language(
        ends="import os\nos._exit(0)\n",
        boasts=_printing("print('{line}', flush=True)\n") + "import os\nos._exit(0)\n",
        skips="import unittest\nraise unittest.SkipTest('later')\n",
        passes="def test_passes():\n    pass\n",
    ),
    "sh": _SHELL,
    "bash": _SHELL,
    "dash": _SHELL,
    "node": Language(
        ends="process.exit(0);\n",
        boasts=_printing("console.log('{line}');\n") + "process.exit(0);\n",
        skips="",
        passes="",
    ),
}


def language_of(name: str, body: bytes) -> Language | None:
    """Return the language of a program; None for any other file."""
    by_name = _BY_SUFFIX.get(PurePosixPath(name).suffix)
    found = _SHEBANG.match(body.split(b"\n", 1)[0])
    kind = by_name or (found[1].decode() if found else None)
    return _LANGUAGES[kind] if kind else None


def with_first_line(body: bytes, text: str) -> bytes:
    """Return a program's replacement, which is started like the program itself."""
    first = body.split(b"\n", 1)[0]
    return (first + b"\n" if first.startswith(b"#!") else b"") + text.encode()


def stub(name: str, body: bytes) -> bytes:
    """Return a file that is there and does nothing: Python's functions return nothing, anything else is empty."""
    if PurePosixPath(name).suffix != ".py":
        return with_first_line(body, "")
    try:
        tree = ast.parse(body)
    except (SyntaxError, ValueError):
        return b""
    kept = [node for node in tree.body if _stays(node)]
    if not any(isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) for node in kept):
        return b""
    tree.body = kept
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = [ast.Return(value=ast.Constant(value=None))]
    return ast.unparse(ast.fix_missing_locations(tree)).encode()


def _stays(node: ast.stmt) -> bool:
    """Return whether a statement of a module only defines something."""
    return isinstance(
        node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Import | ast.ImportFrom | ast.Assign
    )
