"""A new arm on an old suite: what other arms scored on more cases narrows its verdict, where cases were drawn at random."""

import numpy as np
import pytest

import fairtrial as ft
from benchmarks.informed import WORLDS, found
from fairtrial.config import RunOptions
from fairtrial.present.words.comparisons import brief_lines
from fairtrial.stats import ControlledMean
from tests.analyse.test_compare import cases, set_latencies

CASES = 200


def suite_of(arms, seed=0):
    """Right or wrong by how hard a case is and how good an arm: the same cases are hard for all."""
    rng = np.random.default_rng(seed)
    hard = rng.normal(0, 2, CASES)
    targets = []
    for name, ability in arms.items():
        right = rng.random(CASES) < 1 / (1 + np.exp(hard - ability))
        answers = {f"c{n:02}": "42" if right[n] else "x" for n in range(CASES)}
        targets.append({"id": name, "target": "mock:x", "options": {"answers": answers}})
    return targets


RANDOM = RunOptions(limit=80)
OLD = {f"old{n}": ability for n, ability in enumerate((-1, -0.5, 0, 0.5, 1, 1.5))}


@pytest.fixture
def runs(run_suite):
    async def of(old=OLD, options=RANDOM, seed=0, **keys):
        targets = suite_of({**OLD, "new": 0.8}, seed)
        known = [target for target in targets if target["id"] in old]
        before = await run_suite(targets=known, cases=cases(CASES), **keys)
        after = await run_suite(options, targets=targets[-1:], cases=cases(CASES), **keys)
        return after, before

    return of


def compared(after, before, rival="old3", **more):
    return ft.compare([after, before], "new", rival, **more)


async def test_it_is_the_difference_controlled_by_what_the_others_scored(runs):
    after, before = await runs()
    pair = compared(after, before)
    scores = {one.arm: {} for one in before.arms}
    for trial in before.trials():
        scores[trial.arm][trial.case_id] = trial.score
    new = {trial.case_id: trial.score for trial in after.trials()}
    expected = {case: np.mean([arm[case] for arm in scores.values()]) - scores["old3"][case] for case in scores["old3"]}
    order = sorted(new)
    plain = [new[case] - scores["old3"][case] for case in order]
    wanted = ControlledMean(plain, [expected[case] for case in order], [*expected.values()])
    assert (pair.count, pair.others) == (80, 6)
    assert pair.difference == pytest.approx(wanted.mean) and pair.std_err == pytest.approx(wanted.std_err)
    assert pair.variance_saved == pytest.approx(wanted.saved) and pair.variance_saved > 0.2
    assert pair.method == "6 other arms as control variate"
    (line,) = [line for line in brief_lines(pair) if "other arms" in line]
    assert line == f"what 6 other arms scored on more cases reduces the variance by {100 * wanted.saved:.0f} %"
    other_way = ft.compare([before, after], "old3", "new")
    assert other_way.difference == pytest.approx(-pair.difference) and other_way.others == 6


@pytest.mark.simulation
def test_it_finds_more_and_is_not_wrong_more_often():
    plain, controlled = "the cases alone", "with what the others scored"
    for world, (_, gap) in WORLDS.items():
        assert found(controlled, world, 100, 0.0, 300) < 0.09
        assert found(controlled, world, 100, gap, 300) > found(plain, world, 100, gap, 300) + 0.05


async def test_cases_that_somebody_chose_say_nothing_about_the_rest(runs):
    for options in (RunOptions(first=80), RunOptions(cases=tuple(f"c{n:02}" for n in range(80)))):
        assert compared(*await runs(options=options)).others == 0


async def test_few_arms_are_not_asked(runs):
    assert compared(*await runs(old=["old0", "old1", "old2", "old3"])).others == 0


async def test_what_the_new_arm_failed_on_was_not_drawn(runs):
    assert compared(*await runs(options=RunOptions(limit=195))).others == 0


async def test_two_cases_are_too_few_for_a_line_through_them(runs):
    after, before = await runs(options=RunOptions(limit=2))
    set_latencies(after)
    assert compared(after, before, metric="latency_ms").others == 0


async def test_weights_go_without(run_suite):
    targets = suite_of({**OLD, "new": 0.8})
    weighted = [{**case, "weight": 1 + n % 2} for n, case in enumerate(cases(CASES))]
    before = await run_suite(targets=targets[:-1], cases=weighted)
    after = await run_suite(RunOptions(limit=80), targets=targets[-1:], cases=weighted)
    assert compared(after, before).others == 0


async def test_another_dataset_goes_without(run_suite):
    targets = suite_of({**OLD, "new": 0.8})
    before = await run_suite(targets=targets[:-1], cases=cases(CASES))
    after = await run_suite(targets=targets[-1:], cases=cases(CASES)[:80])
    assert compared(after, before).others == 0


async def test_every_other_pair_stays_as_it_is(runs):
    _, before = await runs()
    assert {pair.others for pair in ft.compare(before).pairs} == {0}
