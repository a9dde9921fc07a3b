"""What lm-eval, promptfoo, DeepEval, pydantic-evals, k-eval, Every Eval Ever and OpenAI evals report, from our store."""

import gzip
import json
import math
import sqlite3
from contextlib import closing

import pytest

from benchmarks.foreign.check import CHECKS, differing
from fairtrial.core.errors import FairtrialError
from fairtrial.store import Store
from fairtrial.tracks.interchange.import_results import import_all
from tests.tracks.interchange.results.conftest import DATA
from tests.tracks.interchange.results.recompute import mean, sd, stderr, values_of


def reported(tool):
    return json.loads((DATA / tool / "expected.json").read_text())


def close(value):
    return pytest.approx(value, abs=1e-12)


@pytest.fixture
def store(tmp_path):
    return Store(str(tmp_path / "s.db"))


@pytest.mark.parametrize("folder", ["a", "b", "mc"])
def test_lm_eval(folder, store):
    (facts,) = [v for name, v in reported("lm-eval")["files"].items() if name.startswith(f"{folder}/results")]
    runs = {one.run.record.suite_name: one.run for one in import_all(DATA / "lm-eval" / folder, store=store)}
    groups = facts["group_subtasks"]
    for name, results in facts["results"].items():
        group = next((group for group, tasks in groups.items() if name in tasks), name)
        run = runs[group]
        assert [arm.name for arm in run.plan_arms] == [facts["model_name"]]
        filters = {key.split(",")[1] for key in results if "," in key}
        for key, value in results.items():
            if "," not in key or "_stderr," in key:
                continue
            metric, kind = key.split(",")
            values = values_of(run, key if len(filters) > 1 else metric)
            parts = {
                task: [v[0] for case, v in values.items() if case.startswith(f"{task}/")]
                for task in groups.get(name, [])
            }
            own = [v[0] for case, v in values.items() if group == name or case.startswith(f"{name}/")]
            assert len(own) == results["sample_len"]
            assert mean(own) == close(value)
            error = results[f"{metric}_stderr,{kind}"]
            if parts:  # the group's standard error is pooled over its tasks
                total, count = sum(map(len, parts.values())), len(parts)
                inner = sum((len(v) - 1) * len(v) * stderr(v) ** 2 for v in parts.values())
                assert math.sqrt(inner / (total - count) / total) == close(error)
            else:
                assert stderr(own) == close(error)
    assert {name: facts["n-samples"][name]["effective"] for name in facts["n-samples"] if name in runs} == {
        name: run.plan.case_count for name, run in runs.items() if name in facts["n-samples"]
    }


def test_a_promptfoo_database_with_a_damaged_text_is_one_sentence(store, tmp_path):
    path = tmp_path / "promptfoo.db"
    path.write_bytes(gzip.decompress((DATA / "promptfoo/promptfoo.db.gz").read_bytes()))
    with closing(sqlite3.connect(path)) as database:
        database.execute("UPDATE evals SET results = CAST(x'7b22e5' AS TEXT), config = CAST(x'7b22e5' AS TEXT)")
        database.commit()
    with pytest.raises(
        FairtrialError, match=r"promptfoo.db cannot be read: a text in it is damaged \(it is not UTF-8\)"
    ):
        import_all(path, store=store)


@pytest.mark.parametrize(
    ("file", "name"), [("repeat2.json.gz", "repeat2"), ("small.json.gz", "small"), ("promptfoo.db.gz", "repeat2")]
)
def test_promptfoo(file, name, store):
    facts = reported("promptfoo")["files"][name]
    (done,) = import_all(DATA / "promptfoo" / file, store=store)
    run = done.run
    trials = list(run.trials())
    assert len(trials) == facts["rows"]
    assert run.plan.case_count * facts["repeat"] * len(run.plan_arms) == facts["rows"]
    passed = [trial.score for trial in trials if trial.score is not None]
    counts = (passed.count(1), passed.count(0), sum(trial.status == "failed" for trial in trials))
    assert counts == tuple(facts["stats"][key] for key in ("successes", "failures", "errors"))
    assert sum(trial.prompt_tokens or 0 for trial in trials) == facts["stats"]["tokenUsage"]["prompt"]
    assert sum(trial.completion_tokens or 0 for trial in trials) == facts["stats"]["tokenUsage"]["completion"]
    for prompt in facts["prompts"]:
        metrics, own = prompt["metrics"], [trial for trial in trials if trial.arm == prompt["provider"]]
        values = [v for case in values_of(run, "score", prompt["provider"]).values() for v in case]
        assert sum(values) == pytest.approx(metrics["score"], abs=1e-9)
        assert sum(trial.score == 1 for trial in own) == metrics["testPassCount"]
        assert sum(trial.score == 0 for trial in own) == metrics["testFailCount"]
        assert sum(trial.status == "failed" for trial in own) == metrics["testErrorCount"]
        parts = [(trial.details or {}).get("assertions", {}) for trial in own]
        assert sum(part.get("passed", 0) for part in parts) == metrics["assertPassCount"]
        assert sum(part.get("failed", 0) for part in parts) == metrics["assertFailCount"]
        assert sum(trial.prompt_tokens or 0 for trial in own) == prompt["tokens"]["prompt"]
        assert sum(trial.completion_tokens or 0 for trial in own) == prompt["tokens"]["completion"]
        for metric, count in metrics["namedScoresCount"].items():
            named = [v for case in values_of(run, metric, prompt["provider"]).values() for v in case]
            weights = [(trial.details or {}).get("weights", {}).get(metric, 0) for trial in own]
            assert len(named) == count and sum(weights) == metrics["namedScoreWeights"][metric]
            weighted = sum((trial.metrics.get(metric, 0)) * w for trial, w in zip(own, weights, strict=True))
            assert weighted == pytest.approx(metrics["namedScores"][metric], abs=1e-9)
        # `mixed` is derived by promptfoo from the sums of two others.
        sums = metrics["namedScores"]
        assert sums["mixed"] == pytest.approx((sums["exact"] + sums["contains"]) / 2)


@pytest.mark.parametrize("file", ["test_run_a.json.gz", "test_run_b.json.gz"])
def test_deepeval(file, store):
    facts = reported("deepeval")["files"][file]
    (done,) = import_all(DATA / "deepeval" / file, store=store)
    run = done.run
    passed = [v for case in values_of(run, "pass").values() for v in case]
    assert (passed.count(1), passed.count(0)) == (facts["testPassed"], facts["testFailed"])
    assert len(passed) == facts["evaluate_result"]["test_results"]
    for one in facts["metricsScores"]:
        values = [v for case in values_of(run, one["metric"]).values() for v in case]
        assert (len(values), sum(values)) == (one["n_scores"], close(one["sum"]))
        whole = facts["evaluate_result"]["metrics"][one["metric"]]
        assert mean(values) == close(whole["mean"]) and len(values) == whole["scored"]
        assert len(passed) - len(values) == one["errors"] == whole["errors"]
        assert sum(v >= 0.5 for v in values) == one["passes"] == whole["passed"]


@pytest.mark.parametrize("file", ["report_a.json.gz", "report_b.json.gz"])
def test_pydantic_evals(file, store):
    facts = reported("pydantic-evals")["files"][file]
    averages = facts["averages"]
    (done,) = import_all(DATA / "pydantic-evals" / file, store=store)
    run = done.run
    trials = list(run.trials())
    assert sum(trial.status == "failed" for trial in trials) == facts["failures"]
    assert len(trials) - facts["failures"] == facts["cases"]

    def over_cases(values):
        return mean([mean(case) for case in values.values()])

    for name, value in averages["scores"].items():
        assert over_cases(values_of(run, name)) == close(value)
    assert over_cases(values_of(run, "assertions")) == close(averages["assertions"])
    for name, value in averages["metrics"].items():
        assert over_cases(values_of(run, name)) == close(value)
    times, totals, labels = {}, {}, {}
    for trial in trials:
        if trial.status != "failed":
            times.setdefault(trial.case_id, []).append(trial.latency_ms / 1000)
            totals.setdefault(trial.case_id, []).append(trial.details["total_duration"])
            labels.setdefault(trial.case_id, []).append(trial.details["labels"]["kind"])
    assert over_cases(times) == close(averages["task_duration"])
    assert over_cases(totals) == close(averages["total_duration"])
    for label, share in averages["labels"]["kind"].items():
        assert mean([given.count(label) / len(given) for given in labels.values()]) == close(share)
    for group in facts["case_groups"]:
        own = [trial for trial in trials if trial.case_id == group["name"]]
        assert sum(trial.status == "failed" for trial in own) == group["failures"]
        assert len(own) - group["failures"] == group["runs"]


def test_k_eval(store):
    facts = reported("k-eval")
    (done,) = import_all(DATA / "k-eval", store=store)
    rows = 0
    for condition, numbers in facts["conditions"].items():
        for key, value in numbers.items():
            metric, _, what = key.rpartition("_")
            cases = values_of(done.run, metric, condition.split("/")[1])
            assert all(1 <= mark <= 5 for marks in cases.values() for mark in marks)  # not stretched to 0 to 1
            found = [mean(marks) if what == "mean" else sd(marks) for marks in cases.values()]
            assert mean(found) == close(value)
            ours = {arm.arm: arm.metrics[metric] for arm in done.run.summary().arms}[condition.split("/")[1]]
            assert (ours.mean if what == "mean" else ours.mean_repeat_sd) == close(value)
        rows += len(cases)
    assert rows == facts["rows"]
    assert done.run.plan.dataset_sha256 == "d360d584cb82ba73b1d037c679a785188f0c6cdc87f6e744dd86ce9abcc6ddc7"


def test_unverified_claims_of_k_eval(store, capsys):
    """They are shown and found like those of own runs, once for a case and a condition, as k-eval has them."""
    import gzip
    import json

    from fairtrial.analyse.cases import case_results
    from fairtrial.cli.main import _run
    from fairtrial.store.browsing import CaseQuery, ordered_cases, show_counts

    (file,) = (DATA / "k-eval").glob("*.detailed.jsonl.gz")
    rows = [json.loads(line) for line in gzip.decompress(file.read_bytes()).decode().splitlines()]
    theirs = {
        (row["sample_idx"], row["evaluation_name"].partition("/")[2]): claims
        for row in rows
        if (claims := row["evaluation"]["details"]["unverified_claims"])
    }
    (done,) = import_all(DATA / "k-eval", store=store)
    ours = {(one.case_id, one.arm): list(one.claims) for one in case_results(done.run) if one.claims}
    assert ours == theirs and len(theirs) == 12
    assert _run(["show", done.run.id, "--claims", "--store", str(store.path)]) == 0
    printed = [line for line in capsys.readouterr().out.splitlines() if line.endswith(": claim")]
    assert sorted(tuple(line.split()[1:3]) for line in printed) == sorted((case, f"{arm}:") for case, arm in theirs)
    claimed = next(trial for trial in done.run.trials() if (trial.details or {}).get("unverified_claims"))
    assert _run(["show", done.run.id, "--trial", claimed.trial_id, "--store", str(store.path)]) == 0
    assert "unverified" in capsys.readouterr().out
    assert show_counts(store, done.run.record)["claims"] == len({case for case, _ in theirs})
    shown = ordered_cases(store, done.run.record, CaseQuery(show="claims"))
    assert {store.cases(done.run.plan.id, place, 1)[0].id for place in shown} == {case for case, _ in theirs}
    assert any("unverified claims" in note for note in done.origin["notes"])


def test_every_eval_ever(store):
    facts = reported("every-eval-ever")["files"]
    for file, one in facts.items():
        (done,) = import_all(DATA / "every-eval-ever" / file, store=store)
        rows = 0
        for metric, (value, error) in one["results"].items():
            values = [v[0] for v in values_of(done.run, metric).values()]
            rows += len(values)
            assert mean(values) == close(value) and stderr(values) == close(error)
        assert rows == one["rows"]


def test_openai_evals(store):
    facts = reported("openai-evals")
    (done,) = import_all(DATA / "openai-evals", store=store)
    values = [v[0] for v in values_of(done.run, "correct").values()]
    assert mean(values) == close(facts["accuracy"]) and len(values) == facts["scored"]
    assert done.origin["failed"] == facts["errors"] and done.origin["samples"] == facts["samples"]


@pytest.mark.parametrize(("tool", "numbers"), [("helm", 116), ("deepeval", 61)])
def test_every_number_in_a_report_of_the_tool(tool, numbers, store):
    assert differing(CHECKS[tool](DATA / tool, store)) == (numbers, [])


def test_a_helm_choice_becomes_its_text_and_the_time_is_known(store):
    (done,) = import_all(DATA / "helm/mcqa/per_instance_stats.json.gz", store=store)
    trials = list(done.run.trials())
    assert {trial.answer for trial in trials} == {"Even", "Odd"}
    right = {case.id: case.expected for case in done.run.store.cases(done.run.plan.id, 0, 100)}
    assert all((trial.answer == right[trial.case_id]) == (trial.score == 1) for trial in trials if trial.score)
    assert {trial.finish_reason for trial in trials} == {"stop"}
    assert done.origin["missing"] == ["the version of HELM"]


def test_what_deepeval_retrieved_and_called_is_kept(store):
    (done,) = import_all(DATA / "deepeval/test_run_tools.json.gz", store=store)
    trials = {trial.case_id: trial for trial in done.run.trials()}
    assert trials["3"].details["retrieval_context"] == ["Sums are sums."]
    (call,) = trials["3"].trace["tool_calls"]
    assert (call["tool"], call["arguments"]) == ("add", {"a": 43, "b": 2})
    assert trials["3"].cost_usd == pytest.approx(0.003) and trials["3"].latency_ms == pytest.approx(3250)
