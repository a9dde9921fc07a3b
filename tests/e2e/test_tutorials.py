"""The tutorials, followed literally: files and commands are taken from the pages, in the order in which they stand there."""

import asyncio
import csv
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from fairtrial.analyse.run import Run
from fairtrial.store import Store
from tests import forks
from tests.scripted import Say, Turn, scripted_model

REPO = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(\w+)( key)?\n(.*?)^```", re.DOTALL | re.MULTILINE)


@pytest.fixture
def models(monkeypatch):
    """OpenAI and Anthropic, as strict as they are, on this machine."""

    def say(turn: Turn) -> Say:
        if '"better"' in turn.question:
            return Say('{"reasoning": "both are fine", "better": "tie"}')
        if "JUDGE" in turn.question or "ANSWER" in turn.question:
            return Say('{"reasoning": "it is right", "score": 8}')
        return Say("Because of Rayleigh scattering.")

    loop = asyncio.new_event_loop()
    stop, ready = asyncio.Event(), threading.Event()
    where: list[str] = []

    async def serve() -> None:
        async with scripted_model(say) as model:
            where.append(model.url)
            ready.set()
            await stop.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    ready.wait()
    monkeypatch.setenv("OPENAI_BASE_URL", f"{where[0]}/v1")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", where[0])
    monkeypatch.setenv("OPENAI_API_KEY", "sk-tutorial-0001")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-tutorial-0001")
    yield
    loop.call_soon_threadsafe(stop.set)
    thread.join()


def fill_in(folder: Path) -> None:
    """What a person does between two commands: mark the answers that were drawn."""
    marks = folder / "marks.csv"
    if not marks.exists():
        return
    with marks.open(newline="") as file:
        rows = list(csv.DictReader(file))
    with marks.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows({**row, "label": "80"} for row in rows)


def follow(page: Path, folder: Path) -> list[str]:
    """Write the files and run the commands of a page; the commands that were run."""
    path = forks.first_in(f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    environment = {**os.environ, "PATH": path, "COLUMNS": "80"}
    ran: list[str] = []
    for language, key, text in BLOCK.findall(page.read_text("utf-8")):
        if language == "csv":
            (folder / "questions.csv").write_text(text, "utf-8")
        elif language == "yaml" and text.startswith("name:"):
            (folder / "suite.yaml").write_text(text, "utf-8")
        elif language == "sh" and not key:
            fill_in(folder)
            script = f"set -e\n{text}\npwd > {folder.anchor}{'/'.join(folder.parts[1:])}/.here"
            done = subprocess.run(
                ["bash", "-c", script], cwd=folder, env=environment, capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, f"{page.name}: {text}\n{done.stdout}{done.stderr}"
            folder = Path((folder / ".here").read_text().strip())
            ran += text.strip().splitlines()
    return ran


@pytest.mark.slow
def test_which_model_answers_best(tmp_path):
    ran = follow(REPO / "docs/tutorial-models.md", tmp_path)
    assert any(line.startswith("fairtrial run") for line in ran) and len(ran) >= 6


@pytest.mark.slow
def test_a_gate_in_ten_minutes(tmp_path):
    ran = follow(REPO / "docs/gate.md", tmp_path)
    assert any("gate suite.yaml --against branch:main" in line for line in ran)
    store = Store(f"sqlite:///{tmp_path}/orders/.fairtrial/fairtrial.db")
    back, shorter, main = (Run(store, record) for record in store.runs())
    assert [run.context["git"]["branch"] for run in (main, shorter, back)] == ["main", "shorter", "shorter"]
    assert main.arms[0].aggregate.mean == 1 and shorter.arms[0].aggregate.mean < 0.7
    assert all(trial.cached for trial in back.trials())


@pytest.mark.slow
def test_judges(tmp_path, models):
    ran = follow(REPO / "docs/judges.md", tmp_path)
    assert {line.split()[1] for line in ran} == {"run", "pairwise", "calibrate", "label", "rescore"}


@pytest.mark.slow
def test_agents(tmp_path):
    (tmp_path / "examples").symlink_to(REPO / "examples")
    ran = follow(REPO / "docs/tutorial-agents.md", tmp_path)
    assert "fairtrial run examples/agents/suite.yaml" in ran
    run = Run.find("latest", Store(f"sqlite:///{tmp_path}/.fairtrial/fairtrial.db"))
    assert run.status == "completed", run.summary().failures
