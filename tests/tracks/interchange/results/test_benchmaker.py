"""Runs of Benchmaker: what its judges could not mark is a failure here, and what they marked 0 stays 0."""

import json

import pytest

import fairtrial as ft
from tests.e2e.conftest import cli  # noqa: F401 - a fixture

FAILED = {
    "the judge's call failed": {"score": 0, "confidence": 0, "notes": "Judge evaluation failed: 429"},
    "its reply was empty": {"score": 0, "confidence": 0, "notes": "Empty judge response"},
    "its reply could not be read": {"score": 0, "confidence": 0.0, "notes": "Could not parse judge response"},
    "the code judge's call failed": {"score": 0, "notes": "Judge error: 503 overloaded"},
    "the quick judge's call failed": {"score": 0, "notes": "Quick score error: timed out"},
    "nobody says why": {"score": 0, "confidence": 0},
}
MARKED = {
    "the judge gave nothing": ({"score": 0, "confidence": 0.9, "notes": "Wrong.", "rawScore": 0, "maxScore": 10}, 0.0),
    "no match": ({"score": 0, "confidence": 1, "notes": "No match"}, 0.0),
    "a scorer without confidence": ({"score": 0, "notes": "Expected output not found in response"}, 0.0),
    "an empty answer": ({"score": 0, "confidence": 1, "notes": "Empty response", "rawScore": 0, "maxScore": 10}, 0.0),
    "an unsure judge that gave points": ({"score": 0.4, "confidence": 0, "notes": "Perhaps."}, 0.4),
    "a mark of 0 with its reason": ({"score": 0, "confidence": None, "notes": "The judge error: none."}, 0.0),
}


@pytest.fixture(autouse=True)
def _own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def exported(tmp_path, *scores):
    """Write a run of one model with these scores, as Benchmaker exports it."""
    cases = [
        {"id": f"c{n}", "prompt": f"Question {n}", "scoringMethod": "llm-judge", "weight": 1}
        for n in range(len(scores))
    ]
    results = [
        {"testCaseId": f"c{n}", "modelId": "m/a", "response": f"answer {n}", "status": "completed", "score": score}
        for n, score in enumerate(scores)
    ]
    run = {"id": "r", "testSuiteName": "s", "models": ["m/a"], "status": "completed", "results": results}
    path = tmp_path / "run.json"
    path.write_text(json.dumps({**run, "testSuiteSnapshot": {"name": "s", "testCases": cases}}))
    return path


@pytest.mark.parametrize("why", FAILED)
def test_a_judge_that_failed_is_a_failure(why, tmp_path):
    run = ft.import_results(exported(tmp_path, FAILED[why], {"score": 0.8, "confidence": 0.9, "notes": "Good."}))
    (arm,) = run.arms
    assert (arm.scored, arm.unscored, arm.failed) == (1, 1, 0) and arm.aggregate.mean == pytest.approx(0.8)
    trial = next(run.trials())
    assert trial.answer == "answer 0" and trial.score is None
    assert trial.unscored_message == FAILED[why].get("notes", "Benchmaker's judge gave no mark, and no reason")


@pytest.mark.parametrize("why", MARKED)
def test_a_mark_of_nothing_is_a_mark(why, tmp_path):
    score, value = MARKED[why]
    run = ft.import_results(exported(tmp_path, score))
    (arm,) = run.arms
    assert (arm.scored, arm.unscored) == (1, 0) and next(run.trials()).score == pytest.approx(value)


def test_the_import_says_what_benchmaker_counts_as_zero(tmp_path, cli):  # noqa: F811
    code, out, err = cli("import", "results", exported(tmp_path, *FAILED.values(), {"score": 1, "confidence": 1}))
    assert code == 0
    said = " ".join((out + err).split())
    assert "Benchmaker counts 6 answers that its judge could not mark as 0; here they have no score" in said
    code, out, _ = cli("show", "latest", "--json")
    (arm,) = json.loads(out)["arms"]
    assert arm["mean"] == 100 and arm["scored"] == 1 and arm["trials"] == 7
