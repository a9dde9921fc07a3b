"""What models answered is for its owner alone: exports, outputs of gates, baselines and kept workspaces."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairtrial.cli.main import _run

SUITE = """\
name: s
targets: [{id: m, target: mock:echo}]
scorer: contains
cases:
""" + "".join(f"  - {{id: a{number}, input: a, expected: a}}\n" for number in range(60))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a finished run, by a user whose files others may read."""
    before = os.umask(0o022)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FAIRTRIAL_STORE", str(tmp_path / "runs.db"))
    (tmp_path / "suite.yaml").write_text(SUITE)
    assert _run(["run", "suite.yaml", "--quiet"]) == 0
    yield tmp_path
    os.umask(before)


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize(
    "name", ["x.html", "x.md", "x.json", "x.jsonl", "x.csv", "x.junit.xml", "x.eee.json", "x.inspect.json"]
)
def test_an_export_is_private(folder: Path, name: str) -> None:
    assert _run(["export", "-o", name]) == 0
    assert _mode(folder / name) == 0o600


@pytest.mark.parametrize("form", ["eee", "inspect"])
def test_a_folder_of_exports_is_private(folder: Path, form: str) -> None:
    assert _run(["export", "--format", form, "-o", "out/"]) == 0
    made = [folder / "out", *(folder / "out").rglob("*")]
    assert len(made) > 1
    assert {(path.is_dir(), _mode(path)) for path in made} <= {(True, 0o700), (False, 0o600)}


def test_a_mode_that_somebody_chose_stays(folder: Path) -> None:
    shared = folder / "x.html"
    shared.touch()
    shared.chmod(0o644)
    (folder / "open").mkdir(mode=0o755)
    assert _run(["export", "-o", "x.html"]) == 0 == _run(["export", "--format", "eee", "-o", "open/"])
    assert _mode(shared) == 0o644 and shared.stat().st_size > 100 and _mode(folder / "open") == 0o755


def test_outputs_of_a_gate_and_baselines_are_private(folder: Path) -> None:
    outputs = [word for name in ("g.junit.xml", "g.json", "g.html") for word in ("-o", name)]
    assert _run(["gate", "latest", "--min-score", "50", *outputs, "--keep", "kept/base.db.gz"]) == 0
    for name in ("g.junit.xml", "g.json", "g.html"):
        assert _mode(folder / name) == 0o600, name
    assert _mode(folder / "kept") == 0o700 and _mode(folder / "kept" / "base.db.gz") == 0o600
