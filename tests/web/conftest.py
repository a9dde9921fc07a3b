"""A server of one's own, in this process, and a browser page that notes everything it asks for."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from fairtrial.store import Store

TOKEN = "a-token-that-nobody-guesses"
CAPITALS = """\
# Capitals, asked of two mocks
name: capitals
targets:
  - {id: good, target: mock:good, options: {answers: {France: Paris, Spain: Madrid, Italy: "It is **Rome**."}}}
  - {id: poor, target: mock:poor, options: {answers: {France: Lyon, Spain: Madrid, Italy: "<script>alert(1)</script> Milan"}}}
judge: {target: mock:judge, options: {verdict: {marks: {Rome: 5}, otherwise: 2, claims: [It rains there.]}}}
scorer: exact
cases:
  - {id: fr, input: What is the capital of France?, expected: Paris, difficulty: easy, category: europe}
  - {id: es, input: What is the capital of Spain?, expected: Madrid, difficulty: hard, category: europe}
  - {id: it, input: What is the capital of Italy?, expected: Rome, difficulty: hard, category: europe, scorer: golden_judge}
"""


@pytest.fixture
async def site(tmp_path: Path, store: Store) -> AsyncIterator[str]:
    """The web page on this folder and store."""
    from fairtrial.web.serving import serve_site

    async with serve_site(store, tmp_path, token=TOKEN) as address:
        yield address.rstrip("/")


@pytest.fixture
async def visitor(stranger: Any) -> Any:
    """A watched page whose every request has the token."""
    await stranger.set_extra_http_headers({"authorization": f"Bearer {TOKEN}"})
    return stranger


@pytest.fixture
async def stranger(browser: Any) -> AsyncIterator[Any]:
    """A page that fails the test where a script breaks, or where anything is asked of another machine."""
    asked: list[str] = []
    broken: list[str] = []
    page = await browser.new_page(viewport={"width": 1280, "height": 900})
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: broken.append(str(error)))
    page.on("console", lambda message: broken.append(message.text) if message.type == "error" else None)
    page.broken = broken
    yield page
    await page.close()
    foreign = [url for url in asked if urlsplit(url).hostname not in ("127.0.0.1", None)]
    assert not foreign, foreign
    assert not broken, broken
