"""Pages with links in people's own browsers, used with a mouse and a keyboard: nothing is looked up, nothing is reached."""

from __future__ import annotations

import asyncio
import ctypes
import json
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from shutil import which
from typing import Any

import pytest

from fairtrial.webpage.seal import guarded
from tests.webpage.leaks.hostile import Server
from tests.webpage.leaks.stock import browsers, missing, own_network

from . import links
from .browsing import CONTROL

ROOT = Path(__file__).parents[2]
SERVER = Server("203.0.113.9", 9, 9, "p9.leak.example")
WRITTEN = ["a", "area", "svg", "xlink", "math"]


def test_there_are_enough_pages() -> None:
    assert len(links.pages()) > 250


class _Links(HTMLParser):
    """The addresses in a page, as a parser that decodes them finds them."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [value or "" for name, value in attrs if name.rpartition(":")[2] == "href"]


@pytest.mark.parametrize("name", [name for name in links.pages() if name.partition(": ")[0] in WRITTEN])
def test_no_address_is_left_in_what_is_sent(name: str) -> None:
    body = links.pages()[name](SERVER)
    sent = guarded(body).rpartition("</script>")[2] if "<script>" not in body else guarded(body)
    for address in _Links(sent).found:
        plain = re.sub(r"[\t\r\n]", "", address.strip("".join(map(chr, range(33)))))
        assert not re.match(r"(?!javascript:|data:image/)[a-z][a-z0-9+.-]*:|[/\\]{2}", plain, re.IGNORECASE), address


@pytest.mark.parametrize(
    "kept",
    [
        '<a href="#part">', "<a href=#part>", '<a href="javascript:go()">', '<a href="page.html?a=1&b=2">', '<a href="/page">',
        '<image href="data:image/png;base64,AAAA"/>', '<use xlink:href="#icon"/>', '<animate attributeName="cx" values="1;2"/>',
        "<script>a.href = b ? c : d; let href=x&&y; if (a.href==z) a.href=`https://${host}`</script>", '<p data-href="https://example.org">',
        "<style>a[href^='http'] { color: red }</style>",
    ],
)  # fmt: skip
def test_what_stays_in_the_page_is_left_as_it_is(kept: str) -> None:
    assert guarded(kept).endswith(kept)


async def _browsed(network: list[str], browser: str, program: str, *more: str) -> Any:
    command = [*network, sys.executable, "-m", "tests.attacks.browsing", browser, program, *more]
    process = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdout=asyncio.subprocess.PIPE)
    said, _ = await process.communicate()
    assert process.returncode == 0, browser
    return json.loads(said)


async def _nothing_is_heard(*more: str, least: int) -> None:
    if which("Xvfb") is None:
        missing("there is no screen: apt install xvfb")
    try:
        ctypes.CDLL("libXtst.so.6")
    except OSError:
        missing("there is no mouse: apt install libxtst6")
    network, programs = own_network(), browsers()
    seen = await asyncio.gather(*(_browsed(network, name, found, *more) for name, found in programs.items()))
    for browser, found in zip(programs, seen, strict=True):
        assert set(found["control"]) == set(CONTROL), browser  # without the seal they get out: mouse and listener work
        assert found["silent"] == [] and found["tried"] >= least, browser  # with it they run
        assert found["heard"] == {}, browser


# A hand and a screen need their time, of which a busy machine has none to give: both forms are for `make attacks`.
@pytest.mark.attacks
async def test_nothing_is_heard_when_a_person_uses_a_page() -> None:
    await _nothing_is_heard(least=35)


@pytest.mark.attacks
async def test_nothing_is_heard_when_a_person_uses_any_page() -> None:
    await _nothing_is_heard("all", least=250)
