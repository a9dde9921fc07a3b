"""Promises are kept: every test that `docs/promises.md` names exists, and every campaign is named there."""

import ast
import re
from pathlib import Path

import pytest

REPO = Path(__file__).parent.parent
PAGE = (REPO / "docs/promises.md").read_text("utf-8")
NAMED = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", PAGE)


def names_in(path):
    return {
        node.name
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    }


@pytest.mark.parametrize(("path", "name"), NAMED)
def test_a_promise_has_a_test(path, name):
    assert name in names_in(REPO / path) if name else names_in(REPO / path)


def test_every_row_names_its_test():
    rows = [line for line in PAGE.splitlines() if line.startswith("| ") and "---" not in line and "promise" not in line]
    assert rows and all("`tests/" in row for row in rows)


def test_every_campaign_is_named():
    campaigns = {
        str(path.relative_to(REPO))
        for path in (REPO / "tests/torture").glob("test_*.py")
        if "campaign: Campaign" in path.read_text("utf-8") or "campaign)" in path.read_text("utf-8")
    }
    assert campaigns <= {path for path, _ in NAMED}
