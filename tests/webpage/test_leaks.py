"""The seal in people's own browsers: started as a person starts them, in a network where every packet is heard.

Through Playwright's flags most of these ways out are closed already, so a test with them would show nothing.
"""

import asyncio
import json
import os
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from shutil import which

import pytest

from fairtrial.webpage.seal import holds_in

from .leaks.browse import CONTROL

ROOT = Path(__file__).parents[2]


def missing(reason: str) -> None:
    """What cannot be tried here is skipped, but not where browsers are insisted on."""
    if os.environ.get("REQUIRE_BROWSER"):
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture
def namespace() -> list[str]:
    """How a program is started in a network of its own."""
    as_root = os.geteuid() == 0
    how = ["unshare", "--mount", "--net", *([] if as_root else ["--map-root-user"])]
    if sys.platform != "linux" or which("unshare") is None:
        pytest.skip("only Linux has networks of one's own")
    tried = subprocess.run([*how, "true"], capture_output=True, text=True, check=False)
    if tried.returncode:
        reason = f"no network of one's own can be made here: {tried.stderr.strip()}"
        missing(reason) if as_root else pytest.skip(reason)
    return how


def program(*names: str) -> str:
    """A stock browser in which pages are shown live."""
    found = next(filter(None, map(which, names)), None)
    if found is None:
        missing(f"no browser was found: apt install {names[0]}")
    told = subprocess.run([found, "--version"], capture_output=True, text=True, check=False).stdout
    name, version = re.search(r"(Chrom|Firefox)\D*(\d+)", told).groups()
    if not holds_in(f"{'Chrome' if name == 'Chrom' else name}/{version}"):
        pytest.skip(f"in this browser no page is shown live: {told.strip()}")
    return found


async def browsed(namespace: list[str], browser: str, program: str) -> dict:
    command = [*namespace, sys.executable, "-m", "tests.webpage.leaks.browse", browser, program]
    process = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdout=asyncio.subprocess.PIPE)
    said, _ = await process.communicate()
    assert process.returncode == 0, browser
    return json.loads(said)


@pytest.mark.slow
async def test_nothing_is_heard_when_a_person_looks(namespace):
    browsers = {"chromium": program("chromium", "google-chrome"), "firefox": program("firefox-esr", "firefox")}
    seen = await asyncio.gather(*(browsed(namespace, name, found) for name, found in browsers.items()))
    for browser, found in zip(browsers, seen, strict=True):
        assert set(CONTROL) == set(found["control"]), browser  # without the seal they get out: the listener works
        assert found["silent"] == [] and found["tried"] > 120, browser  # with it they run
        assert found["heard"] == {}, browser
        assert found["dest"] == "document", browser  # so that a preview in a tab of its own can be told apart
        told = defaultdict(set)
        for name, _, said in found["prepared"]:
            told[name].add(said)
        assert len(told) == 20 and all(len(said) == 1 for said in told.values()), (browser, told)
