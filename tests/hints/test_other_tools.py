"""What is suggested after something of another tool was imported, run or calibrated can be followed."""

from __future__ import annotations

import asyncio
import json
import shutil

import pytest
import yaml

from tests import forks
from tests.hints.suggested import commands_in, type_in, walk
from tests.tracks.interchange.logs import DATA as LOGS
from tests.tracks.interchange.results.conftest import DATA

RESULTS = {
    "inspect": ["inspect/a.eval", "inspect/b.eval"],
    "one log of inspect": ["inspect/a.eval"],
    "a retried log of inspect": ["inspect/err.eval", "inspect/retry.eval"],
    "an unfinished log of inspect": ["inspect/unfinished.eval"],
    "deepeval": ["deepeval/test_run_a.json.gz", "deepeval/test_run_b.json.gz"],
    "every eval ever": ["every-eval-ever"],
    "k-eval": ["k-eval"],
    "lm-eval": ["lm-eval"],
    "openai-evals": ["openai-evals"],
    "promptfoo": ["promptfoo/small.json.gz"],
    "pydantic-evals": ["pydantic-evals"],
}
K_EVAL = {
    "name": "K",
    "dataset": {"path": "d.jsonl", "question_key": "q", "answer_key": "a"},
    "agent": {"type": "claude_code_sdk", "model": "m"},
    "judge": {"model": "gpt-5"},
    "conditions": {"plain": {}},
}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "store"), [*((name, "") for name in RESULTS), ("inspect", "my store.db")])
def test_imported_results(name, store, tmp_path):
    folder = tmp_path / "state"
    folder.mkdir()
    for file in RESULTS[name]:
        place = folder / "logs" / file
        place.parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if (DATA / file).is_dir() else shutil.copy)(DATA / file, place)
    for expected in (folder / "logs").rglob("expected.json"):
        expected.unlink()
    ended = type_in(folder, "import", "results", "logs", *(["--store", store] if store else []))
    assert ended.code == 0 and list(walk(folder, ended.said, deep=1)), ended.said


@pytest.mark.slow
@pytest.mark.parametrize("logs", ["claude-code", "harbor/demo-job", ""])
def test_imported_logs(logs, tmp_path):
    shutil.copytree(LOGS / logs, tmp_path / "state" / "logs")
    ended = type_in(tmp_path / "state", "import", "log", "logs")
    assert ended.code == 0 and list(walk(tmp_path / "state", ended.said, deep=1)), ended.said


@pytest.mark.slow
async def test_the_judge_of_a_configuration_of_k_eval(tmp_path, model_server):
    """The hint names the file that was run, not what it was converted to."""
    await model_server(answer='{"reasoning": "fine", "score": 5}')
    folder = tmp_path / "state"
    folder.mkdir()
    (folder / "my config.yaml").write_text(yaml.safe_dump(K_EVAL), "utf-8")
    (folder / "d.jsonl").write_text(json.dumps({"q": "Why?", "a": "So."}) + "\n", "utf-8")
    ended = await asyncio.to_thread(type_in, folder, "run", "my config.yaml", "--budget-usd", "0")
    calibrate = [command for command in commands_in(ended.said) if "calibrate" in command]
    assert calibrate == ["fairtrial calibrate --suite 'my config.yaml'"], ended.said
    followed = await asyncio.to_thread(lambda: list(walk(folder, f"`{calibrate[0]}`", deep=1)))
    assert followed == calibrate


@pytest.mark.slow
async def test_an_interrupted_run(tmp_path, write_suite, model_server):
    from tests.conftest import numbered

    state = await model_server(answer="42")
    state.hold(after=3)
    folder = tmp_path / "state"
    folder.mkdir()
    write_suite("state/suite.yaml", targets=["openai:m"], cases=numbered(9), concurrency=1)
    process = forks.start("run", "suite.yaml", folder=folder)
    while sum(state.delivered.values()) < 3 or state.open == 0:
        await asyncio.sleep(0)
    process.send_signal(2)
    out, err = await asyncio.to_thread(process.communicate)
    state.release()
    assert process.wait() == 130
    followed = await asyncio.to_thread(lambda: list(walk(folder, (out + err).decode())))
    assert "fairtrial resume" in followed
