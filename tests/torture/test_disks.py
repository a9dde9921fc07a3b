"""Disks that are full, read-only or limited in the middle of a run: one sentence, nothing lost, and on it goes when there is room.

Where a disk can be mounted it is a small one that something else fills; a limit on the size of files works for everybody.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import forks
from tests.conftest import numbered
from tests.torture.blows import Ended, end_of, until, whole_store, without_complaint
from tests.torture.test_kills import PRICES, QUICK, runs_of, stored

LIMITED = """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, ({most}, resource.RLIM_INFINITY))
from fairtrial.cli.main import main
main()
"""
LONG = "42: {prompt} " + "and so on " * 400  # answers of 4 KB fill what is small


@pytest.fixture
def suite(write_suite: Callable[..., Path]) -> Path:
    keys = {"prices": PRICES, "budget_usd": 500.0, "params": {"max_tokens": 2000}, "retry": QUICK, "concurrency": 4}
    return write_suite(targets=["openai:m"], scorer="boolean", cases=numbered(120), **keys)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of its own, of 8 MB."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = shutil.which("mount")
    command = [mount or "mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(place)]
    if mount is None or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("a disk can be mounted here by nobody but root")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


def fill(disk: Path) -> Path:
    """Leave no room."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            return filler


def one_sentence(ended: Ended) -> None:
    """Check that a process said in one sentence why it could not go on."""
    without_complaint(ended, 1)
    said = [line for line in ended.err.splitlines() if line.startswith("error:")]
    assert ended.code in (1, 2) and len(said) == 1, ended


def nothing_lost(state: Any, before: dict[int, str], store: Path, hits: int) -> None:
    """Check that everything is stored, as it was, and that no more was bought twice than was in flight."""
    after = stored(store)
    assert before.items() <= after.items() and len(after) == 120
    assert runs_of(store)[0].status == "completed"
    whole_store(store)
    doubled = sum(times - 1 for times in state.answered.values())
    assert doubled <= hits * (2 * 4 + 16)


async def test_a_disk_that_is_full_in_the_middle(campaign, suite, model_server, disk):
    for chance in campaign.rounds(short=2):
        state = await model_server(latency=0.004, answer=LONG)
        store = disk / "store" / f"{chance.random()}.db"
        store.parent.mkdir()
        process = forks.start("run", suite, "--store", store, "--quiet", folder=suite.parent)
        goal = chance.randrange(0, 80)
        await until(lambda state=state, goal=goal: state.calls.total() >= goal, process)
        filler = fill(disk)
        ended = await end_of(process)
        if ended.code:
            one_sentence(ended)
        before = stored(store) if begun(store) else {}
        filler.unlink()
        await to_its_end(suite, store, ended)
        nothing_lost(state, before, store, 1)
        shutil.rmtree(store.parent)
        campaign.count(lost=0, hung=0, tracebacks=0, full=ended.code != 0)


async def test_a_disk_that_can_only_be_read(campaign, suite, model_server, disk):
    """It became so while nobody wrote: the run is refused in one sentence, and shown."""
    for chance in campaign.rounds(short=1):
        state = await model_server(latency=0.004, answer=LONG)
        store = disk / f"{chance.random()}.db"
        process = forks.start("run", suite, "--store", store, "--quiet", folder=suite.parent)
        goal = chance.randrange(30, 80)
        await until(lambda state=state, goal=goal: state.calls.total() >= goal, process)
        process.kill()
        await end_of(process)
        before = stored(store)
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        try:
            asked = state.calls.total()
            one_sentence(await end_of(forks.start("resume", "latest", "--store", store, "-q", folder=suite.parent)))
            assert state.calls.total() == asked  # nothing is bought that could not be stored
        finally:
            subprocess.run(["mount", "-o", "remount,rw", str(disk)], check=True)
        await to_its_end(suite, store, None)
        nothing_lost(state, before, store, 1)
        store.unlink()
        campaign.count(lost=0, hung=0, tracebacks=0, read_only=1)


async def to_its_end(suite: Path, store: Path, earlier: Ended | None) -> None:
    """Go on as a person would, now that there is room."""
    go_on = ("resume", "latest") if begun(store) and runs_of(store) else ("run", suite)
    again = await end_of(forks.start(*go_on, "--store", store, "--quiet", folder=suite.parent))
    assert again.code == 0, (earlier, again)


def begun(store: Path) -> bool:
    return store.exists() and store.stat().st_size > 0


async def test_files_that_may_not_grow(campaign, suite, model_server, tmp_path):
    """A store that reaches the largest size that a file may have."""
    for number, chance in enumerate(campaign.rounds(short=2)):
        state = await model_server(latency=0.004, answer=LONG)
        store = tmp_path / f"{number}.db"
        limited = LIMITED.format(most=chance.randrange(4, 500) * 1024)
        process = forks.start("run", suite, "--store", store, "--quiet", program=limited, folder=suite.parent)
        ended = await end_of(process)
        if ended.code:
            one_sentence(ended)
        before = stored(store) if begun(store) else {}
        await to_its_end(suite, store, ended)
        nothing_lost(state, before, store, 1)
        campaign.count(lost=0, hung=0, tracebacks=0, limited=ended.code != 0)
