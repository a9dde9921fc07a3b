"""What is said about judged metrics: their deviation within cases, and judges that were hot."""

import html
import math
from types import SimpleNamespace

import pytest

from fairtrial.analyse.stopping import Adjust
from fairtrial.analyse.summary import _metric
from fairtrial.cli.main import _run
from fairtrial.present.figures.arms import metric_figures
from fairtrial.present.words.arm_notes import notes
from fairtrial.present.words.runs import metric_lines
from fairtrial.reports.json import document
from fairtrial.scorers.golden_judge import _TASK, METRICS
from fairtrial.store.totals import MetricScores


def metric(*cases):
    scores = MetricScores((1.0, 5.0))
    for number, values in enumerate(cases):
        for value in values:
            scores.add(number, value, 1.0)
    return _metric(scores, None, Adjust())


def test_the_deviation_within_cases_is_pooled():
    found = metric((1.0, 3.0), (2.0, 2.0, 5.0), (4.0,))
    assert found.repeat_sd == pytest.approx(math.sqrt(8 / 3))  # squares of 2 and 6, with 1 and 2 degrees of freedom
    assert found.mean == pytest.approx(3.0) and found.std_dev == pytest.approx(1.0)
    assert metric((1.0,), (2.0,)).repeat_sd is None


def test_beside_it_stands_the_mean_of_the_cases_own_as_k_eval_has_it():
    found = metric((1.0, 3.0), (2.0, 2.0, 5.0), (4.0,))
    assert found.mean_repeat_sd == pytest.approx((math.sqrt(2) + math.sqrt(3) + 0) / 3)  # one answer has no deviation
    assert metric((1.0,), (2.0,)).mean_repeat_sd is None


async def test_both_deviations_are_shown_for_every_condition(run_suite, capsys):
    """In the terminal, in Markdown and in the figures of page and report; the numbers are those of the JSON."""
    given = [(1, 4, 4), (2, 2, 5), (3, 3, 3), (5, 4, 1)]
    answers = {f"Say {n}": [f"is {mark}" for mark in marks] for n, marks in enumerate(given)}
    judge = {"target": "mock:judge", "options": {"verdict": {"marks": {f"is {n}": n for n in range(1, 6)}}}}
    run = await run_suite(
        targets=[{"id": "t", "target": "mock:t", "options": {"answers": answers}}],
        judge=judge,
        scorer="golden_judge",
        cases=[{"input": f"Say {n}", "expected": "x"} for n in range(4)],
        repeats=3,
    )
    summary = run.summary()
    found = document(summary)["arms"][0]["metrics"]["completeness"]
    shown = {name: f"{found[name]:.2f}" for name in ("std_dev", "repeat_sd", "mean_repeat_sd")}
    assert len(set(shown.values())) == 3, "the test can tell them apart"
    (line,) = [line for line in metric_lines(summary.arms[0]) if line.startswith("completeness")]
    within = f"sd {shown['repeat_sd']} within a case, sd {shown['mean_repeat_sd']} as k-eval averages it"
    assert f"sd {shown['std_dev']}, {within}" in line
    figures = metric_figures(summary, ["t"], SimpleNamespace(arm=lambda name: f"#{name}"))
    brief = f"sd {shown['repeat_sd']}, k-eval's {shown['mean_repeat_sd']}"
    assert len(figures) == 3 and all(brief in html.unescape(figure.html) for figure in figures)
    assert {figure.words for figure in figures} == {"scale 1–5, sd within a case, and as k-eval averages it"}
    assert _run(["show", run.id, "--store", str(run.store.path)]) == 0
    printed = capsys.readouterr().out
    assert f"{shown['std_dev']} · {shown['repeat_sd']} · {shown['mean_repeat_sd']}" in printed
    assert "sd: between cases · within a case, pooled · within a case, as k-eval" in printed


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
