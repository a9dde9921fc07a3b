"""Runs on a real Ray cluster of several nodes on this machine. `benchmarks/cluster.py` does the same twenty times."""

import os
import tempfile
from pathlib import Path

import pytest

import fairtrial as ft
from benchmarks import cluster
from benchmarks.ray_nodes import RayNodes
from fairtrial import pipeline
from fairtrial.core.errors import FairtrialError
from fairtrial.engine.engines import where_of
from tests import forks
from tests.conftest import numbered
from tests.engine.test_cluster import SUITE, told

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def nodes():
    """Ray is part of the development environment, and `.ci/run` insists on it."""
    try:
        import ray  # noqa: F401
    except ImportError as error:
        if os.environ.get("REQUIRE_RAY"):
            pytest.fail(str(error))
        pytest.skip(f"no Ray: {error}")
    with RayNodes(nodes=2, cpus=1) as started:
        yield started


async def test_a_cluster_gives_the_same_results_and_keeps_secrets(nodes, write_suite, store, monkeypatch, tmp_path):
    monkeypatch.setenv("CLUSTER_KEY", "sk-cluster-31415926")
    # A program that reads its key from the environment, which is that of a worker.
    program = {
        "target": "command",
        "id": "program",
        "options": {"command": ["sh", "-c", "echo $${#CLUSTER_KEY} Question"]},
    }
    program["options"]["env"] = {"CLUSTER_KEY": "${CLUSTER_KEY}"}
    keys = {**SUITE, "targets": [*SUITE["targets"], program], "cases": numbered(12, "Question"), "repeats": 1}
    suite = pipeline.load(write_suite(**keys))
    alone = await pipeline.arun(suite, store=store)
    together = await pipeline.arun(suite, store=store, where=where_of(f"ray:{nodes.address}"))
    assert told(together) == told(alone) and together.status == alone.status
    assert any("19 Question" in (trial.answer or "") for trial in together.trials())
    logs = [
        file for file in Path(nodes._folder).rglob("*") if file.is_file() and file.suffix in (".log", ".out", ".err")
    ]
    assert logs and not [file for file in logs if b"sk-cluster-31415926" in file.read_bytes()]
    assert b"sk-cluster-31415926" not in (tmp_path / "test.db").read_bytes()

    bonus = 41

    def answer(question):
        return f"{question} {bonus + 1}"

    given = ft.Suite(name="given", targets=[answer], scorer=lambda response: float("42" in response), cases=numbered(5))
    run = await ft.arun(given, engine=f"ray:{nodes.address}", store=str(tmp_path / "test.db"), progress=False)
    assert run.status == "completed" and {trial.score for trial in run.trials()} == {1.0}

    with open(tmp_path / "open.txt", "w") as file:
        held = ft.Suite(name="held", targets=[lambda question: file.name], scorer="contains", cases=numbered(1))
        with pytest.raises(FairtrialError, match="cannot be sent to other machines"):
            await ft.arun(held, engine=f"ray:{nodes.address}", store=str(tmp_path / "test.db"), progress=False)


def forked(arguments, folder, address):
    environment = {**os.environ, "OPENAI_BASE_URL": f"{address}/v1", "OPENAI_API_KEY": "sk-chaos-0001"}
    logged = "import os\nlog = open('log.txt', 'ab')\nos.dup2(log.fileno(), 1)\nos.dup2(log.fileno(), 2)\n"
    return forks.start(*arguments, program=logged + forks.PROGRAM, folder=folder, environment=environment)


@pytest.mark.parametrize("seed", [2, 3])
def test_nothing_is_lost_or_doubled_and_the_budget_holds_whatever_is_killed(nodes, seed, monkeypatch):
    """A worker is killed in one of these runs; a node and the driver in the other."""
    monkeypatch.setattr(cluster, "_start", forked)
    with tempfile.TemporaryDirectory() as folder:
        ending = cluster.run_one(seed, nodes, Path(folder))
        log = (Path(folder) / "run" / "log.txt").read_text()
    assert ending.problems == [], log
    assert sum(ending.killed.values())
