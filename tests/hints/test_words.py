"""Every command in a text of the product or of its documentation exists, with the options that stand there."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from fairtrial.cli.main import cli

REPO = Path(__file__).parents[2]
SOURCES = sorted((REPO / "src").rglob("*.py"))
TEXTS = [
    path
    for pattern in (
        "src/**/*.j2",
        "src/**/*.js",
        "src/**/*.yaml",
        "src/**/*.html",
        "docs/**/*.md",
        "README.md",
        "examples/**/*.md",
    )
    for path in sorted(REPO.glob(pattern))
]
NOT_COMMANDS = (
    "1",
    "knows",
    "cookie",
    "gate:",
    "developers",
    "suite",
    "can",
    "on",
    "calls",
    "result",
    "is",
    "readability",  # of the example of a plug-in
)  # words after the name
_VALUE, _FILLED = "1", "\0"  # stands for what is filled in
_TYPED = re.compile(r"(?:`|<code>|^(?:#  )? *|&& )(fairtrial [^`<\n]+)", re.MULTILINE)


def unknown_in(command: str) -> str:
    """Return what of a command does not exist; empty if all of it does."""
    line = re.split(r" (?:#|\||>|&&|·)(?: |$)| {2,}|…|\\$", re.sub(r"\{\{.*?\}\}", _VALUE, command))[0]
    line = re.sub(r"[\[\]]", " ", line.strip().rstrip(".,:;)"))
    try:
        words = shlex.split(line)[1:]
    except ValueError:  # half of a quotation
        words = line.split()[1:]
    found: click.Command = cli
    while words and isinstance(found, click.Group) and not words[0].startswith("-"):
        inner = [found.get_command(click.Context(found), name) for name in words.pop(0).split("|")]
        if any(one is None for one in inner):
            return f"no such command: {line}"
        found = inner[0] or found
    known = {name for parameter in found.params for name in (*parameter.opts, *parameter.secondary_opts)}
    given = [word.partition("=")[0] for word in words if re.match(r"-{1,2}[a-z]", word)]
    missing = [name for word in given for name in word.split("|") if name not in known | {"--help", "-h", "--version"}]
    return f"no {' '.join(missing)}: {line}" if missing else ""


def texts_in(source: Path) -> Iterator[str]:
    """Yield the texts in a Python file; what is filled into them is a word."""
    tree = ast.parse(source.read_text("utf-8"))
    parts = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts_of = [str(part.value) if isinstance(part, ast.Constant) else _FILLED for part in node.values]
            # ` RUN` is filled in with the space before it, or not at all.
            yield re.sub(rf"(?<=[a-z]){_FILLED}+", f" {_VALUE}", "".join(parts_of)).replace(_FILLED, _VALUE)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts:
            yield node.value


def commands_in(text: str) -> list[str]:
    found = [match[1] for match in _TYPED.finditer(text)]
    return [command for command in found if command.split()[1] not in NOT_COMMANDS]


def test_commands_in_texts_of_the_program_exist():
    found = [(source, command) for source in SOURCES for text in texts_in(source) for command in commands_in(text)]
    assert len(found) > 100
    assert not [f"{source.relative_to(REPO)}: {wrong}" for source, command in found if (wrong := unknown_in(command))]


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: str(path.relative_to(REPO)))
def test_commands_on_pages_and_in_templates_exist(path):
    text = path.read_text("utf-8")
    if path.suffix == ".md":
        parts = re.findall(r"```sh[^\n]*\n(.*?)```|(`[^`\n]+`)", text, re.DOTALL)
        text = "\n".join(block.replace("\\\n", " ") + inline for block, inline in parts)
    assert not [wrong for command in commands_in(text) if (wrong := unknown_in(command))]
