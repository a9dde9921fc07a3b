"""Suites in the page: every change of a form is a change of the text, and of nothing else in it."""

from __future__ import annotations

import itertools
import os
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from starlette.testclient import TestClient

from fairtrial.cli.main import _run
from fairtrial.config import parse_suite
from fairtrial.config.editing import Editor
from fairtrial.core.errors import FairtrialError
from fairtrial.store import Store
from fairtrial.web.app import make_app
from fairtrial.web.changes import apply
from fairtrial.web.form import scorer_guides
from fairtrial.web.site import Site
from fairtrial.web.tables import read_cases, table_text
from tests.tables.workbook import write_workbook

from .conftest import CAPITALS


def load(text: str) -> Any:
    return yaml.load(text, yaml.CSafeLoader)


def changed(text: str, *changes: dict[str, Any]) -> str:
    editor = Editor(text)
    for change in changes:
        apply(editor, change)
    return editor.text


@pytest.fixture
def client(store: Store, tmp_path: Path) -> Any:
    site = Site(store, tmp_path)
    yield TestClient(make_app(site), headers={"origin": "http://testserver"})
    site.close()


def test_a_change_leaves_everything_else_as_it_was_written() -> None:
    text = changed(CAPITALS, {"do": "set", "path": ["cases", 1, "expected"], "value": "Madrid!"})
    before, after = CAPITALS.splitlines(), text.splitlines()
    assert [(a, b) for a, b in zip(before, after, strict=True) if a != b] == [
        (before[9], before[9].replace("expected: Madrid", "expected: Madrid!"))
    ]
    assert changed(CAPITALS) == CAPITALS


@pytest.mark.parametrize(
    ("change", "path", "expected"),
    [
        ({"do": "set", "path": ["cases", 0, "weight"], "value": 2}, ("cases", 0, "weight"), 2),
        ({"do": "set", "path": ["cases", 0, "category"], "value": ""}, ("cases", 0, "category"), None),
        ({"do": "set", "path": ["params", "temperature"], "value": 0}, ("params", "temperature"), 0),
        ({"do": "scorer", "path": ["cases", 0, "scorer"], "type": "numeric", "options": "tolerance: 0.1"}, ("cases", 0, "scorer"), {"type": "numeric", "tolerance": 0.1}),
        ({"do": "scorer", "path": ["scorer"], "type": "boolean", "options": ""}, ("scorer",), "boolean"),
        ({"do": "scorer", "path": ["cases", 2, "scorer"], "type": "", "options": ""}, ("cases", 2, "scorer"), None),
        ({"do": "judge", "key": "temperature", "value": 0.3}, ("judge", "temperature"), 0.3),
        ({"do": "target", "path": ["targets", 0], "key": "id", "value": "best"}, ("targets", 0, "id"), "best"),
        ({"do": "insert", "path": ["targets"], "values": ["mock:echo"]}, ("targets", 2), "mock:echo"),
        ({"do": "remove", "path": ["cases", 0]}, ("cases", 0, "id"), "es"),
        ({"do": "move", "path": ["cases", 2], "by": -2}, ("cases", 0, "id"), "it"),
        ({"do": "duplicate", "path": ["cases", 0]}, ("cases", 1, "id"), "fr-2"),
        ({"do": "add", "path": ["conditions"], "name": "plain", "value": {"system": "Hi"}}, ("conditions", "plain", "system"), "Hi"),
        ({"do": "set", "path": ["cases", 0, "expected"], "value": "yes"}, ("cases", 0, "expected"), "yes"),
        ({"do": "set", "path": ["cases", 0, "expected"], "value": "007"}, ("cases", 0, "expected"), "007"),
    ],
)  # fmt: skip
def test_each_change_of_the_form(change: dict[str, Any], path: tuple[Any, ...], expected: Any) -> None:
    found: Any = load(changed(CAPITALS, change))
    for part in path:
        found = found.get(part) if isinstance(found, dict) else found[part]
    assert found == expected


def test_a_target_stays_a_name_as_long_as_it_is_nothing_else() -> None:
    text = "name: x\ntargets:\n  - mock:echo\ncases: []\n"
    assert changed(text, {"do": "target", "path": ["targets", 0], "key": "target", "value": "mock:b"}) == text.replace(
        "mock:echo", "mock:b"
    )
    named = changed(text, {"do": "target", "path": ["targets", 0], "key": "id", "value": "b"})
    assert load(named)["targets"] == [{"target": "mock:echo", "id": "b"}]


def test_a_renamed_server_or_condition_keeps_its_place_and_those_who_use_it() -> None:
    text = "name: x\nmcp_servers: {a: {command: x}, b: {command: y}}\nconditions:\n  one: {mcp: [a, b]}\n  two: {mcp: [b]}\n"
    found = load(changed(text, {"do": "rename", "path": ["mcp_servers", "a"], "name": "z"}))
    assert list(found["mcp_servers"]) == ["z", "b"] and found["conditions"]["one"]["mcp"] == ["z", "b"]
    mapped = text.replace("mcp: [a, b]", "mcp: {shop: a, crm: b}")
    found = load(changed(mapped, {"do": "rename", "path": ["mcp_servers", "a"], "name": "z"}))
    assert found["conditions"]["one"]["mcp"] == {"shop": "z", "crm": "b"}
    with pytest.raises(FairtrialError, match="already exists"):
        changed(text, {"do": "rename", "path": ["mcp_servers", "a"], "name": "b"})
    with pytest.raises(FairtrialError, match="needs a name"):
        changed(text, {"do": "rename", "path": ["conditions", "one"], "name": " "})


@pytest.mark.slow
@given(st.text(st.characters(blacklist_categories=["Cs", "Cc"], whitelist_characters="\n"), max_size=60))
def test_any_text_comes_back_as_it_was_typed(text: str) -> None:
    written = changed(CAPITALS, {"do": "set", "path": ["cases", 0, "input"], "value": text})
    suite = load(written)
    assert suite["cases"][0].get("input", "") == text
    assert suite["cases"][1:] == load(CAPITALS)["cases"][1:]


def test_what_the_page_says_is_what_the_command_line_says(client: TestClient, tmp_path: Path, capsys: Any) -> None:
    broken = CAPITALS.replace("expected: Paris", "expectedd: Paris").replace("mock:good", "nobody:good")
    (tmp_path / "broken.yaml").write_text(broken)
    assert _run(["validate", "broken.yaml"]) == 1
    said = capsys.readouterr().err
    told = client.post("/suites/check", json={"file": "broken.yaml", "text": broken}).json()
    assert len(told["problems"]) >= 2
    for problem in told["problems"]:
        assert f"broken.yaml:{problem['line']}: {problem['key']}: {problem['message']}" in said


@pytest.mark.slow
def test_a_form_for_many_cases_comes_in_pages(client: TestClient, tmp_path: Path) -> None:
    text = CAPITALS + "".join(f"  - {{id: n{n}, input: Q{n}}}\n" for n in range(200))
    (tmp_path / "many.yaml").write_text(text)
    page = client.get("/suites/edit?file=many.yaml&page=2").text
    assert "Page 2 of 5" in page and ">n50<" in page and ">n5<" not in page


@pytest.mark.slow
def test_the_form_of_a_long_suite_comes_after_its_page(client: TestClient, tmp_path: Path) -> None:
    text = CAPITALS + "".join(f"  - {{id: n{n}, input: {'Q' * 100}{n}}}\n" for n in range(200))
    (tmp_path / "long.yaml").write_text(text)
    page = client.get("/suites/edit?file=long.yaml&page=2").text
    assert 'data-late="2"' in page and "Page 2 of 5" not in page and f"{'Q' * 100}199" in page
    asked = {"file": "long.yaml", "text": text, "form": True, "page": 2}
    form = client.post("/suites/check", json=asked).json()["html"]
    assert "Page 2 of 5" in form and ">n50<" in form


def test_several_right_answers_are_shown_and_not_made_one(client: TestClient, tmp_path: Path) -> None:
    text = CAPITALS + "  - {id: any, input: Q, expected: [<b>, c]}\n  - {id: map, input: Q, expected: {a: 1}}\n"
    (tmp_path / "any.yaml").write_text(text)
    page = client.get("/suites/edit?file=any.yaml").text
    assert "- &lt;b&gt;\n- c" in page and "any of these" in page
    assert "[&#34;cases&#34;, 3, &#34;expected&#34;]" not in page and "[&#34;cases&#34;, 2, &#34;expected&#34;]" in page
    rows = client.get("/suites/export?file=any.yaml&format=jsonl").text.splitlines()
    assert '"expected":["<b>","c"]' in rows[3]
    assert read_cases(rows[3].encode(), ".jsonl")[0]["expected"] == ["<b>", "c"]


@pytest.mark.parametrize("ending", ["csv", "json", "jsonl"])
def test_cases_go_out_and_come_back_in(client: TestClient, tmp_path: Path, ending: str) -> None:
    (tmp_path / "capitals.yaml").write_text(CAPITALS)
    body = client.get(f"/suites/export?file=capitals.yaml&format={ending}").content
    text = "name: new\ntargets: [mock:echo]\ncases:\n"
    reply = client.post(
        "/suites/import", data={"text": text, "file": "new.yaml"}, files={"table": (f"x.{ending}", body)}
    )
    assert reply.json()["count"] == 3
    wanted = load(CAPITALS)["cases"]
    wanted[2]["scorer"] = {"type": "golden_judge"}
    assert load(reply.json()["text"])["cases"] == wanted


def test_an_imported_text_names_no_variable() -> None:
    cases = read_cases(b'question,golden_answer,tags\n"What is ${HOME}?",x,"a; b"\n', ".csv")
    assert cases == [{"input": "What is $${HOME}?", "expected": "x", "tags": ["a", "b"]}]
    suite = parse_suite(yaml.safe_dump({"name": "x", "targets": ["mock:echo"], "cases": cases}))
    assert next(suite.cases()).input == "What is ${HOME}?"
    for body, words in ((b"a,b\n1,2\n", "needs a column `input`"), (b"", "no case")):
        with pytest.raises(FairtrialError, match=words):
            read_cases(body, ".csv")


def test_tables_of_spreadsheets_are_imported(tmp_path) -> None:
    assert read_cases("question;answer\r\nOui, ça va?;oui\r\n".encode("utf-8-sig"), ".csv") == [
        {"input": "Oui, ça va?", "expected": "oui"}
    ]
    book = write_workbook(tmp_path / "d.xlsx", S=[["question", "answer", "weight"], ["What is 6 × 7?", 42, 2]])
    assert read_cases(book.read_bytes(), ".xlsx") == [{"input": "What is 6 × 7?", "expected": 42, "weight": 2}]
    with pytest.raises(FairtrialError, match="set `encoding`"):
        read_cases("question;answer\nça;oui\n".encode("cp1252"), ".csv")


@pytest.mark.slow
def test_aliases_that_would_make_the_page_endless() -> None:
    levels = "".join(f"{b}: &{b} [{','.join(['*' + a] * 9)}]\n" for a, b in itertools.pairwise("abcdefghi"))
    text = f"name: x\ntargets: [mock:echo]\na: &a [x, x]\n{levels}cases: [{{input: q, expected: *i}}]\n"
    with pytest.raises(FairtrialError, match="aliases stand for too much"):
        Editor(text)


def test_an_unknown_table_is_refused() -> None:
    with pytest.raises(FairtrialError, match="csv, json or jsonl"):
        table_text([], "xls")


def test_the_guide_names_every_scorer() -> None:
    guides = {guide["name"]: guide for guide in scorer_guides()}
    assert {"exact", "numeric", "regex", "boolean", "llm_judge", "golden_judge"} <= guides.keys()
    for guide in guides.values():
        assert all(guide[key] for key in ("scale", "reproducibility", "best_for", "runs", "words"))


@pytest.mark.slow
def test_suites_are_made_copied_and_deleted(client: TestClient, tmp_path: Path) -> None:
    client.post("/suites/new", data={"name": "My: suite #1", "start": "questions"})
    path = tmp_path / "my-suite-1.yaml"
    assert load(path.read_text())["name"] == "My: suite #1"
    assert _run(["validate", str(path)]) == 0
    client.post("/suites/duplicate", data={"file": "my-suite-1.yaml"})
    assert (tmp_path / "my-suite-1-2.yaml").read_text() == path.read_text()
    again = client.post("/suites/new", data={"name": "My: suite #1"})
    assert again.status_code == 400 and "already" in again.text
    client.post("/suites/delete", data={"file": "my-suite-1.yaml"})
    assert not path.exists() and "my-suite-1-2.yaml" in client.get("/suites").text


@pytest.mark.slow
@pytest.mark.parametrize("start", ["questions", "example", "template", "agents", "styles", "pages"])
def test_every_beginning_is_a_suite(client: TestClient, tmp_path: Path, start: str, monkeypatch: Any) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(name, "sk-test-key-0001")
    monkeypatch.setenv(
        "PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    )  # some machines have `python3` only
    client.post("/suites/new", data={"name": "x", "start": start, "file": "x.yaml"})
    told = client.post("/suites/check", json={"file": "x.yaml", "text": (tmp_path / "x.yaml").read_text()}).json()
    assert told["facts"], told["problems"]
    assert client.get("/suites/edit?file=x.yaml").status_code == 200


async def test_a_model_drafts_and_a_person_decides(client: TestClient, model_server: Any, tmp_path: Path) -> None:
    case = '{"id": "a", "input": "What is ${HOME}?", "expected": "x", "category": "c", "difficulty": "easy"}'
    state = await model_server(
        answer=f'{{"name": "Drafted", "description": "d", "system": "", "scorer": "exact", "cases": [{case}]}}'
    )
    import asyncio

    def ask(body: dict[str, Any]) -> Any:
        return client.post("/suites/draft", json=body).json()

    suite = await asyncio.to_thread(ask, {"kind": "suite", "model": "openai:gpt-test", "about": "capitals"})
    assert not list(tmp_path.glob("*.yaml")), "a draft is no file"
    assert parse_suite(suite["text"], environment={"OPENAI_API_KEY": "k"}).case_count == 1
    assert "response_format" in state.bodies[-1]
    cases = await asyncio.to_thread(ask, {"kind": "cases", "model": "openai:gpt-test", "text": CAPITALS, "count": 3})
    assert cases["draft"][0]["input"] == "What is ${HOME}?"
    failed = await asyncio.to_thread(ask, {"kind": "prompt", "model": "openai:gpt-test", "prompt": "Say it"})
    assert "draft in the wrong format" in failed["error"]
    assert "name a model" in (await asyncio.to_thread(ask, {"kind": "cases", "text": CAPITALS}))["error"]


def test_models_are_found_with_price_and_context(client: TestClient, monkeypatch: Any) -> None:
    found = client.get("/models?q=gpt-5 mini").json()["models"]
    mini = next(model for model in found if model["name"] == "openai:gpt-5-mini")
    assert mini["input_usd"] > 0 and mini["context"] > 100_000 and mini["usable"] is False
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    found = client.get("/models?q=gpt-5 mini").json()["models"]
    assert next(model for model in found if model["name"] == "openai:gpt-5-mini")["usable"] is True
