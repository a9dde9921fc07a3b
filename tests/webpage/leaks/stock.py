"""Browsers as people have them, in a network of one's own; what is missing is skipped, or insisted on."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from shutil import which

import pytest

from fairtrial.webpage.seal import holds_in


def missing(reason: str) -> None:
    """What cannot be tried here is skipped, but not where browsers are insisted on."""
    if os.environ.get("REQUIRE_BROWSER"):
        pytest.fail(reason)
    pytest.skip(reason)


def own_network() -> list[str]:
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


def browsers() -> dict[str, str]:
    """The programs of both stock browsers."""
    return {"chromium": program("chromium", "google-chrome"), "firefox": program("firefox-esr", "firefox")}
