"""Failures by cause: what is equal is one group, whatever was quoted and counted; the order is always the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from starlette.testclient import TestClient

from fairtrial.analyse.causes import causes, without_particulars
from fairtrial.cli.main import cli
from fairtrial.present.words.causes import causes_words
from fairtrial.reports.export import export
from fairtrial.web.app import make_app
from fairtrial.web.site import Site
from tests.surfaces.test_one_voice import spoken
from tests.web.trajectories import HTML, agents, searching

PROGRAM = """\
def answer(input):
    number = int(input)
    failed = {'type': 'result', 'call': 'a', 'text': 'no', 'error': True}
    events = [{'type': 'call', 'id': 'a', 'tool': 'search', 'server': 'web'}, failed if number % 2 else {**failed, 'error': False}]
    if number == 2:
        events.append({'type': 'limit', 'kind': 'turns', 'limit': 8})
    if number in (3, 5):
        raise RuntimeError(f'broken {number}')
    return {'text': 'right' if number == 0 else f'wrong {number}', 'trace': {'events': events}}
"""


@pytest.mark.parametrize(
    ("note", "plain"),
    [
        ("BLEU 12.5", "BLEU #"),
        ("got `Lyon`, not “Paris”", "got …, not …"),
        ("distance 3, of 1,024", "distance #, of #"),
        ("it doesn't say 'yes' or \"no\"", "it doesn't say … or …"),
        ("exit code 1: AssertionError. Then much more.", "exit code #: AssertionError."),
        ("gpt4 has it", "gpt4 has it"),
        ("", ""),
        ("word " * 60, "word " * 20 + "…"),
    ],
)
def test_particulars_of_a_note_make_no_group(note: str, plain: str) -> None:
    assert without_particulars(note) == plain


async def test_failures_are_grouped_by_reason_last_failed_tool_and_ending(run_suite: Any, tmp_path: Path) -> None:
    (tmp_path / "worker.py").write_text(PROGRAM)
    run = await run_suite(
        targets=[{"id": name, "target": "python:worker.py:answer"} for name in ("a", "b")],
        retry={"attempts": 1},
        scorer="levenshtein",
        cases=[{"id": f"c{n}", "input": str(n), "expected": "right"} for n in range(8)],
    )
    found = causes(run)
    groups = [(one.kind, one.reason, one.tool, one.ending, one.count) for one in found.groups]
    assert groups == [
        ("failure", "crashed", "", "", 4),
        ("wrong", "distance #", "", "result", 4),
        ("wrong", "distance #", "web.search", "result", 4),
        ("limit", "turns", "", "limit", 2),
    ]
    assert found.failures == 14 and all(one.arms == {"a": one.count // 2, "b": one.count // 2} for one in found.groups)
    assert causes(run) == found


async def test_every_surface_has_the_same_groups(
    run_suite: Any, model: Any, store: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await model(searching)
    run = await run_suite(**agents(), repeats=2)
    words = causes_words(causes(run))
    assert len(words.groups) == 1 and words.groups[0].count == 2 and words.groups[0].arms == "m/hasty 2"
    assert words.groups[0].facts == ["last failed call: facts.lookup", "ended with a message"]
    site = Site(store, tmp_path)
    client = TestClient(make_app(site))
    assert f'data-load="/runs/{run.id}/causes"' in client.get(f"/runs/{run.id}/result").text
    page = client.get(f"/runs/{run.id}/causes").text
    assert f'<a href="/runs/{run.id}/cases/1/2/2">code · m/hasty · 2</a>' in page
    assert client.get(f"/runs/{run.id}/cases/1/2/2").status_code == 200
    site.close()
    export(run, tmp_path / "report.html")
    report = (tmp_path / "report.html").read_text()
    monkeypatch.setenv("COLUMNS", "400")
    shown = CliRunner().invoke(cli, ["show", run.id, "--causes", "--store", store.address]).output
    for group in words.groups:
        for text in (spoken(page), spoken(report), " ".join(shown.split())):
            assert all(part in text for part in (words.headline, group.title, *group.facts, group.arms, group.example))
    document = json.loads(
        CliRunner().invoke(cli, ["show", run.id, "--causes", "--json", "--store", store.address]).output
    )
    assert document["failures"] == 2 and document["groups"][0]["tool"] == "facts.lookup"
    assert [trial["repeat"] for trial in document["groups"][0]["trials"]] == [1, 2]


async def test_a_run_in_which_nothing_failed_has_no_causes(run_suite: Any, store: Any, tmp_path: Path) -> None:
    run = await run_suite(scorer="contains")
    site = Site(store, tmp_path)
    assert "Failures by cause" not in TestClient(make_app(site)).get(f"/runs/{run.id}/result").text
    site.close()
    shown = CliRunner().invoke(cli, ["show", run.id, "--causes", "--store", store.address])
    assert "no trial failed, is unscored or below 50" in shown.output and shown.exit_code == 0


async def test_what_a_scorer_says_of_a_hostile_answer_is_text(run_suite: Any, store: Any, tmp_path: Path) -> None:
    (tmp_path / "marks.py").write_text(
        f"def mark(response, expected):\n    return {{'score': 0, 'notes': {HTML!r} + '\\x1b[31m'}}\n"
    )
    run = await run_suite(scorer={"type": "python", "function": "marks.py:mark"})
    site = Site(store, tmp_path)
    page = TestClient(make_app(site)).get(f"/runs/{run.id}/causes").text
    site.close()
    assert HTML not in page and "&lt;script&gt;" in page and "\x1b" not in page
