"""What the originals describe, row by row, and the page that says where it is here: docs/originals.md."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import msgspec

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]
PAGE = ROOT / "docs" / "originals.md"
_NOTE = "<!-- Written by `python -m tests.originals`; do not edit. -->"
_INTRO = """\
# The three originals

fairtrial exists because of three systems: a guide on polite and strict prompts for optimisation, k-eval, and Benchmaker.
Each of the {count} rows below is something that one of them describes: where it is here, and what we do differently and
why. Every row is shown by tests; `tests/originals/` runs each original's own files and holds our numbers against its own
definitions."""


class Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One thing that an original describes, where it is here, and the tests that show it."""

    describes: str
    here: str
    tests: list[str]
    differs: str = ""


class Original(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One original: its rows, under the headings of its own description."""

    title: str
    about: str
    parts: dict[str, list[Row]]

    @property
    def rows(self) -> list[Row]:
        return [row for rows in self.parts.values() for row in rows]


def originals() -> dict[str, Original]:
    """Return the originals by the names of their files."""
    return {name: _read(FOLDER / f"{name}.yaml") for name in ("guide", "k_eval", "benchmaker")}


def _read(file: Path) -> Original:
    return msgspec.yaml.decode(file.read_bytes(), type=Original)


def page() -> str:
    """Return docs/originals.md."""
    found = originals()
    lines = [_NOTE, "", _INTRO.format(count=sum(len(one.rows) for one in found.values()))]
    for one in found.values():
        lines += ["", f"## {one.title}", "", one.about.strip()]
        for part, rows in one.parts.items():
            lines += ["", f"### {part}", "", "| it describes | here | what differs, and why |", "| --- | --- | --- |"]
            lines += [f"| {_cell(row.describes)} | {_cell(row.here)} | {_cell(row.differs)} |" for row in rows]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def missing_tests(original: str, row: Row) -> list[str]:
    """Return the tests of a row that do not exist."""
    names = [name if "::" in name else f"tests/originals/test_{original}.py::{name}" for name in row.tests]
    return [name for name in names if name.partition("::")[2] not in _tests_in(name.partition("::")[0])]


@cache
def _tests_in(file: str) -> set[str]:
    path = ROOT / file
    if not path.exists():
        return set()
    found = ast.walk(ast.parse(path.read_text("utf-8")))
    kinds = ast.FunctionDef | ast.AsyncFunctionDef
    return {node.name for node in found if isinstance(node, kinds) and node.name.startswith("test")}
