"""`--workers N`: processes of this machine, and what calls and scorers take of it."""

import asyncio
import os
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest

from fairtrial.core.errors import FairtrialError
from fairtrial.engine.engines import backend_of, where_of
from fairtrial.engine.job import Where
from fairtrial.engine.room import Room
from tests import forks
from tests.conftest import numbered

# The first answers wait until both workers have one: how long a process takes to start proves nothing.
SCORER = """
import os
import time
from pathlib import Path

SEEN = Path(__file__).parent / "seen"

def score(response):
    SEEN.mkdir(exist_ok=True)
    (SEEN / str(os.getpid())).touch()
    while len(list(SEEN.iterdir())) < 2:
        time.sleep(0.01)
    return {"score": 1.0, "notes": str(os.getpid())}
"""


@pytest.mark.slow
def test_workers_are_processes_that_share_the_work_and_end_with_it(tmp_path, write_suite):
    (tmp_path / "where.py").write_text(SCORER)
    write_suite(
        targets=[{"target": "mock:echo", "options": {"latency_ms": 5}}],
        cases=numbered(40),
        scorer={"type": "python", "function": "where.py:score", "resources": {"cpu": 1}},
        concurrency=8,
    )
    done = subprocess.run(
        [sys.executable, "-m", "fairtrial", "run", "suite.yaml", "--workers", "2"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "40 of 40 scored" in done.stdout
    with closing(sqlite3.connect(tmp_path / ".fairtrial" / "fairtrial.db")) as connection:
        pids = {int(notes) for (notes,) in connection.execute("select notes from scores")}
    assert len(pids) == 2
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_engines_that_do_not_exist_are_named():
    for engine in ("slurm", "ray:"):
        with pytest.raises(FairtrialError, match="choose local, ray, or ray:ADDRESS"):
            where_of(engine)
    with pytest.raises(FairtrialError, match="ray job submit"):
        where_of("ray://head:10001")
    with pytest.raises(FairtrialError, match="at least one worker"):
        where_of("local", 0)
    with pytest.raises(FairtrialError, match=r"100,000 workers are too many .* choose at most \d+, or --concurrency"):
        where_of(None, 100_000)
    assert backend_of(where_of("local", 64)).most == 64
    assert backend_of(where_of(None)) is None and backend_of(Where("local", 1)) is None
    assert backend_of(where_of("local", 3)).most == 3


@pytest.mark.slow
def test_without_ray_one_sentence_says_what_to_install(tmp_path, write_suite):
    write_suite()
    hidden = "import sys; sys.modules['ray'] = None; from fairtrial.cli.main import main; main()"
    done = subprocess.run(
        [forks.programs() / "python", "-c", hidden, "run", "suite.yaml", "--engine", "ray"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "pip install 'fairtrial[ray]'" in done.stderr and "Traceback" not in done.stderr


async def test_no_more_runs_at_once_than_a_machine_has_room_for():
    room, busy, most = Room({"cpu": 4.0}), 0.0, 0.0

    async def work(cpu):
        nonlocal busy, most
        async with room.place({"cpu": cpu, "licence": 1}):  # what it does not know of is not limited
            busy += min(cpu, 4.0)
            most = max(most, busy)
            await asyncio.sleep(0)
            busy -= min(cpu, 4.0)

    await asyncio.gather(*(work(cpu) for cpu in (1, 2, 3, 1, 8, 2, 1)))
    assert most == 4.0


async def test_targets_take_what_the_suite_says(run_suite, monkeypatch):
    monkeypatch.setattr("fairtrial.engine.local.this_machine", lambda: {"cpu": 2.0})
    busy = most = 0

    async def ask(self, request):
        nonlocal busy, most
        busy, most = busy + 1, max(most, busy + 1)
        await asyncio.sleep(0.001)
        busy -= 1
        return await original(self, request)

    from fairtrial.targets.mock import Mock

    original = Mock.ask
    monkeypatch.setattr(Mock, "ask", ask)
    run = await run_suite(
        targets=[{"target": "mock:echo", "resources": {"cpu": 1}}], cases=numbered(20, "Question"), concurrency=10
    )
    assert run.status == "completed" and most == 2


async def test_resources_are_checked(write_suite):
    from fairtrial import pipeline

    with pytest.raises(FairtrialError, match="resources: must be > 0"):
        pipeline.load(write_suite(targets=[{"target": "mock:echo", "resources": {"cpu": 0}}]))
    with pytest.raises(FairtrialError, match="resources"):
        pipeline.load(write_suite(scorer={"type": "match", "resources": {"cpu": "many"}}))
