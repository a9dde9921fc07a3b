"""Requests that no page of ours makes: every route, with odd parameters, forms, documents and headers."""

from __future__ import annotations

import asyncio
import json
import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlencode

import pytest
from starlette.routing import Mount, Route

from fairtrial import pipeline
from fairtrial.store import Store
from fairtrial.web.app import web_app
from tests.torture.campaign import Campaign
from tests.torture.fuzz import ODD, Document, fuzz
from tests.torture.test_servers import twisted
from tests.web.conftest import CAPITALS

PAGES = [*(Path(__file__).parents[2] / "src/fairtrial").glob("**/*.py")]
PAGES = [file for file in PAGES if {"web", "pages"} & set(file.parts)]
NAMES = re.compile(r"(?:params|query|form|data|given|body)\w*(?:\.get|\.getlist|\.multi_items)?[\(\[]\s*\"(\w+)\"")
STARTING = (
    "/first", "/new/run", "/judges/calibrate", "/arena/pages", "/solving/{order}/start", "/runs/{run}/resume",
    "/runs/{run}/retry", "/series/{series}/resume", "/runs/{run}/delete",
)  # fmt: skip
USUAL = ["1", "0", "-1", "2", "true", "latest", "a", "capitals.yaml", "suite.yaml", "Markdown", "html", "json", "1e999"]
USUAL += [
    "score",
    "fr",
    "good",
    "poor",
    "capitals",
    "",
    "999999999999999999999999",
    "nan",
    "../x",
    "/etc/passwd",
    "%00",
]
_LONGEST_REPLY = 5000  # messages
FINE = {200, 204, 206, 303, 304, 307, 400, 403, 404, 405, 413, 415, 416, 422}


def names() -> list[str]:
    """Every name that a page looks for in a query, a form or a document."""
    return sorted({name for file in PAGES for name in NAMES.findall(file.read_text("utf-8"))})


def routes(app: Any) -> list[tuple[str, str]]:
    while not hasattr(app, "routes"):
        app = next(value for value in vars(app).values() if callable(value))
    found = [route for route in app.routes if isinstance(route, Route) and not isinstance(route, Mount)]
    return [(method, route.path) for route in found for method in sorted(route.methods or ()) if method != "HEAD"]


class Site:
    """A server with a run, and what its requests are made of."""

    def __init__(self, app: Any, values: list[str]) -> None:
        self.app, self.values, self.names = app, values, names()
        self.loop = asyncio.new_event_loop()
        self.routes = [(method, path) for method, path in routes(app) if path not in STARTING]

    def value(self, chance: random.Random) -> str:
        if chance.random() < 0.3:
            return chance.choice(ODD).decode("utf-8", "replace")
        return chance.choice(self.values)

    def pairs(self, chance: random.Random) -> list[list[str]]:
        count = chance.choice([0, 0, 1, 2, 3, 8])
        return [[chance.choice(self.names), self.value(chance)] for _ in range(count)]

    def request(self, chance: random.Random) -> dict[str, Any]:
        method, path = chance.choice(self.routes)
        filled = re.sub(r"\{\w+(?::path)?\}", lambda _: self.value(chance).replace("/", "%2F"), path)
        made: dict[str, Any] = {"method": method, "path": filled, "query": self.pairs(chance), "headers": []}
        if method == "POST":
            kind = chance.choice(["form", "json", "body"])
            made[kind] = self.pairs(chance) if kind == "form" else self.document(chance)
        if chance.random() < 0.2:
            name = chance.choice(
                ["accept", "range", "if-none-match", "referer", "cookie", "content-type", "accept-language"]
            )
            made["headers"].append([name, re.sub(r"[^ -~]", "", self.value(chance)) or "x"])
        return made

    def document(self, chance: random.Random) -> Any:
        names = {name: self.value(chance) for name in chance.sample(self.names, 4)}
        return {"text": CAPITALS, "path": "capitals.yaml", "file": "capitals.yaml", **names}

    def send(self, request: dict[str, Any]) -> str:
        headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in request.get("headers") or []]
        body, kind = b"", ""
        if "form" in request:
            body, kind = (
                urlencode([*map(tuple, request["form"])]).encode("utf-8", "replace"),
                "application/x-www-form-urlencoded",
            )
        elif "json" in request:
            body, kind = json.dumps(request["json"]).encode(), "application/json"
        elif "body" in request:
            body = json.dumps(request["body"])[:-1].encode()
        headers += [(b"content-type", kind.encode())] if kind else []
        scope = {
            "type": "http", "http_version": "1.1", "method": request["method"], "scheme": "http", "root_path": "",
            "path": unquote(request["path"]) or "/", "raw_path": request["path"].encode("utf-8", "replace"),
            "query_string": urlencode([*map(tuple, request["query"])]).encode("utf-8", "replace"), "server": ("127.0.0.1", 80),
            "headers": [(b"host", b"127.0.0.1"), *headers], "client": ("127.0.0.1", 9), "extensions": {},
        }  # fmt: skip
        status, kind, content = self.loop.run_until_complete(asked(self.app, scope, body))
        assert status in FINE, (status, content[:300])
        if kind.startswith("text/html"):
            text = content.decode("utf-8")
            assert "Traceback (most recent" not in text and "object at 0x" not in text
        return f"{request['path'].split('/')[1:2]} {status}"


async def asked(app: Any, scope: dict[str, Any], body: bytes) -> tuple[int, str, bytes]:
    """Send one request, without a socket; a stream of events is left after its first."""
    sent: list[dict[str, Any]] = []
    left = asyncio.Event()
    parts = iter([{"type": "http.request", "body": body, "more_body": False}])

    async def receive() -> dict[str, Any]:
        if (part := next(parts, None)) is not None:
            return part
        await left.wait()
        return {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)
        if len(sent) > _LONGEST_REPLY:
            left.set()

    await app(scope, receive, send)
    headers = {name.lower(): value for name, value in sent[0].get("headers", [])}
    content = b"".join(message.get("body", b"") for message in sent[1:])
    return sent[0]["status"], headers.get(b"content-type", b"").decode("latin-1"), content


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    (tmp_path / "capitals.yaml").write_text(CAPITALS)
    store = Store(str(tmp_path / "s.db"))
    run = asyncio.run(pipeline.arun(pipeline.load(tmp_path / "capitals.yaml"), store=store))
    values = [*USUAL, run.id, run.id]
    store.close()
    with web_app(str(tmp_path / "s.db"), tmp_path) as app:
        made = Site(app, values)
        yield made
        made.loop.run_until_complete(made.loop.shutdown_default_executor())
        made.loop.close()


def test_requests(site: Site, campaign: Campaign):
    def change(document: Document, chance: random.Random, _: Sequence[Document]) -> bytes:
        request, old = site.request(chance), json.loads(document.body)
        if chance.random() < 0.5:
            part = chance.choice(["query", "form", "json", "headers", "path"])
            if part in old and part in request:
                request[part] = twisted(old[part], chance) if old[part] and part == "json" else old[part]
        return json.dumps(request).encode()

    def read(document: Document) -> str:
        return site.send(json.loads(document.body))

    seeds = [
        {"method": method, "path": re.sub(r"\{\w+\}", site.values[-1], path), "query": [], "headers": []}
        for method, path in site.routes
        if method == "GET"
    ]
    fuzz(campaign, [Document("request", json.dumps(seed).encode()) for seed in seeds], read, change, short=2)
