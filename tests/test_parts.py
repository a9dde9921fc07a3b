"""Which tests a change calls for: those of its folder, those near it by imports, all surfaces for a surface, all in doubt."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import parts


def write(root: Path, name: str, text: str = "") -> None:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(text, "utf-8")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Four modules in a row, each imported by the next, with a test of each."""
    names = ("first", "second", "third", "fourth")
    for before, name in zip((None, *names), names, strict=False):
        text = f"from fairtrial.{before} import part" if before else ""
        write(tmp_path, f"src/fairtrial/{name}/part.py", text)
        write(tmp_path, f"tests/{name}/test_{name}.py", f"def test():\n    import fairtrial.{name}.part")
    write(tmp_path, "tests/contracts/test_all.py")
    return tmp_path


def test_a_module_calls_for_its_folder_and_for_what_imports_it(repository):
    near = ["tests/contracts", "tests/first", "tests/second/test_second.py"]
    assert parts.tests_for(["src/fairtrial/first/part.py"], repository) == near
    assert parts.tests_for(["src/fairtrial/first/data.json"], repository) == near  # of a module beside it
    assert parts.tests_for(["src/fairtrial/fourth/part.py"], repository) == ["tests/contracts", "tests/fourth"]


def test_a_table_of_names_imports_what_it_lists(repository):
    write(repository, "src/fairtrial/__init__.py", '_HOMES = {\n    "fairtrial.fourth.part": ("One", "Two"),\n}')
    write(repository, "tests/test_api.py", "import fairtrial as ft")
    assert "tests/test_api.py" in parts.tests_for(["src/fairtrial/fourth/part.py"], repository)
    assert "tests/test_api.py" not in parts.tests_for(["src/fairtrial/first/part.py"], repository)


def test_a_folder_inside_of_one_that_is_tested(repository):
    assert parts.tests_for(["src/fairtrial/third/inner/new.py"], repository) == ["tests/contracts", "tests/third"]


@pytest.mark.parametrize("name", ["pyproject.toml", "tests/conftest.py", ".ci/run", "tests/forks/unheard-of.bin"])
def test_what_cannot_be_told_calls_for_everything(repository, name):
    write(repository, name)
    assert parts.tests_for([name, "src/fairtrial/first/part.py"], repository) == parts.EVERY


def test_a_test_calls_for_itself(repository):
    assert parts.tests_for(["tests/third/test_third.py"], repository) == ["tests/third/test_third.py"]
    assert parts.tests_for(["tests/third/test_gone.py"], repository) == []


@pytest.mark.parametrize(
    ("name", "wanted", "unwanted"),
    [
        ("src/fairtrial/scorers/exact.py", {"tests/scorers", "tests/contracts"}, {"tests/store", "tests/web"}),
        (
            "src/fairtrial/web/templates/base.html.j2",
            {"tests/web", "tests/surfaces", "tests/test_docs.py"},
            {"tests/store"},
        ),
        ("docs/gate.md", {"tests/test_docs.py", "tests/test_site.py", "tests/test_names.py"}, {"tests/engine"}),
        ("tests/data/promptfoo/chat-json.yaml", {"tests/hints/test_other_tools.py"}, {"tests/engine"}),
        ("tests/surfaces/worlds.py", {"tests/surfaces/test_one_voice.py"}, {"tests/web"}),
        ("tests/scripted.py", {"tests/contracts/test_agents.py"}, {"tests/web"}),
    ],
)
def test_changes_to_this_repository(name: str, wanted: set[str], unwanted: set[str]) -> None:
    found = set(parts.tests_for([name]))
    assert wanted <= found and not unwanted & found


def test_every_name_in_it_is_there() -> None:
    """What is renamed would no longer be asked for."""
    assert all((parts.ROOT / path).exists() for path in (*parts._SURFACES, *parts._PAGES, *parts._SHARED))
    assert all((parts.ROOT / "src/fairtrial" / name).is_dir() for name in parts._SAYING)


def test_what_changed_is_what_git_says(repository: Path, monkeypatch: Any) -> None:
    """Since the branch left another one: committed, not committed, new, deleted; not what the other one got since."""
    monkeypatch.setattr(parts, "ROOT", repository)

    def git(*args: str) -> None:
        who = ("-c", "user.name=a", "-c", "user.email=a@b.c")
        subprocess.run(["git", *who, *args], cwd=repository, check=True, capture_output=True)

    git("init", "-b", "main")
    git("add", ".")
    git("commit", "-m", "one")
    git("checkout", "-b", "change")
    write(repository, "committed")
    git("add", ".")
    git("commit", "-m", "two")
    git("checkout", "main")
    write(repository, "elsewhere")
    git("add", ".")
    git("commit", "-m", "three")
    git("checkout", "change")
    write(repository, "new")
    write(repository, "src/fairtrial/first/part.py", "x = 1")
    (repository / "src/fairtrial/second/part.py").unlink()
    files = {"committed", "new", "src/fairtrial/first/part.py", "src/fairtrial/second/part.py"}
    assert set(parts.changed_since("main") or ()) == files
    assert parts.changed_since("0" * 40) is None


def test_ci_runs_all_of_it_every_night_and_before_a_release() -> None:
    workflow = yaml.safe_load((parts.ROOT / ".github/workflows/tests.yml").read_text("utf-8"))
    whole = workflow["jobs"]["whole"]
    assert whole["steps"][-1]["run"] == ".ci/run"
    assert all(event in whole["if"] for event in ("schedule", "release", "tag"))
    assert {"push", "schedule", "release"} <= workflow[True].keys()  # YAML's `on`
    for step in (step for job in workflow["jobs"].values() for step in job["steps"]):
        assert "${{" not in step.get("run", "")
        assert "uses" not in step or len(step["uses"].split("@")[1]) == 40
