"""kill -9 at random moments, then resume, many times over: nothing stored is lost, asked again or doubled."""

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
import yaml

CASES = 1000
REPO = Path(__file__).parents[2]


@pytest.fixture
def server():
    """A model server in a process of its own, which outlives the killed clients."""
    command = [sys.executable, "-m", "benchmarks.mock_server", "--latency", "0.02", "--answer", "42: {prompt}"]
    process = subprocess.Popen(command, cwd=REPO, stdout=subprocess.PIPE, text=True)
    yield process.stdout.readline().strip()
    process.kill()


def answered(server: str) -> dict[str, int]:
    with urllib.request.urlopen(f"{server}/answered") as response:
        return json.load(response)


def stored(folder: Path) -> dict[str, str]:
    """Every stored prompt with its answer."""
    try:
        with sqlite3.connect(f"file:{folder}/.fairtrial/fairtrial.db?mode=ro", uri=True) as connection:
            rows = connection.execute(
                "select cases.input, trials.answer from trials join cases on cases.position = trials.case_position"
            )
            return dict(rows.fetchall())
    except sqlite3.OperationalError:
        return {}


def count_stored(folder: Path) -> int:
    try:
        with sqlite3.connect(f"file:{folder}/.fairtrial/fairtrial.db?mode=ro", uri=True) as connection:
            return int(connection.execute("select count(*) from trials where answer is not null").fetchone()[0])
    except sqlite3.OperationalError:
        return 0


@pytest.mark.slow
def test_kill_and_resume(tmp_path, server):
    luck = random.Random(0)
    suite = {
        "name": "kill",
        "targets": ["openai:m"],
        "scorer": "boolean",
        "concurrency": 20,
        "cases": [{"input": f"Question {n}?", "expected": "42"} for n in range(CASES)],
    }
    (tmp_path / "suite.yaml").write_text(yaml.safe_dump(suite))
    environment = {**os.environ, "OPENAI_BASE_URL": f"{server}/v1", "OPENAI_API_KEY": "sk-kill-test"}
    command = [sys.executable, "-m", "fairtrial"]
    kills = 0
    for _ in range(40):
        go_on = ["resume", "latest"] if stored(tmp_path) else ["run", "suite.yaml"]
        before = stored(tmp_path)
        asked_before = answered(server)
        process = subprocess.Popen(
            [*command, *go_on, "--quiet"], cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True
        )
        # Killed after a random number of further answers, so that it hits start, middle and commits alike.
        goal = len(before) + luck.randint(0, 250)
        while process.poll() is None and count_stored(tmp_path) < goal:
            time.sleep(0.005)
        if process.poll() is None:
            time.sleep(luck.random() * 0.05)
            process.send_signal(signal.SIGKILL)
            kills += 1
        process.communicate()
        after = stored(tmp_path)
        assert before.items() <= after.items(), "a stored answer was lost or changed"
        asked = answered(server)
        again = [prompt for prompt in before if asked[prompt] != asked_before[prompt]]
        assert not again, "a stored answer was asked for again"
        if process.returncode == 0:
            break
    assert process.returncode == 0
    assert kills >= 5
    final = stored(tmp_path)
    assert len(final) == CASES
    assert all(answer == f"42: {prompt}" for prompt, answer in final.items())
    with sqlite3.connect(tmp_path / ".fairtrial" / "fairtrial.db") as connection:
        assert connection.execute("select count(*), count(value) from scores").fetchone() == (CASES, CASES)
        assert connection.execute("pragma integrity_check").fetchone() == ("ok",)
