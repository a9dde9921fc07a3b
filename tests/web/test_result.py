"""The page of a run: its words and its pictures say what `compare` says."""

import re
from html import unescape

import pytest
from starlette.testclient import TestClient

import fairtrial as ft
from fairtrial import pipeline
from fairtrial.analyse.leaderboard import comparison_leaderboard, run_leaderboard
from fairtrial.analyse.price import stored_prices
from fairtrial.config import RunOptions
from fairtrial.core.formatting import Scale, interval_words, signs
from fairtrial.present.charts.axis import linear_axis
from fairtrial.present.words.leaderboards import headline, rank_words
from fairtrial.present.words.verdicts import pair_sentence
from fairtrial.web.app import make_app
from fairtrial.web.result import numbers_of
from fairtrial.web.site import Site
from tests.analyse.test_compare import arm, cases


@pytest.fixture
def client(store, tmp_path):
    site = Site(store, tmp_path)
    client = TestClient(make_app(site))
    client.site = site
    yield client
    site.close()


def words(html):
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]*>", " ", re.sub(r"</?a\b[^>]*>", "", html))))


def spread(count, cases):
    """Arms from good to poor, some of them tied."""
    return [arm(f"m{n:02}", round(cases * (1 - 0.8 * (n // 2) / max(1, count // 2))), cases) for n in range(count)]


SHAPES = {
    "two": {"targets": [arm("good", 36), arm("bad", 20)], "cases": cases()},
    "a tie": {"targets": [arm("one", 30), arm("other", range(4, 33))], "cases": cases()},
    "ten": {"targets": spread(10, 30), "cases": cases(30)},
    "failures": {
        "targets": [arm("steady", 30), arm("frail", 30, faults={"refused": 0.4})],
        "cases": cases(),
        "retry": {"attempts": 1},
    },
    "one case": {"targets": [arm("one", 1, 1), arm("other", 0, 1)], "cases": cases(1)},
    "one arm": {"targets": [arm("only", 30)], "cases": cases()},
    "nothing scored": {
        "targets": [arm("dead", 4, 4, faults={"refused": 1.0})],
        "cases": cases(4),
        "retry": {"attempts": 1},
    },
}


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
async def test_the_page_says_what_compare_says(run_suite, client, shape):
    run = await run_suite(**SHAPES[shape])
    page = client.get(f"/runs/{run.id}/result").text
    shown = words(page)
    tiers = run_leaderboard(run, stored_prices())
    assert headline(tiers) in shown
    if len(tiers.places) > 1:
        assert comparison_leaderboard(ft.compare(run)) == tiers
    for one in tiers.places:
        assert rank_words(one) in shown and signs(Scale("").plain(one.aggregate.mean)) in shown
        if one.aggregate.ci95 is not None:
            assert interval_words(one.aggregate.ci95) in shown
    if 2 < len(tiers.places) <= 8:
        for others in tiers.distances.values():
            for distance in others.values():
                assert signs(Scale("").signed(distance.difference)) in shown and interval_words(distance.ci95) in shown
    for dots in re.findall(r'<circle class="pt[^"]*" cx="([\d.]+)%"', page):
        assert 0 <= float(dots) <= 100


@pytest.mark.slow
async def test_fifty_arms_are_a_page_that_can_be_read(run_suite, client):
    run = await run_suite(targets=spread(50, 20), cases=cases(20))
    page = client.get(f"/runs/{run.id}/result").text
    board = numbers_of(client.site.cache, run, wait=0).overview.leaderboard  # 1,225 pairs, compared once
    assert headline(board) in words(page) and len(page) < 300_000
    assert page.count('class="arm"') == 50 and "against every arm below it" in page
    first = board.places[0].label
    better = sum(distance.verdict == "better" for distance in board.distances[first].values())
    assert f"{better} of 49" in words(page)
    assert len(client.get(f"/runs/{run.id}").content) < 300_000


@pytest.mark.slow
async def test_a_run_that_stopped_early_says_so(write_suite, store, client):
    options = RunOptions(stop_when="decided")
    suite = pipeline.load(write_suite(targets=[arm("good", 200, 200), arm("bad", 10, 200)], cases=cases(200)), options)
    run = await pipeline.arun(suite, store=store)
    shown = words(client.get(f"/runs/{run.id}/result").text)
    assert headline(run_leaderboard(run)) in shown and "Stopped as soon as it was sure" in shown


async def test_dots_are_where_their_numbers_are(run_suite, client):
    run = await run_suite(targets=[arm("good", 36), arm("bad", 20)], cases=cases())
    page = client.get(f"/runs/{run.id}/result").text
    means = {one.label: one.aggregate for one in run_leaderboard(run).places}
    ends = [100 * end for one in means.values() for end in (*one.ci95, one.mean)]
    axis = linear_axis(ends, within=(0.0, 100.0), least=20)
    for name, one in means.items():
        row = page[page.index(f">{name}</a></th>") :]
        dot = float(re.search(r'<circle class="pt[^"]*" cx="([\d.]+)%"', row)[1])
        assert dot == pytest.approx(axis.at(100 * one.mean), abs=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("pair", [("good", "bad"), ("bad", "good"), ("good", "near")])
async def test_a_pair_keeps_the_interval_that_it_has_among_all(run_suite, client, pair):
    run = await run_suite(targets=[arm("good", 36), arm("bad", 20), arm("near", 35)], cases=cases())
    page = words(client.get(f"/compare?runs={run.id}&a={pair[0]}&b={pair[1]}&wait=1").text)
    (found,) = [one for one in ft.compare(run).pairs if {one.a, one.b} == set(pair)]
    if (found.a, found.b) != pair:
        found = found.turned()
    assert pair_sentence(found) in page and "all 3 pairs together" in page
    assert f"ahead on {found.ahead}" in page and f"behind on {found.behind}" in page


async def test_controls_of_the_comparison_are_there_before_its_numbers(run_suite, client, monkeypatch):
    run = await run_suite(targets=[arm("good", 36), arm("bad", 20)], cases=cases())
    monkeypatch.setattr("fairtrial.web.cache.NumberCache.get", lambda *args, **options: None)
    page = client.get(f"/compare?runs={run.id}").text
    assert "data-pending" in page
    for control in ('name="a"', 'name="b"', 'name="metric"', 'name="margin"', "<option>good</option>"):
        assert control in page


@pytest.mark.slow
async def test_names_of_arms_and_cases_are_text(run_suite, client):
    wild = "<img src=x onerror=alert(1)>"
    targets = [arm(f"a{wild}", 3, 4), arm(f"b{wild}", 1, 4)]
    kinds = [{**case, "category": f"k{wild}" if n < 2 else "other"} for n, case in enumerate(cases(4))]
    run = await run_suite(targets=targets, cases=kinds)
    for address in (
        f"/runs/{run.id}",
        f"/runs/{run.id}/result",
        f"/compare?runs={run.id}&wait=1",
        f"/plan?run={run.id}&wait=1",
    ):
        page = client.get(address).text
        assert "<img" not in page, address
    assert "&lt;img" in page


@pytest.mark.slow
async def test_home_says_what_moved_beyond_chance(run_suite, client):
    await run_suite(targets=[arm("m", 36), arm("other", 20)], cases=cases())
    await run_suite(targets=[arm("m", 10), arm("other", 20)], cases=cases())
    page = words(client.get("/home/suites").text)
    assert re.search(r"m lost 65 points \(95 % CI \d+ to \d+\) on test since the run before\. Nothing else moved", page)
    assert words(client.get("/").text).count("m lost 65 points") == 2  # in the headline, and worth a look


async def test_a_call_that_failed_is_a_trial_and_no_answer(run_suite, tmp_path, client):
    target = {"target": "mock:m", "options": {"answer": "x", "faults": {"refused": 0.3}, "seed": 1}}
    run = await run_suite(targets=[target], cases=cases(20))
    (only,) = run.arms
    assert 0 < only.failed < 20
    page = words(client.get(f"/runs/{run.id}/result").text)
    assert f"{20 - only.failed} of 20 trials scored" in page and "of 20 answers" not in page
    ft.report(run, tmp_path / "report.html")
    assert f"{20 - only.failed} of 20 trials scored" in words((tmp_path / "report.html").read_text())
