"""`fairtrial init --kind`: every kind is written, valid, commented line by line, and runs offline as it is."""

import json
import re
import shlex
import sys

import pytest
import yaml

from fairtrial.cli import demo
from fairtrial.suites import KINDS, files_of_kind
from tests import forks


def program(*args):
    """Run a command in a process of its own: `mcp` keeps the stderr that it is imported with, a test's that is."""
    ended = forks.run(*args)
    return ended.returncode, ended.stdout, ended.stderr


BEST = {
    "qa": ("careful", 100.0),
    "judge": ("teacher", 90.0),
    "agent": ("stand-in/with-server", 100.0),
    "rag": ("scripted/with-passage", 91.7),
    "optimisation": ("solver/polite", 100.0),
}
WORST = {"qa": "sloppy", "judge": "parrot", "agent": "stand-in/baseline", "rag": "scripted/without"}


@pytest.mark.slow
@pytest.mark.parametrize("kind", BEST)
def test_every_kind_runs_as_it_is(cli, tmp_path, monkeypatch, kind):
    monkeypatch.setenv("PYTHON", str(forks.programs() / "python") if kind == "agent" else sys.executable)
    code, out, _ = cli("init", "--kind", kind, tmp_path / "new")
    cli = program if kind == "agent" else cli
    suite = tmp_path / "new" / "suite.yaml"
    assert code == 0 and out.endswith(f"next: fairtrial run {suite}\n")
    assert {path.name for path in suite.parent.iterdir()} == {*files_of_kind(kind), "suite.schema.json"}
    assert cli("validate", suite)[0] == 0
    code, out, err = cli("run", suite, "--json", "--quiet")
    means = {arm["arm"]: arm["mean"] for arm in json.loads(out)["arms"]}
    best, score = BEST[kind]
    assert code == 0, out + err
    assert round(means[best], 1) == score
    assert means[WORST.get(kind, "guesser/polite")] < 60


def test_what_to_type_next_can_be_typed_in_any_folder(cli, tmp_path, monkeypatch, write_suite):
    folder = tmp_path / "ö ä"
    _, out, _ = cli("init", folder)
    assert shlex.split(out.splitlines()[-1]) == ["next:", "fairtrial", "run", str(folder / "suite.yaml")]
    cli("run", write_suite(), "-q")
    _, out, _ = cli("gate", "latest", "--against", f"file:{folder}/baseline.gz")
    assert shlex.split(" ".join(out.split()).split("`")[1])[-1] == f"{folder}/baseline.gz"
    monkeypatch.setattr("sys.argv", [str(folder / "bin" / "fairtrial")])
    monkeypatch.chdir(tmp_path)
    assert shlex.split(demo._program()) == ["ö ä/bin/fairtrial"]


@pytest.mark.slow
@pytest.mark.usefixtures("chromium")
def test_the_pages_run_as_they_are(cli, tmp_path):
    assert cli("init", "--kind", "code", tmp_path / "new")[0] == 0
    code, out, _ = cli("run", tmp_path / "new" / "suite.yaml", "--json", "--quiet")
    careful, hasty = (arm["mean"] for arm in json.loads(out)["arms"])
    assert code == 0 and careful > hasty


@pytest.mark.parametrize("kind", KINDS)
def test_every_key_is_explained(kind):
    lines = files_of_kind(kind)["suite.yaml"].splitlines()
    keys = yaml.load("\n".join(lines), Loader=yaml.CSafeLoader).keys()
    for number, line in enumerate(lines):
        key = line.split(":")[0]
        if key in keys and key not in ("name", "cases"):
            assert "#" in line or lines[number - 1].startswith("#"), line


def test_an_unknown_kind_names_the_others(cli, tmp_path):
    code, _, err = cli("init", "--kind", "chat", tmp_path / "new")
    assert code == 1 and "'rag'" in err and not (tmp_path / "new").exists()


def test_nothing_is_overwritten(cli, tmp_path):
    (tmp_path / "passages.csv").write_text("mine")
    code, _, err = cli("init", "--kind", "rag", tmp_path)
    assert code == 1 and "passages.csv already exists" in err and not (tmp_path / "suite.yaml").exists()


def test_the_demo_without_the_embedded_model_is_scripted(cli, monkeypatch):
    monkeypatch.setattr("fairtrial.cli.demo.find_spec", lambda name: None)
    code, out, err = cli("demo")
    assert code == 0 and "careful" in out and re.search(r"fairtrial init +a suite for you to edit", err)
    assert "these answers are scripted" in err and "pip install 'fairtrial[local]'" in err


def test_the_hint_of_the_demo_can_be_typed(monkeypatch, tmp_path):
    from fairtrial.cli.demo import _program

    program = tmp_path / ".venv/bin/fairtrial"
    program.parent.mkdir(parents=True)
    program.touch(mode=0o755)
    monkeypatch.setattr("sys.argv", [str(program)])
    monkeypatch.setenv("PATH", "/nowhere")
    assert _program() == ".venv/bin/fairtrial"
    monkeypatch.setenv("PATH", str(program.parent))
    assert _program() == "fairtrial"
