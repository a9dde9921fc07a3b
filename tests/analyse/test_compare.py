"""Comparisons: which of two arms is better, or that nobody can tell."""

import json

import msgspec
import numpy as np
import pytest

import fairtrial as ft
from fairtrial.analyse.common import Common
from fairtrial.analyse.compare import compare
from fairtrial.analyse.score_table import ArmScores, choose, find_sources, read_scores, sources_of
from fairtrial.core.errors import FairtrialError
from fairtrial.present.words.comparisons import brief_lines, detail_lines, sentence
from fairtrial.reports.json import comparison_document
from fairtrial.store import Store
from tests.lazily import Library

reference = Library("scipy.stats")


def arm(name, right, count=40, **options):
    """An arm that answers the first `right` cases well, or those in a set, or each repeat as a list says."""
    chosen = set(range(right)) if isinstance(right, int) else set(right)
    answers = {f"c{n:02}": "42" if n in chosen else "x" for n in range(count)}
    return {"id": name, "target": "mock:x", "options": {"answers": answers, **options}}


def cases(count=40, **keys):
    return [{"id": f"c{n:02}", "input": f"case {n}", "expected": "42", **keys} for n in range(count)]


@pytest.mark.slow
async def test_the_verdict_is_the_paired_test(run_suite):
    run = await run_suite(targets=[arm("good", 36), arm("bad", 20)], cases=cases())
    found = ft.compare(run, "good", "bad")
    d = np.array([1.0] * 16 + [0.0] * 24)
    assert found.difference == pytest.approx(0.4) and found.count == 40
    assert found.method == "t" and found.p_value == pytest.approx(reference.ttest_1samp(d, 0).pvalue, abs=1e-9)
    assert found.verdict == "better" and ft.compare(run, "bad", "good").verdict == "worse"
    assert found.effect_size == pytest.approx(0.4 / d.std(ddof=1)) and found.superiority == pytest.approx(0.7)
    assert (found.ahead, found.tied, found.behind) == (16, 24, 0)
    ahead = "good is ahead on 16, level on 24 and behind on 0 of 40 cases"
    assert sentence(found) == f"good is 40 points better than bad (95 % CI 24 to 56). {ahead}."
    assert sentence(ft.compare(run, "bad", "good")) == sentence(found)  # however the arms were named
    methods = {line.method: line.p_value for line in found.robustness}
    assert methods["McNemar (exact)"] == pytest.approx(2 * 0.5**16)


def test_plain_means_neither_weights_nor_clusters():
    one, ones = np.array([1.0]), np.ones(1)
    assert Common(["c"], one, one, ones, None).plain
    assert not Common(["c"], one, one, 2 * ones, None).plain and not Common(["c"], one, one, ones, ["k"]).plain


def test_the_sign_of_a_metric_says_which_end_is_better():
    def sign(*scale):
        scores = ArmScores.__new__(ArmScores)
        scores.scales = {"m": scale}
        return scores.sign("m"), scores.sign("unknown")

    assert [sign(0.0, 1.0), sign(1.0, 0.0), sign(None, 0.0), sign(None, None)] == [(1, 1), (-1, 1), (-1, 1), (1, 1)]


async def test_what_cannot_be_told_says_what_could_have_been_seen(run_suite):
    run = await run_suite(targets=[arm("a", 30), arm("b", range(12, 40))], cases=cases())
    found = ft.compare(run, "a", "b")
    assert found.verdict == "cannot tell"
    limit, noncentral = reference.t.ppf(0.975, 39), found.detectable / found.std_err
    assert 0.8 <= reference.nct.sf(limit, 39, noncentral) <= 0.83  # and a little more: the spread is an estimate too
    assert f"In 4 of 5 runs, 40 cases would show a gap of {100 * found.detectable:.1f} points." in sentence(found)


@pytest.mark.slow
async def test_equivalent_only_within_a_margin(run_suite):
    run = await run_suite(
        targets=[arm("a", range(199), 200), arm("b", range(1, 200), 200), arm("same", range(199), 200)],
        cases=cases(200),
    )
    assert ft.compare(run, "a", "b").verdict == "cannot tell"
    assert ft.compare(run, "a", "b", margin=0.05).verdict == "equivalent"
    assert ft.compare(run, "a", "b", margin=0.005).verdict == "cannot tell"
    # No case differs at all: of others like them, up to 1.8 % may.
    assert ft.compare(run, "a", "same", margin=0.01).verdict == "cannot tell"
    assert ft.compare(run, "a", "same", margin=0.02).verdict == "equivalent"
    few = await run_suite(targets=[arm("a", 4, 4), arm("b", 4, 4)], cases=cases(4))
    assert ft.compare(few, "a", "b", margin=0.01).verdict == "cannot tell"


async def test_the_same_difference_in_every_case(run_suite):
    """No t can be had, but 10 of 10 cases speak: the exact test of McNemar."""
    run = await run_suite(targets=[arm("a", 10, 10), arm("b", 0, 10)], cases=cases(10))
    found = ft.compare(run, "a", "b")
    assert (found.verdict, found.p_value) == ("better", pytest.approx(2 / 2**10))
    run = await run_suite(targets=[arm("a", 3, 3), arm("b", 0, 3)], cases=cases(3))
    few = ft.compare(run, "a", "b")
    assert few.verdict == "cannot tell" and few.ci95[0] < 0 < few.ci95[1]
    assert "3 cases are too few to show any difference (at least 5 are needed)" in sentence(few)


def marks(name, values):
    """An arm that answers with numbers, which a function of the suite's author takes for the score."""
    return {"id": name, "target": "mock:x", "options": {"answers": {f"c{n:02}": str(v) for n, v in enumerate(values)}}}


NUMBER = {"type": "python", "function": "marks.py:score"}


@pytest.fixture
def as_marked(tmp_path):
    (tmp_path / "marks.py").write_text(
        "from fairtrial import Score\n"
        "def score(response, expected):\n"
        "    value = float(response)\n"
        "    return Score(value=min(1, value), metrics={'tokens': 60 * value, 'broken': float('nan')})\n"
    )


async def test_rounding_is_no_certainty(run_suite, as_marked):
    """0.9 − 0.8 and 0.8 − 0.7 differ in the 17th digit: still three equal differences, which prove nothing."""
    run = await run_suite(
        targets=[marks("a", [0.9, 0.8, 0.7]), marks("b", [0.8, 0.7, 0.6])], cases=cases(3), scorer=NUMBER
    )
    found = ft.compare(run, "a", "b")
    assert (found.verdict, found.std_err, found.method) == ("cannot tell", 0, "bounded") and found.p_value > 0.5
    assert run.arms[0].aggregate.ci95[0] < 0.7


@pytest.mark.slow
async def test_metrics_without_a_scale_have_no_bounds(run_suite, as_marked):
    values = np.random.default_rng(1).uniform(0.3, 0.9, 20)
    run = await run_suite(targets=[marks("a", values), marks("b", values[::-1] / 2)], cases=cases(20), scorer=NUMBER)
    found = ft.compare(run, "a", "b", metric="tokens")
    low, high = found.ci95
    assert low < found.difference < high and high > 1 and "broken" not in run.arms[0].metrics


def set_latencies(run):
    """The first arm takes about 1 ms, the second about 40 ms, however busy the machine was."""
    with run.store.engine.begin() as connection:
        connection.exec_driver_sql(
            "UPDATE trials SET row_hash = NULL, latency_ms = 1 + 39 * arm_position + case_position * (1 + arm_position) % 5"
        )


@pytest.mark.slow
async def test_less_can_be_better(run_suite):
    """What an answer took is compared when it is asked for, and less of it is better."""
    run = await run_suite(targets=[arm("quick", 12, 12), arm("slow", 12, 12)], cases=cases(12))
    set_latencies(run)
    found = ft.compare(run, "quick", "slow", metric="latency_ms")
    assert found.difference < 0 and found.verdict == "better" and found.ahead == 12
    assert "latency_ms" not in {pair.metric for pair in ft.compare(run).metrics}


@pytest.mark.slow
async def test_weights_and_scorers_of_cases_are_said_to_differ(run_suite):
    first = await run_suite(targets=[arm("m", 2, 4)], cases=cases(4))
    heavy = [{**case, "weight": 5 if n == 0 else 1} for n, case in enumerate(cases(4))]
    second = await run_suite(targets=[arm("m", 2, 4)], cases=heavy)
    assert any("a different weight or cluster" in note for note in ft.compare([first, second]).notes)
    third = await run_suite(targets=[arm("m", 2, 4)], cases=cases(4, scorer="regex"))
    assert any("same way" in note for note in ft.compare([first, third]).notes)
    assert any(
        "carry most of the weight" in note
        for note in ft.compare(await run_suite(targets=[arm("m", 2, 4), arm("n", 1, 4)], cases=heavy)).notes
    )


@pytest.mark.slow
async def test_an_arm_without_scores_is_named(run_suite):
    run = await run_suite(
        targets=[arm("a", 4, 4), arm("dead", 4, 4, faults={"refused": 1.0})], cases=cases(4), retry={"attempts": 1}
    )
    with pytest.raises(FairtrialError, match="dead has no score yet"):
        ft.compare(run)


@pytest.mark.slow
async def test_failures_that_change_nothing_decide_nothing(run_suite):
    frail = {"id": "b", "target": "mock:x", "options": {"answer": "x", "faults": {"refused": 0.3}}}
    run = await run_suite(repeats=3, targets=[arm("a", 12, 12), frail], cases=cases(12), retry={"attempts": 1})
    found = ft.compare(run, "a", "b")
    assert found.failures is not None and found.verdict == "better"
    assert not any("failure" in line for line in brief_lines(found))


@pytest.mark.slow
async def test_many_tags_are_quick(run_suite):
    import time

    run = await run_suite(
        targets=[arm("a", 450, 600), arm("b", 300, 600)],
        cases=[{**case, "tags": [f"t{n // 2}", "all"]} for n, case in enumerate(cases(600))],
        concurrency=50,
    )
    started = time.process_time()
    ft.compare(run)
    assert time.process_time() - started < 5


@pytest.mark.slow
async def test_many_pairs_are_adjusted(run_suite):
    run = await run_suite(
        targets=[arm("a", 40), arm("b", 33), arm("c", 34), arm("d", 32)],
        cases=cases(),
    )
    found = ft.compare(run)
    assert len(found.pairs) == 6
    raw = [pair.p_value for pair in found.pairs]
    assert [pair.p_adjusted for pair in found.pairs] == pytest.approx(ft_holm(raw))
    assert all(pair.p_adjusted >= pair.p_value for pair in found.pairs)


def ft_holm(p):
    from statsmodels.stats.multitest import multipletests

    return list(multipletests(p, method="holm")[1])


async def test_repeats_are_averaged_and_clusters_kept_whole(run_suite):
    answers = {f"c{n:02}": ["42", "x"] for n in range(12)}
    run = await run_suite(
        repeats=2,
        targets=[arm("good", 12, 12), {"id": "half", "target": "mock:x", "options": {"answers": answers}}],
        cases=[{**case, "cluster": f"k{n // 3}", "weight": 1 + n % 2} for n, case in enumerate(cases(12))],
    )
    found = ft.compare(run, "good", "half")
    assert found.difference == pytest.approx(0.5) and (found.count, found.units) == (12, 4)
    assert "cluster" in found.method
    assert any("Few clusters (4)" in note for note in ft.compare(run).notes)


async def test_both_failure_policies(run_suite):
    run = await run_suite(
        targets=[arm("steady", 30), arm("frail", 30, faults={"refused": 0.4})], cases=cases(), retry={"attempts": 1}
    )
    found = ft.compare(run, "steady", "frail")
    failed = sum(1 for trial in run.trials() if trial.status == "failed")
    assert failed > 5 and found.count == 40 - failed and found.only_one == failed
    assert found.difference == 0 and found.verdict == "cannot tell"
    worst, best = found.failures.against_b, found.failures.against_a
    assert worst.count == best.count == 40 and worst.difference > 0.2 and best.difference < 0
    assert any("if every failed trial counted against frail: +" in line for line in detail_lines(found))
    assert any("Different coverage" in note for note in ft.compare(run).notes)


async def test_kinds_of_cases(run_suite):
    """The second arm fails on hard cases only: the effect differs by difficulty, and so does the verdict."""
    kinds = [{**case, "difficulty": "hard" if n % 2 else "easy", "tags": ["odd"]} for n, case in enumerate(cases())]
    for case in (*kinds[::2], kinds[1]):
        case["tags"] = []
    bad = {n for n in range(40) if n % 2 == 0} | {1, 3}
    # One easy case is missed too, so that both groups vary.
    run = await run_suite(targets=[arm("good", 40), arm("bad", bad - {0})], cases=kinds)
    found = ft.compare(run, "good", "bad")
    groups = {(group.by, group.value): group for group in found.groups}
    assert groups["difficulty", "hard"].verdict == "better" and groups["difficulty", "easy"].verdict == "cannot tell"
    assert groups["difficulty", "hard"].count == 20 and groups["tag", "odd"].difference == pytest.approx(18 / 19)
    differs = {item.by: item.test for item in found.differs}
    easy, hard = np.array([1.0] + [0.0] * 19), np.array([0.0, 0.0] + [1.0] * 18)
    welch = reference.ttest_ind(easy, hard, equal_var=False)
    assert differs["difficulty"].p_value == pytest.approx(welch.pvalue, abs=1e-9)
    assert any("does the difference differ by difficulty? yes" in line for line in detail_lines(found))


@pytest.mark.slow
async def test_across_runs_on_common_cases(run_suite):
    """Cases are the same by what they ask, not by their number."""
    before = await run_suite(targets=[arm("m", 20)], cases=cases())
    moved = [{"input": "new", "expected": "1"}, *({k: v for k, v in case.items() if k != "id"} for case in cases(30))]
    answers = {f"case {n}": "42" for n in range(30)}
    after = await run_suite(
        targets=[{"id": "m", "target": "mock:x", "options": {"answers": answers, "answer": "x"}}], cases=moved
    )
    found = ft.compare([after, before])
    pair = found.pairs[0]
    assert pair.count == 30 and pair.difference == pytest.approx(10 / 30) and pair.verdict == "better"
    assert pair.a == f"m@{after.id}" and any("30 that they have in common" in note for note in found.notes)
    other = await run_suite(targets=[arm("m", 2, 2)], cases=[{"input": "else", "expected": "42"}])
    with pytest.raises(FairtrialError, match="no cases in common"):
        ft.compare([before, other])


@pytest.mark.slow
async def test_across_stores_and_tags(run_suite, store, tmp_path, write_suite):
    run = await run_suite(targets=[arm("m", 40), arm("n", 10)], cases=cases())
    store.set_tag("base", run.id)
    other = Store(f"sqlite:///{tmp_path}/other.db")
    from fairtrial import pipeline

    await pipeline.arun(pipeline.load(write_suite(targets=[arm("m", 10)], cases=cases())), store=other)
    scores = read_scores(find_sources(["base", f"latest@{tmp_path}/other.db"], store))
    found = compare(scores, choose(scores))
    assert [(pair.difference, pair.verdict) for pair in found.pairs] == [(pytest.approx(0.75), "better")]
    scores = read_scores(find_sources(["base", f"@{tmp_path}/other.db"], store))
    assert compare(scores, choose(scores, ("n", f"m@@{tmp_path}/other.db"))).pairs[0].difference == 0
    with pytest.raises(FairtrialError, match="is in several runs"):
        choose(scores, ("m", "n"))
    with pytest.raises(FairtrialError, match="named twice"):
        find_sources(["base", run.id], store)
    with pytest.raises(FairtrialError, match="needs two arms"):
        one = read_scores(find_sources([f"latest@{tmp_path}/other.db"], store))
        compare(one, choose(one))


@pytest.mark.slow
async def test_two_arms_over_several_runs(run_suite, store, capsys):
    from fairtrial.cli.main import _run

    targets = [arm("m", 30), arm("n", 20)]
    runs = [await run_suite(targets=targets, cases=cases(), repeats=repeats) for repeats in (1, 2, 1)]
    assert _run(["compare", *(run.id for run in runs), "--arms", "m", "n", "--store", store.address, "--json"]) == 0
    pooled = json.loads(capsys.readouterr().out)
    (pair,) = pooled["pairs"]
    assert (pair["a"], pair["b"], pair["count"]) == ("m", "n", 40) and len(pooled["run_ids"]) == 3
    assert pair["difference"] == pytest.approx(25)
    assert ft.compare(runs, "m", "n").difference == pytest.approx(0.25)
    apart = [await run_suite(targets=[one], cases=cases()) for one in targets]  # each in a run of its own
    assert ft.compare([*runs, *apart], "m", "n").difference == pytest.approx(0.25)
    other = await run_suite(targets=[arm("m", 10), arm("n", 20)], cases=cases())
    assert _run(["compare", runs[0].id, other.id, "--arms", "m", "n", "--store", store.address]) == 1
    assert "`m`" in (told := capsys.readouterr().err) and "has a different target" in told


@pytest.mark.slow
async def test_a_series_counts_as_more_answers(write_suite, store):
    from fairtrial import pipeline

    runs = []
    for right in (30, 32, 34):
        suite = pipeline.load(write_suite(targets=[arm("a", 40), arm("b", right)], cases=cases()))
        runs.append(await pipeline.arun(suite, store=store, series=pipeline.SeriesPlan("s-1", 2)))
    found = ft.compare(runs, "a", "b")
    assert found.difference == pytest.approx(0.2) and found.count == 40
    assert found.run_means.score_diff == pytest.approx(0.2) and found.run_means.p_value < 0.05
    assert len(store.find_runs("s-1")) == 3
    assert [source.label for source in sources_of(runs)] == ["s-1"]
    assert any("run means (pooled t): +20.0" in line for line in detail_lines(found))


@pytest.mark.slow
async def test_metrics_are_compared_on_their_own_scale(run_suite):
    verdict = {"marks": {"good": 5, "poor": 2}, "otherwise": 1}
    run = await run_suite(
        targets=[
            {"id": name, "target": "mock:x", "options": {"answer": f"{name} answer"}} for name in ("good", "poor")
        ],
        judge={"target": "mock:judge", "options": {"verdict": verdict}},
        scorer="golden_judge",
        cases=cases(12),
    )
    found = ft.compare(run)
    assert {pair.metric for pair in found.metrics} == {"factual_adherence", "completeness", "helpfulness_and_clarity"}
    assert found.metrics[0].difference == pytest.approx(3) and found.metrics[0].scale == (1, 5)
    assert ft.compare(run, "good", "poor", metric="completeness").difference == pytest.approx(3)
    assert any("Judged by a model, with one answer per case" in note for note in found.notes)
    document = comparison_document(found)
    assert document["metrics"][0]["difference"] == pytest.approx(3)
    assert document["pairs"][0]["difference"] == pytest.approx(75) and document["pairs"][0]["scale"] == [0, 100]
    with pytest.raises(FairtrialError, match="no arm has a metric `nonsense`; the metrics are: factual"):
        ft.compare(run, "good", "poor", metric="nonsense")


@pytest.mark.slow
async def test_another_scorer_is_said(run_suite):
    first = await run_suite(targets=[arm("m", 20)], cases=cases())
    second = await run_suite(targets=[arm("m", 20)], cases=cases(), scorer={"type": "regex"})
    assert any("same way" in note for note in ft.compare([first, second]).notes)
    assert not any(
        "same way" in note for note in ft.compare([first, await run_suite(targets=[arm("m", 2)], cases=cases())]).notes
    )


@pytest.mark.slow
@pytest.mark.simulation
@pytest.mark.parametrize("design", ["cases", "clusters", "unequal repeats"])
def test_false_positives_are_as_promised(design):
    """2,000 experiments without an effect, seeded: 4–6 % are called significant."""
    from fairtrial.stats import paired

    rng = np.random.default_rng(5)
    wrong = 0
    for _ in range(2000):
        if design == "clusters":
            groups = np.arange(40).repeat(rng.integers(1, 5, 40))
            effect = rng.normal(0, 0.3, 40)[groups]
        else:
            groups, effect = None, rng.normal(0, 0.3, 60)
        repeats = rng.integers(1, 6, (2, len(effect))) if design == "unequal repeats" else np.ones((2, len(effect)))
        base = rng.normal(0.5, 0.2, len(effect))
        a = base + effect / 2 + rng.normal(0, 0.2, len(effect)) / np.sqrt(repeats[0])
        b = base - effect / 2 + rng.normal(0, 0.2, len(effect)) / np.sqrt(repeats[1])
        wrong += paired(a, b, groups).p_value < 0.05
    assert 0.04 <= wrong / 2000 <= 0.06


@pytest.mark.slow
@pytest.mark.parametrize("clustered", [False, True])
def test_the_interaction_finds_none_where_there_is_none(clustered):
    from fairtrial.stats import interaction

    rng = np.random.default_rng(6)
    wrong = 0
    for _ in range(2000):
        kinds = np.array(["easy", "medium", "hard"])[rng.integers(0, 3, 90)]
        spread = np.where(kinds == "hard", 0.4, 0.1)
        clusters = np.arange(90) // 2 if clustered else None
        shared = rng.normal(0, 0.2, 45).repeat(2) if clustered else 0
        d = 0.1 + shared + rng.normal(0, 1, 90) * spread
        wrong += interaction(d, kinds, clusters).p_value < 0.05
    assert 0.035 <= wrong / 2000 <= 0.065


@pytest.mark.slow
def test_the_interaction_equals_references():
    from statsmodels.stats.oneway import anova_oneway

    from fairtrial.stats import interaction

    rng = np.random.default_rng(7)
    kinds = rng.integers(0, 3, 60)
    d = rng.normal(kinds * 0.1, 0.2 + 0.1 * kinds)
    expected = anova_oneway(d, kinds, use_var="unequal")
    found = interaction(d, kinds)
    assert (found.statistic, found.p_value) == pytest.approx((expected.statistic, expected.pvalue), abs=1e-9)
    clusters, weights = rng.integers(0, 20, 60), rng.integers(1, 4, 60).astype(float)
    found = interaction(d, kinds, clusters, weights)

    def means(keep):
        chosen = [keep & (kinds == k) for k in range(3)]
        return np.array([np.average(d[one], weights=weights[one]) for one in chosen])

    whole, left = means(np.full(60, True)), np.array([means(clusters != c) for c in np.unique(clusters)])
    moved = (left - whole) @ np.array([[1, 1], [-1, 0], [0, -1]])
    spread = (len(left) - 1) / len(left) * moved.T @ moved
    gaps = np.array([whole[0] - whole[1], whole[0] - whole[2]])
    count = len(left)
    statistic = gaps @ np.linalg.solve(spread, gaps) * (count - 2) / ((count - 1) * 2)  # Hotelling's T² as F
    assert found.statistic == pytest.approx(statistic, rel=1e-9)
    assert found.p_value == pytest.approx(reference.f.sf(statistic, 2, count - 2), abs=1e-9)
    # Weights that are all the same change nothing, clusters of one neither.
    assert interaction(d, kinds, np.arange(60), np.full(60, 2.0)).p_value == pytest.approx(
        interaction(d, kinds).p_value, abs=1e-9
    )
    weighty = np.r_[np.ones(60), np.zeros(5)]  # cases of weight 0 are not counted, whatever their scores
    with_others = interaction(np.r_[d, np.full(5, 9.0)], np.r_[kinds, [0, 0, 1, 2, 2]], None, weighty)
    assert with_others.statistic == pytest.approx(interaction(d, kinds).statistic)
    assert interaction([0.1, 0.2], ["a", "b"]) is None and interaction([0, 0, 1, 1], [0, 0, 1, 1]) is None


async def test_details_of_some_pairs_change_nothing_else(run_suite):
    from fairtrial.analyse.compare import compare
    from fairtrial.analyse.score_table import choose, read_scores, sources_of

    run = await run_suite(targets=[arm(name, right) for name, right in (("a", 36), ("b", 34), ("c", 9))], cases=cases())
    scores = read_scores(sources_of(run))
    every, some = compare(scores, choose(scores)), compare(scores, choose(scores), detailed=1)
    assert some.pairs[0] == every.pairs[0] and some.pairs[0].robustness and some.notes == every.notes
    for brief, whole in zip(some.pairs[1:], every.pairs[1:], strict=True):
        assert whole.robustness and not brief.robustness and not brief.groups
        kept = {"robustness": brief.robustness, "groups": [], "differs": [], "detectable": brief.detectable}
        assert msgspec.structs.replace(whole, **kept) == brief
    # What would tell two arms apart is known for the best arm, so that a headline can name it.
    none = compare(scores, choose(scores), detailed=0)
    assert [pair.verdict for pair in none.pairs] == ["cannot tell", "better", "better"]
    assert [pair.detectable for pair in none.pairs] == [every.pairs[0].detectable, None, None]


UNEVEN = """
def strong(input):
    return "42" if int(input.split()[-1]) < 20 else "x"

def weak(input):
    number = int(input.split()[-1])
    assert number < 20
    return "x" if number < 9 else "42"
"""


@pytest.mark.parametrize("arms", [("strong", "weak"), ("weak", "strong")])
async def test_failures_of_either_side_can_undo_a_verdict(run_suite, tmp_path, arms):
    """Half of the trials of one arm failed, just where the other was wrong: whichever of them comes first."""
    (tmp_path / "uneven.py").write_text(UNEVEN)
    targets = [{"id": name, "target": f"python:uneven.py:{name}"} for name in arms]
    run = await run_suite(targets=targets, cases=cases(40))
    found = ft.compare(run, *arms)
    low, high = found.ci95
    assert low > 0 if arms[0] == "strong" else high < 0  # without the failures, it would be decided
    assert found.verdict == "depends on failures"
