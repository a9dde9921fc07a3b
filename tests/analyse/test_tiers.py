"""Who leads: tiers and the headline say what `compare` and `rank` say."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fairtrial as ft
from fairtrial.analyse.comparison import Comparison
from fairtrial.analyse.tiers import _tiers, comparison_tiers, run_tiers
from fairtrial.analyse.wording.tiers import (
    distance_words,
    headline,
    headline_parts,
    interval_words,
    rank_words,
    settle_words,
    tier_words,
)
from fairtrial.stats import aggregate
from tests.analyse.test_compare import arm, cases

BASE = {
    "metric": "",
    "scale": (0.0, 1.0),
    "level": 0.95,
    "p_value": None,
    "p_adjusted": None,
    "comparisons": 1,
    "primary": True,
    "std_err": 0.05,
    "std_dev": 0.3,
    "method": "t",
    "rough": False,
    "mean_a": None,
    "mean_b": None,
    "units": 40,
    "ahead": 0,
    "tied": 0,
    "only_one": 0,
    "effect_size": None,
    "superiority": None,
    "detectable": 0.1,
}


def grouped(means, differences, *, margin=None, failed=0, metric="", sign=1, count=40):
    """Tiers of arms with these means and these (verdict, difference, interval) of pairs."""
    pairs = [
        Comparison(a=a, b=b, verdict=verdict, difference=difference, ci95=ci95, count=count, **BASE)
        for (a, b), (verdict, difference, ci95) in differences.items()
    ]
    found = {name: aggregate([mean, mean]) for name, mean in means.items()}
    return _tiers(
        found,
        pairs,
        metric=metric,
        sign=sign,
        margin=margin,
        unscored=[],
        failed=failed,
    )


def better(difference, low, high):
    return "better", difference, (low, high)


UNSURE = ("cannot tell", 0.005, (-0.038, 0.048))


async def test_a_run_from_tiers_to_words(run_suite):
    run = await run_suite(targets=[arm("low", 8), arm("top", 36), arm("near", 35)], cases=cases())
    tiers = run_tiers(run)
    assert [[one.label for one in tier] for tier in tiers.tiers] == [["top", "near"], ["low"]]
    low = tiers.distances["top"]["low"]
    assert headline(tiers) == (
        f"top and near lead and cannot be told apart; low is 70 points behind "
        f"(95 % CI {100 * low.ci95[0]:.0f} to {100 * low.ci95[1]:.0f})."
    )
    assert [rank_words(one) for one in tiers.places] == ["1–2", "1–2", "3"]
    assert [distance_words(one.to_first) for one in tiers.places] == ["", "2.5 apart", "70.0 behind"]
    assert [tier_words(tiers, n) for n in (0, 1)] == ["Leading, cannot be told apart", "70 points behind"]
    assert [part.arm for part in headline_parts(tiers) if part.arm] == ["top", "near", "low"]
    assert settle_words(tiers).startswith("40 cases show differences of ")
    assert "between top and near takes about" in settle_words(tiers)


@pytest.mark.slow
async def test_tiers_say_what_compare_and_rank_say(run_suite):
    chosen = [arm("a", 30), arm("b", range(5, 36)), arm("c", 18), arm("d", {1, 5, 7}), arm("e", range(0, 40, 2))]
    run = await run_suite(targets=chosen, cases=cases())
    tiers, compared = run_tiers(run), ft.compare(run)
    assert comparison_tiers(compared) == tiers
    for pair in compared.pairs:
        found = tiers.distances.get(pair.a, {}).get(pair.b)
        if found is not None:
            assert (found.verdict, found.difference, found.ci95) == (pair.verdict, pair.difference, pair.ci95)
        else:
            back = tiers.distances[pair.b][pair.a]
            assert back.difference == -pair.difference and back.ci95 == (-pair.ci95[1], -pair.ci95[0])
    ranks = {place.label: (place.rank, place.worst_rank) for place in ft.rank(run).places}
    assert {one.label: (one.rank, one.worst_rank) for one in tiers.places} == ranks


async def test_one_arm_and_none(run_suite):
    run = await run_suite(targets=[arm("only", 30)], cases=cases())
    bounds = interval_words(run_tiers(run).places[0].aggregate.ci95)
    assert headline(run_tiers(run)) == f"only scores 75.0 (95 % CI {bounds})." and settle_words(run_tiers(run)) == ""
    run = await run_suite(targets=[arm("only", 1)], cases=cases(1))
    assert headline(run_tiers(run)) == "only scores 100.0 on one case."
    failing = {"id": "broken", "target": "mock:x", "options": {"answer": "x", "faults": {"refused": 1.0}}}
    run = await run_suite(targets=[failing], cases=cases(2), retry={"attempts": 1})
    assert headline(run_tiers(run)) == "No answer has a score yet." and run_tiers(run).unscored == ["broken"]


@pytest.mark.parametrize(
    ("means", "differences", "keys", "words"),
    [
        ({"a": 0.9, "b": 0.8}, {("a", "b"): better(0.104, 0.053, 0.154)}, {}, "a is 10 points better than b (95 % CI 5 to 15)."),
        ({"a": 0.8, "b": 0.9}, {("a", "b"): ("worse", -0.104, (-0.154, -0.053))}, {}, "b is 10 points better than a (95 % CI 5 to 15)."),
        ({"a": 0.9, "b": 0.8}, {("a", "b"): better(0.004, 0.0004, 0.008)}, {}, "a is 0.4 points better than b (95 % CI 0.04 to 0.80)."),
        ({"a": 0.9, "b": 0.8}, {("a", "b"): better(0.04, 0.003, 0.08)}, {}, "a is 4 points better than b (95 % CI 0.3 to 8.0)."),
        ({"a": 0.8, "b": 0.8}, {("a", "b"): UNSURE}, {}, "a and b cannot be told apart (0.5 points between them, 95 % CI −3.8 to 4.8)."),
        ({"a": 0.8, "b": 0.8}, {("a", "b"): UNSURE}, {"count": 1}, "a and b cannot be told apart: there is only one case."),
        ({"a": 0.8, "b": 0.8}, {("a", "b"): ("equivalent", 0.001, (-0.01, 0.01))}, {"margin": 0.03}, "a and b are equivalent within 3 points (0.1 points between them, 95 % CI −1.0 to 1.0)."),
        ({"a": 0.8, "b": 0.8}, {("a", "b"): ("depends on failures", 0.1, (0.02, 0.2))}, {"failed": 4}, "Whether a is better than b depends on the 4 failed trials (95 % CI 2 to 20)."),
        ({"a": 0.9, "b": 0.5, "c": 0.4}, {("a", "b"): better(0.4, 0.3, 0.5), ("a", "c"): better(0.5, 0.4, 0.6), ("b", "c"): UNSURE}, {}, "a leads; b, the next, is 40 points behind (95 % CI 30 to 50)."),
        ({"a": 0.8, "b": 0.8, "c": 0.8}, dict.fromkeys([("a", "b"), ("a", "c"), ("b", "c")], UNSURE), {}, "None of the 3 arms can be told apart yet."),
        ({"a": 0.9, "b": 0.8, "c": 0.7}, {("a", "b"): UNSURE, ("a", "c"): UNSURE, ("b", "c"): better(0.1, 0.05, 0.2)}, {}, "a, b and c lead and cannot be told apart."),
        ({"a": 120.0, "b": 80.0}, {("a", "b"): ("worse", 40.0, (20.0, 60.0))}, {"metric": "ms", "sign": -1}, "b is 40.000 in ms better than a by ms (95 % CI 20.000 to 60.000)."),
    ],
)  # fmt: skip
def test_headlines(means, differences, keys, words):
    assert headline(grouped(means, differences, **keys)) == words


def test_many_leaders_are_counted():
    names = [f"m{n}" for n in range(7)]
    pairs = {
        (a, b): better(0.5, 0.4, 0.6) if b == "m6" else UNSURE for i, a in enumerate(names) for b in names[i + 1 :]
    }
    tiers = grouped({name: 0.9 - 0.01 * n for n, name in enumerate(names)}, pairs)
    assert headline(tiers).startswith("m0, m1 and 4 more lead and cannot be told apart; m6 is 50 points behind")


@pytest.mark.slow
@given(st.lists(st.integers(0, 10), min_size=2, max_size=7), st.integers(0, 5))
def test_every_arm_is_in_one_tier_and_no_leader_is_worse_than_the_first(values, unsure):
    """Arms whose means differ by `unsure` or less cannot be told apart: ties that are not transitive."""
    means = {f"m{n}": value / 10 for n, value in enumerate(values)}
    pairs = {}
    for i, a in enumerate(means):
        for b in list(means)[i + 1 :]:
            d = means[a] - means[b]
            far = round(abs(d) * 10) > unsure
            pairs[a, b] = (("better" if d > 0 else "worse") if far else "cannot tell", d, (d - 0.01, d + 0.01))
    tiers = grouped(means, pairs)
    assert sorted(one.label for one in tiers.places) == sorted(means)
    for tier in tiers.tiers:
        first = means[tier[0].label]
        assert all(round((first - means[one.label]) * 10) <= unsure for one in tier)
    firsts = [means[tier[0].label] for tier in tiers.tiers]
    assert firsts == sorted(firsts, reverse=True)
    assert all(1 <= one.rank <= one.worst_rank <= len(means) for one in tiers.places)
    assert headline(tiers).endswith(".")
