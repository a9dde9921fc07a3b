"""Words around numbers: what is said, and what is left unsaid when there is nothing to say."""

import msgspec
import pytest

import fairtrial as ft
from fairtrial.analyse.judging import Judging
from fairtrial.analyse.wording.comparisons import detail_lines, pair_columns, sentence
from fairtrial.analyse.wording.judges import judging_notes
from fairtrial.analyse.wording.runs import headline, interval, run_notes
from fairtrial.core.money import Cost
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
    run = await run_suite(
        targets=[{"id": "a", "target": "mock:x", "options": {"answer": "x", "faults": {"500": 1}}}], cases=cases(2)
    )
    assert interval(run.summary().arms[0]) == "–"


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
        (4, 2, "2 clusters are too few to show any difference (at least 6 are needed)"),
        (4, 4, "4 clusters are too few to show any difference (at least 6 are needed)"),
    ],
)
async def test_why_nobody_can_tell(run_suite, count, clusters, why):
    marked = [{**case, "cluster": f"k{n % clusters}"} for n, case in enumerate(cases(count))]
    run = await run_suite(targets=[arm("a", count, count), arm("b", 0, count)], cases=marked)
    assert why.replace("4 clusters", "4 cases") in sentence(ft.compare(run, "a", "b"))


async def test_the_details_name_the_method(run_suite):
    run = await run_suite(targets=[arm("a", 30), arm("b", range(12, 40))], cases=cases())
    pair = ft.compare(run, "a", "b")
    lines = detail_lines(pair)
    assert any("Student's t over cases" in line for line in lines)
    assert [line for line in lines if line.startswith("bootstrap over cases: 95% CI [")]


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

    assert "Answering the same case again moves a score by ±12.0" in said(repeat_sd=0.12)
    assert said() == ""
    both = said(judge_sd=0.05, answer_sd=0.1, repeat_sd=0.12)
    assert "Judging the same answer again moves a score by ±5.0" in both and "±12.0" not in both
