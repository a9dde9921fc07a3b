"""What is said about judged metrics: their deviation within cases, and judges that were hot."""

import math

import pytest

from fairtrial.analyse.lines import notes
from fairtrial.analyse.summary import _metric
from fairtrial.analyse.wording.runs import metric_lines
from fairtrial.reports.json import document
from fairtrial.scorers.golden_judge import _TASK, METRICS
from fairtrial.store.totals import MetricScores


def metric(*cases):
    scores = MetricScores((1.0, 5.0))
    for number, values in enumerate(cases):
        for value in values:
            scores.add(number, value, 1.0)
    return _metric(scores, None, lambda plain, means, bounds: plain)


def test_the_deviation_within_cases_is_pooled():
    found = metric((1.0, 3.0), (2.0, 2.0, 5.0), (4.0,))
    assert found.repeat_sd == pytest.approx(math.sqrt(8 / 3))  # squares of 2 and 6, with 1 and 2 degrees of freedom
    assert found.mean == pytest.approx(3.0) and found.std_dev == pytest.approx(1.0)
    assert metric((1.0,), (2.0,)).repeat_sd is None


async def test_it_is_shown_and_a_hot_judge_is_named(run_suite):
    judge = {
        "target": "mock:judge",
        "temperature": 0.7,
        "options": {"verdict": {"marks": {"Say 1": 5}, "otherwise": 2}},
    }
    cases = [{"input": f"Say {n}", "expected": f"Say {n}"} for n in range(3)]
    run = await run_suite(judge=judge, scorer="golden_judge", cases=cases, repeats=2)
    summary = run.summary()
    assert any("sd 0.00 within a case" in line for line in metric_lines(summary.arms[0]))
    assert document(summary)["arms"][0]["metrics"]["completeness"]["repeat_sd"] == 0.0
    assert any("Judge mock:judge had a temperature of 0.7" in note for note in notes(summary))
    cool = await run_suite(judge={**judge, "temperature": 0}, scorer="golden_judge", cases=cases)
    assert not any("temperature" in note for note in notes(cool.summary()))


def test_every_mark_has_a_question_and_five_descriptions():
    for name in METRICS:
        part = _TASK.split(f"{name} — ")[1].split("\n\n")[0]
        assert part.count("?") == 1 and all(f"\n{mark}: " in part for mark in range(1, 6))
    assert "do not exist and were made up" in _TASK and "unverified_claims" in _TASK
