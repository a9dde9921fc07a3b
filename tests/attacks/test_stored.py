"""What strangers and models write into a suite and its answers becomes text of our pages and reports, and never part of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from fairtrial.reports.export import export
from fairtrial.store import Store
from fairtrial.web.app import make_app
from fairtrial.web.guard import Guard
from fairtrial.web.site import Site

HERE = "http://127.0.0.1:8321"
MARK = "xssmark"
# Each tries to leave another place: text, an attribute, a comment, a script, Markdown, an address, a template.
PAYLOADS = {
    "an element": f"<{MARK}>",
    "out of an attribute": f'"><{MARK}>',
    "out of another attribute": f"'><{MARK}>",
    "out of a script": f"</script><{MARK}>",
    "out of anything": f"</style></title></textarea></template></noscript><{MARK}>",
    "out of a comment": f"--><{MARK}>",
    "into a script": f"<!--<script><{MARK}>",
    "an attribute": f'" on{MARK}="1',
    "another attribute": f"' on{MARK}='1",
    "without quotes": f" on{MARK}=1 ",
    "an event": f"<img src=x on{MARK}=1>",
    "in svg": f"<svg/on{MARK}=1><{MARK}/>",
    "data": f"]]><{MARK}>",
    "escaped": f"&lt;{MARK}&gt;&quot; on{MARK}=1",
    "escaped as in JSON": f"\\u003c{MARK}\\u003e\\x3c{MARK}\\x3e",
    "a template": f"{{{{ '<{MARK}>' }}}}${{{MARK}}}".replace("${", "$${"),
    "a link": f"[a](javascript:{MARK}) [b](data:text/html,{MARK}) <javascript:{MARK}>",
    "an address": f"javascript:{MARK}",
    "a foreign link": f"[a](https://{MARK}.example) <https://{MARK}.example>",
    "a table": f"|<{MARK}>|\n|-|\n|`</code><{MARK}>`|",
    "line ends": f"a\u2028b\r\n\x0b<{MARK}>\x00",
    "a tag in pieces": f"<<{MARK}>{MARK}<{MARK}",
}
FIELDS = (
    "name", "description", "target", "answer", "system", "condition", "case", "input", "expected", "category", "tag", "judge", "failure",
)  # fmt: skip
SHORT = ("out of a script", "an attribute", "a link", "a template")


def test_there_are_enough() -> None:
    assert len(PAYLOADS) * len(FIELDS) > 250


class _Page(HTMLParser):
    """What a browser would make of a payload: elements, attributes, or addresses with its mark."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.made: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if MARK in tag:
            self.made.append(f"<{tag}>")
        for name, value in attrs:
            active = name.startswith("on") or name in ("style", "srcdoc")
            address = name in ("href", "src", "action", "formaction", "data", "xlink:href")
            foreign = address and (value or "").strip().lower().startswith(("javascript:", "data:text", "http", "//"))
            if MARK in name or (MARK in (value or "") and (active or foreign)):
                self.made.append(f"<{tag} {name}={value}>")

    def handle_comment(self, data: str) -> None:
        if MARK in data:
            self.made.append(f"<!--{data}-->")


@pytest.fixture
def client(store: Store, tmp_path: Path) -> Iterator[TestClient]:
    site = Site(store, tmp_path, preview_port=9)
    yield TestClient(Guard(make_app(site), ["127.0.0.1:8321"]), base_url=HERE, raise_server_exceptions=False)
    site.close()


def _suite(nasty: str) -> dict[str, Any]:
    line = " ".join(nasty.replace("\0", "").split()) or "x"  # names are one line
    verdict = json.dumps({"score": 7, "reason": nasty, "reasoning": nasty, "comment": nasty})
    return {
        "description": nasty,
        "targets": [
            {"id": f"t{line}", "target": "mock:x", "options": {"answer": nasty}},
            {"id": "fails", "target": "mock:x", "options": {"faults": {"refused": 1.0}, "answer": nasty}},
        ],
        "conditions": {f"c{line}": {"system": nasty}, "plain": {}},
        "judge": {"target": "mock:x", "options": {"answer": verdict}},
        "scorer": "llm_judge",
        "retry": {"attempts": 1},
        "cases": [{"id": line, "input": nasty, "expected": nasty, "category": line, "tags": [line]}],
    }


async def _nothing_is_made(payload: str, client: TestClient, run_suite: Any, tmp_path: Path) -> None:
    run = await run_suite(**_suite(PAYLOADS[payload].replace("\0", "")))
    paths = [
        "/",
        "/runs",
        "/board",
        "/suites",
        "/suites/edit?file=suite.yaml",
        "/new",
        f"/compare?runs={run.id}",
        "/judges",
    ]
    ends = ("", "/cases/1", "/cases/1/1/1", "/cases/1/2/1", "/share", "/label", "/pages", "/export/html", "/export/md")
    shown = 0
    for path in [*paths, *(f"/runs/{run.id}{end}" for end in ends)]:
        page = client.get(path)
        assert page.status_code == 200, (path, page.text[-300:])
        if "html" in page.headers["content-type"]:
            assert _Page(page.text).made == [], path
        shown += MARK in page.text
    assert shown >= 6  # it is there, as text
    report = export(run, tmp_path / "report.html").read_text("utf-8")
    assert _Page(report).made == []


@pytest.mark.slow
@pytest.mark.parametrize("payload", SHORT)
async def test_nothing_stored_becomes_part_of_a_page(
    payload: str, client: TestClient, run_suite: Any, tmp_path: Path
) -> None:
    await _nothing_is_made(payload, client, run_suite, tmp_path)


@pytest.mark.attacks
@pytest.mark.parametrize("payload", [name for name in PAYLOADS if name not in SHORT])
async def test_nothing_else_stored_becomes_part_of_a_page(
    payload: str, client: TestClient, run_suite: Any, tmp_path: Path
) -> None:
    await _nothing_is_made(payload, client, run_suite, tmp_path)
