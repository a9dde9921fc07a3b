"""Drift over tagged runs, from the store to the command line."""

import json

import pytest
from click.testing import CliRunner

from fairtrial.cli.main import cli
from tests.analyse.test_compare import arm, cases

RIGHT = [50, range(1, 51), range(2, 52), 50, range(3, 53), 50, range(1, 51), 50, range(2, 52)]


@pytest.fixture
def call(store):
    def called(*args):
        found = CliRunner().invoke(cli, ["drift", *args, "--store", store.address], standalone_mode=False)
        return found.return_value, " ".join(found.output.split()), str(found.exception)

    return called


@pytest.mark.slow
async def test_an_arm_that_gets_worse_is_seen(run_suite, store, call):
    for number, right in enumerate(RIGHT):
        run = await run_suite(targets=[arm("m", right, 60)], cases=cases(60))
        store.set_tag(f"v{number}", run.id)
        if number == 7:
            refusal = call()[2]
            assert "from 9 runs on" in refusal and "there are 8" in refusal and "fairtrial tag RUN NAME" in refusal
    code, shown, _ = call()
    assert code == 0 and "m is stable: 1 run after the first 8 (v0 to v7)" in shown and "5 % of such charts" in shown
    for number, right in enumerate([20, 21, 20], start=len(RIGHT)):
        run = await run_suite(targets=[arm("m", right, 60)], cases=cases(60))
        store.set_tag(f"v{number}", run.id)
    code, shown, _ = call()
    assert code == 100 and "m has drifted: worse since v" in shown and "alarm" in shown
    code, text, _ = call(*(f"v{number}" for number in range(10)), "--json")
    (found,) = json.loads(text)["arms"]
    assert found["reference"] == [f"v{number}" for number in range(8)] and found["first"] == "v0"
    assert found["points"][1]["run"] == "v9" and found["points"][1]["difference"] == pytest.approx(-50)
    assert json.loads(text)["false_alarms"] == 0.05 and json.loads(text)["within_runs"] == 100


@pytest.mark.slow
async def test_runs_of_other_cases_are_compared_on_what_all_have(run_suite, store, call):
    """200 cases first and 20 of them later: 24 % of such charts had an alarm, as the noise was that of 200."""
    chosen = [cases(60)] * 8 + [cases(60)[20:40]] * 2
    runs = [(await run_suite(targets=[arm("m", 30, 60)], cases=own)).id for own in chosen]
    code, text, _ = call(*runs, "--json")
    (found,) = json.loads(text)["arms"]
    assert code == 0 and [point["cases"] for point in found["points"]] == [20, 20]
    assert found["points"][0]["difference"] == 0  # on these cases, nothing is different
    other = await run_suite(targets=[arm("m", 30, 60)], cases=[{"input": "else", "expected": "42"}])
    assert "on cases that all of them have" in call(*runs[:8], other.id)[2]
