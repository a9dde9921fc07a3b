"""The seal in people's own browsers: started as a person starts them, in a network where every packet is heard.

Through Playwright's flags most of these ways out are closed already, so a test with them would show nothing.
"""

import asyncio
import json
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from .leaks.browse import CONTROL
from .leaks.stock import browsers, own_network

ROOT = Path(__file__).parents[2]


async def browsed(network: list[str], browser: str, program: str) -> dict:
    command = [*network, sys.executable, "-m", "tests.webpage.leaks.browse", browser, program]
    process = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdout=asyncio.subprocess.PIPE)
    said, _ = await process.communicate()
    assert process.returncode == 0, browser
    return json.loads(said)


@pytest.mark.slow
async def test_nothing_is_heard_when_a_person_looks():
    network, programs = own_network(), browsers()
    seen = await asyncio.gather(*(browsed(network, name, found) for name, found in programs.items()))
    for browser, found in zip(programs, seen, strict=True):
        assert set(CONTROL) == set(found["control"]), browser  # without the seal they get out: the listener works
        assert found["silent"] == [] and found["tried"] > 120, browser  # with it they run
        assert found["heard"] == {}, browser
        assert found["dest"] == "document", browser  # so that a preview in a tab of its own can be told apart
        told = defaultdict(set)
        for name, _, said in found["prepared"]:
            told[name].add(said)
        assert len(told) == 20 and all(len(said) == 1 for said in told.values()), (browser, told)
