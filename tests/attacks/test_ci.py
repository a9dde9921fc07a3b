"""The gate in CI, in a checkout of a stranger's branch: none of its files is imported, and what is installed is pinned."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
SHADOWS = [
    "json.py",
    "encodings.py",
    "codecs.py",
    "sitecustomize.py",
    "usercustomize.py",
    "io.py",
    "json/__init__.py",
    "re.py",
]


@pytest.mark.parametrize("name", SHADOWS)
@pytest.mark.parametrize("environment", [{}, {"PYTHONPATH": "."}], ids=["plain", "with a path"])
def test_the_script_imports_nothing_of_the_branch(tmp_path: Path, name: str, environment: dict[str, str]) -> None:
    programs, branch, canary = tmp_path / "bin", tmp_path / "branch", tmp_path / "canary"
    programs.mkdir()
    gate = (
        programs / "fairtrial"
    )  # the gate itself runs what the suite names; this is about what the script does besides
    gate.write_text('#!/bin/sh\necho \'{"result": "passed"}\' > fairtrial-gate/gate.json\n')
    gate.chmod(0o755)
    module = branch / name
    module.parent.mkdir(parents=True)
    module.write_text(f"open({str(canary)!r}, 'w').write('ran')\nload = lambda _: {{'result': 'passed'}}\n")
    output = tmp_path / "output"
    subprocess.run(
        ["bash", str(ROOT / "ci" / "gate.sh")],
        cwd=branch,
        check=True,
        env={
            **environment, "PATH": f"{programs}:{os.environ['PATH']}", "SUITE": "suite.yaml", "GITHUB_OUTPUT": str(output),
            "HOME": str(tmp_path),
        },
    )  # fmt: skip
    assert "result=passed" in output.read_text()
    assert not canary.exists()


def _installs() -> dict[str, str]:
    action = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
    template = yaml.safe_load((ROOT / "ci" / "gitlab.yml").read_text("utf-8"))[".fairtrial-gate"]
    (ours,) = [step["run"] for step in action["runs"]["steps"] if "pip install" in step.get("run", "")]
    (theirs,) = [line for line in template["script"] if "pip install" in line]
    return {"action.yml": ours, "gitlab.yml": theirs}


def test_what_is_installed_is_pinned() -> None:
    for name, command in _installs().items():
        assert command.startswith("python -I -m pip install") and "--constraint" in command, name
    template = yaml.safe_load((ROOT / "ci" / "gitlab.yml").read_text("utf-8"))[".fairtrial-gate"]
    version = yaml.safe_load((ROOT / "pyproject.toml").read_text("utf-8").partition("version = ")[2].split("\n")[0])
    assert template["variables"]["FAIRTRIAL_PACKAGE"] == f"fairtrial=={version}"
    assert template["image"].count(".") == 2  # a version, not a series of them


def test_pip_is_not_taken_from_the_branch(tmp_path: Path) -> None:
    (tmp_path / "pip.py").write_text("raise SystemExit('pip of the branch')\n")
    python = ROOT / ".venv" / "bin" / "python"
    for command in _installs().values():
        program = command.partition(" install")[0].split()
        done = subprocess.run(
            [str(python) if python.exists() else "python3", *program[1:], "--version"],
            cwd=tmp_path, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.stdout.startswith("pip "), done.stderr


def test_forks_are_told_what_a_target_can_do() -> None:
    text = " ".join((ROOT / "docs" / "gate.md").read_text("utf-8").split())
    assert "A `python:` target sees every variable of the job, including keys and tokens" in text
