"""Safe by default: who may ask, what never becomes HTML of ours, and what never leaves the server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from fairtrial.core.errors import FairtrialError
from fairtrial.store import Store
from fairtrial.web import files
from fairtrial.web.access import Access
from fairtrial.web.app import make_app
from fairtrial.web.desk import Desk
from fairtrial.web.guard import Guard
from fairtrial.web.markdown import rendered

from .conftest import CAPITALS

HERE = "http://127.0.0.1:8321"
TOKEN = "a-token-that-nobody-guesses"
SECRET = "sk-very-secret-value-0042"


@pytest.fixture
def desk(store: Store, tmp_path: Path) -> Any:
    made = Desk(store, tmp_path, preview_port=9)
    yield made
    made.close()


@pytest.fixture
def client(desk: Desk) -> TestClient:
    return TestClient(Guard(make_app(desk), ["127.0.0.1:8321"]), base_url=HERE, raise_server_exceptions=False)


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

    guarded = TestClient(Guard(app, ["box:8321"], numbers=True))
    for host, status in {"box:8321": 200, "10.1.2.3:8321": 200, "[::1]:8321": 200, "evil.example:8321": 403}.items():
        assert guarded.get("/", headers={"host": host}).status_code == status, host


def test_who_has_no_token_sees_nothing(desk: Desk) -> None:
    client = TestClient(Access(make_app(desk), TOKEN), base_url=HERE, follow_redirects=False)
    page = {"accept": "text/html"}
    assert client.get("/runs").status_code == 401
    assert client.get("/runs", headers=page).headers["location"] == "/enter"
    assert "needs its token" in client.get("/enter").text
    assert client.get("/runs", headers={"authorization": "Bearer wrong"}).status_code == 401
    assert client.get("/runs", headers={"authorization": f"Bearer {TOKEN}"}).status_code == 200
    wrong = client.post("/enter", data={"token": "wrong"})
    assert wrong.headers["location"] == "/enter?wrong=1" and "set-cookie" not in wrong.headers
    right = client.post("/enter", data={"token": TOKEN})
    cookie = right.headers["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite=strict" in cookie and TOKEN not in cookie
    assert client.get("/runs").status_code == 200


def test_another_host_needs_a_token_and_gets_one_made(monkeypatch: pytest.MonkeyPatch) -> None:
    from click.testing import CliRunner

    from fairtrial.cli import serve

    served: dict[str, Any] = {}

    async def noted(host: str, port: int, folder: Any, token: str, store: Any, **more: Any) -> None:
        served.update(host=host, token=token, **more)

    monkeypatch.setattr(serve, "serve", noted)
    assert CliRunner().invoke(serve.command, []).exit_code == 0 and served["token"] == ""
    CliRunner().invoke(serve.command, ["--host", "0.0.0.0"])
    assert len(served["token"]) >= 32 and served["shows"] is True
    CliRunner().invoke(serve.command, ["--host", "0.0.0.0", "--token", TOKEN])
    assert served["token"] == TOKEN and served["shows"] is False
    short = CliRunner().invoke(serve.command, ["--host", "0.0.0.0", "--token", "short"])
    assert isinstance(short.exception, FairtrialError)


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
    html = rendered(text)
    for bad in ("<script", "<img", "<iframe", "<svg", 'href="javascript', 'href="data', " onerror=", " onclick="):
        assert bad not in html.replace("&lt;", "").lower() or bad.startswith(" "), html
    assert "<a href='http://x' onclick" not in html


def test_markdown_is_shown_as_such() -> None:
    html = rendered("# Title\n\n**bold** and `code`\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n[x](https://example.org)")
    for part in ("<h1>Title</h1>", "<strong>bold</strong>", "<td>1</td>", 'rel="noopener noreferrer nofollow"'):
        assert part in html


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
        "/arena",
        f"/compare?runs={run.id}",
        "/judges",
    ]
    paths += [f"/runs/{run.id}{end}" for end in ("", "/cases/1", "/cases/1/1/1", "/share", "/label", "/pages")]
    for path in paths:
        page = client.get(path)
        assert page.status_code == 200, (path, page.text[-500:])
        assert "<img src=x" not in page.text and "<b>k</b>" not in page.text, path
        assert "{{7*7}}" in page.text or "7*7" not in page.text, path


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
    paths = ["/", "/models?q=gpt", "/suites/edit?file=suite.yaml", "/arena", "/suites/export?file=suite.yaml"]
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
        files.place_of(tmp_path.resolve(), name)
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
