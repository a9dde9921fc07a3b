"""Two trials of a case side by side: reached from the page of a trial and from the flips of a comparison."""

from __future__ import annotations

import json
import re
from html import unescape
from typing import Any

import pytest
from click.testing import CliRunner
from starlette.testclient import TestClient

from fairtrial.cli.main import cli
from fairtrial.core.errors import FairtrialError
from fairtrial.web.app import make_app
from fairtrial.web.site import Site

from .test_steps import words
from .trajectories import HTML, LONG, agents, hostile, reporting, searching


@pytest.fixture
def client(store: Any, tmp_path: Any) -> Any:
    site = Site(store, tmp_path)
    yield TestClient(make_app(site))
    site.close()


async def test_where_two_arms_part_is_said_marked_and_jumped_to(run_suite: Any, model: Any, client: Any) -> None:
    await model(searching)
    run = await run_suite(**agents())
    trial = client.get(f"/runs/{run.id}/cases/1/1/1").text
    address = f"/runs/{run.id}/cases/1/1/1/side-by-side?arm=2"
    assert f'href="{address}">m/hasty</a>' in trial
    page = client.get(address).text
    shown = words(page)
    assert "The first call is the same; then both call facts.lookup, with different arguments." in shown
    assert page.count('id="parts"') == 1 and '#parts" data-key="f"' in page
    parted = page.split('id="parts"')[1].split("</tr>")[0]
    assert "other arguments" in parted and "topic" in parted and "Error executing tool lookup" in parted
    assert "4711" in shown and "11" in shown
    swapped = unescape(page.split('">Swap')[0].rpartition('href="')[2])
    assert "m/hasty and m/careful" in words(client.get(swapped).text)


async def test_it_is_reached_from_the_flips_of_a_comparison(run_suite: Any, model: Any, client: Any) -> None:
    await model(searching)
    cases = [{"id": f"c{n}", "input": f"What is the code of {n}?", "expected": "4711"} for n in range(2)]
    runs = [await run_suite(**agents(cases=cases)) for _ in range(2)]
    page = client.get(f"/compare?runs={runs[0].id}&a=m/careful&b=m/hasty&wait=1").text
    address = f"/runs/{runs[0].id}/cases/1/1/1/side-by-side?case=1&amp;arm=2&amp;repeat=1"
    assert f'href="{address}">Calls side by side' in page
    assert client.get(unescape(address)).status_code == 200
    both = client.get(f"/runs/{runs[0].id}/cases/1/1/1/side-by-side?run={runs[1].id}")
    assert f"run {runs[0].record.number}" in both.text and "All 2 calls are the same" in words(both.text)


async def test_long_and_hostile_lists(run_suite: Any, client: Any, tmp_path: Any) -> None:
    run = await run_suite(**reporting(tmp_path, LONG, repeats=2))
    page = client.get(f"/runs/{run.id}/cases/1/1/1/side-by-side?repeat=2").text
    assert len(page) < 300_000 and "repeat 1 and r, repeat 2" in words(page) and "More lines" in page
    assert "e9" in client.get(f"/runs/{run.id}/cases/1/1/1/side-by-side?repeat=2&first=4990").text
    run = await run_suite(**reporting(tmp_path, repr(hostile()), repeats=2))
    page = client.get(f"/runs/{run.id}/cases/1/1/1/side-by-side?repeat=2").text
    assert HTML not in page and "\u202e" not in page
    assert "&lt;script&gt;" in page
    for wrong in ("?repeat=3", "?arm=9", "?case=9", "?run=nobody"):
        assert client.get(f"/runs/{run.id}/cases/1/1/1/side-by-side{wrong}").status_code == 400, wrong


async def test_the_terminal_says_the_same(run_suite: Any, model: Any, client: Any, store: Any) -> None:
    await model(searching)
    run = await run_suite(**agents())
    page = words(client.get(f"/runs/{run.id}/cases/2/1/1/side-by-side?arm=2").text)
    shown = show(store, run.id, "talk", "m/careful", "--against", "m/hasty")
    assert shown.exit_code == 0
    text = " ".join(shown.output.split())
    said = "he first call is the same; then both call facts.lookup, with different arguments"
    assert said in page and said in text
    numbers = [(found[0], int(found[1])) for found in re.findall(r"^ ([=<>]) e(\d+)", shown.output, re.MULTILINE)]
    document = json.loads(show(store, run.id, "talk", "m/careful", "--against", "m/hasty", "--json").output)
    assert document["parts"] == 2 and len(document["lines"]) == 7
    sides = [(line["kind"], line["a"], line["b"]) for line in document["lines"]]
    told = [("=", a["number"]) if kind == "same" else ("<", a["number"]) for kind, a, _ in sides if a]
    assert [one for one in numbers if one[0] != ">"] == told
    other = document["trials"][1]
    assert show(store, run.id, "talk", "m/careful", "--against", other[:12]).output == shown.output
    assert "needs a trial" in show(store, run.id, "--against", "m/hasty").output
    wrong = show(store, run.id, "talk", "m/careful", "--against", "nobody")
    assert isinstance(wrong.exception, FairtrialError) and "has no trial `nobody`" in str(wrong.exception)


def show(store: Any, *args: str) -> Any:
    return CliRunner().invoke(cli, ["show", *args, "--store", store.address])
