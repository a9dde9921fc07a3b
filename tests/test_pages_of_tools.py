"""The examples on the page about traces run as they stand there; those about exports: reports/test_tracking.py."""

import json
import re
import shlex
import shutil
from pathlib import Path

import pytest

import fairtrial as ft
from docs.names import named_models
from fairtrial.core import registry
from tests.e2e.conftest import cli  # noqa: F401 - a fixture
from tests.tracks.interchange.logs import DATA
from tests.tracks.interchange.traces.test_traces import MODEL, otlp, span

DOCS = Path(__file__).parent.parent / "docs"


def commands(page):
    (block,) = re.findall(r"```sh\n(.*?)```", (DOCS / page).read_text("utf-8"), re.DOTALL)
    return [shlex.split(line, comments=True)[1:] for line in block.splitlines()]


@pytest.fixture
def traces(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    asked = [json.dumps([{"role": "user", "content": f"What is {n} + {n}?"}]) for n in range(5)]
    model = {**MODEL, "gen_ai.request.model": named_models()["openai-large"].model}  # the page's
    spans = [span(n, {**model, "gen_ai.input.messages": text}) for n, text in enumerate(asked)]
    (tmp_path / "traces.json").write_text(json.dumps(otlp(*spans)))


def test_the_commands_about_logs(cli, tmp_path, monkeypatch):  # noqa: F811
    home = tmp_path / "home"
    shutil.copytree(DATA / "claude-code/projects", home / ".claude/projects")
    shutil.copytree(DATA / "codex/sessions", home / ".codex/sessions")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(tmp_path)
    for block in re.findall(r"```sh\n(.*?)```", (DOCS / "logs.md").read_text("utf-8"), re.DOTALL):
        for line in block.splitlines():
            words = [
                word.replace("~", str(home)).replace("RUN", "latest") for word in shlex.split(line, comments=True)[1:]
            ]
            code, _, err = cli(*words)
            assert code == 0, (line, err)
    assert {"trajectories.atif.jsonl", "spans.otlp.json", "asked.yaml", "trajectories"} <= {
        p.name for p in tmp_path.iterdir()
    }


def test_the_page_about_logs_names_every_format():
    page = (DOCS / "logs.md").read_text("utf-8")
    shown = {"claude_code": "Claude Code", "gemini_cli": "Gemini CLI", "otlp": "OpenTelemetry", "atif": "ATIF"}
    assert all(shown.get(name, name).lower() in page.lower() for name in registry.built_in("logs"))


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
    from fairtrial.tracks.interchange.traces import calls_of

    page = (DOCS / "traces.md").read_text("utf-8")
    named = set(re.search(r"Columns: `([^`]*)`", page)[1].split())
    (first, *_) = calls_of(Path("traces.json"))
    assert named == set(first.columns())
