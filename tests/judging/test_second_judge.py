"""A second judge of a random part of the cases: who is asked, what is kept, and what it corrects."""

import json
import re

import pytest
from click.testing import CliRunner

import fairtrial as ft
from fairtrial import pipeline
from fairtrial.analyse.evidence import Evidence
from fairtrial.analyse.score_table import read_scores, sources_of
from fairtrial.analyse.second_judge import second_opinions
from fairtrial.cli.main import cli
from fairtrial.config.advice import warnings
from fairtrial.core.errors import FairtrialError, ProblemsError
from fairtrial.judging.second import is_drawn
from fairtrial.reports.json import document
from fairtrial.workflows.estimate import estimate
from fairtrial.workflows.pairwise import apair
from fairtrial.workflows.resume import arescore, aresume
from tests.analyse.test_compare import cases
from tests.analyse.test_price import marked

MARKS = {f"mark {n:02}": n for n in range(11)}
FIVE = 'def five(prompt):\n    return \'{"reasoning": "so it is", "score": 5}\'\n'
PRICES = {name: {"input": 100, "output": 100} for name in ("mock:x", "mock:cheap")}
PRICES["mock:dear"] = {"input": 5000, "output": 5000}


def judge(name, bias=0.0, noise=0.0, **more):
    verdict = {"marks": MARKS, "bias": bias, "noise": noise, **more.pop("how", {})}
    return {"target": f"mock:{name}", "options": {"verdict": verdict}, **more}


def twice(count=120, share=0.4, bias=2.0, **more):
    """A suite with two arms and two judges, of which the first is kind."""
    return {
        "targets": [marked("a", count), marked("b", count)],
        "cases": cases(count),
        "scorer": "llm_judge",
        "judge": judge("cheap", bias, 0.5),
        "second_judge": judge("dear", share=share),
        "prices": PRICES,
        **more,
    }


def drawn(count, share):
    return {case["id"] for case in cases(count) if is_drawn(case["id"], share)}


def test_the_share_is_drawn_and_a_larger_one_contains_it():
    ids = [f"case {n}" for n in range(20_000)]
    for share in (0.05, 0.2, 0.9):
        assert sum(is_drawn(one, share) for one in ids) / len(ids) == pytest.approx(share, abs=0.01)
    assert {one for one in ids if is_drawn(one, 0.2)} < {one for one in ids if is_drawn(one, 0.3)}


async def test_it_judges_its_part_of_the_cases_for_every_arm(run_suite):
    run = await run_suite(**twice(repeats=2))
    again = {(trial.arm, trial.case_id) for trial in run.trials() if "second_judge" in trial.metrics}
    assert again == {(arm, case) for arm in "ab" for case in drawn(120, 0.4)} and again
    for trial in run.trials():
        if "second_judge" in trial.metrics:  # the score is the first judge's, which is kinder by 20 points
            assert trial.metrics["second_judge"] == 10 * int(trial.answer.split()[-1])
            assert 100 * trial.score - trial.metrics["second_judge"] < 40
    (opinion, _) = second_opinions(run.store, run.record).values()
    assert opinion.answers == 2 * len(drawn(120, 0.4)) and opinion.judge == "mock:dear" and opinion.bias > 0.1


async def test_it_corrects_means_and_differences(run_suite):
    run = await run_suite(**twice())
    for one in run.arms:
        true = sum(int(answer[0].split()[-1]) for answer in marked(one.arm, 120)["options"]["answers"].values()) / 1200
        assert one.second.corrected.mean == pytest.approx(true, abs=0.03)
        assert one.aggregate.mean > true + 0.1
        assert one.second.corrected.worth > 1.2 * one.second.corrected.labelled
        assert one.second.usd < one.second.alone_usd
    pair = ft.compare(run, "a", "b")
    assert (pair.labelled_by, pair.labels) == ("second_judge", len(drawn(120, 0.4)))
    assert pair.method == f"corrected by a second judge on {pair.labels} cases"
    assert [way.what for way in pair.price.ways] == ["second_judge"]
    (way,) = pair.price.ways
    costs = [one.second.cost.known / one.second.calls for one in run.arms]
    assert way.calls == 2 * way.more and way.usd == pytest.approx(way.more * sum(costs))


async def test_what_people_say_counts_before_a_second_judge(run_suite):
    run = await run_suite(**twice())
    scores = read_scores(sources_of(run))
    (a, b) = scores.arms
    assert a.second.keys() == b.second.keys() and not a.labels
    for arm in (a, b):
        arm.labels.update(dict.fromkeys(list(arm.second)[:19], (0.5, 0.5)))
    few = Evidence(scores, a, b, "")
    assert not few.by_people and few.labels == len(a.second)
    for arm in (a, b):
        arm.labels.update(dict.fromkeys(list(arm.second)[:20], (0.5, 0.5)))
    assert Evidence(scores, a, b, "").by_people


async def test_every_surface_says_it(run_suite, store):
    run = await run_suite(**twice())
    cases_again = len(drawn(120, 0.4))
    shown = " ".join(
        CliRunner().invoke(cli, ["show", run.id, "--store", store.address], standalone_mode=False).output.split()
    )
    assert f"mock:dear judged {cases_again} cases again: differences between arms are corrected by that" in shown
    assert f"{cases_again} answers judged again by mock:dear: the first judge marks" in shown
    assert "corrected by mock:dear: " in shown and f"instead of {cases_again}, for $" in shown
    assert "judged by mock:cheap, mock:dear (some cases)" in shown
    compared = CliRunner().invoke(cli, ["compare", run.id, "--store", store.address], standalone_mode=False).output
    assert f"A second judge (on {cases_again} cases) corrects" in " ".join(compared.split())
    assert f"{cases_again} cases again" in run._repr_html_()
    (arm, _) = json.loads(json.dumps(document(run.summary())))["arms"]
    assert arm["second_judge"]["judge"] == "mock:dear" and arm["second_judge"]["corrected"]["labelled"] == cases_again
    assert 0 < arm["second_judge"]["bias"] < 30


async def test_without_its_verdict_there_is_no_score_and_only_it_is_asked_again(tmp_path, store, monkeypatch):
    monkeypatch.chdir(tmp_path)
    asked = {"cheap": 0, "dear": 0}
    broken = True

    def mark(prompt, name):
        asked[name] += 1
        return json.dumps({"reasoning": "so it is", "score": 7})

    def cheap(prompt):
        return mark(prompt, "cheap")

    def dear(prompt):
        number = re.search(r"case (\d+)", prompt)  # it is also tried, with an easy question
        return "I cannot say." if broken and number and int(number[1]) % 3 == 0 else mark(prompt, "dear")

    suite = ft.Suite(
        name="twice",
        targets=[lambda prompt: "an answer"],
        cases=[{"id": case["id"], "input": case["input"]} for case in cases(60)],
        scorer="llm_judge",
        judge={"target": cheap, "id": "cheap"},
        second_judge={"target": dear, "id": "dear", "share": 0.5},
    )
    run = await pipeline.arun(suite, store=store)
    again = drawn(60, 0.5)
    hard = {case for case in again if int(case[1:]) % 3 == 0}
    unscored = {trial.case_id: trial.unscored_message for trial in run.trials() if trial.score is None}
    assert unscored.keys() == hard and all(
        message.startswith("the second judge gave no score: dear: the judge's verdict could not be used")
        for message in unscored.values()
    )
    broken, before = False, asked["cheap"]
    run = await aresume(run.id, store=store, mode="retry", functions=suite.functions)
    assert run.status == "completed" and asked["cheap"] - before <= 1  # it is tried once, as before every session
    assert {trial.case_id for trial in run.trials() if "second_judge" in trial.metrics} == again


async def test_another_first_judge_keeps_the_verdicts_of_the_second(run_suite, store, tmp_path):
    (tmp_path / "judge.py").write_text(FIVE, "utf-8")
    run = await run_suite(**twice())
    again = await arescore(run.id, judge="python:judge.py:five", store=store)
    assert {trial.score for trial in again.trials()} == {0.5}
    assert {trial.case_id for trial in again.trials() if "second_judge" in trial.metrics} == drawn(120, 0.4)
    assert all(one.second.calls == 0 and one.judge_calls == 120 for one in again.arms)


async def test_only_the_judges_of_all_cases_compare_pairs(run_suite, store):
    run = await run_suite(**twice(30))
    found = await apair(run.id, store=store)
    assert {pair.judge for pair in found.pairs} == {"mock:cheap"}


def test_an_estimate_counts_its_part(write_suite):
    whole = estimate(pipeline.load(write_suite(**twice(share=0.4))))
    none = estimate(pipeline.load(write_suite(**{**twice(), "second_judge": None})))
    assert whole.judge_calls - none.judge_calls == 2 * len(drawn(120, 0.4))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"judge": None}, "second_judge: a second judge corrects the first one: add `judge:` to the suite"),
        ({"second_judge": judge("cheap", share=0.2)}, "second_judge: this judge judges all cases already"),
        ({"looks": 5}, "second_judge: a run that may stop early decides by the first judge alone"),
        ({"race": True}, "second_judge: a run that may stop early decides by the first judge alone"),
        ({"second_judge": judge("dear", share=1.0)}, "second_judge.share"),
        ({"second_judge": judge("dear", share=0)}, "second_judge.share"),
    ],
)
def test_what_cannot_be_is_refused(write_suite, changes, said):
    with pytest.raises(ProblemsError) as error:
        pipeline.load(write_suite(**{**twice(), **changes}))
    assert said in str(error.value)


def test_too_small_a_part_is_pointed_out(write_suite):
    (said,) = [line for line in warnings(pipeline.load(write_suite(**twice(60, share=0.2)))) if "second_judge" in line]
    assert said == (
        "second_judge: mock:dear judges about 12 of 60 cases, and nothing is corrected by fewer than 20: set `share: 0.45`"
    )
    assert not [line for line in warnings(pipeline.load(write_suite(**twice()))) if "second_judge" in line]


async def test_a_second_judge_stands_for_every_judge_that_a_scorer_names(write_suite, store):
    suite = twice(judge=None, judges=[judge("cheap", id="one"), judge("cheap", id="two")])
    suite["scorer"] = {"type": "llm_judge", "by": ["one"]}
    run = await pipeline.arun(pipeline.load(write_suite(**suite)), store=store)
    assert {trial.case_id for trial in run.trials() if "second_judge" in trial.metrics} == drawn(120, 0.4)
    with pytest.raises(FairtrialError, match="mock:dear"):
        pipeline.load(write_suite(**{**suite, "scorer": {"type": "llm_judge", "by": ["mock:dear"]}}))
