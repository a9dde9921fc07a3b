"""Every surface on which a model is about to be asked says when it ends, in the same words."""

import json
import re
from datetime import UTC, datetime
from html import unescape

import pytest
from starlette.testclient import TestClient

from fairtrial import pipeline
from fairtrial.cli.main import _run
from fairtrial.providers import retirement
from fairtrial.web.app import make_app
from fairtrial.web.site import Site
from tests.scripted import Say, scripted_model
from tests.servers.beside import beside

NOTE = "google:gemini-3.7-flash is served by gemini-3.8-flash: that model answers in its place"
WARNING = "openai:gpt-5-mini ends on 11 December 2026, in 23 days; its successor is gpt-5.6-terra"
OVER = (
    "old (openai:o1) was to end on 23 October 2026: it is asked all the same, for such dates change; "
    "its successor is gpt-5.6-sol"
)
TARGETS = ["openai:gpt-5-mini", {"id": "old", "target": "openai:o1"}, "google:gemini-3.7-flash"]


@pytest.fixture(autouse=True)
def on_a_day(monkeypatch):
    monkeypatch.setattr(retirement, "now", lambda: datetime(2026, 11, 18, tzinfo=UTC))


@pytest.fixture
def suite(write_suite, monkeypatch):
    """A suite of three models, all of which answer whatever their dates say."""
    with beside(scripted_model(lambda turn: Say("Paris"), strict=False)) as served:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{served.url}/v1")
        monkeypatch.setenv("GEMINI_BASE_URL", served.url)
        for name in ("OPENAI_API_KEY", "GEMINI_API_KEY"):
            monkeypatch.setenv(name, "k-0001")
        yield write_suite(targets=TARGETS, retry={"attempts": 1})


def said(capsys) -> str:
    """Everything that was printed, on one line and without the frames of tables."""
    captured = capsys.readouterr()
    return " ".join((captured.err + captured.out).split())


def has_all(text: str, *, marked: bool = True) -> bool:
    lines = [f"warning: {WARNING}", f"warning: {OVER}", f"note: {NOTE}"] if marked else [WARNING, OVER, NOTE]
    return all(line in text for line in lines)


def as_words(html: str) -> str:
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]*>", "", html)))


def command(*arguments) -> int:
    return _run([str(part) for part in arguments])


def test_validate(suite, capsys):
    assert command("validate", suite) == 0
    assert has_all(said(capsys))
    assert command("validate", suite, "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["valid"] and {one["words"] for one in document["retiring"]} == {NOTE, WARNING, OVER}
    assert {one["level"] for one in document["retiring"]} == {"note", "warning", "over"}
    assert {WARNING, OVER} <= set(document["warnings"])


def test_run_resume_and_gate(suite, capsys):
    assert command("run", suite, "--quiet") == 0
    printed = said(capsys)
    assert has_all(printed)
    assert command("resume", "latest", "--quiet") == 0
    assert has_all(said(capsys))
    assert command("gate", "latest", "--plan") in (0, 1)
    assert has_all(said(capsys))
    command("gate", suite, "--quiet")
    assert has_all(said(capsys))
    command("gate", "latest")
    assert WARNING not in said(capsys)  # it asks nothing


def test_models_and_doctor(suite, capsys):
    assert command("models", "--retiring", suite) == 0
    assert has_all(said(capsys))
    assert command("models", "--retiring", suite, "--json") == 0
    assert {one["words"] for one in json.loads(capsys.readouterr().out)["models"]} == {NOTE, WARNING, OVER}
    assert command("models", "--retiring", "--within", "5", suite) == 0
    assert WARNING not in said(capsys)
    command("doctor", "--json")
    found = [one["found"] for one in json.loads(capsys.readouterr().out)["findings"] if one["what"] == suite.name]
    assert f"warning: {WARNING}" in found and f"note: {NOTE}" in found and any("was to end on" in one for one in found)


def test_all_known_models(capsys):
    assert command("models", "--retiring") == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 80
    assert re.search(r"openai:gpt-5-mini +2026-12-11, 23 days +gpt-5\.6-terra", out)
    assert re.search(r"openai:o1 +2026-10-23, over +gpt-5\.6-sol", out) and "deepseek-chat" not in out  # long ago
    assert command("models", "--retiring", "--within", "0") == 0
    assert "gpt-5-mini" not in capsys.readouterr().out


async def test_the_page(suite, store, tmp_path):
    run = await pipeline.arun(pipeline.load(suite), store=store)
    site = Site(store, tmp_path)
    try:
        client = TestClient(make_app(site))
        assert has_all(as_words(client.get(f"/new/estimate?file={suite.name}").text), marked=False)
        assert has_all(as_words(client.get(f"/runs/{run.id}").text), marked=False)
        checked = client.post("/suites/check", json={"text": suite.read_text(), "file": suite.name})
        kinds = {problem["message"]: problem["key"] for problem in checked.json()["problems"]}
        assert (kinds[WARNING], kinds[OVER], kinds[NOTE]) == ("warning", "warning", "note")
    finally:
        site.close()


def test_a_model_that_stays_is_not_mentioned(write_suite, capsys, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "k-0001")
    assert _run(["validate", str(write_suite(targets=["openai:gpt-6-luna"]))]) == 0
    assert "ends" not in said(capsys)
    assert _run(["models", "--retiring", "suite.yaml"]) == 0
    assert "Nothing of suite.yaml ends within 90 days" in said(capsys)
