"""The pages about plug-ins: what they show is written down, installed and used, and their tests are run."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from fairtrial.core import registry
from tests.test_broken_plugins import install

DOCS = Path(__file__).parent.parent / "docs"
BLOCK = re.compile(r'^```\w+ title="([^"]+)"\n(.*?)^```$', re.MULTILINE | re.DOTALL)
SUITE = "name: voices\ntargets: [backwards]\nscorer: {type: shout, least: 0.5}\ncases: [{id: loud, input: LOUD}]\n"


@pytest.fixture(scope="module")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package that the pages describe, installed, and with its tests."""
    folder = tmp_path_factory.mktemp("plugin")
    for page in ("plugins.md", "testing-plugins.md"):
        for name, text in BLOCK.findall((DOCS / page).read_text("utf-8")):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, "utf-8")
    points = (folder / "pyproject.toml").read_text("utf-8")
    points = re.sub(r'^\[project\.entry-points\."([^"]+)"\]', r"[\1]", points, flags=re.MULTILINE).replace('"', "")
    install(folder, "my-plugin", points)
    (folder / "pyproject.toml").write_text("[tool.pytest.ini_options]\n")
    return folder


def start(plugin: Path, *arguments: str, folder: Path | None = None) -> str:
    environment = {**os.environ, "PYTHONPATH": str(plugin), "COLUMNS": "200"}
    command = [sys.executable, "-m", *arguments]
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment, cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "warning: " not in done.stderr
    return done.stdout


def test_the_page_has_a_part_for_every_door(plugin):
    groups = re.findall(
        r"^\[fairtrial\.(\w+)\]", next(plugin.glob("*-info/entry_points.txt")).read_text(), re.MULTILINE
    )
    assert groups == list(registry.DOORS)


@pytest.mark.slow
def test_every_part_on_the_page_comes_in_through_its_door(plugin, tmp_path):
    (tmp_path / "suite.yaml").write_text(SUITE)
    (tmp_path / "capitals.quiz").write_text("Capital of France? = Paris\nno answer\n")
    (tmp_path / "a.marks").write_text("marks\none x 1\none y 0\n")
    (tmp_path / "a.chats").write_text("chats\nHow are you?\tFine.\n")
    (tmp_path / "a.diary").write_text("diary\nuser: List the folder.\ntool: ls = a.txt\nagent: a.txt\nmood: good\n")
    assert "drill sergeants" in start(plugin, "fairtrial", "scorers")
    assert "Show the longest answer of RUN." in start(plugin, "fairtrial", "--help")
    start(plugin, "fairtrial", "run", "suite.yaml", "-o", "answers.lines")
    assert (tmp_path / "answers.lines").read_text() == "DUOL\n"
    assert start(plugin, "fairtrial", "longest") == "loud, backwards: 4 characters\n"
    start(plugin, "fairtrial", "import", "quiz", "capitals.quiz", "-o", "quiz.yaml")
    imported = (tmp_path / "quiz.yaml").read_text()
    assert "expected: Paris" in imported and "Not carried over: `no answer` has no answer" in imported
    start(plugin, "fairtrial", "import", "results", "a.marks")
    assert {arm["arm"] for arm in json.loads(start(plugin, "fairtrial", "show", "--json"))["arms"]} == {"x", "y"}
    start(plugin, "fairtrial", "import", "traces", "a.chats", "-o", "chats.yaml")
    logged = start(plugin, "fairtrial", "import", "log", "a.diary", folder=tmp_path)
    assert "diarist: 1 case" in logged and "not understood and left out: 1 × mood" in logged
    assert "How are you?" in "".join(file.read_text() for file in tmp_path.glob("chats*"))


@pytest.mark.slow
def test_the_tests_on_the_page_pass(plugin):
    shown = start(plugin, "pytest", "-q", "tests", folder=plugin)
    assert re.search(r"^1?\d passed", shown, re.MULTILINE)
