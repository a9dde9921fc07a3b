"""Transforms of answers: as `extract` where it can say the same, else as a function next to the suite."""

from __future__ import annotations

import re
from typing import Any

from fairtrial.tracks.interchange.importers._promptfoo.conversion import Conversion
from fairtrial.tracks.interchange.importers._promptfoo.files import PREFIX
from fairtrial.tracks.interchange.importers._promptfoo.prompts import JAVASCRIPT

_PATH = r"((?:\??\.?\[\s*(?:\d+|'[^']+'|\"[^\"]+\")\s*\]|\??\.[A-Za-z_$][\w$]*)*)"
_JSON = re.compile(rf"JSON\.parse\(\s*output(?:\.trim\(\))?\s*\){_PATH}")
_AFTER = re.compile(r"""output\.split\(\s*(?:'([^'\\]+)'|"([^"\\]+)")\s*\)(?:\.pop\(\)|\.at\(-1\))(\.trim\(\))?""")
_MATCH = re.compile(r"output\.match\(\s*/((?:[^/\\\n]|\\.)+)/([a-z]*)\s*\)(?:\?\.)?\[(\d+)\](?:\??\.trim\(\))?")
_NODE = re.compile(r"\brequire\s*\(|\bawait\b|\basync\b|\bfetch\s*\(|\bprocess\.|^\s*import\s", re.MULTILINE)
_ADVICE = (
    "write what it does as `extract` (docs/reference/suite.md), or as a Python function: "
    "`extract: {python: file.py:function}`"
)
# Members of a text in JavaScript: with any other, `output` is an object or a list.
_OF_TEXT = (
    "length|at|charAt|charCodeAt|codePointAt|concat|endsWith|includes|indexOf|lastIndexOf|localeCompare|match|matchAll|"
    "normalize|padEnd|padStart|repeat|replace|replaceAll|search|slice|split|startsWith|substr|substring|toLowerCase|"
    "toString|toUpperCase|toLocaleLowerCase|toLocaleUpperCase|trim|trimEnd|trimStart|valueOf"
)
_STRUCTURED = re.compile(rf"\boutput\s*(?:\?\.)?(?:\[|\.(?!(?:{_OF_TEXT})\b)[A-Za-z_$])")
_MEMBER = re.compile(rf"output{_PATH}")
_STATEMENT = re.compile(
    r"(?:\s|//[^\n]*\n|/\*.*?\*/)*(?:const|let|var|if|for|while|return|try|switch|function|throw)\b", re.DOTALL
)


def is_body(code: str) -> bool:
    """Return whether code is the body of a function, and not an expression."""
    return _STATEMENT.match(code) is not None


def is_structured(code: str) -> bool:
    """Return whether code takes the answer for an object or a list, which promptfoo makes of JSON and of tool calls."""
    return _STRUCTURED.search(code) is not None


def extraction(at: Conversion, transform: Any, where: str) -> dict[str, Any] | None:
    """Return the `extract` of a transform; None if there is none, which is noted."""
    text = str(transform).removeprefix(JAVASCRIPT).strip().rstrip(";").strip()
    if text in ("output", ""):
        return None
    if text.startswith(PREFIX):
        return _file(at, text, where)
    if simple := _simple(text):
        return simple
    if _NODE.search(text) or re.search(r"\bcontext\b", text):
        at.notes.lost(f"transform `{text[:60]}`", _ADVICE, where)
        return None
    body = text if is_body(text) else f"return ({text});"
    if re.match(r"(?:\([^()]*\)|\w+)\s*=>|function\b", text):
        body = f"return ({text})(output, context);"
    if is_structured(text):
        body = f"output = JSON.parse(output); {body}"
    return {"python": at.code.transform(f"function (output, context) {{ {body} }}")}


def _file(at: Conversion, text: str, where: str) -> dict[str, Any] | None:
    name, _, function = text.removeprefix(PREFIX).partition(":")
    with at.notes.missing(f"transform {text}", where):
        path = at.folder.find(name)[0]
        if path.suffix == ".py":
            return {"python": at.code.file_transform(path, function or "get_transform")}
        source = at.folder.text(name)
        if path.suffix in (".js", ".cjs", ".mjs") and not _NODE.search(source):
            source = re.sub(r"^\s*export\s+default\s+", "module.exports = ", source, count=1, flags=re.MULTILINE)
            pick = f"module.exports[{function!r}]" if function else "(module.exports.default || module.exports)"
            body = f"const module = {{exports: {{}}}};\n{source}\nreturn {pick}(output, context);"
            return {"python": at.code.transform(f"function (output, context) {{ {body} }}")}
        at.notes.lost(f"transform {text}", _ADVICE, where)
    return None


def _simple(text: str) -> dict[str, Any] | None:
    if text == "output.trim()":
        return {"regex": r"(?s)\A\s*(.*?)\s*\Z"}
    match = _JSON.fullmatch(text) or (_MEMBER.fullmatch(text) if is_structured(text) else None)
    if match:
        path = re.sub(r"\?\.?(?=\[)|\?(?=\.)", "", match[1]).lstrip(".")
        return {"json": path or "$"}
    if match := _AFTER.fullmatch(text):
        return {"after": match[1] or match[2]}
    if match := _MATCH.fullmatch(text):
        return {"regex": f"/{match[1]}/{match[2]}", "group": int(match[3])}
    return None
