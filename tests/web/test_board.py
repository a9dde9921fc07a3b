"""The leaderboard: newest results of all runs of a suite, with the verdicts of `compare`."""

import re

import pytest

import fairtrial as ft
from fairtrial.analyse.leaderboard import run_leaderboard
from fairtrial.config import RunOptions
from fairtrial.present.words.leaderboards import headline, rank_words
from tests.analyse.test_compare import arm, cases

from .test_result import client, words  # noqa: F401


async def test_one_run_stands_on_the_board_as_on_its_own_page(run_suite, client):  # noqa: F811
    run = await run_suite(targets=[arm("good", 36), arm("fair", 30), arm("bad", 12)], cases=cases())
    shown = words(client.get("/board?wait=1").text)
    tiers = run_leaderboard(run)
    assert headline(tiers) in shown
    assert all(rank_words(one) in shown for one in tiers.places)


@pytest.mark.slow
async def test_arms_of_different_runs_are_compared_on_their_common_cases(run_suite, client):  # noqa: F811
    """Every arm is there with its newest run, and a pair leads to the comparison of those two."""
    first = await run_suite(targets=[arm("old", 12), arm("both", 20)], cases=cases())
    second = await run_suite(targets=[arm("new", 36), arm("both", 30)], cases=cases())
    page = client.get("/board?wait=1").text
    pair = ft.compare([first, second], "new", "old")
    assert pair.verdict == "better"
    assert "new" in words(page).split(" lead")[0] and f"/runs/{second.id}" in page and f"/runs/{first.id}" in page
    address = re.search(
        rf'/compare\?runs={second.id}&amp;runs={first.id}&amp;a=new%40{second.id}&amp;b=old%40[^"]*', page
    )
    assert address is not None
    found = client.get(address[0].replace("&amp;", "&") + "&wait=1").text
    assert "new" in found and "there is no arm" not in found


@pytest.mark.slow
async def test_history_has_a_point_for_every_run(run_suite, client):  # noqa: F811
    runs = [await run_suite(targets=[arm("a", 20 + n), arm("b", 10)], cases=cases()) for n in range(3)]
    page = client.get("/board?wait=1").text
    chart = page.split("Over time")[1].split("</section>")[0]
    assert all(chart.count(f'href="/runs/{run.id}"') == 2 for run in runs)
    assert "95 % CI" in chart and "UTC" in chart and "multiples" not in chart


@pytest.mark.slow
async def test_many_arms_get_a_small_chart_each(run_suite, client):  # noqa: F811
    targets = [arm(f"m{n}", 20 + n) for n in range(8)]
    for _ in range(2):
        await run_suite(targets=targets, cases=cases())
    chart = client.get("/board?wait=1").text.split("Over time")[1].split("</section>")[0]
    assert chart.count("<figure>") == 8 and "multiples" in chart


async def test_what_is_left_out_is_named_with_its_reason(run_suite, client):  # noqa: F811
    await run_suite(targets=[arm("a", 20)], cases=cases())
    part = await run_suite(RunOptions(limit=5), targets=[arm("a", 20)], cases=cases())
    left_out = client.get("/board?wait=1").text.split('id="left-out"')[1]
    assert f"/runs/{part.id}" in left_out and "5 cases, not 40" in left_out


async def test_a_board_without_any_score_says_so(run_suite, client):  # noqa: F811
    assert "Nothing to rank yet" in client.get("/board").text
    await run_suite(targets=[arm("dead", 4, 4, faults={"refused": 1.0})], cases=cases(4), retry={"attempts": 1})
    assert "No finished run of this suite has a score yet" in client.get("/board?wait=1").text


@pytest.mark.parametrize(
    ("options", "selects"), [(RunOptions(limit=5), "--limit 5"), (RunOptions(first=5), "--first 5"), (None, "")]
)
async def test_the_command_that_runs_it_again_selects_the_same_cases(run_suite, client, options, selects):  # noqa: F811
    run = await run_suite(options, targets=[arm("a", 20)], cases=cases())
    command = (
        words(client.get(f"/runs/{run.id}/share").text).split(f"fairtrial run {run.id}.yaml")[1].split("fairtrial ")[0]
    )
    assert selects in command and bool(selects) is ("--limit" in command or "--first" in command)


async def test_as_many_cases_are_not_the_same_cases(run_suite, client):  # noqa: F811
    drawn = await run_suite(RunOptions(limit=5), targets=[arm("a", 20)], cases=cases())
    first = await run_suite(RunOptions(first=5), targets=[arm("a", 20)], cases=cases())
    standings, left_out = client.get("/board?wait=1").text.split('id="left-out"')
    assert f"/runs/{first.id}" in standings and f"/runs/{drawn.id}" in left_out and "other cases" in left_out
