"""Who leads: order, ranks, brackets and the headline say what `compare` and `rank` say."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fairtrial as ft
from fairtrial.analyse.comparison import Comparison, Silent
from fairtrial.analyse.leaderboard import _leaderboard, brackets, comparison_leaderboard, run_leaderboard
from fairtrial.analyse.price import stored_prices
from fairtrial.core.formatting import interval_words
from fairtrial.present.words.leaderboards import (
    distance_words,
    headline,
    headline_parts,
    rank_words,
    settle_words,
    standing_words,
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


def ranked(means, differences, *, margin=None, failed=0, metric="", sign=1, count=40, silent=()):
    """The leaderboard of arms with these means and these (verdict, difference, interval) of pairs."""
    pairs = [
        Comparison(a=a, b=b, verdict=verdict, difference=difference, ci95=ci95, count=count, **BASE)
        for (a, b), (verdict, difference, ci95) in differences.items()
    ]
    return _leaderboard(
        {name: aggregate([mean, mean]) for name, mean in means.items()},
        pairs,
        metric=metric,
        sign=sign,
        margin=margin,
        silent=list(silent),
        failed=failed,
    )


def better(difference, low, high):
    return "better", difference, (low, high)


UNSURE = ("cannot tell", 0.005, (-0.038, 0.048))


async def test_a_run_from_numbers_to_words(run_suite):
    run = await run_suite(targets=[arm("low", 8), arm("top", 36), arm("near", 35)], cases=cases())
    board = run_leaderboard(run)
    assert [one.label for one in board.places] == ["top", "near", "low"] and board.front == {"top", "near"}
    assert board.brackets == [["top", "near"]] and board.breaks == [2]
    low = board.distances["top"]["low"]
    assert headline(board) == (
        f"top and near are tied for first; low is 70 points behind top "
        f"(95 % CI {100 * low.ci95[0]:.0f} to {100 * low.ci95[1]:.0f})."
    )
    assert [rank_words(one) for one in board.places] == ["1–2", "1–2", "3"]
    assert [distance_words(one.to_first) for one in board.places] == ["", "2.5 apart", "70.0 behind"]
    assert [part.arm for part in headline_parts(board) if part.arm] == ["top", "near", "low", "top"]
    (shows,) = board.detectable
    assert settle_words(board).startswith(
        f"In 4 of 5 runs, 40 cases would show a gap of {100 * shows.gap:.1f} points between top and near. "
    )
    assert "-point gap between top and near takes about" in settle_words(board)


@pytest.mark.slow
async def test_it_says_what_compare_and_rank_say(run_suite):
    chosen = [arm("a", 30), arm("b", range(5, 36)), arm("c", 18), arm("d", {1, 5, 7}), arm("e", range(0, 40, 2))]
    run = await run_suite(targets=chosen, cases=cases())
    board, compared = run_leaderboard(run, stored_prices()), ft.compare(run)
    assert comparison_leaderboard(compared) == board
    for pair in compared.pairs:
        found = board.distance(pair.a, pair.b)
        assert (found.verdict, found.difference, found.ci95) == (pair.verdict, pair.difference, pair.ci95)
        back = board.distance(pair.b, pair.a)
        assert back.difference == -pair.difference and back.ci95 == (-pair.ci95[1], -pair.ci95[0])
    ranking = ft.rank(run).places
    assert [(one.label, one.rank, one.worst_rank) for one in board.places] == [
        (place.label, place.rank, place.worst_rank) for place in ranking
    ]
    assert [one.aggregate for one in board.places] == [place.aggregate for place in ranking]


async def test_one_arm_and_none(run_suite):
    run = await run_suite(targets=[arm("only", 30)], cases=cases())
    board = run_leaderboard(run)
    bounds = interval_words(board.places[0].aggregate.ci95)
    assert headline(board) == f"only scores 75.0 (95 % CI {bounds})." and settle_words(board) == ""
    run = await run_suite(targets=[arm("only", 1)], cases=cases(1))
    assert headline(run_leaderboard(run)) == "only scores 100.0 on one case."


async def test_an_arm_that_never_answered_comes_first_in_the_headline(run_suite):
    down = {"id": "down", "target": "mock:x", "options": {"answer": "x", "faults": {"refused": 1.0}}}
    run = await run_suite(targets=[down], cases=cases(2), retry={"attempts": 1})
    board = run_leaderboard(run)
    assert headline(board) == "down never answered (2 refused)." and board.unscored == ["down"]
    run = await run_suite(targets=[arm("good", 2, 3), down], cases=cases(3), retry={"attempts": 1})
    assert headline(run_leaderboard(run)).startswith("down never answered (3 refused); good scores 66.7 (95 % CI ")


@pytest.mark.parametrize(
    ("means", "differences", "keys", "words"),
    [
        ({"a": 0.9, "b": 0.8}, {("a", "b"): better(0.104, 0.053, 0.154)}, {}, "a is 10 points better than b (95 % CI 5 to 15)."),
        ({"a": 0.8, "b": 0.9}, {("a", "b"): ("worse", -0.104, (-0.154, -0.053))}, {}, "b is 10 points better than a (95 % CI 5 to 15)."),
        ({"a": 0.9, "b": 0.8}, {("a", "b"): better(0.004, 0.0004, 0.008)}, {}, "a is 0.4 points better than b (95 % CI 0.04 to 0.80)."),
        ({"a": 0.9, "b": 0.8}, {("a", "b"): better(0.04, 0.003, 0.08)}, {}, "a is 4 points better than b (95 % CI 0.3 to 8.0)."),
        ({"a": 0.8, "b": 0.8}, {("a", "b"): UNSURE}, {}, "a and b are too close to call: a is ahead by 0.5 points (95 % CI −3.8 to 4.8)."),
        ({"a": 0.8, "b": 0.8}, {("a", "b"): ("cannot tell", 0.0, (-0.1, 0.1))}, {}, "a and b are too close to call: they are level (95 % CI −10.0 to 10.0)."),
        ({"a": 0.8, "b": 0.8}, {("a", "b"): UNSURE}, {"count": 1}, "a and b are too close to call: there is only one case."),
        ({"a": 0.8, "b": 0.8}, {("a", "b"): ("equivalent", 0.001, (-0.01, 0.01))}, {"margin": 0.03}, "a and b are equivalent within 3 points (95 % CI −1.0 to 1.0)."),
        ({"a": 0.8, "b": 0.8}, {("a", "b"): ("depends on failures", 0.1, (0.02, 0.2))}, {"failed": 4}, "Whether a is better than b depends on the 4 failed trials; without them, it is ahead by 10 points (95 % CI 2.0 to 20.0)."),
        ({"a": 0.9, "b": 0.5, "c": 0.4}, {("a", "b"): better(0.4, 0.3, 0.5), ("a", "c"): better(0.5, 0.4, 0.6), ("b", "c"): UNSURE}, {}, "a leads; b, the next, is 40 points behind (95 % CI 30 to 50)."),
        ({"a": 0.8, "b": 0.8, "c": 0.8}, dict.fromkeys([("a", "b"), ("a", "c"), ("b", "c")], UNSURE), {}, "Too close to call: no clear leader among the 3 arms."),
        ({"a": 0.9, "b": 0.8, "c": 0.7}, {("a", "b"): UNSURE, ("a", "c"): UNSURE, ("b", "c"): better(0.1, 0.05, 0.2)}, {}, "a and b are tied for first; c is 10 points behind b (95 % CI 5 to 20)."),
        ({"a": 0.9, "b": 0.8, "c": 0.7}, {("a", "b"): ("worse", -0.1, (-0.2, -0.05)), ("a", "c"): UNSURE, ("b", "c"): UNSURE}, {"count": 10}, "a has the best mean, but b is 10 points better on the 10 cases that both have (95 % CI 5 to 20)."),
        ({"a": 120.0, "b": 80.0}, {("a", "b"): ("worse", 40.0, (20.0, 60.0))}, {"metric": "ms", "sign": -1}, "b is better than a on ms (lower is better) by 40.000 (95 % CI 20.000 to 60.000)."),
        ({"a": 120.0, "b": 80.0, "c": 60.0}, {("a", "b"): ("worse", 40.0, (20.0, 60.0)), ("a", "c"): ("worse", 60.0, (20.0, 90.0)), ("b", "c"): ("cannot tell", 20.0, (-20.0, 60.0))}, {"metric": "ms", "sign": -1}, "c and b are tied for first on ms (lower is better); a is 60.000 behind c (95 % CI 20.000 to 90.000)."),
    ],
)  # fmt: skip
def test_headlines(means, differences, keys, words):
    assert headline(ranked(means, differences, **keys)) == words


def test_many_leaders_are_counted():
    names = [f"m{n}" for n in range(7)]
    pairs = {
        (a, b): better(0.5, 0.4, 0.6) if b == "m6" else UNSURE for i, a in enumerate(names) for b in names[i + 1 :]
    }
    board = ranked({name: 0.9 - 0.01 * n for n, name in enumerate(names)}, pairs)
    assert (
        headline(board) == "m0 scores highest. 2 cases rule out 1 of the other 6 as the best; 5 are still in the race."
    )
    assert standing_words(board) == ("?", "a tie of 6")


def test_silent_arms_are_named_or_counted():
    silent = [Silent(label=f"s{n}", ended=3, failures={"auth": 3}) for n in range(2)]
    pairs = {("a", "b"): UNSURE}
    said = headline(ranked({"a": 0.9, "b": 0.8}, pairs, silent=silent))
    assert said.startswith("s0 never answered (3 key rejected); s1 never answered (3 key rejected); a and b are too ")
    silent = [Silent(label=f"s{n}", ended=3) for n in range(5)]
    assert headline(ranked({"a": 0.9, "b": 0.8}, pairs, silent=silent)).startswith("5 arms have no score; a and b ")
    waiting = [Silent(label="s", ended=0)]
    assert headline(ranked({"a": 0.9, "b": 0.8}, pairs, silent=waiting)).startswith("a and b are ")


@st.composite
def boards(draw):
    """Leaderboards with verdicts of every kind, in any relation to the means."""
    count = draw(st.integers(1, 7))
    names = [f"m{n}" for n in range(count)]
    means = {name: draw(st.integers(0, 10)) / 10 for name in names}
    pairs = {}
    for a, b in combinations(names, 2):
        verdict = draw(st.sampled_from(["better", "worse", "cannot tell", "equivalent"]))
        sign = {"better": 1, "worse": -1}.get(verdict, draw(st.sampled_from([1, -1])))
        reach = 0.05 if verdict in ("better", "worse") else 0.3
        pairs[a, b] = (verdict, sign * 0.1, (sign * 0.1 - reach, sign * 0.1 + reach))
    return ranked(means, pairs, margin=0.5)


@pytest.mark.slow
@given(boards())
def test_order_ranks_brackets_and_words_never_contradict_each_other(board):
    means = [one.aggregate.mean for one in board.places]
    assert means == sorted(means, reverse=True)  # strictly by score
    labels = [one.label for one in board.places]
    for a, b in combinations(labels, 2):
        apart = board.distance(a, b).separates
        assert apart != any({a, b} <= set(bracket) for bracket in board.brackets)
    for one in board.places:
        above = sum(board.distance(other, one.label).verdict == "better" for other in labels if other != one.label)
        assert one.rank == 1 + above and one.worst_rank >= one.rank
    for a, b in combinations([one.label for one in board.leading], 2):
        assert not board.distance(a, b).separates  # whoever may be first ties with everybody else who may
    said = headline(board)
    assert said.endswith(".") and ("tied for first" not in said or len(board.leading) > 1)
    for place in board.breaks:
        assert all(board.distance(a, b).verdict == "better" for a in labels[:place] for b in labels[place:])


@given(st.integers(1, 9), st.sets(st.tuples(st.integers(0, 8), st.integers(0, 8)), max_size=36))
def test_brackets_join_exactly_what_is_not_separated(count, apart):
    labels = [str(n) for n in range(count)]
    separated = {frozenset(map(str, pair)) for pair in apart}
    found = brackets(labels, lambda a, b: frozenset((a, b)) in separated)
    for a, b in combinations(labels, 2):
        assert any({a, b} <= set(group) for group in found) == (frozenset((a, b)) not in separated)
    assert not any(set(one) < set(other) for one in found for other in found)
    assert [group[0] for group in found] == sorted(group[0] for group in found)
