"""Agents of frameworks are functions: the examples run, with a scripted model."""

import json
import os
import subprocess
from pathlib import Path

import pytest

REPO = Path(__file__).parents[2]


@pytest.mark.slow
def test_the_examples(tmp_path):
    """In an environment of their own, 170 MB: TESTS_FRAMEWORKS is its Python, with fairtrial[agents] and the frameworks."""
    python = os.environ.get("TESTS_FRAMEWORKS")
    if not python:
        pytest.skip("TESTS_FRAMEWORKS=path/to/python, with what examples/frameworks/suite.yaml needs")
    programs = {"PATH": f"{Path(python).parent}:{os.environ['PATH']}"}
    model = [python, str(REPO / "examples/agents/scripted_model.py")]
    done = subprocess.run(
        [*model, "fairtrial", "run", str(REPO / "examples/frameworks/suite.yaml"), "--json"],
        cwd=tmp_path,
        env={**os.environ, **programs},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    arms = {arm["arm"]: arm for arm in json.loads(done.stdout)["arms"]}
    assert len(arms) == 6
    for name, arm in arms.items():
        with_graph = name.endswith("with-graph")
        assert arm["mean"] == (100 if with_graph else 0), (name, arm)
