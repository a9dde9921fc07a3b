"""Safe by default: who may ask, what never becomes HTML of ours, and what never leaves the server."""

from __future__ import annotations

import os
import re
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from fairtrial.core.errors import FairtrialError
from fairtrial.store import Store
from fairtrial.web import files
from fairtrial.web.access import Access
from fairtrial.web.app import make_app
from fairtrial.web.guard import Guard
from fairtrial.web.markdown import render_markdown
from fairtrial.web.site import Site

from .conftest import CAPITALS, TOKEN

HERE = "http://127.0.0.1:8321"
SECRET = "sk-very-secret-value-0042"


@pytest.fixture
def site(store: Store, tmp_path: Path) -> Any:
    made = Site(store, tmp_path, preview_port=9)
    yield made
    made.close()


@pytest.fixture
def client(site: Site) -> TestClient:
    return TestClient(Guard(make_app(site), ["127.0.0.1:8321"]), base_url=HERE, raise_server_exceptions=False)


@pytest.mark.slow
def test_only_our_own_name_and_our_own_pages(client: TestClient) -> None:
    assert client.get("/").status_code == 200
    assert client.get("/", headers={"host": "evil.example"}).status_code == 403
    assert client.get("/", headers={"host": "10.0.0.1:8321"}).status_code == 403
    form = {"name": "x"}
    assert client.post("/suites/new", data=form).status_code == 403  # no origin at all
    for origin in ("http://evil.example", "null", "http://127.0.0.1:9999"):
        assert client.post("/suites/new", data=form, headers={"origin": origin}).status_code == 403
    assert client.post("/suites/new", data=form, headers={"origin": HERE}).status_code == 200


def test_served_to_others_any_address_in_numbers_is_ours_and_no_foreign_name() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    guarded = TestClient(Guard(app, ["box:8321"], ip_addresses=True))
    for host, status in {"box:8321": 200, "10.1.2.3:8321": 200, "[::1]:8321": 200, "evil.example:8321": 403}.items():
        assert guarded.get("/", headers={"host": host}).status_code == status, host


@pytest.mark.slow
def test_who_has_no_token_sees_nothing(site: Site) -> None:
    client = TestClient(Access(make_app(site), TOKEN), base_url=HERE, follow_redirects=False)
    page = {"accept": "text/html"}
    assert client.get("/runs").status_code == 401
    assert client.get("/", headers=page).headers["location"] == "/enter"
    assert "requires a token" in client.get("/enter").text
    assert client.get("/runs", headers={"authorization": "Bearer wrong"}).status_code == 401
    assert client.get("/runs", headers={"authorization": f"Bearer {TOKEN}"}).status_code == 200
    wrong = client.post("/enter", data={"token": "wrong"})
    assert wrong.headers["location"] == "/enter?wrong=1" and "set-cookie" not in wrong.headers
    right = client.post("/enter", data={"token": TOKEN})
    cookie = right.headers["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite=strict" in cookie and TOKEN not in cookie
    assert client.get("/runs").status_code == 200


def test_every_server_has_a_token(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from click.testing import CliRunner

    from fairtrial.cli import serve
    from fairtrial.cli.commands.setup import serve as command

    served: list[str | None] = []

    async def noted(host: str, port: int, folder: Any, token: str | None, store: Any, **more: Any) -> None:
        served.append(token)

    monkeypatch.setattr(serve, "serve", noted)
    monkeypatch.delenv("FAIRTRIAL_TOKEN", raising=False)
    CliRunner().invoke(command, ["--host", "0.0.0.0", "--token", TOKEN])
    short = CliRunner().invoke(command, ["--token", "short"])
    assert isinstance(short.exception, FairtrialError) and "at least 16" in str(short.exception)
    CliRunner().invoke(command, [])
    (tmp_path / ".env").write_text("FAIRTRIAL_TOKEN=from-a-file-0123456789\n")
    CliRunner().invoke(command, [])
    monkeypatch.setenv("FAIRTRIAL_TOKEN", "from-the-environment-0123456789")
    CliRunner().invoke(command, [])
    assert served == [TOKEN, None, "from-a-file-0123456789", "from-the-environment-0123456789"]


async def _said_by_serve(token: str | None, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> tuple[str, str]:
    """What `serve` prints, and what it opens."""
    import asyncio

    from fairtrial.cli import serve
    from fairtrial.cli.interrupts import Interrupts

    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)}
    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)
    Interrupts().install().started()
    opened: list[str] = []

    def browse(address: str) -> None:
        opened.append(Path(address.removeprefix("file://")).read_text())
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr("webbrowser.open", browse)
    try:
        await asyncio.wait_for(
            serve.serve("127.0.0.1", 0, Path(), token, "x.db", opens=True, path="runs/1/vote?by=me"), 240
        )
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in handlers.items():
            signal.signal(number, handler)
    return capsys.readouterr().err, opened[0]


@pytest.mark.slow
async def test_the_link_that_is_printed_lets_one_in(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    said, page = await _said_by_serve(None, monkeypatch, capsys)
    found = re.search(r"(http://127\.0\.0\.1:\d+/enter\?next=%2Fruns%2F1%2Fvote%3Fby%3Dme#[\w-]{32,}) ", said)
    assert found and found[1] in page, said
    said, page = await _said_by_serve(TOKEN, monkeypatch, capsys)
    assert TOKEN not in said and TOKEN in page  # whoever chose it knows it; logs need not


def test_a_stranger_gets_nothing_but_the_door(site: Site) -> None:
    """Anybody on this machine can send whatever headers a browser would."""
    own = TestClient(Access(make_app(site), TOKEN), base_url=HERE, follow_redirects=False)
    addresses = [
        "/",
        "/runs",
        "/runs/x/events",
        "/runs/x/export/html",
        "/files/" + "0" * 64,
        "/suites/edit",
        "/nowhere",
    ]
    for path in [*addresses, "/enter/", "/Enter", "//enter", "/static/%2e%2e/runs", "/tasks/x/state", "/models?q=x"]:
        reply = own.get(path, headers={"origin": HERE})
        assert reply.status_code == (404 if path.startswith("/static/") else 401), path
    for path in ("/suites/new", "/new/run", "/suites/check", "/runs/x/delete", "/suites/import", "/judges/calibrate"):
        assert own.post(path, data={"name": "x"}, headers={"origin": HERE}).status_code == 401, path
    assert own.get("/enter").status_code == 200 and own.get("/static/enter.js").status_code == 200
    assert own.request("HEAD", "/runs").status_code == 401


@pytest.mark.parametrize(
    ("wanted", "led"),
    [
        ("/runs/1?show=failed", "/runs/1?show=failed"),
        ("//evil.example", "/"),
        ("/\\evil.example", "/"),
        ("http://evil.example", "/"),
        ("/\t/evil.example", "/"),
        ("", "/"),
    ],
)
def test_the_door_leads_only_to_our_own_pages(site: Site, wanted: str, led: str) -> None:
    client = TestClient(Access(make_app(site), TOKEN), base_url=HERE, follow_redirects=False)
    assert client.post("/enter", data={"token": TOKEN, "next": wanted}).headers["location"] == led
    assert client.post("/enter", data={"token": TOKEN}).status_code == 303  # also for those who are in already


def test_a_page_that_was_asked_for_is_shown_after_the_door(site: Site) -> None:
    client = TestClient(Access(make_app(site), TOKEN), base_url=HERE, follow_redirects=False)
    door = client.get("/runs?page=2", headers={"accept": "text/html"}).headers["location"]
    assert door == "/enter?next=%2Fruns%3Fpage%3D2"
    assert 'name="next" value="/runs?page=2"' in client.get(door).text


def test_a_restart_throws_nobody_out(site: Site, tmp_path: Path) -> None:
    from fairtrial.web.state import cookie_key

    first = TestClient(Access(make_app(site), "one-token-0123456789", key=cookie_key()), base_url=HERE)
    first.post("/enter", data={"token": "one-token-0123456789"})
    again = Access(make_app(site), "another-token-0123456789", key=cookie_key())
    assert TestClient(again, base_url=HERE, cookies=first.cookies).get("/runs").status_code == 200
    other = Access(make_app(site), TOKEN)  # a token of one's own: who changes it changes the lock
    assert TestClient(other, base_url=HERE, cookies=first.cookies).get("/runs").status_code == 401


def test_the_key_of_the_cookies_is_for_its_owner_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from fairtrial.web.state import cookie_key, state_folder

    first = cookie_key()
    path = state_folder() / "cookie-key"
    assert path.stat().st_mode & 0o777 == 0o600 and path.parent.stat().st_mode & 0o777 == 0o700
    assert cookie_key() == first
    path.chmod(0o644)  # somebody may have read it
    assert cookie_key() != first and path.stat().st_mode & 0o777 == 0o600
    monkeypatch.setenv("XDG_STATE_HOME", "/dev/null")
    assert cookie_key() != cookie_key()


@pytest.mark.slow
def test_every_page_has_a_strict_policy(client: TestClient) -> None:
    for path in ("/", "/suites", "/runs", "/enter", "/nowhere"):
        policy = client.get(path).headers["content-security-policy"]
        assert "default-src 'none'" in policy and "script-src 'self'" in policy and "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy and "frame-src http://127.0.0.1:9;" in policy


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "[a](javascript:alert(1))",
        "[a](data:text/html,<script>alert(1)</script>)",
        "![a](http://evil.example/x.png)",
        "<iframe src=//evil.example></iframe>",
        "<a href='http://x' onclick=alert(1)>x</a>",
        "`</code><script>alert(1)</script>`",
        "<svg/onload=alert(1)>",
    ],
)
def test_what_a_model_wrote_does_nothing(text: str) -> None:
    html = render_markdown(text)
    for bad in ("<script", "<img", "<iframe", "<svg", 'href="javascript', 'href="data', " onerror=", " onclick="):
        assert bad not in html.replace("&lt;", "").lower() or bad.startswith(" "), html
    assert "<a href='http://x' onclick" not in html


def test_markdown_is_shown_as_such() -> None:
    html = render_markdown(
        "# Title\n\n**bold** and `code`\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n[x](https://example.org)"
    )
    for part in ("<h1>Title</h1>", "<strong>bold</strong>", "<td>1</td>", "x (https://example.org)"):
        assert part in html


@pytest.mark.slow
async def test_nothing_of_a_suite_or_an_answer_becomes_html_of_ours(client: TestClient, run_suite: Any) -> None:
    nasty = "<img src=x onerror=alert(1)>\"'`{{7*7}}"
    run = await run_suite(
        targets=[{"id": f"t{nasty}", "target": "mock:x", "options": {"answer": nasty}}],
        description=nasty,
        conditions={f"c{nasty}": {"system": nasty}},
        cases=[{"id": nasty, "input": nasty, "expected": "x", "category": "<b>k</b>"}],
    )
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
    paths += [f"/runs/{run.id}{end}" for end in ("", "/cases/1", "/cases/1/1/1", "/share", "/label", "/pages")]
    for path in paths:
        page = client.get(path)
        assert page.status_code == 200, (path, page.text[-500:])
        assert "<img src=x" not in page.text and "<b>k</b>" not in page.text, path
        assert "{{7*7}}" in page.text or "7*7" not in page.text, path


@pytest.mark.slow
async def test_the_value_of_a_key_never_leaves_the_server(
    client: TestClient, model_server: Any, monkeypatch: pytest.MonkeyPatch, run_suite: Any, tmp_path: Path
) -> None:
    await model_server(answer=f"The key is {SECRET}")
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    monkeypatch.setenv("MY_KEY", SECRET)
    run = await run_suite(
        targets=["openai:gpt-test"],
        system="Use ${MY_KEY}",
        cases=[{"id": "a", "input": "What is ${MY_KEY}?", "expected": "x"}],
    )
    assert "OPENAI_API_KEY is set" in client.get("/").text
    paths = ["/", "/models?q=gpt", "/suites/edit?file=suite.yaml", "/new", "/suites/export?file=suite.yaml"]
    paths += [f"/runs/{run.id}{end}" for end in ("", "/cases/1", "/cases/1/1/1", "/share", "/suite.yaml", "/label")]
    paths += [f"/runs/{run.id}/export/{name}" for name in ("json", "csv", "html", "md")]
    for path in paths:
        assert SECRET not in client.get(path).text, path
    body = {"file": "suite.yaml", "text": (tmp_path / "suite.yaml").read_text().replace("gpt-test", "nope:${MY_KEY}:x")}
    told = client.post("/suites/check", json=body, headers={"origin": HERE})
    assert told.status_code == 200 and SECRET not in told.text
    body["text"] = "name: x\ntargets: ['${MY_KEY}']\njudge: '${MY_KEY}:y'\ncases: [{input: x}]\n"
    told = client.post("/suites/check", json=body, headers={"origin": HERE})
    assert "unknown provider" in told.text and SECRET.upper().replace("-", "_") not in told.text.upper().replace(
        "-", "_"
    )


@pytest.mark.parametrize(
    "name",
    [
        "../x.yaml",
        "/etc/x.yaml",
        "a/../../x.yaml",
        ".hidden.yaml",
        ".fairtrial/x.yaml",
        "x.txt",
        "",
        "x.yaml\0",
        "~/x.yaml",
    ],
)
def test_only_suites_of_this_folder(client: TestClient, tmp_path: Path, name: str) -> None:
    with pytest.raises(FairtrialError):
        files.path_of(tmp_path.resolve(), name)
    for path, key in (("/suites/edit", "params"),):
        assert client.get(path, **{key: {"file": name}}).status_code == 400
    for path in ("/suites/delete", "/suites/duplicate"):
        assert client.post(path, data={"file": name}, headers={"origin": HERE}).status_code == 400


def test_a_link_out_of_the_folder_is_no_way_out(tmp_path: Path) -> None:
    (tmp_path / "inside").mkdir()
    (tmp_path / "secret.yaml").write_text("x")
    (tmp_path / "inside/link.yaml").symlink_to(tmp_path / "secret.yaml")
    with pytest.raises(FairtrialError):
        files.read((tmp_path / "inside").resolve(), "link.yaml")


def test_a_file_changed_meanwhile_is_not_written_over(client: TestClient, tmp_path: Path) -> None:
    (tmp_path / "capitals.yaml").write_text(CAPITALS)
    before = files.fingerprint(CAPITALS)
    (tmp_path / "capitals.yaml").write_text(CAPITALS + "# by somebody else\n")
    body = {"file": "capitals.yaml", "text": "name: mine\n", "before": before}
    told = client.post("/suites/save", json=body, headers={"origin": HERE})
    assert told.status_code == 400 and "was changed on disk" in told.json()["error"]
    assert (tmp_path / "capitals.yaml").read_text().endswith("somebody else\n")


def test_an_error_is_a_page_with_a_sentence(client: TestClient) -> None:
    page = client.get("/runs/nothing")
    assert page.status_code == 400 and "there is no run" in page.text
    assert client.get("/nowhere").status_code == 404
    assert client.get("/files/" + "0" * 64).status_code == 404


async def test_too_much_is_refused_before_it_is_read(site: Site) -> None:
    """By its length where the sender says it, else as soon as that much has come."""
    app, taken, said = make_app(site), 0, []

    async def more() -> Any:
        nonlocal taken
        taken += 2**20
        return {"type": "http.request", "body": b"x" * 2**20, "more_body": True}

    async def send(message: Any) -> None:
        said.append(message)

    kind = (b"content-type", b"multipart/form-data; boundary=x")
    for path in ("/suites/import", "/suites/check", "/suites/new"):
        for length in ([(b"content-length", str(300 * 2**20).encode())], [(b"content-length", b"9" * 5000)], []):
            said.clear()
            taken, scope = 0, {"type": "http", "method": "POST", "path": path, "raw_path": path.encode()}
            scope |= {"headers": [kind, *length], "query_string": b"", "server": ("127.0.0.1", 8321), "scheme": "http"}
            await app(scope, more, send)
            assert said[0]["status"] in (400, 413), (path, said)
            assert taken <= (0 if length else 60 * 2**20), path


def test_a_suite_of_blanks_is_read_at_once(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text("name:" + " " * 100_000 + "x\ntargets: []\ncases: []\nname" + " " * 100_000)
    (tmp_path / "y.yaml").write_text("name: 'A # b' # c\ntargets: []\ncases: []\n")
    started = time.process_time()
    assert {file.name for file in files.suite_files(tmp_path)} == {"x", "A # b"}
    assert time.process_time() - started < 10
