"""Logs of inspect-ai: every number that inspect reports, computed again from our store."""

import json

import pytest

from fairtrial.store import Store
from fairtrial.tracks.interchange.import_results import import_all
from tests.tracks.interchange.results.recompute import REDUCERS, clustered_stderr, mean, sd, stderr, values_of


@pytest.fixture(scope="module")
def expected(results_data):
    return json.loads((results_data / "inspect/expected.json").read_text())["files"]


def files():
    from tests.tracks.interchange.results.conftest import DATA

    return sorted(json.loads((DATA / "inspect/expected.json").read_text())["files"])


@pytest.mark.parametrize("name", files())
def test_every_reported_number_comes_out_of_the_store(name, expected, results_data, tmp_path):
    facts = expected[name]
    (done,) = import_all(results_data / "inspect" / name, store=Store(str(tmp_path / "s.db")))
    run, origin = done.run, done.origin
    trials = list(run.trials())
    assert run.record.suite_name == facts["task"]
    assert [arm.name for arm in run.plan_arms] == [facts["model"]]
    assert origin["lineage"] == facts["task_id"]
    left_out = facts["sample_members"] - len(trials)
    assert left_out == sum(int(note.split()[0]) for note in origin["notes"] if "in flight" in note)
    assert origin["failed"] == facts["samples_with_error"] - left_out
    assert bool(origin["unfinished"]) == (facts["status"] != "success")
    assert sum(len((trial.trace or {}).get("tool_calls", [])) for trial in trials) == facts["tool_calls"]
    if facts["total_samples"] is not None:
        assert len(trials) == facts["total_samples"]
        assert sum(trial.status != "failed" for trial in trials) == facts["completed_samples"]
        (usage,) = facts["model_usage"].values()
        # What repeated attempts took is in inspect's total alone.
        assert sum(trial.attempts - 1 for trial in trials) == facts["samples_with_error_retries"]
        if not facts["samples_with_error_retries"]:
            assert sum(trial.prompt_tokens or 0 for trial in trials) == usage["input_tokens"]
            assert sum(trial.completion_tokens or 0 for trial in trials) == usage["output_tokens"]
    clusters = {case.id: case.cluster for case in run.store.cases(run.plan.id, 0, 1000)}
    categories = {case.id: case.category for case in run.store.cases(run.plan.id, 0, 1000)}
    for score in facts["scores"]:
        reduce = REDUCERS[score["reducer"] or "mean"]
        reduced = {case: reduce(values) for case, values in values_of(run, score["name"]).items()}
        assert len(reduced) == score["scored"]
        for metric, value in score["metrics"].items():
            numbers = list(reduced.values())
            if metric == "stderr" and score["name"] == "sometimes":
                found = clustered_stderr(numbers, [clusters[case] for case in reduced])
            elif metric in ("accuracy", "mean", "all"):
                found = mean(numbers)
            elif metric in ("stderr", "std"):
                found = {"stderr": stderr, "std": sd}[metric](numbers)
            else:
                found = mean([v for case, v in reduced.items() if categories[case] == metric])
            assert found == pytest.approx(value, abs=1e-12), (score["name"], metric)
