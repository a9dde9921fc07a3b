"""More cases of a run that was looked at: its answers are used again, and what is said counts both looks."""

import re

import numpy as np
import pytest
from click.testing import CliRunner

import fairtrial as ft
from fairtrial.cli.main import cli
from fairtrial.config import RunOptions
from fairtrial.stats.looks import level_of_another_look
from tests.analyse.test_compare import arm, cases


def part(share, count=200, seed=1):
    """A share of the cases, drawn at random."""
    return set(np.random.default_rng(seed).permutation(count)[: round(share * count)].tolist())


@pytest.fixture
def keys():
    return {"targets": [arm("a", part(0.7), 200), arm("b", part(0.6, seed=2), 200)], "cases": cases(200)}


async def test_every_extension_is_the_next_look(run_suite, keys):
    for number, limit in enumerate((40, 80, 160), 1):
        run = await run_suite(RunOptions(limit=limit, cache=True), **keys)
        found = ft.compare(run, "a", "b")
        assert found.count == limit
        level = 0.05 if number == 1 else level_of_another_look(number)
        assert found.level == pytest.approx(1 - level)
        notes = " ".join([*ft.compare(run).notes, run._repr_html_()])
        assert (f"This is look {number} at these arms" in notes) == (number > 1)
    whole = await run_suite(**keys)
    assert ft.compare(whole, "a", "b").level == pytest.approx(1 - level_of_another_look(4))


async def test_what_is_no_extension_has_all_of_the_error(run_suite, keys):
    await run_suite(RunOptions(limit=10), **keys)  # a trial of the suite
    first = await run_suite(RunOptions(limit=80), **keys)
    same = await run_suite(RunOptions(limit=80), **keys)
    fewer = await run_suite(RunOptions(limit=40), **keys)
    other = {**keys, "targets": [keys["targets"][0], arm("b", part(0.5), 200)]}
    changed = await run_suite(RunOptions(limit=160), **other)
    for run in (first, same, fewer, changed):
        assert ft.compare(run, "a", "b").level == pytest.approx(0.95)


def test_the_command_takes_the_cases_of_before_and_more(write_suite, keys, tmp_path, monkeypatch):
    path = write_suite(**keys)
    monkeypatch.chdir(tmp_path)

    def fairtrial(*args, code=0):
        found = CliRunner().invoke(cli, [*args], env={"COLUMNS": "200"})
        assert found.exit_code == code, found.output
        return " ".join(f"{found.output} {found.exception if code else ''}".split())

    def asked():
        return ft.compare(ft.open_run("latest"), "a", "b").count

    assert "there is no" in fairtrial("run", str(path), "--more", "10", code=1)
    said = fairtrial("run", str(path), "--limit", "40")
    advised = re.search(r"fairtrial run (\S+) --more (\d+)", said)
    assert advised and advised[1] == str(path)
    assert "Look 2: run 1 has the same arms on 40 of these cases" in fairtrial("run", str(path), "--more", "60")
    assert asked() == 100
    fairtrial("run", str(path), "--more", "600")
    assert asked() == 200
    assert "asked all its cases" in fairtrial("run", str(path), "--more", "1", code=1)
    assert "--more cannot be combined with --limit" in fairtrial(
        "run", str(path), "--more", "1", "--limit", "9", code=2
    )
