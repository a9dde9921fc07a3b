"""Drift over tagged runs, from the store to the command line."""

import json

import pytest
from click.testing import CliRunner

from fairtrial.analyse.drift import _successive_noise
from fairtrial.cli.main import cli
from tests.analyse.test_compare import arm, cases


@pytest.mark.slow
async def test_an_arm_that_gets_worse_is_seen(run_suite, store):
    def call(*args):
        found = CliRunner().invoke(cli, ["drift", *args, "--store", store.address], standalone_mode=False)
        return found.return_value, " ".join(found.output.split()), str(found.exception)

    for number, right in enumerate([50, range(1, 51), range(2, 52), 50]):
        run = await run_suite(targets=[arm("m", right, 60)], cases=cases(60))
        store.set_tag(f"v{number}", run.id)
        if number == 1:
            assert "at least 3 runs, and there are 2" in call()[2]
    code, shown, _ = call()
    assert code == 0 and "m is stable over 4 runs since v0" in shown and "5 % of such charts" in shown
    for number, right in enumerate([20, 21, 20], start=4):
        run = await run_suite(targets=[arm("m", right, 60)], cases=cases(60))
        store.set_tag(f"v{number}", run.id)
    code, shown, _ = call()
    assert code == 100 and "m has drifted: worse since v" in shown and "alarm" in shown
    code, text, _ = call("v0", "v1", "v4", "v5", "--json")
    document = json.loads(text)
    assert document["runs"] == ["v0", "v1", "v4", "v5"] and document["arms"][0]["points"][1]["difference"] == -50
    assert document["false_alarms"] == 0.05 and document["within_runs"] == 100


def test_without_two_runs_nothing_is_known_to_vary():
    assert _successive_noise(None, []) == 0.0
