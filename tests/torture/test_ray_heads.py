"""Ray clusters whose head is started again, and people who do not wait for any of it: the second Ctrl-C ends a run at once.

By the model server's own ledger, as in `test_ray_faults.py`: nothing is lost or changed, and what was asked twice was in flight.
"""

from __future__ import annotations

import asyncio
import signal
import time
from typing import Any

import pytest

from tests.torture.ray_nodes import RayCluster
from tests.torture.test_ray_faults import CASES, PATIENCE, SECONDS, Scene, scene

__all__ = ["scene"]
pytestmark = pytest.mark.slow


async def test_a_head_that_is_started_again_is_connected_to_again(campaign, scene, monkeypatch):
    """Everything of the cluster is new, but for its address: the run goes on with workers there."""
    monkeypatch.setenv("RAY_gcs_rpc_server_reconnect_timeout_s", "5")  # until Ray gives the old one up, as a rule 60
    for chance in campaign.rounds(short=1):
        async with RayCluster(1) as cluster:
            play = await begun(scene, chance, cluster, away=300.0)
            cluster.kill()
            await cluster.start_again()
            play.state.release()
            code, said = await play.end()
            assert code == 0, said
        campaign.count(heads_again=1, **play.check())


async def test_a_run_is_resumed_on_a_cluster_that_was_started_again(campaign, scene):
    """In the long form only."""
    for chance in campaign.rounds(short=0):
        async with RayCluster(1) as cluster:
            play = await begun(scene, chance, cluster)
            cluster.kill()
            code, said = await play.end()
            assert code == 2 and said.count("\n") == 1 and "`fairtrial resume" in said, said
            await cluster.start_again()
            play.state.release()
            play.start("resume", "latest", on=cluster)
            assert await play.end() == (0, "")
        campaign.count(heads_again=1, **play.check())


async def test_the_second_interrupt_ends_a_run_on_ray_at_once(campaign, scene):
    """Also when nothing of the cluster replies; its workers end by themselves. The short form has a frozen cluster."""
    for chance in campaign.rounds(short=1):
        harm = chance.choice(("nothing", "frozen", "killed")) if campaign.long else "frozen"
        async with RayCluster(1) as cluster:
            play = await begun(scene, chance, cluster)
            if harm == "frozen":
                cluster.nodes[0].send(signal.SIGSTOP)
            elif harm == "killed":
                cluster.kill()
            code, said = await interrupted_twice(play)
            assert code == 130 and "Traceback" not in said, said
            if harm == "nothing":
                asked = play.state.calls.total()
                await nobody_works(cluster)
                assert play.state.calls.total() == asked
        campaign.count(interruptions=2, **await play.complete())


async def begun(scene: Any, chance: Any, cluster: RayCluster, away: float = 20.0) -> Scene:
    """Begin a run on a cluster, with calls in flight."""
    play: Scene = await scene()
    held = chance.randrange(1, CASES // 2)
    play.state.hold(after=held)
    play.start("run", "suite.yaml", on=cluster, away=away)
    await play.in_the_middle(held)
    return play


async def interrupted_twice(play: Scene) -> tuple[int, str]:
    """Press Ctrl-C until it ends, which it does at the second one: one that comes at once counts as the same."""
    pressed = time.monotonic()
    ending = asyncio.create_task(play.end())
    while not ending.done() and time.monotonic() < pressed + SECONDS:
        play.process.send_signal(signal.SIGINT)
        await asyncio.wait([ending], timeout=0.3)
    return await asyncio.wait_for(ending, SECONDS)


async def nobody_works(cluster: RayCluster) -> None:
    ends = time.monotonic() + PATIENCE
    while cluster.nodes[0].processes("ray::Worker"):
        assert time.monotonic() < ends, "a worker goes on"
        await asyncio.sleep(0.1)
