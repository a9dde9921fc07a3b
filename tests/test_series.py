"""Several runs of one plan, and two models by their run means."""

import pytest

import fairtrial as ft
from fairtrial.core.errors import FairtrialError
from tests.conftest import numbered

FAULTS = {"id": "shaky", "target": "mock:x", "options": {"answer": "42"}}


@pytest.fixture
async def runs(run_suite):
    """Three runs of two arms, one of which gets worse."""
    found = []
    for share in (1, 2, 3):
        answers = {f"c{n}": "no" for n in range(share)}
        found.append(
            await run_suite(
                targets=[
                    {"id": "steady", "target": "mock:x", "options": {"answer": "42"}},
                    {"id": "shaky", "target": "mock:x", "options": {"answer": "42", "answers": answers}},
                ],
                cases=[{"id": f"c{n}", "input": f"case {n}", "expected": "42"} for n in range(10)],
            )
        )
    return found


async def test_over_runs(runs):
    found = ft.multi_run(runs)
    assert found["shaky"].scores == pytest.approx((0.9, 0.8, 0.7)) and found["shaky"].run_ids[0] == runs[0].id
    assert found["shaky"].std_dev == pytest.approx(0.1) and found["steady"].std_dev == 0
    assert found["shaky"].ci95 == pytest.approx((0.8 - 0.2484, 1.0), abs=1e-4)  # no mean is above 1
    assert ft.multi_run(runs[:1])["shaky"].ci95 is None


async def test_two_models(runs):
    found = ft.compare_models(runs, "steady", "shaky")
    assert found.score_diff == pytest.approx(0.2) and found.effect == "large"
    assert found.t_statistic == pytest.approx(0.2 / (0.1 / 2**0.5 * (2 / 3) ** 0.5))
    assert ft.compare_models(runs[:1], "steady", "shaky") is None
    with pytest.raises(FairtrialError, match="there are: steady, shaky"):
        ft.compare_models(runs, "steady", "nobody")


async def test_other_cases_are_refused(runs, run_suite):
    other = await run_suite(targets=[FAULTS], cases=numbered(2))
    with pytest.raises(FairtrialError, match="different cases"):
        ft.multi_run([*runs, other])
