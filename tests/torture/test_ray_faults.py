"""Runs whose workers are killed or frozen, in processes of this machine or on Ray, one of them or all, and Ray's nodes.

By the model server's own ledger: nothing that is stored is lost or changed, nothing is asked twice but what was in flight,
all of that is accounted for, the budget holds, and the run ends: with all answers, or with one sentence and `resume`.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from fairtrial.store import Store, schema
from fairtrial.store.ledger import charged
from tests import forks
from tests.conftest import numbered
from tests.lazily import Library
from tests.torture.ray_nodes import RayCluster

psutil = Library("psutil")
pytestmark = pytest.mark.slow
CASES, CONCURRENCY, BUDGET = 40, 6, 5.0
PRICE = {"openai:m": {"input": 100.0, "output": 100.0}}
ANSWERS = tuple(f"{n}: 42" for n in range(1000))  # no two calls are answered alike
LIMITS = """from fairtrial.engine.cluster import crew, executor, processes
crew._AWAY, crew._NO_MACHINE, crew._SILENCE, executor.MODEL_TIMEOUT = {away}, 60.0, 6.0, 6.0
processes._STARTING = 60.0  # of a worker that is frozen while it starts
"""
PATIENCE, SECONDS = 400.0, 60.0  # for a run to end on a busy machine; for Ctrl-C, which takes 5 s on an idle one


class Scene:
    """One run, the server that it asks, and what it has lost."""

    def __init__(self, state: Any, folder: Path, write_suite: Callable[..., Path]) -> None:
        self.state, self.folder, self.harms = state, folder, 0
        folder.mkdir()
        write_suite(
            f"{folder.name}/suite.yaml",
            targets=["openai:m"], prices=PRICE, scorer="boolean", cases=numbered(CASES), concurrency=CONCURRENCY,
            budget_usd=BUDGET, params={"max_tokens": 20},
        )  # fmt: skip
        self.store = Store(f"sqlite:///{folder}/s.db")
        self.before: dict[Any, Any] = {}
        self.environment = dict(os.environ)

    def start(self, *command: str, on: RayCluster | None = None, away: float = 20.0) -> Any:
        """Start fairtrial, on a cluster or without one."""
        options = (*command, "--store", f"sqlite:///{self.folder}/s.db", "--quiet")
        options += ("--engine", f"ray:{on.address}") if on else ()
        environment = {**self.environment, **(on.token if on else {})}
        self.process = forks.start(
            *options, program=LIMITS.format(away=away) + forks.PROGRAM, folder=self.folder, environment=environment
        )
        return self.process

    def stored(self) -> dict[Any, Any]:
        """Every answer by its place."""
        query = select(schema.trials).where(schema.trials.c.answer.is_not(None))
        return {row["case_position"]: row for row in self.store.fetch_dicts(query)}

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait for something to happen while the run goes on."""
        ends = time.monotonic() + PATIENCE
        while not condition():
            assert self.process.poll() is None, self.process.communicate()
            assert time.monotonic() < ends, "it hangs"
            await asyncio.sleep(0.01)

    async def in_the_middle(self, held: int) -> None:
        """Wait until so many answers are stored, and as many calls as possible are in flight."""
        calls = min(CASES, held + CONCURRENCY)
        await self.until(lambda: self.state.calls.total() >= calls and len(self.stored()) >= held)
        self.note()

    def note(self) -> None:
        """Note what is stored, just before something happens to the run."""
        now = self.stored()
        assert not self.changed(now)
        self.before, self.harms = now, self.harms + 1

    def changed(self, now: dict[Any, Any]) -> int:
        return sum(now.get(place) != row for place, row in self.before.items())

    async def end(self) -> tuple[int, str]:
        """Wait for the end; return the exit code and what was said."""
        out, said = await asyncio.wait_for(asyncio.to_thread(self.process.communicate), PATIENCE)
        assert not out and b"Traceback" not in said, said
        return self.process.returncode, said.decode()

    async def complete(self, *how: str) -> dict[str, int]:
        """Resume the run without Ray, to its end; return what was counted."""
        self.state.release()
        self.start("resume", "latest", *how)
        ended = await self.end()
        failed = select(schema.trials).where(schema.trials.c.failure_kind.is_not(None))
        assert ended == (0, ""), (self.store.runs(), self.store.fetch_dicts(failed), self.state.calls.total())
        return self.check()

    def check(self) -> dict[str, int]:
        """Hold the completed run against the ledger; return what was counted."""
        (run,), now = self.store.runs(), self.stored()
        assert run.status == "completed" and len(now) == CASES and not self.changed(now)
        assert len({row["answer"] for row in now.values()}) == CASES
        calls, costs = self.state.calls.total(), [row["charged_usd"] for row in now.values()]
        doubled = calls - CASES
        assert doubled <= self.harms * CONCURRENCY
        assert sum(costs) + doubled * min(costs) - 1e-9 <= charged(self.store, run.id) <= BUDGET + 1e-9
        self.store.close()
        return {"doubled_in_flight": doubled, "lost": 0, "changed": 0, "hung": 0, "overspent": 0}


@pytest.fixture
def scene(model_server: Any, write_suite: Any, tmp_path: Path) -> Any:
    """Make scenes, each with a server and a folder of its own."""
    made = []

    async def make() -> Scene:
        state = await model_server(answers=ANSWERS)
        made.append(Scene(state, tmp_path / f"scene{len(made)}", write_suite))
        return made[-1]

    yield make
    for one in made:
        if one.process.poll() is None:
            for process in (*workers_of(one.process), one.process):
                process.kill()


def workers_of(process: Any) -> list[Any]:
    return [one for one in psutil.Process(process.pid).children() if "cluster.processes" in " ".join(one.cmdline())]


async def test_worker_processes_are_killed_or_frozen(campaign, scene):
    """One of two or both, then Ctrl-C while one is frozen; `resume` asks what was not stored.

    A frozen worker is lost after a minute of silence: only the long form waits for that.
    """
    harms = (signal.SIGKILL, signal.SIGSTOP) if campaign.long else (signal.SIGKILL,)
    for chance in campaign.rounds(short=1):
        play = await scene()
        held = chance.randrange(1, CASES // 2)
        play.state.hold(after=held)
        play.start("run", "suite.yaml", "--workers", "2")
        await play.in_the_middle(held)
        workers, calls = workers_of(play.process), play.state.calls.total()
        hit = chance.sample(workers, chance.choice((1, 2)))
        for worker in hit:
            worker.send_signal(chance.choice(harms))
        await play.until(partial(asked_again, play, hit, calls))
        play.note()
        for worker in workers_of(play.process)[:1]:
            worker.send_signal(signal.SIGSTOP)
        assert await interrupted(play) == 130
        campaign.count(kills=len(hit), interruptions=1, **await play.complete())


async def test_frozen_workers_that_outlive_their_driver_end_by_themselves(campaign, scene):
    """The driver is killed while its workers are frozen: `resume` does not miss them, and what they do later counts
    for nothing."""
    for chance in campaign.rounds(short=1):
        play = await scene()
        held = chance.randrange(1, CASES // 2)
        play.state.hold(after=held)
        play.start("run", "suite.yaml", "--workers", "2")
        await play.in_the_middle(held)
        frozen = workers_of(play.process)
        for worker in frozen:
            worker.suspend()
        play.process.kill()
        await asyncio.to_thread(play.process.wait)
        counts = await play.complete("--workers", "2")
        assert frozen and not any(map(has_ended, frozen))
        calls, store = play.state.calls.total(), Store(f"sqlite:///{play.folder}/s.db")
        rows = {table.name: store.fetch_dicts(select(table)) for table in schema.metadata.sorted_tables}
        for worker in frozen:
            worker.resume()
        ends = time.monotonic() + PATIENCE
        while not all(map(has_ended, frozen)):
            assert time.monotonic() < ends, "a worker without a driver goes on"
            await asyncio.sleep(0.01)
        assert play.state.calls.total() == calls
        assert rows == {table.name: store.fetch_dicts(select(table)) for table in schema.metadata.sorted_tables}
        store.close()
        campaign.count(kills=1, frozen=len(frozen), **counts)


def has_ended(process: Any) -> bool:
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def asked_again(play: Scene, hit: list[Any], calls: int) -> bool:
    """Whether these workers are gone and others ask what they had asked."""
    alive = [one for one in hit if one.is_running() and one.status() != psutil.STATUS_ZOMBIE]
    return not alive and play.state.calls.total() > calls


async def interrupted(play: Scene) -> int:
    """Press Ctrl-C once: the run ends within seconds."""
    pressed = time.monotonic()
    play.process.send_signal(signal.SIGINT)
    code, _ = await play.end()
    assert time.monotonic() - pressed < SECONDS
    return code


async def test_a_cluster_that_is_gone_ends_the_run_with_one_sentence(campaign, scene):
    """All of a cluster loses power in the middle of two runs: one waits for it in vain, the other is interrupted."""
    for chance in campaign.rounds(short=1):
        async with RayCluster(2) as cluster:
            plays = {await scene(): chance.randrange(1, CASES // 2) for _ in range(2)}
            for play, held in plays.items():
                play.state.hold(after=held)
                play.start("run", "suite.yaml", "--workers", "1", on=cluster)
            for play, held in plays.items():
                await play.in_the_middle(held)
            cluster.kill()
        waiting, stopped = plays
        assert await interrupted(stopped) == 130
        code, said = await waiting.end()
        assert code == 2 and said.count("\n") == 1 and "does not answer" in said and "`fairtrial resume" in said, said
        for play, how in zip(plays, ((), ("--workers", "2")), strict=True):
            campaign.count(**await play.complete(*how))
        campaign.count(clusters_killed=1, interruptions=1)


async def test_any_part_of_a_cluster_may_go(campaign, scene):
    """Workers, nodes and the head of a larger cluster are killed or frozen at random: in the long form only."""
    for chance in campaign.rounds(short=0):
        async with RayCluster(*chance.choice(((0, 1, 1), (1, 1), (1,)))) as cluster:
            play = await scene()
            held = chance.randrange(1, CASES // 2)
            play.state.hold(after=held)
            play.start("run", "suite.yaml", on=cluster)
            await play.in_the_middle(held)
            harm = cluster.disturb(chance)
            play.state.release()
            code, said = await play.end()
            assert code in (0, 2) and (code == 0 or said.count("\n") == 1), said
        counted = await play.complete(*chance.choice(((), ("--workers", "2")))) if code else play.check()
        campaign.count(**{harm.replace(" ", "_"): 1}, **counted)
