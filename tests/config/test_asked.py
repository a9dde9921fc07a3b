"""Cases that are for some targets or conditions only: who is asked, what is counted, what is said about it."""

import json

import pytest

import fairtrial as ft
from fairtrial import pipeline
from fairtrial.config import RunOptions
from fairtrial.core.errors import ProblemsError
from fairtrial.reports.export import export
from fairtrial.store import totals
from fairtrial.store.planned import Planned
from fairtrial.store.rows import case_row
from fairtrial.workflows.estimate import estimate

PROMPTS = {"plain": "{{ input }}", "kind": "Please: {{ topic }} {{ input }}"}
CASES = [
    {"id": "both", "input": "a", "vars": {"topic": "t"}, "expected": "a"},
    {"id": "fast", "input": "b", "expected": "b", "targets": ["one"], "conditions": ["plain"], "repeats": 3},
    {"id": "plain", "input": "c", "expected": "c", "conditions": ["plain"]},
]
SUITE = {
    "name": "asked",
    "targets": [{"id": "one", "target": "mock:echo"}, {"id": "two", "target": "mock:echo"}],
    "prompts": PROMPTS,
    "scorer": "contains",
    "cases": CASES,
}


def problems(**keys):
    with pytest.raises(ProblemsError) as caught:
        ft.Suite.from_dict({**SUITE, **keys})
    return [f"{problem.key}: {problem.message}" for problem in caught.value.problems]


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return ft.run(ft.Suite.from_dict(SUITE))


def test_only_those_are_asked(run):
    asked = sorted((trial.case_id, trial.arm, trial.repeat) for trial in run.trials())
    assert asked == [
        *[("both", f"{target}/{prompt}", 1) for target in ("one", "two") for prompt in ("kind", "plain")],
        *[("fast", "one/plain", repeat) for repeat in (1, 2, 3)],
        *[("plain", f"{target}/plain", 1) for target in ("one", "two")],
    ]
    assert run.status == "completed"


def test_nothing_counts_as_missing(run):
    planned = dict(zip([arm.name for arm in run.plan_arms],
                       totals.planned_trials(run.store, run.plan.id, run.plan_arms), strict=True))  # fmt: skip
    assert planned == {"one/plain": 5, "one/kind": 1, "two/plain": 2, "two/kind": 1}
    assert {arm.arm: (arm.trials, arm.waiting, arm.aggregate.mean) for arm in run.arms} == {
        name: (count, 0, 1.0) for name, count in planned.items()
    }


def test_the_estimate_counts_them(tmp_path):
    found = estimate(ft.Suite.from_dict(SUITE))
    assert [arm.trials for arm in found.arms] == [5, 1, 2, 1]


def test_a_plan_is_counted_alike_while_it_is_written():
    suite = ft.Suite.from_dict(SUITE)
    rows = [case_row("plan", case, suite.variables) for case in suite.cases()]
    planned = Planned().with_rows(rows[:1]).with_rows(rows[1:])
    assert ([planned.trials(arm) for arm in suite.arms], planned.cases) == ([5, 1, 2, 1], 3)


def test_it_is_said_that_scores_are_over_different_cases(run, tmp_path):
    text = export(run, tmp_path / "run.md").read_text()
    assert "Some cases were asked of some arms only" in " ".join(text.split())


def test_comparisons_use_what_both_were_asked(run):
    compared = ft.compare(run, "one/plain", "two/plain")
    assert compared.count == 2


def test_a_gate_does_not_wait_for_answers_that_nobody_gives(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    suite = ft.Suite.from_dict({**SUITE, "gate": {"must_pass": ["*"]}})
    first, second = ft.run(suite), ft.run(suite)
    checks = [check for check in ft.gate(second, against=first).checks if check.name == "must_pass"]
    assert len(checks) == 4 and {check.result for check in checks} == {"passed"}


def test_every_output_is_made(run, tmp_path):
    for ending in (".json", ".csv", ".md", ".html", ".xml"):
        assert export(run, tmp_path / f"run{ending}").stat().st_size > 100
    assert len(json.loads((tmp_path / "run.json").read_text())["trials"]) == 9


def test_unknown_names_are_found_with_the_nearest(write_suite):
    found = problems(cases=[{"input": "x", "expected": "x", "targets": ["on"], "conditions": ["plane"]}])
    assert found == [
        "cases.0.conditions: unknown condition `plane`; did you mean `plain`?",
        "cases.0.targets: unknown target `on`; did you mean `one`?",
    ]


def test_a_case_for_nobody_is_a_problem():
    targets = [{"id": "one", "target": "mock:echo", "conditions": ["plain"]}]
    found = problems(targets=targets, cases=[{"input": "x", "expected": "x", "conditions": ["kind"]}])
    assert any("no target is asked" in problem for problem in found)


def test_options_may_leave_out_those_who_are_asked(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = ft.run(ft.Suite.from_dict(SUITE, options=RunOptions(targets=("two",))))
    assert sorted({trial.case_id for trial in run.trials()}) == ["both", "plain"] and run.status == "completed"


def test_a_prompt_that_a_case_is_not_asked_under_needs_nothing_of_it():
    assert ft.Suite.from_dict({**SUITE, "cases": [CASES[1]]}).case_count == 1  # it has no `topic`
    (problem,) = problems(cases=[{"input": "x", "expected": "x"}])
    assert "prompt `kind`: this case has no `topic`" in problem


def test_defaults_are_for_rows_too(write_suite, tmp_path):
    (tmp_path / "rows.csv").write_text("input,expected\na,a\n")
    path = write_suite(**{**SUITE, "cases": [], "dataset": {"path": "rows.csv", "expected": "expected"},
                          "case_defaults": {"targets": ["two"], "conditions": ["plain"]}})  # fmt: skip
    (case,) = pipeline.load(path).cases()
    assert (case.targets, case.conditions) == (("two",), ("plain",))
