"""What comparisons, plans and summaries are made of, each with the smallest input that shows it."""

from types import SimpleNamespace

import pytest

import fairtrial as ft
from fairtrial.analyse.battles import _difference
from fairtrial.analyse.family import interval_levels
from fairtrial.analyse.rank import _caveats
from fairtrial.analyse.score_table import pooled, read_scores, sources_of
from fairtrial.analyse.stopping import Adjust
from fairtrial.analyse.summary import _latency
from fairtrial.analyse.tools import _Sums
from fairtrial.analyse.variance import UnitPrices, _unit_prices
from fairtrial.config import RunOptions
from fairtrial.core.experiment import Condition
from fairtrial.core.money import Cost
from fairtrial.core.place import Place
from fairtrial.store.totals import ArmTotals, JudgeTotals, ToolRow
from fairtrial.tracks.optimisation.analysis import composites
from tests.analyse.test_compare import arm, cases


def test_a_difference_in_style_is_a_share_of_both():
    assert _difference((3.0, 0.0), (1.0, 0.0)) == (0.5, 0.0)
    assert _difference(None, (1.0, 2.0)) == _difference((1.0, 2.0), None) == (0.0, 0.0)


def test_closeness_is_a_percentage():
    found = {"instruction_following": 0.5, "quality": 50.0, "normalised_gap": 0.3}
    guide, ours = (parts.of(found) for parts in composites((0.4, 0.6)).values())
    assert guide == pytest.approx(0.2 + 0.6 * 0.7) and ours == pytest.approx(0.2 + 0.3)
    assert composites((0.5, 0.5))["composite"].of({"quality": 50.0}) is None


class TestLevels:
    @staticmethod
    def estimate(p, within):
        return SimpleNamespace(p_value=lambda: p, p_within=lambda margin: within)

    def test_what_differs_gets_the_level_at_which_it_does(self):
        found = interval_levels([self.estimate(0.001, 0.9), self.estimate(0.9, 0.001)], 0.1)
        assert found == pytest.approx([0.025, 0.025])
        found = interval_levels([self.estimate(0.001, 0.9), self.estimate(0.01, 0.9)], 0.1)
        assert found == pytest.approx([0.025, 0.05])  # Holm: the second need not share any more

    def test_without_a_p_nothing_is_shared(self):
        assert interval_levels([self.estimate(None, None), self.estimate(0.9, 0.9)], None) == pytest.approx(
            [0.05, 0.05]
        )


class TestPrices:
    @staticmethod
    def spent(usd, unknown=0, stored=12, failed=2):
        zeros = dict.fromkeys(ArmTotals._fields, 0)
        return ArmTotals(**{**zeros, "stored": stored, "failed": failed, "cost": Cost(known=usd, unknown=unknown)})

    def test_what_an_answer_and_a_verdict_cost(self):
        judged = JudgeTotals(30, 20, Cost(known=0.4))
        assert _unit_prices(self.spent(5.0), judged) == UnitPrices(0.5, 0.02, True, True)
        assert _unit_prices(self.spent(5.0), None) == UnitPrices(0.5, 0.0, True, False)

    def test_calls_are_counted_where_prices_are_not_known(self):
        judged = JudgeTotals(30, 20, Cost(known=0.4))
        assert _unit_prices(self.spent(0.0), judged) == UnitPrices(1.0, 1.0, False, True)
        assert _unit_prices(self.spent(5.0, unknown=1), None) == UnitPrices(1.0, 1.0, False, False)
        assert _unit_prices(self.spent(5.0), JudgeTotals(30, 20, Cost(unknown=1))) == UnitPrices(1.0, 1.0, False, True)


def test_tools_are_counted():
    sums = _Sums(Condition(require_tool_use=True))
    sums.add(ToolRow(0, 0, {"s.t": (3, 1)}, 1.0, 1.0))
    sums.add(ToolRow(0, 0, {"s.t": (1, 0)}, 0.0, 1.0))
    sums.add(ToolRow(0, 1, {}, 0.0, 1.0))
    sums.add(ToolRow(0, 2, None, 1.0, 1.0))
    found = sums.summary(Adjust())
    assert (found.answers, found.used, found.calls, found.errors, found.unknown, found.marked) == (3, 2, 4, 1, 1, 2)
    assert found.tools == {"s.t": (4, 1)} and found.rate == pytest.approx(2 / 3)
    assert found.when_used.mean == 0.5 and found.when_used.count == 1  # one case, answered twice with a tool


@pytest.mark.parametrize(
    ("ratings", "scores", "by_pairs", "noted"),
    [
        ([2.0, 1.0], [0.9, 0.1], False, False),
        ([1.0, 2.0], [0.9, 0.1], False, True),
        ([2.0, 1.0], [0.1, 0.9], True, True),
        ([2.0, 1.0], [0.1, 0.9], False, False),  # places are in the order of the scores
    ],
)
def test_another_order_is_mentioned(ratings, scores, by_pairs, noted):
    places = [
        SimpleNamespace(rating=rating, aggregate=SimpleNamespace(mean=mean))
        for rating, mean in zip(ratings, scores, strict=True)
    ]
    fitted = SimpleNamespace(confounded=False, groups=(0, 0))
    notes, fewer = (
        [str(caveat) for caveat in _caveats(5, count, places, [], [], fitted, by_pairs=by_pairs)] for count in (5, 6)
    )
    assert any("different orders" in note for note in notes) == noted
    assert any("the 5 of 6 cases" in note for note in fewer)


async def test_a_trial_is_found_by_its_place(run_suite):
    run = await run_suite(targets=[arm("a", 3, 3), arm("b", 0, 3)], cases=cases(3), repeats=2)
    assert {(trial.case_id, trial.arm) for trial in [run.trial_at(Place(2, 1, 1))]} == {("c02", "b")}
    assert run.trial_at(Place(2, 1, 2)) is None and run.trial_at(Place(3, 0, 0)) is None
    (a, _) = run.summary().arms
    assert [passes.k for passes in a.passes] == [2] and a.waiting == 0


async def test_what_could_not_be_scored_is_not_waiting(run_suite):
    broken = {"target": "mock:x", "options": {"answer": "x", "faults": {"500": 1}}}
    run = await run_suite(
        targets=[arm("a", 2, 2)], cases=cases(2), scorer="llm_judge", judge=broken, retry={"attempts": 1}
    )
    (found,) = run.summary().arms
    assert (found.trials, found.unscored, found.waiting) == (2, 2, 0)


async def test_a_stopped_run_keeps_the_level_of_all_its_pairs_and_misses_no_trial(run_suite):
    """Three arms make three pairs, whichever of them is looked at; trials that were not needed are not missing."""
    targets = [arm("a", 200, 200), arm("b", range(0, 200, 2), 200), arm("c", 0, 200)]
    run = await run_suite(RunOptions(stop_when="decided"), targets=targets, cases=cases(200))
    assert run.status == "stopped"
    assert ft.compare(run, "a", "c").level == pytest.approx(1 - 0.05 / 3)
    for one in read_scores(sources_of(run)).arms:
        assert one.scored == one.planned < 200 and one.coverage == 1


async def test_arms_are_pooled_only_if_several_runs_have_them(run_suite):
    first = await run_suite(targets=[arm("a", 4, 4), arm("b", 2, 4)], cases=cases(4))
    again = await run_suite(targets=[arm("a", 4, 4), arm("b", 2, 4)], cases=cases(4))
    sources = sources_of([first, again])
    assert len(pooled(sources, ["a", "b"])) == 1 and len(pooled(sources, ["a", "b"])[0].runs) == 2
    assert pooled(sources, ["a", "other"]) is sources
    assert pooled(sources[:1], ["a", "b"]) == sources[:1]
    assert read_scores(sources).uneven_facts == 0
    weighty = await run_suite(targets=[arm("a", 4, 4)], cases=[{**case, "weight": 2} for case in cases(4)])
    assert read_scores(sources_of([first, weighty])).uneven_facts == 4


def test_latencies_are_told_by_their_middle_and_their_slow_end():
    found = _latency([float(value) for value in range(101)])
    assert (found.p50, found.p95) == (50.0, 95.0) and _latency([]).p95 is None
