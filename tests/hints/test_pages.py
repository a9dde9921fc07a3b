"""Commands that the web page gives to copy can be typed where it says: in the suite's folder, with the suite saved there."""

from __future__ import annotations

import html
import re
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.testclient import TestClient

from fairtrial.store import Store
from fairtrial.web.app import make_app
from fairtrial.web.share import _where
from fairtrial.web.site import Site
from tests.hints.suggested import commands_in, filled_in, type_in
from tests.hints.test_states import JUDGE, MIXED, RIGHT, write_state
from tests.tracks.interchange.results.conftest import DATA

STATES: dict[str, tuple[dict[str, Any], list[str], str]] = {
    "two arms": ({"targets": [RIGHT, MIXED]}, ["run", "suite.yaml"], ".fairtrial/fairtrial.db"),
    "one arm": ({"targets": [RIGHT]}, ["run", "suite.yaml"], ".fairtrial/fairtrial.db"),
    "a part": ({"targets": [RIGHT, MIXED]}, ["run", "suite.yaml", "--target", "mixed"], ".fairtrial/fairtrial.db"),
    "another store": ({"targets": [RIGHT, MIXED]}, ["run", "suite.yaml", "--store", "my store.db"], "my store.db"),
    "imported": ({}, ["import", "results", "a.eval"], ".fairtrial/fairtrial.db"),
}


def visit(folder: Path, store: Store, path: str) -> str:
    site = Site(store, folder)
    try:
        reply = TestClient(make_app(site), headers={"origin": "http://testserver"}).get(path)
        assert reply.status_code == 200, reply.text
        return reply.text
    finally:
        site.close()


@pytest.mark.slow
@pytest.mark.parametrize("name", STATES)
def test_what_the_page_for_sharing_says(name, tmp_path):
    keys, words, place = STATES[name]
    folder = tmp_path / "state"
    write_state(folder, keys)
    shutil.copy(DATA / "inspect/a.eval", folder)
    assert type_in(folder, *words).code == 0
    store = Store(f"sqlite:///{folder / place}")
    (run,) = store.runs()
    page = visit(folder, store, f"/runs/{run.id}/share")
    (folder / f"{run.id}.yaml").write_text(visit(folder, store, f"/runs/{run.id}/suite.yaml"), "utf-8")
    store.close()
    commands = [html.unescape(command) for command in re.findall(r'<pre id="command-\d+">(.*?)</pre>', page)]
    assert len(commands) >= 3
    for command in commands:
        ended = type_in(folder, *filled_in(command))
        assert ended.code == 0, f"{command}\n{ended.said}"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("variable", "used", "said"),
    [
        ("elsewhere.db", "elsewhere.db", None),  # commands find it by themselves
        ("{folder}/elsewhere.db", "elsewhere.db", None),
        ("elsewhere.db", ".fairtrial/fairtrial.db", "{folder}/.fairtrial/fairtrial.db"),  # they would look elsewhere
        ("postgresql://me@db.example.com/evals", "elsewhere.db", "{folder}/elsewhere.db"),
    ],
)
def test_the_store_of_the_environment_is_the_usual_one(variable, used, said, tmp_path, monkeypatch):
    folder = tmp_path / "state"
    write_state(folder, {"targets": [RIGHT]})
    assert type_in(folder, "run", "suite.yaml", "--store", used).code == 0
    monkeypatch.setenv("FAIRTRIAL_STORE", variable.format(folder=folder))
    store = Store(f"sqlite:///{folder / used}")
    page = visit(folder, store, f"/runs/{store.runs()[0].id}/share")
    commands = [html.unescape(command) for command in re.findall(r'<pre id="command-\d+">(.*?)</pre>', page)]
    assert commands and {command.partition("--store ")[2] or None for command in commands} == {
        said.format(folder=folder) if said else None
    }


def test_a_store_on_a_server_keeps_its_address(tmp_path, monkeypatch):
    run: Any = SimpleNamespace(plan=SimpleNamespace(folder=str(tmp_path)))
    address = "postgresql://me@db.example.com/evals"
    assert _where(run, address) == ["--store", address]
    monkeypatch.setenv("FAIRTRIAL_STORE", "postgresql://me:a-password@db.example.com/evals")
    assert _where(run, address) == []


@pytest.mark.slow
def test_a_page_never_suggests_half_a_command(tmp_path):
    """A judge that was never calibrated is calibrated on the page."""
    folder = tmp_path / "state"
    write_state(folder, {"scorer": "llm_judge", "judge": JUDGE})
    page = visit(folder, Store(f"sqlite:///{folder}/s.db"), "/new/estimate?file=suite.yaml")
    assert "was never calibrated; calibrate it under Judges" in page and not commands_in(page)
