"""What a verdict cost, and what it takes to know more: the number is right, and every surface says it."""

import json
import math

import numpy as np
import pytest
from click.testing import CliRunner
from starlette.testclient import TestClient

import fairtrial as ft
from fairtrial.analyse.comparison import Price, Way
from fairtrial.analyse.leaderboard import run_leaderboard
from fairtrial.analyse.price import stored_prices
from fairtrial.cli.main import cli
from fairtrial.present.words.prices import price_line
from fairtrial.reports.json import comparison_document
from fairtrial.stats import LabelledMean
from fairtrial.web.app import make_app
from fairtrial.web.site import Site
from tests.analyse.test_compare import arm, cases

JUDGE = {"target": "mock:judge", "temperature": 0.7}
PRICES = {"mock:x": {"input": 1000, "output": 2000}, "mock:judge": {"input": 100, "output": 200}}

JUDGE_BY_LUCK = """
import collections, json, random, re

asked = collections.Counter()

def verdict(prompt):
    asked[prompt] += 1
    luck = random.Random(f"{asked[prompt]} {prompt}")
    found = re.search("mark ([0-9]+)", prompt)
    mark = int(found[1]) if found else 0
    return json.dumps({"reasoning": "so it is", "score": min(10, max(0, round(mark + luck.gauss(0, 6))))})
"""


def marked(name, count=60, repeats=1, seed=0, noise=0, own=2):
    """An arm whose answers have marks around one of their case, and those of the same case for every arm."""
    base = np.random.default_rng([seed, 1]).integers(0, 11, count)
    rng = np.random.default_rng([seed, *name.encode()])
    answers = {
        f"c{n:02}": [
            f"mark {max(0, min(10, base[n] + own + rng.integers(-noise, noise + 1))):02}" for _ in range(repeats)
        ]
        for n, own in enumerate(rng.integers(-own, own + 1, count))
    }
    return {"id": name, "target": "mock:x", "options": {"answers": answers}}


def judge(noise=0.0):
    marks = {f"mark {n:02}": n for n in range(11)}
    return {"judge": {**JUDGE, "options": {"verdict": {"marks": marks, "noise": noise}}}, "scorer": "llm_judge"}


def half_width(pair):
    return (pair.ci95[1] - pair.ci95[0]) / 2


def ways(pair):
    return {way.what: way for way in pair.price.ways}


async def test_it_is_what_both_arms_and_their_judge_took(run_suite):
    some = [marked(name, 12, 2) for name in ("a", "b", "c")]
    run = await run_suite(targets=some, cases=cases(12), repeats=2, prices=PRICES, **judge())
    price = ft.compare(run, "a", "b").price
    spent = sum(one.cost.usd + one.judge_cost.usd for one in run.arms if one.arm in "ab")
    assert price.calls == 2 * 2 * 12 * 2 and price.usd == pytest.approx(spent) and spent > 0


async def test_only_the_pair_to_decide_next_has_a_price(run_suite):
    run = await run_suite(targets=[arm("low", 5), arm("high", 38), arm("nearly", range(4, 40))], cases=cases())
    priced = [pair for pair in ft.compare(run).pairs if pair.price is not None]
    assert [{pair.a, pair.b} for pair in priced] == [{"high", "nearly"}]
    board = run_leaderboard(run, stored_prices())
    assert set(board.priced[:2]) == {"high", "nearly"} and board.priced[2] == priced[0].price


@pytest.mark.slow
async def test_a_point_less_is_what_more_cases_buy(run_suite):
    """On the average of several runs: each estimates how much cases differ from its own."""
    reached = []
    for seed in range(4):
        some = [marked(name, 400, seed=seed) for name in ("a", "b")]
        few = ft.compare(await run_suite(targets=some, cases=cases(400)[:60], **judge()), "a", "b")
        assert few.price.target == pytest.approx(half_width(few) - 0.01) and ways(few).keys() == {"cases"}
        more = 60 + ways(few)["cases"].more
        many = ft.compare(await run_suite(targets=some, cases=cases(400)[:more], **judge()), "a", "b")
        reached.append(half_width(many) / few.price.target)
        assert ways(few)["cases"].calls == 2 * 2 * (more - 60)
    assert np.mean(reached) == pytest.approx(1, abs=0.1)


@pytest.mark.slow
async def test_a_point_less_is_what_more_answers_buy(run_suite):
    reached = []
    for seed in range(2):
        some = [marked(name, 100, 30, seed, noise=8) for name in ("a", "b")]
        few = ft.compare(await run_suite(targets=some, cases=cases(100), repeats=4, **judge()), "a", "b")
        more = ways(few)["repeats"].more
        assert ways(few)["repeats"].calls == 2 * 2 * 100 * more
        many = ft.compare(await run_suite(targets=some, cases=cases(100), repeats=4 + more, **judge()), "a", "b")
        reached.append(half_width(many) / few.price.target)
    assert np.mean(reached) == pytest.approx(1, abs=0.05)


@pytest.mark.slow
async def test_a_point_less_is_what_more_verdicts_buy(run_suite, tmp_path):
    (tmp_path / "judge.py").write_text(JUDGE_BY_LUCK, "utf-8")
    by_luck = {"judge": {"target": "python:judge.py:verdict", "temperature": 0.7}, "scorer": "llm_judge"}
    reached = []
    for seed in range(3):
        some = [marked(name, 100, seed=seed) for name in ("a", "b")]
        few = ft.compare(await run_suite(targets=some, cases=cases(100), panel={"judgements": 3}, **by_luck), "a", "b")
        more = ways(few)["judgements"].more
        assert ways(few)["judgements"].calls == 2 * 100 * more
        many = await run_suite(targets=some, cases=cases(100), panel={"judgements": 3 + more}, **by_luck)
        reached.append(half_width(ft.compare(many, "a", "b")) / few.price.target)
    assert np.mean(reached) == pytest.approx(1, abs=0.1)


@pytest.mark.slow
async def test_more_answers_do_not_help_where_the_number_of_cases_is_the_limit(run_suite):
    """Where hardly anything varies, the interval allows for a case that is unlike all others: only cases rule that out."""
    some = [marked(name, 60, 20, 0, noise=3, own=0) for name in ("a", "b")]
    few = ft.compare(await run_suite(targets=some, cases=cases(60), repeats=2, **judge()), "a", "b")
    assert ways(few).keys() == {"cases"} and "repeats" not in few.price.unknown
    many = ft.compare(await run_suite(targets=some, cases=cases(60), repeats=20, **judge()), "a", "b")
    assert half_width(many) > few.price.target


def test_a_point_less_is_what_more_labels_buy():
    """Of 2,000 judged cases, some are labelled: with as many more, the error is what it was to become."""
    reached = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        truth = rng.normal(size=2000)
        judged = truth + rng.normal(scale=0.7, size=2000)
        some = LabelledMean(truth[:80], judged[:80], judged[80:], span=1.0)
        more = 80 + some.labels_for(0.6)
        many = LabelledMean(truth[:more], judged[:more], judged[more:], span=1.0)
        reached.append(many.std_err / some.std_err / math.sqrt(0.6))
    assert np.mean(reached) == pytest.approx(1, abs=0.02)


def test_labels_that_cannot_do_are_not_proposed():
    rng = np.random.default_rng(0)
    truth, noise = rng.normal(size=100), rng.normal(size=100)
    some = LabelledMean(truth[:80], truth[:80] + noise[:80], truth[80:] + noise[80:], span=1.0)
    assert some.labels_for(0.99) is not None and some.labels_for(0.1) is None


async def test_what_left_no_trace_is_not_guessed(run_suite):
    once = await run_suite(targets=[arm("a", 30), arm("b", 20)], cases=cases())
    assert ft.compare(once, "a", "b").price.unknown == ["repeats"]
    judged = await run_suite(targets=[marked("a"), marked("b")], cases=cases(60), **judge())
    assert ft.compare(judged, "a", "b").price.unknown == ["repeats", "judgements", "labels"]


async def test_a_price_that_is_unknown_is_counted_in_calls(run_suite):
    run = await run_suite(targets=[marked("a"), marked("b")], cases=cases(60), **judge())
    price = ft.compare(run, "a", "b").price
    assert price.usd is None or price.usd == 0
    line = price_line(price)
    assert line.startswith("the verdict took 240 calls; to know ") and "$" not in line


async def test_arms_that_never_differ_need_more_cases_all_the_same(run_suite):
    run = await run_suite(targets=[arm("a", 40), arm("b", 40)], cases=cases())
    pair = ft.compare(run, "a", "b")
    assert half_width(pair) > pair.price.target and ways(pair)["cases"].more >= 1


async def test_a_metric_of_its_own_has_no_way(run_suite):
    run = await run_suite(targets=[arm("a", 30), arm("b", 20)], cases=cases())
    price = ft.compare(run, "a", "b", metric="latency_ms").price
    assert price.calls == 80 and price.ways == [] and price_line(price) == "the verdict took 80 calls"


async def test_every_surface_says_it(run_suite, store):
    run = await run_suite(targets=[arm("a", 30), arm("b", 26)], cases=cases())
    pair = ft.compare(run, "a", "b")
    line = price_line(pair.price)
    said = f"{line[0].upper()}{line[1:]}."
    for command in ("show", "compare", "power"):
        shown = CliRunner().invoke(cli, [command, run.id, "--store", store.address], standalone_mode=False).output
        assert said in " ".join(shown.split()), command
    document = json.loads(json.dumps(comparison_document(ft.compare(run))))
    (found,) = document["pairs"]
    assert found["price"]["calls"] == 80 and found["price"]["ways"][0]["what"] == "cases"
    assert said in " ".join(run._repr_html_().split()) and said in " ".join(ft.compare(run)._repr_html_().split())


def test_words():
    cases_way = Way(what="cases", more=43, calls=172, usd=0.18)
    price = Price(calls=1400, usd=0.42, half_width=0.062, target=0.052, ways=[cases_way])
    assert price_line(price) == (
        "the verdict cost $0.42 (1,400 calls); to know the difference to within 5.2 points instead of 6.2 takes "
        "43 more cases (about $0.18)"
    )
    labels = Way(what="labels", more=1, calls=0, usd=None)
    three = Price(
        calls=1,
        usd=None,
        half_width=0.01,
        target=0.005,
        ways=[
            Way(what="repeats", more=1, calls=80, usd=None),
            Way(what="judgements", more=2, calls=160, usd=None),
            labels,
        ],
    )
    assert price_line(three) == (
        "the verdict took 1 call; to know the difference to within 0.5 points instead of 1.0 takes "
        "1 more answer to each case (80 calls), 2 more verdicts on each answer (160 calls), or labels for 1 more case"
    )


async def test_the_pages_say_it(run_suite, store, tmp_path):
    run = await run_suite(targets=[arm("a", 30), arm("b", 26)], cases=cases())
    line = price_line(ft.compare(run, "a", "b").price)
    client = TestClient(make_app(Site(store, tmp_path)), headers={"origin": "http://testserver"})
    for address in (
        f"/runs/{run.id}/result?wait=1",
        f"/compare?runs={run.id}&a=a&b=b&wait=1",
        f"/plan?run={run.id}&wait=1",
    ):
        assert line[1:] in " ".join(client.get(address).text.split()), address
