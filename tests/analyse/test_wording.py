"""Words around numbers: what is said, and what is left unsaid when there is nothing to say."""

from types import SimpleNamespace

import msgspec
import pytest

import fairtrial as ft
from fairtrial.analyse.judging import Judging
from fairtrial.analyse.series import MultiRun
from fairtrial.core.formatting import milliseconds
from fairtrial.core.money import Cost
from fairtrial.present.words.cases import case_lines
from fairtrial.present.words.comparisons import brief_lines, detail_lines, pair_columns, sentence
from fairtrial.present.words.comparisons import subject_line as headline_of_comparisons
from fairtrial.present.words.judges import judging_notes, label_lines, order_line
from fairtrial.present.words.runs import headline, interval, lift_lines, metric_lines, run_notes, scale_words
from fairtrial.present.words.series import SERIES_COLUMNS, series_cells
from tests.analyse.test_compare import arm, cases

NO_SCORE = "Some trials have no score; they are left out of the means, not counted as 0."


def changed(summary, **keys):
    """A summary whose only arm has other counts."""
    return msgspec.structs.replace(summary, arms=[msgspec.structs.replace(summary.arms[0], **keys)])


@pytest.fixture
async def summary(run_suite):
    return (await run_suite(targets=[arm("a", 1, 2)], cases=cases(2))).summary()


async def test_one_case_and_several(run_suite, summary):
    one = (await run_suite(targets=[arm("a", 1, 1)], cases=cases(1))).summary()
    assert " · 1 case · " in headline(one) and " · 2 cases · " in headline(summary)
    assert interval(one.arms[0]) == "n = 1" and interval(summary.arms[0]).startswith("[")


async def test_no_score_at_all(run_suite):
    broken = {"id": "a", "target": "mock:x", "options": {"answer": "x", "faults": {"500": 1}}}
    run = await run_suite(targets=[broken], cases=cases(2), retry={"attempts": 1})
    (found,) = run.summary().arms
    assert interval(found) == "–" and (found.failed, found.waiting) == (2, 0)


@pytest.mark.parametrize(("counts", "said"), [({}, False), ({"failed": 1}, True), ({"unscored": 1}, True)])
async def test_what_has_no_score_is_mentioned(summary, counts, said):
    assert (NO_SCORE in run_notes(changed(summary, **counts))) == said


async def test_money_is_mentioned_where_the_columns_do_not_show_it(summary):
    cent = Cost(known=0.01, charged=0.01)
    for spent, columns, said in ((cent, cent, False), (cent, Cost(), True), (Cost(unknown=1), Cost(unknown=1), False)):
        found = run_notes(msgspec.structs.replace(changed(summary, cost=columns), spent=spent))
        assert any(note.startswith("Total spent") for note in found) == said, (spent, columns)


async def test_a_p_is_adjusted_from_two_pairs_on(run_suite):
    run = await run_suite(targets=[arm("a", 2, 4), arm("b", 3, 4), arm("c", 4, 4)], cases=cases(4))
    three = ft.compare(run)
    assert "p (Holm)" in pair_columns(three)
    one = msgspec.structs.replace(three, pairs=three.pairs[:1])
    assert "p" in pair_columns(one) and "p (Holm)" not in pair_columns(one)


@pytest.mark.parametrize(
    ("count", "clusters", "why"),
    [
        (1, 1, "there is only one case"),
        (4, 1, "all cases belong to one cluster"),
        (4, 2, "2 clusters are too few to show any difference (at least 5 are needed)"),
        (4, 4, "4 clusters are too few to show any difference (at least 5 are needed)"),
    ],
)
async def test_why_nobody_can_tell(run_suite, count, clusters, why):
    marked = [{**case, "cluster": f"k{n % clusters}"} for n, case in enumerate(cases(count))]
    run = await run_suite(targets=[arm("a", count, count), arm("b", 0, count)], cases=marked)
    assert why.replace("4 clusters", "4 cases") in sentence(ft.compare(run, "a", "b")).replace("All", "all")


async def test_the_details_name_the_method(run_suite):
    run = await run_suite(targets=[arm("a", 30), arm("b", range(12, 40))], cases=cases())
    pair = ft.compare(run, "a", "b")
    lines = detail_lines(pair)
    assert any("Student's t over cases" in line for line in lines)
    assert [line for line in lines if line.startswith("bootstrap over cases: 95 % CI ")]


async def test_resampling_is_silent_where_nothing_varies(run_suite):
    run = await run_suite(targets=[arm("a", 8, 8), arm("b", 0, 8)], cases=cases(8))
    assert not [line for line in ft.compare(run, "a", "b").robustness if "bootstrap" in line.method]


async def test_different_cases_are_mentioned(run_suite):
    first = await run_suite(targets=[arm("a", 8, 8)], cases=cases(8))
    same = await run_suite(targets=[arm("b", 4, 8)], cases=cases(8))
    fewer = await run_suite(targets=[arm("b", 4, 8)], cases=cases(7))
    said = "The runs have different cases: they are compared on the 7 that they have in common."
    assert said in ft.compare([first, fewer]).notes and said not in ft.compare([first, same]).notes
    assert not any("different cases" in note for note in ft.compare([first, same]).notes)


def test_what_repeats_say_of_a_judge():
    def said(**keys):
        return " ".join(judging_notes(Judging(judges=[], **keys)))

    assert "Answering the same case again moves a score (sd 12.0, the judge's own noise included)" in said(
        repeat_sd=0.12
    )
    assert said() == ""
    both = said(judge_sd=0.05, answer_sd=0.1, repeat_sd=0.12)
    assert "Judging the same answer again moves a score (sd 5.0)" in both and "12.0" not in both


@pytest.mark.parametrize(
    ("value", "words"), [(None, "–"), (999.4, "999 ms"), (1000.0, "1.0 s"), (1500.0, "1.5 s"), (100_000.0, "100.0 s")]
)
def test_durations(value, words):
    assert milliseconds(value) == words


@pytest.mark.parametrize(
    ("scale", "words"),
    [
        ((None, None), ""),
        ((5.0, None), ""),
        ((None, 5.0), "best 5"),
        ((1.0, 5.0), "scale 1–5"),
        ((1.0, 0.0), "scale 0–1, lower is better"),
    ],
)
def test_scales(scale, words):
    assert scale_words(scale) == words


def test_a_metric_says_when_its_interval_is_rough():
    def line(**keys):
        metric = SimpleNamespace(mean=4.2, std_dev=0.4, ci95=(3.9, 4.5), scale=(1.0, 5.0), rough=False, repeat_sd=None)
        return metric_lines(SimpleNamespace(metrics={"tone": SimpleNamespace(**{**vars(metric), **keys})}))

    assert line() == ["tone: 4.20 ± 0.30 (95 % CI 3.90 to 4.50, sd 0.40, scale 1–5)"]
    assert line(rough=True)[0].endswith("3.90 to 4.50, sd 0.40, rough: few cases account for the spread, scale 1–5)")


def test_gains_over_the_baseline():
    paired = SimpleNamespace(difference=0.12, ci95=(0.031, 0.209), count=50)
    lifts = [SimpleNamespace(arm="t", baseline="t/plain", metric=metric, paired=paired) for metric in ("", "tone")]
    lines = lift_lines(SimpleNamespace(lifts=lifts), SimpleNamespace(arm="t"))
    assert lines[0] == "over t/plain: +12.0 (95 % CI 3.1 to 20.9), 50 cases" and lines[1].startswith("tone over t/pl")
    assert lift_lines(SimpleNamespace(lifts=lifts), SimpleNamespace(arm="other")) == []


@pytest.mark.parametrize(
    ("bias", "words"),
    [(0.05, ["5.0 points higher"]), (-0.05, ["5.0 points lower"]), (None, []), (0.0, ["0.0 points higher"])],
)
def test_what_labels_say_of_the_judge(bias, words):
    labels = SimpleNamespace(bias=bias, answers=20, agreement=None, corrected=[], chosen=0, stale=0)
    found = label_lines(SimpleNamespace(labels=labels))
    assert found == [f"20 human labels: the judge marks {what}" for what in words]
    assert label_lines(SimpleNamespace(labels=None)) == []


def test_what_the_order_decided():
    flips, first = SimpleNamespace(mean=0.1, ci95=None), SimpleNamespace(mean=0.5, ci95=(0.4, 0.6))
    line = order_line(SimpleNamespace(flip_rate=flips, first_share=first, pairs=10))
    assert (
        line.startswith("The order decided 10.0 % of 10 pairs")
        and "50.0 % (95 % CI 40.0 to 60.0) of the verdicts" in line
    )


def test_what_is_compared():
    def said(sources, run_ids, pairs=1, metric=""):
        found = SimpleNamespace(
            sources=sources,
            run_ids=run_ids,
            pairs=[SimpleNamespace(comparisons=pairs)] * pairs,
            metric=metric,
            names=[],
        )
        return headline_of_comparisons(found)

    assert said(["s1"], ["r1"]) == "score of r1"
    assert said(["s1"], ["r1", "r2"], metric="tone") == "tone of series s1 (2 runs)"
    assert said(["r1", "r2"], ["r1", "r2"]) == "score of r1 against r2"
    assert said(["s1"], ["r1"], pairs=2) == "score of r1; the verdicts hold for all 2 pairs together (Holm)"


async def test_other_tests_are_counted(run_suite):
    run = await run_suite(targets=[arm("a", 30), arm("b", range(12, 40))], cases=cases())
    pair = ft.compare(run, "a", "b")
    several = [line for line in pair.robustness if line.p_value is not None]
    one, two = "another test finds no difference either", "2 other tests find no difference either"
    for count, words in ((0, None), (1, one), (2, two)):
        found = brief_lines(msgspec.structs.replace(pair, robustness=several[:count]))
        assert [line for line in found if "other test" in line] == ([words] if words else [])


async def test_run_means_that_never_vary_cannot_be_tested(run_suite):
    run = await run_suite(targets=[arm("a", 2, 2), arm("b", 1, 2)], cases=cases(2))
    pair = ft.compare(run, "a", "b")
    assert not any("run means" in line for line in detail_lines(pair))
    sized = "run means (pooled t): +50.0, p 0.400, Cohen's d 0.50 (medium)"
    for error, words in ((0.0, "run means never varied (+50.0)"), (1.0, sized)):
        test = SimpleNamespace(
            pooled_std_err=error, score_diff=0.5, p_value=0.4, effect_size=0.5, effect="medium", is_significant=False
        )
        found = detail_lines(msgspec.structs.replace(pair, run_means=test))
        assert [line for line in found if line.startswith(words)]


def test_an_arm_over_runs():
    def said(**keys):
        cells = series_cells("a", MultiRun(run_ids=(), scores=(), mean=0.85, min=0.8, max=0.9, **keys))
        return dict(zip(SERIES_COLUMNS, cells, strict=True))

    assert said(std_dev=0.02, ci95=(0.821, 0.883))["sd"] == "2.0"
    assert said(std_dev=0.02, ci95=(0.821, 0.883))["95 % CI"] == "82.1 to 88.3"
    assert said(std_dev=0.0, ci95=(0.85, 0.85))["95 % CI"] == "no run differed"
    assert (said(std_dev=None, ci95=None)["sd"], said(std_dev=None, ci95=None)["95 % CI"]) == ("–", "n = 1")


@pytest.mark.parametrize(
    ("count", "words"), [(1, "on 1 case (c0)"), (5, "c3, c4)"), (6, "on 6 cases (c0, c1, c2, c3, c4, …)")]
)
def test_at_most_five_cases_are_named(count, words):
    dead = [SimpleNamespace(id=f"c{number}", dead="always right", suspicious="") for number in range(count)]
    (line,) = case_lines(SimpleNamespace(dead=dead, suspicious=[], left_out=0, cases=dead, repeated=[]))
    assert words in line


@pytest.mark.parametrize(("count", "few"), [(19, True), (20, False)])
async def test_fewer_than_twenty_cases_are_few(run_suite, count, few):
    run = await run_suite(targets=[arm("a", count, count), arm("b", 0, count)], cases=cases(count))
    assert any(note.startswith(f"Few cases ({count})") for note in ft.compare(run).notes) == few


async def test_an_effect_has_no_size_where_its_error_is_unknown(run_suite):
    one_cluster = [{**case, "cluster": "k"} for case in cases(4)]
    run = await run_suite(targets=[arm("a", 4, 4), arm("b", 2, 4)], cases=one_cluster)
    pair = ft.compare(run, "a", "b")
    assert pair.std_dev and pair.std_err is None and pair.effect_size is None
    assert (pair.ahead, pair.tied) == (2, 2)


async def test_equivalence_is_told_with_its_margin(run_suite):
    run = await run_suite(targets=[arm("a", 20, 20), arm("b", 19, 20)], cases=cases(20))
    found = ft.compare(run, "a", "b", margin=0.9)
    assert found.equivalence.margin == 0.9 and found.equivalence.equivalent and found.verdict == "equivalent"
    assert ft.compare(run, "a", "b").equivalence is None
