"""Pairs of answers, judged in both orders: what goes with the order is a tie, and no malfunction is a verdict."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairtrial.cli.main import _run
from fairtrial.core.errors import FairtrialError
from fairtrial.stats import both_orders
from fairtrial.store.ledger import charged
from fairtrial.workflows.pairwise import apair
from tests.conftest import numbered
from tests.judging.test_judges import BAD, GOOD, judge

WORTH = st.sampled_from([0.0, 0.5, 1.0])


@pytest.mark.slow
@given(st.lists(st.tuples(WORTH, WORTH), min_size=2, max_size=40))
def test_swapping_the_arms_swaps_wins_and_losses(verdicts):
    there, back = zip(*verdicts, strict=True)
    one = both_orders(there, back)
    # Seen from the other arm, what was forward is backward, and every worth is its complement.
    other = both_orders([1 - worth for worth in back], [1 - worth for worth in there])
    assert (one.wins, one.ties, one.losses) == (other.losses, other.ties, other.wins)
    assert one.win_rate.mean + other.win_rate.mean == pytest.approx(1)
    assert one.flip_rate.mean == other.flip_rate.mean
    assert one.first_share.mean == pytest.approx(other.first_share.mean)
    assert one.wins + one.ties + one.losses == one.pairs


def test_disagreement_is_a_tie():
    orders = both_orders([1, 1, 1, 0, 0.5], [1, 0, 0.5, 0, 0.5])
    assert (orders.wins, orders.ties, orders.losses) == (1, 3, 1)
    assert orders.flip_rate.mean == pytest.approx(2 / 5)
    assert orders.first_share.mean == pytest.approx((0.5 + 1 + 0.75 + 0.5 + 0.5) / 5)


def test_a_case_counts_once_however_often_it_was_answered():
    always = both_orders(np.ones(10), np.ones(10), clusters=np.repeat(np.arange(5), 2))
    once = both_orders(np.ones(5), np.ones(5))
    assert always.win_rate.ci95 == once.win_rate.ci95 == pytest.approx((0.4782, 1.0), abs=1e-4)  # exact, n = 5


def test_a_judge_that_always_takes_the_first_prefers_nobody():
    orders = both_orders(np.ones(30), np.zeros(30))
    assert (orders.ties, orders.flip_rate.mean, orders.first_share.mean) == (30, 1.0, 1.0)


@pytest.mark.simulation
def test_the_interval_of_the_first_place_covers():
    """Judges with a known preference, several pairs a case with luck in common: 93–97 % of intervals hold it."""
    rng = np.random.default_rng(5)
    hits = 0
    for _ in range(400):
        lean = np.repeat(rng.normal(0.3, 0.5, 60), 3)  # a case's three pairs share its lean
        first_forward = rng.normal(lean, 1) > 0
        first_backward = rng.normal(lean, 1) > 0
        orders = both_orders(first_forward, 1.0 - first_backward, clusters=np.repeat(np.arange(60), 3))
        low, high = orders.first_share.ci95
        hits += low <= 0.6058 <= high  # P(N(0.3, 0.25 + 1) > 0)
    assert 0.93 <= hits / 400 <= 0.97


async def test_two_arms_before_a_judge(run_suite, store):
    run = await run_suite(targets=[GOOD, BAD], scorer="exact", judge=judge(), cases=numbered(4), repeats=2)
    summary = await apair(run.id, store=store)
    (pair,) = summary.pairs
    assert (pair.one, pair.other) == ("good", "bad")
    assert (pair.orders.wins, pair.orders.ties, pair.orders.losses, pair.failed) == (8, 0, 0, 0)
    (told,) = summary.judges
    assert (told.calls, told.flip_rate.mean, told.first_share.mean) == (16, 0.0, 0.5)
    again = await apair(run.id, store=store)
    assert again.judges[0].calls == 16  # nothing was asked again


async def test_a_judge_that_minds_the_order(run_suite, store):
    run = await run_suite(targets=[GOOD, BAD], scorer="exact", judge=judge(first=20), cases=numbered(5))
    summary = await apair(run.id, store=store)
    assert summary.pairs[0].orders.ties == 5
    assert (summary.judges[0].flip_rate.mean, summary.judges[0].first_share.mean) == (1.0, 1.0)


@pytest.mark.parametrize("mode", ["refuse", "malformed", "out_of_range"])
async def test_no_malfunction_is_a_verdict(run_suite, store, mode):
    run = await run_suite(targets=[GOOD, BAD], scorer="exact", judge=judge(mode=mode), cases=numbered(2))
    summary = await apair(run.id, store=store)
    assert summary.pairs[0].orders.pairs == 0 and summary.pairs[0].failed == 2
    assert summary.failures[0][1] == 2 and summary.failures[0][0]


async def test_what_failed_is_asked_again(run_suite, store, monkeypatch):
    from fairtrial.targets.mock import Mock

    run = await run_suite(targets=[GOOD, BAD], scorer="exact", judge=judge(), cases=numbered(3))
    real = Mock.ask

    async def down(self, request):
        from fairtrial.core.answer import Failure

        return Failure(kind="refused", message="out of order")

    monkeypatch.setattr(Mock, "ask", down)
    assert (await apair(run.id, store=store)).pairs[0].failed == 3
    monkeypatch.setattr(Mock, "ask", real)
    assert (await apair(run.id, store=store)).pairs[0].orders.wins == 3


async def test_other_instructions_are_another_comparison(run_suite, store):
    run = await run_suite(targets=[GOOD, BAD], scorer="exact", judge=judge(), cases=numbered(2))
    await apair(run.id, store=store)
    summary = await apair(run.id, store=store, instructions="Prefer short answers.")
    assert summary.pairs[0].orders.pairs == 2 and summary.judges[0].calls == 4


async def test_only_answers_are_compared(run_suite, store):
    lazy = {"id": "lazy", "target": "mock:x", "options": {"answer": "hm", "faults": {"refused": 1}}}
    third = {"id": "third", "target": "mock:x", "options": {"answer": "right and proper"}}
    run = await run_suite(targets=[GOOD, lazy, third], scorer="exact", judge=judge(), cases=numbered(3))
    summary = await apair(run.id, store=store)
    (pair,) = summary.pairs
    assert (pair.one, pair.other, pair.orders.ties) == ("good", "third", 3)


async def test_a_budget_is_kept(run_suite, store, model_server):
    server = await model_server(answer='{"reasoning": "so", "better": "tie"}')
    prices = {"openai:j": {"input": 1000.0, "output": 1000.0}}
    run = await run_suite(
        targets=[GOOD, BAD], scorer="exact", judge={"target": "openai:j"}, cases=numbered(3), prices=prices
    )
    summary = await apair(run.id, overrides={"budget_usd": 0.01}, store=store)
    assert summary.exhausted and not summary.pairs and not server.calls
    summary = await apair(run.id, overrides={"budget_usd": 1000.0}, store=store)
    assert summary.pairs[0].orders.ties == 3 and summary.judges[0].cost_usd == pytest.approx(charged(store, run.id))


def test_a_few_cases_that_agree_do_not_make_a_share_certain():
    orders = both_orders(np.ones(4), np.zeros(4))
    assert orders.win_rate.mean == 0.5
    assert orders.win_rate.ci95 == pytest.approx((0.2364, 0.7636), abs=1e-4)  # others may say anything


async def test_only_the_chosen_arms_are_shown(run_suite, store):
    third = {"id": "third", "target": "mock:x", "options": {"answer": "right and proper"}}
    run = await run_suite(targets=[GOOD, BAD, third], scorer="exact", judge=judge(), cases=numbered(2))
    assert len((await apair(run.id, store=store)).pairs) == 3
    (pair,) = (await apair(run.id, arms=["good", "third"], store=store)).pairs
    assert (pair.one, pair.other) == ("good", "third")


async def test_arms_are_checked(run_suite, store):
    run = await run_suite(targets=[GOOD, BAD], scorer="exact", judge=judge())
    with pytest.raises(FairtrialError, match="no arm `nobody`; its arms: good, bad"):
        await apair(run.id, arms=["nobody", "good"], store=store)
    alone = await run_suite(targets=[GOOD], scorer="exact", judge=judge())
    with pytest.raises(FairtrialError, match="two arms"):
        await apair(alone.id, store=store)
    unjudged = await run_suite(targets=[GOOD, BAD], scorer="exact")
    with pytest.raises(FairtrialError, match="--judge"):
        await apair(unjudged.id, store=store)


async def test_the_scorer_compares_with_the_expected_answer(run_suite):
    cases = [{"id": f"c{n}", "input": f"case {n}", "expected": "utterly wrong"} for n in range(3)]
    run = await run_suite(targets=[GOOD, BAD], scorer="pairwise", judge=judge(), cases=cases)
    good, bad = run.arms
    assert (good.aggregate.mean, bad.aggregate.mean) == (1.0, 0.5)
    assert good.metrics["flipped"].mean == 0 and good.metrics["first_position"].mean == 0.5
    trial = next(run.trials())
    assert [j["number"] for j in run.judgements(trial.trial_id)] == [0, 1]
    biased = await run_suite(targets=[GOOD], scorer="pairwise", judge=judge(first=50), cases=cases)
    assert biased.arms[0].aggregate.mean == 0.5 and biased.arms[0].metrics["flipped"].mean == 1


def test_the_command(write_suite, capsys):
    path = write_suite(targets=[GOOD, BAD], scorer="exact", judge=judge(), cases=numbered(3))
    assert _run(["run", str(path), "-q"]) == 0
    assert _run(["pairwise", "latest"]) == 0
    shown = capsys.readouterr().out
    assert "100.0" in shown and "The order decided 0.0 %" in shown
    assert all(len(line) <= 80 for line in shown.splitlines())
    assert _run(["pairwise", "latest", "--json", "--arms", "good", "bad"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["pairs"][0]["wins"] == 3 and found["judges"][0]["first_share"]["mean"] == 50
    assert _run(["pairwise", "latest", "--arms", "good", "nobody"]) == 1
    assert "its arms: good, bad" in capsys.readouterr().err
