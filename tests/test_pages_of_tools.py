"""The examples on the pages about traces and about exports run as they stand there."""

import json
import re
import shlex
from pathlib import Path

import pytest

import fairtrial as ft
from tests.e2e.conftest import cli  # noqa: F401 - a fixture
from tests.traces.test_traces import MODEL, otlp, span

DOCS = Path(__file__).parent.parent / "docs"
LIBRARIES = ("mlflow", "wandb")


def commands(page):
    (block,) = re.findall(r"```sh\n(.*?)```", (DOCS / page).read_text("utf-8"), re.DOTALL)
    return [shlex.split(line, comments=True)[1:] for line in block.splitlines()]


@pytest.fixture
def traces(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    asked = [json.dumps([{"role": "user", "content": f"What is {n} + {n}?"}]) for n in range(5)]
    spans = [span(n, {**MODEL, "gen_ai.input.messages": text}) for n, text in enumerate(asked)]
    (tmp_path / "traces.json").write_text(json.dumps(otlp(*spans)))


def test_the_commands_about_traces(traces, cli, tmp_path):  # noqa: F811
    lines = commands("traces.md")
    assert [line[0] for line in lines] == ["import", "validate", "run"]
    for line in lines:
        code, _, err = cli(*line)
        assert code == 0, (line, err)
    assert ft.open_run().plan.case_count == 5


def test_the_python_about_traces(traces):
    page = (DOCS / "traces.md").read_text("utf-8")
    (line,) = re.findall(r"`(ft\.import_traces\(.*?\))`", page)
    assert eval(line, {"ft": ft}).cases == 5


def test_every_column_of_a_call_is_on_the_page(traces):
    from fairtrial.traces import calls_of

    page = (DOCS / "traces.md").read_text("utf-8")
    named = set(re.search(r"Columns: `([^`]*)`", page)[1].split())
    (first, *_) = calls_of(Path("traces.json"))
    assert named == set(first.columns())


@pytest.mark.slow
def test_the_commands_about_exports(cli, tmp_path, monkeypatch):  # noqa: F811
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_DIR", str(tmp_path))
    ft.run({"name": "sums", "targets": ["mock:echo"], "cases": [{"input": "2", "expected": "2"}]})
    lines = commands("exporting.md")
    assert len(lines) == 5
    for line in lines:
        library = next((name for name in LIBRARIES if name in line), None)
        if library:
            pytest.importorskip(library)
        code, _, err = cli(*line)
        assert code == 0, (line, err)
    assert Path("run.eval").stat().st_size and list(Path("logs").glob("*.eval"))
    assert list(Path("collection/data").rglob("*.json")) and Path("mlflow.db").exists()
    assert isinstance(ft.import_results("run.eval"), ft.Run)
