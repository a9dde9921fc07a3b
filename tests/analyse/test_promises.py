"""Words that promise or compare something: they agree with the numbers behind them, and say what they are about."""

import msgspec
import pytest
from click.testing import CliRunner

import fairtrial as ft
from fairtrial import pipeline
from fairtrial.analyse.drift import ArmDrift, DriftPoint
from fairtrial.analyse.gate import Terms, gate
from fairtrial.analyse.score_table import sources_of
from fairtrial.cli.main import cli
from fairtrial.config.advice import warnings
from fairtrial.present.words.arm_notes import arm_lines, notes
from fairtrial.present.words.comparisons import agreement_line, brief_lines
from fairtrial.present.words.drift import chart_cells, drift_line
from tests.analyse.test_compare import arm, cases


async def test_other_tests_agree_with_something(run_suite):
    run = await run_suite(targets=[arm("a", 30), arm("b", range(12, 40)), arm("c", 5)], cases=cases())
    open_pair, decided = ft.compare(run, "a", "b"), ft.compare(run, "a", "c")
    several = [line for line in decided.robustness if line.p_value is not None]
    for count, words in (
        (0, None),
        (1, "another test finds a difference too"),
        (2, "2 other tests find a difference too"),
    ):
        pair = msgspec.structs.replace(decided, robustness=several[:count])
        assert agreement_line(pair) == words and (words is None or words in brief_lines(pair))
    assert open_pair.verdict == "cannot tell" and decided.verdict == "better"
    assert agreement_line(open_pair) == "3 other tests find no difference either"


async def test_all_arms_show_the_same_k(run_suite):
    """One arm had lost an answer to a case: its pass@2 stood beside the other's pass@5."""
    targets = [{**arm("a", 20), "repeats": 5}, {**arm("b", 30), "repeats": 2}, {**arm("c", 30), "repeats": 1}]
    run = await run_suite(targets=targets, cases=cases())
    summary = run.summary()
    assert [[one.k for one in each.passes] for each in summary.arms] == [[2, 3, 4, 5], [2], []]
    shown = {each.arm: " ".join(arm_lines(summary, each)) for each in summary.arms}
    assert "pass@2" in shown["a"] and "pass^2" in shown["a"] and "pass@5" not in shown["a"]
    assert "pass@2" in shown["b"] and "pass@" not in shown["c"]


async def test_more_answers_are_suggested_only_if_it_is_known_what_they_do(run_suite):
    before = await run_suite(targets=[arm("m", 30)], cases=cases())
    after = await run_suite(targets=[arm("m", range(6, 34))], cases=cases())
    found = gate(sources_of(after)[0], sources_of(before)[0], Terms(min_coverage=0))
    (check,) = [check for check in found.checks if check.name == "regression"]
    assert check.result == "cannot tell" and "cases would be enough to tell" in check.message
    assert "answers to each of these" not in check.message
    assert "what more answers to these 40 would do is not known: no case has two" in check.message
    (settle,) = found.settle
    assert settle.repeats == 2 and not settle.noise_known  # `--until-sure` still asks once more, and then it is known


def test_drift_is_never_rounded_to_chance():
    """`+6.2 points …; up to ±6.2 is chance` of an alarm."""

    def told(smoothed, limit):
        alarm = abs(smoothed) > limit
        point = DriftPoint(run="v2", difference=0.07, smoothed=smoothed, limit=limit, alarm=alarm, cases=9)
        return drift_line(ArmDrift(arm="m", first="v1", reference=["v1"], points=[point])), chart_cells(point)

    line, cells = told(0.06221, 0.06219)
    assert "(+6.221 points, smoothed; up to 6.219 either way is chance)" in line
    assert cells == ["v2", "+7.0", "+6.221", "6.219", "alarm"]
    assert "(−6.25 points, smoothed; up to 6.20 either way is chance)" in told(-0.0625, 0.062)[0]
    assert told(0.0619, 0.0621)[1] == ["v2", "+7.0", "+6.2", "6.2", ""]
    assert told(0.0719, 0.0321)[1] == ["v2", "+7.0", "+7.2", "3.2", "alarm"]
    assert told(0.0, 0.0)[1][2:4] == ["+0.0", "0.0"]  # equal is equal


def repeated(times, **keys):
    asked = [
        {"id": f"c{n}-{again}", "input": f"case {n}", "expected": "42"} for again in range(times) for n in range(15)
    ]
    return [{**case, **{name: value.format(case["input"]) for name, value in keys.items()}} for case in asked]


async def test_questions_that_repeat_are_said(run_suite, write_suite, store, tmp_path):
    """15 questions, each in 4 cases, halve the interval."""
    targets = [arm("a", {"case 1"}), arm("b", {"case 2"})]
    words = "45 of 60 cases repeat the question of another one word for word"
    suite = pipeline.load(write_suite(targets=targets, cases=repeated(4)))
    (advice,) = [line for line in warnings(suite) if "repeat" in line]
    assert advice.startswith(words) and "`cluster_by: question`" in advice
    run = await run_suite(targets=targets, cases=repeated(4))
    assert any(note.startswith(words) for note in notes(run.summary()))
    assert any(note.startswith(words) for note in ft.compare(run).notes)
    clustered = repeated(4, cluster="{}")
    assert not any("repeat" in line for line in warnings(pipeline.load(write_suite(targets=targets, cases=clustered))))
    run = await run_suite(targets=targets, cases=clustered)
    assert not any("word for word" in note for note in [*notes(run.summary()), *ft.compare(run).notes])


async def test_one_option_makes_the_same_question_one_cluster(run_suite, write_suite, store):
    targets = [arm("a", set(range(30))), arm("b", set(range(0, 60, 3)))]
    plain = await run_suite(targets=targets, cases=repeated(4))
    run = await run_suite(targets=targets, cases=repeated(4), cluster_by="question")
    by_hand = await run_suite(targets=targets, cases=repeated(4, cluster="{}"))
    found, same = ft.compare(run, "a", "b"), ft.compare(by_hand, "a", "b")
    assert found.ci95 == pytest.approx(same.ci95) and found.units == same.units == 15
    assert not any("word for word" in note for note in [*notes(run.summary()), *ft.compare(run).notes])
    assert ft.compare(plain, "a", "b").units == 60
    suite = pipeline.load(write_suite(targets=targets, cases=repeated(4), cluster_by="question"))
    assert not any("repeat" in line for line in warnings(suite))
    once = await run_suite(targets=targets, cases=repeated(1), cluster_by="question")
    assert all(case.cluster is None for case in store.cases(once.plan.id, 0, 99))  # nothing repeats: nothing to say
    said = CliRunner().invoke(cli, ["cases", plain.id, "--store", store.address], standalone_mode=False).output
    assert "45 of 60 cases repeat the question" in said and "cluster_by: question" in said
    said = CliRunner().invoke(cli, ["cases", run.id, "--store", store.address], standalone_mode=False).output
    assert "repeat the question" not in said


async def test_questions_with_other_values_do_not_repeat(run_suite):
    """The same input is another question if the prompt has more to fill in, or if a file comes with it."""
    words = [{"id": f"c{n}", "input": "Translate.", "expected": "42", "vars": {"word": f"w{n}"}} for n in range(6)]
    run = await run_suite(targets=[arm("a", 1)], cases=words, prompts={"p": "{{ input }} {{ word }}"})
    assert run.summary().repeated == 0
    turns = [{"id": f"c{n}", "turns": ["Hello.", f"I am {n}."], "expected": "42"} for n in range(6)]
    run = await run_suite(targets=[arm("a", 1)], cases=turns)
    assert run.summary().repeated == 0
    both = [{"id": f"c{n}", "input": "Same.", "expected": "42", "targets": [name]} for n, name in enumerate("ab")]
    run = await run_suite(targets=[arm("a", 1), arm("b", 1)], cases=both)
    assert run.summary().repeated == 0
