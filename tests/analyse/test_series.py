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


@pytest.mark.slow
async def test_two_models(runs):
    found = ft.compare_models(runs, "steady", "shaky")
    assert found.score_diff == pytest.approx(0.2) and found.effect == "large"
    assert found.t_statistic == pytest.approx(0.2 / (0.1 / 2**0.5 * (2 / 3) ** 0.5))
    assert ft.compare_models(runs[:1], "steady", "shaky") is None
    with pytest.raises(FairtrialError, match="arms with scores: steady, shaky"):
        ft.compare_models(runs, "steady", "nobody")


async def test_other_cases_are_refused(runs, run_suite):
    other = await run_suite(targets=[FAULTS], cases=numbered(2))
    with pytest.raises(FairtrialError, match="different cases"):
        ft.multi_run([*runs, other])


@pytest.mark.slow
async def test_a_series_has_a_name_too(write_suite, store, tmp_path):
    """Tagged, it is found wherever a run is asked for that may be a series; elsewhere one sentence says why not."""
    from click.testing import CliRunner

    from fairtrial import pipeline
    from fairtrial.cli.main import cli

    suite = pipeline.load(write_suite(targets=[FAULTS], cases=numbered(4)))
    runs = [await pipeline.arun(suite, store=store, series=pipeline.SeriesPlan("0s-series", 2)) for _ in range(2)]

    def call(*args):
        return CliRunner().invoke(cli, [*args, "--store", f"sqlite:///{tmp_path}/test.db"], standalone_mode=False)

    assert "series 0s-series" in call("tag", "0s-series", "nightly").stderr
    assert [run.id for run in store.find_runs("nightly")] == [run.id for run in runs]
    assert "2 runs" in call("show", "nightly").stdout and "of series 0s-series" in call("list").stdout
    later = await pipeline.arun(suite, store=store)
    assert call("gate", later.id, "--against", "nightly", "--these-cases").return_value == 0
    assert "is a series: choose one of its runs" in str(call("export", "nightly", "-o", "x.json").exception)
    assert "need a single run, not a series" in str(call("show", "nightly", "--trials").exception)
