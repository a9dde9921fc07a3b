"""What the product says of data on which it used to say something false."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

import fairtrial as ft
from fairtrial.analyse.gate import Terms, gate
from fairtrial.analyse.planning import plan_power
from fairtrial.analyse.rank import rank
from fairtrial.analyse.score_table import choose, find_sources, read_scores, sources_of
from fairtrial.cli.main import cli
from fairtrial.config import RunOptions
from fairtrial.core.errors import FairtrialError
from fairtrial.present.words.arm_notes import notes
from fairtrial.present.words.comparisons import brief_lines, p_words, sentence
from fairtrial.reports.export import export
from fairtrial.reports.json import document
from fairtrial.workflows.label import PersonLabel, add_labels, drawn_mark
from tests.analyse.test_compare import NUMBER, arm, as_marked, cases, marks  # noqa: F401
from tests.engine.test_decision import known_orders  # noqa: F401


def told(store, *args):
    found = CliRunner().invoke(cli, [*args, "--store", store.address], standalone_mode=False)
    if found.exception:
        raise found.exception
    return found.output


class TestOneInterval:
    async def test_identical_scores_are_not_equivalent_by_themselves(self, run_suite, store):
        """Five cases, all 100: the interval was printed beside `equivalent`, which it was not."""
        run = await run_suite(targets=[arm("a", 5, 5), arm("b", 5, 5)], cases=cases(5))
        found = ft.compare(run, "a", "b", margin=0.01)
        assert found.verdict == "cannot tell" and found.ci95 == pytest.approx((-0.450720, 0.450720), abs=1e-6)
        assert ft.compare(run, "a", "b", margin=0.46).verdict == "equivalent"
        assert "a and b are too close to call" in told(store, "compare", run.id, "--margin", "1")

    async def test_a_constant_difference_is_not_better_by_a_sign_test(self, run_suite, as_marked):  # noqa: F811
        """Twenty cases of .52 against .50: `better` was printed beside an interval around 0."""
        run = await run_suite(targets=[marks("a", [0.52] * 20), marks("b", [0.5] * 20)], cases=cases(20), scorer=NUMBER)
        found = ft.compare(run, "a", "b")
        assert found.verdict == "cannot tell" and found.ci95 == pytest.approx((-0.121891, 0.156326), abs=1e-6)
        sure = ft.compare(run, "a", "b", largest=0.05)
        assert sure.verdict == "better" and sure.ci95[0] > 0
        with pytest.raises(FairtrialError, match=r"more than the stated largest difference of 1 point"):
            ft.compare(run, "a", "b", largest=0.01)

    @pytest.mark.slow
    async def test_the_gate_says_which_interval_it_is(self, run_suite):
        before = await run_suite(targets=[arm("m", 160, 200)], cases=cases(200))
        after = await run_suite(targets=[arm("m", range(1, 161), 200)], cases=cases(200))
        found = gate(sources_of(after)[0], sources_of(before)[0], Terms())
        (check,) = [check for check in found.checks if check.name == "regression"]
        assert "95 % CI" in check.message and "90%" not in check.message
        assert check.interval == ft.compare([after, before]).pairs[0].ci95

    @pytest.mark.slow
    async def test_a_gate_that_cannot_tell_says_what_would(self, run_suite, store):
        before = await run_suite(targets=[arm("m", 30)], cases=cases())
        after = await run_suite(targets=[arm("m", range(6, 34))], cases=cases())
        scores = [sources_of(after)[0], sources_of(before)[0]]
        found = gate(*scores, Terms(min_coverage=0))
        (check,) = [check for check in found.checks if check.name == "regression"]
        assert (
            check.result == "cannot tell"
            and "cases would be enough to tell" in check.message
            and found.exit_code == 101
        )
        assert [gate(*scores, Terms(unsure=how)).exit_code for how in ("pass", "fail", "101")] == [0, 100, 101]
        shown = CliRunner().invoke(
            cli,
            ["gate", after.id, "--against", before.id, "--unsure", "pass", "--store", store.address],
            standalone_mode=False,
        )
        assert shown.return_value == 0 and "--unsure pass: exit 0" in shown.output

    @pytest.mark.slow
    async def test_no_word_for_the_size_of_an_effect(self, run_suite):
        """`A negligible effect` stood beside 6 points that mattered."""
        run = await run_suite(targets=[arm("a", 190, 200), arm("b", 160, 200)], cases=cases(200))
        found = ft.compare(run, "a", "b")
        assert found.verdict == "better" and "effect" not in sentence(found)

    def test_nothing_is_rounded_across_what_decides(self):
        from fairtrial.core.formatting import Scale

        assert Scale("").interval((0.0004, 0.3)) == "[+0.04, +30.0]"
        assert Scale("").interval((-0.2, -0.00001)) == "[-20.0, -0.001]"
        assert Scale("").interval((-0.01, 0.0499999), 0.05) == "[-1.0, +4.99999]"
        assert p_words(0.04999) == "0.04999" and p_words(0.0501) == "0.050"

    @pytest.mark.slow
    async def test_other_tests_agree_with_the_verdict_and_not_with_the_raw_p(self, run_suite):
        """Six pairs: a raw p of 2 % is no verdict, and tests below 5 % do not `agree` with it."""
        run = await run_suite(
            targets=[arm("a", 40), arm("b", range(6, 40)), arm("c", range(5, 40)), arm("d", range(7, 40))],
            cases=cases(),
        )
        for pair in ft.compare(run).pairs:
            lines = brief_lines(pair)
            level = 1 - pair.level
            apart = pair.verdict in ("better", "worse")
            others = [line.p_value for line in pair.robustness if line.p_value is not None]
            agree = all((p < level) == apart for p in others)
            assert any("other tests find" in line for line in lines) == agree


class TestManyThings:
    @pytest.mark.slow
    async def test_other_metrics_are_a_family_of_their_own(self, run_suite, tmp_path):
        """25 metrics of noise: none is called better or worse."""
        (tmp_path / "noise.py").write_text(
            "import random\nfrom fairtrial import Score\n"
            "def score(response, expected):\n"
            "    rng = random.Random(response)\n"
            "    return Score(value=rng.random(), metrics={f'm{n}': rng.random() for n in range(25)})\n"
        )
        run = await run_suite(
            targets=[marks("a", np.arange(30) + 0.5), marks("b", np.arange(30) + 100.5)],
            cases=cases(30),
            scorer={"type": "python", "function": "noise.py:score"},
        )
        found = ft.compare(run)
        assert len(found.metrics) == 25 and all(item.comparisons == 25 and not item.primary for item in found.metrics)
        assert any(item.p_value < 0.05 for item in found.metrics)
        assert {item.verdict for item in found.metrics} == {"cannot tell"}

    @pytest.mark.slow
    async def test_a_suite_names_what_it_is_about(self, run_suite, as_marked, store, tmp_path):  # noqa: F811
        values = np.random.default_rng(1).uniform(0.3, 0.9, 20)
        run = await run_suite(
            targets=[marks("a", values), marks("b", values[::-1])],
            cases=cases(20),
            scorer=NUMBER,
            primary_metric="tokens",
        )
        found = ft.compare(run)
        assert found.metric == "tokens" and "" in {item.metric for item in found.metrics}
        assert json.loads(told(store, "compare", run.id, "--json"))["metric"] == "tokens"
        assert json.loads(told(store, "compare", run.id, "--metric", "score", "--json"))["metric"] == "score"
        assert rank(read_scores(sources_of(run))).metric == "tokens"
        export(run, tmp_path / "run.html")  # tokens are tokens, not hundreds of them
        assert f"{found.pairs[0].difference:.1f}" in (tmp_path / "run.html").read_text()

    @pytest.mark.slow
    async def test_ranks_follow_the_pairs(self, run_suite):
        """A wins 12, ties 88, loses 0: `compare` said better, and `rank` 1–2 for both."""
        run = await run_suite(targets=[arm("a", 62, 100), arm("b", 50, 100)], cases=cases(100))
        assert ft.compare(run, "a", "b").verdict == "better"
        assert [(place.rank, place.worst_rank) for place in rank(read_scores(sources_of(run))).places] == [
            (1, 1),
            (2, 2),
        ]

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("seed", "arms", "expected"),
        [
            (0, 3, [(2, 3), (2, 3), (1, 1)]),
            (2, 8, [(7, 8), (5, 8), (5, 7), (4, 7), (2, 5), (1, 4), (1, 4), (1, 3)]),
        ],
    )
    async def test_rank_sets_equal_those_of_a_reference(self, run_suite, as_marked, seed, arms, expected):  # noqa: F811
        """`SimultaneousRanking` of multiple-inference 1.2.0 (Mogstad et al. 2020) on the same scores. Over twelve data
        sets 51 of 64 sets were the same; of the others, 11 were narrower here, for Holm steps down and it does not."""
        rng = np.random.default_rng(seed)
        hard = rng.normal(0, 1, 60)
        skill = np.linspace(0, rng.choice([0.3, 0.8, 1.5]), arms)
        scores = 1 / (1 + np.exp(-(skill[:, None] - hard[None, :])))
        scores = np.clip(scores + rng.normal(0, 0.15, scores.shape), 0, 1)
        run = await run_suite(
            targets=[marks(f"m{n}", values) for n, values in enumerate(scores)], cases=cases(60), scorer=NUMBER
        )
        places = {place.label: (place.rank, place.worst_rank) for place in rank(read_scores(sources_of(run))).places}
        assert [places[f"m{n}"] for n in range(arms)] == expected


class TestFailures:
    @pytest.mark.slow
    async def test_a_verdict_that_failures_could_turn_depends_on_them(self, run_suite):
        frail = arm("frail", 10, 40, faults={"refused": 0.3})
        run = await run_suite(targets=[arm("steady", 24), frail], cases=cases(), retry={"attempts": 1})
        found = ft.compare(run, "steady", "frail")
        low, high = found.failures.against_a, found.failures.against_b
        assert low.difference < found.difference < high.difference and low.count == high.count == 40
        assert found.verdict == "depends on failures" and low.verdict == "cannot tell"
        assert sentence(found) == (
            "Whether steady is better than frail depends on the trials that failed; without them, it is ahead by 44 points "
            "(95 % CI 24.4 to 64.5)."
        )
        assert len([line for line in brief_lines(found) if "if every failed trial counted against" in line]) == 2
        assert rank(read_scores(sources_of(run))).places[0].worst_rank == 2

    @pytest.mark.slow
    async def test_what_was_declared_stays_declared(self, run_suite, as_marked):  # noqa: F811
        """`--largest` made the verdict, and the bounds for failures were drawn without it."""
        frail = marks("frail", [0.5] * 100)
        frail["options"]["faults"] = {"refused": 0.02}
        run = await run_suite(
            targets=[marks("a", [0.53] * 100), frail], cases=cases(100), scorer=NUMBER, retry={"attempts": 1}
        )
        found = ft.compare(run, "a", "frail", largest=0.05)
        low, high = found.failures.against_a, found.failures.against_b
        assert low.difference < found.difference < high.difference
        for bound in (low, high):
            assert bound.ci95[1] - bound.ci95[0] == pytest.approx(found.ci95[1] - found.ci95[0])

    @pytest.mark.slow
    async def test_bets_are_made_anew_with_failures(self, run_suite):
        run = await run_suite(
            RunOptions(stop_when="decided"),
            targets=[arm("good", 300, 400), arm("bad", 80, 400, faults={"refused": 0.1})],
            cases=cases(400),
            retry={"attempts": 1},
        )
        found = ft.compare(run, "good", "bad")
        low, high = found.failures.against_a, found.failures.against_b
        assert found.method == "anytime-valid bets" and low.ci95[0] < found.ci95[0] and low.ci95[1] < high.ci95[1]
        assert low.count > found.count


class TestStopped:
    @pytest.mark.slow
    async def test_everything_shows_the_interval_that_holds(self, run_suite, store, tmp_path):
        stop = RunOptions(stop_when="decided")
        run = await run_suite(stop, targets=[arm("good", 300, 400), arm("bad", 80, 400)], cases=cases(400))
        assert run.status == "stopped"
        found = ft.compare(run, "good", "bad")
        assert found.method == "anytime-valid bets" and found.difference == pytest.approx(sum(found.ci95) / 2)
        assert found.verdict == "better" and found.ci95[0] > 0
        shown = {item["arm"]: item["ci95"] for item in json.loads(told(store, "show", run.id, "--json"))["arms"]}
        ranked = {place.label: place.aggregate.ci95 for place in rank(read_scores(sources_of(run))).places}
        for one in run.arms:
            assert one.aggregate.method == "anytime-valid bets"
            assert shown[one.arm] == pytest.approx([100 * bound for bound in one.aggregate.ci95])
            assert ranked[one.arm] == pytest.approx(one.aggregate.ci95)
        (check,) = gate(sources_of(run)[0], None, Terms(min_score=0.1, arms=("good",), min_coverage=0)).checks[1:]
        assert check.interval == run.arms[0].aggregate.ci95
        assert any("too large on average" in note for note in notes(run.summary()))
        assert ft.compare(run, "good", "bad", margin=2.0).verdict == "better"  # a margin beyond the scale
        export(run, tmp_path / "run.md")
        assert "too large on average" in (tmp_path / "run.md").read_text()

    async def test_its_metrics_hold_too(self, run_suite):
        run = await run_suite(
            RunOptions(stop_when="decided"),
            targets=[{"id": name, "target": "mock:x", "options": {"answer": name}} for name in ("good", "poor")],
            judge={"target": "mock:judge", "options": {"verdict": {"marks": {"good": 5, "poor": 2}, "otherwise": 1}}},
            scorer="golden_judge",
            cases=cases(60),
        )
        for one in run.arms:
            low, high = one.aggregate.ci95
            for metric in one.metrics.values():
                assert metric.ci95 == pytest.approx((1 + 4 * low, 1 + 4 * high))
                assert metric.mean == pytest.approx(1 + 4 * one.aggregate.mean)

    @pytest.mark.slow
    async def test_a_gate_looks_at_what_was_asked(self, run_suite):
        stopped = await run_suite(
            RunOptions(stop_when="decided"), targets=[arm("good", 300, 400), arm("bad", 80, 400)], cases=cases(400)
        )
        before = await run_suite(targets=[arm("good", 80, 400), arm("bad", 80, 400)], cases=cases(400))
        assert stopped.status == "stopped"
        found = gate(sources_of(stopped)[0], sources_of(before)[0], Terms(arms=("good",), min_coverage=0.9))
        (check,) = [check for check in found.checks if check.name == "regression"]
        assert check.result == "passed" and "can be compared" not in check.message


class TestLabels:
    @pytest.mark.slow
    async def test_a_judge_that_favours_an_arm_no_longer_decides(self, run_suite, store):
        """The judge gives the wordy arm full marks; people see no difference."""
        judge = {"target": "mock:judge", "options": {"verdict": {"marks": {"wordy": 10}, "otherwise": 5}}}
        run = await run_suite(
            targets=[
                {
                    "id": word,
                    "target": "mock:x",
                    "options": {"answers": {f"c{n:03}": f"{word} {n}" for n in range(120)}},
                }
                for word in ("wordy", "plain")
            ],
            cases=[{"id": f"c{n:03}", "input": f"case c{n:03}", "expected": "x"} for n in range(120)],
            scorer="llm_judge",
            judge=judge,
        )
        before = ft.compare(run, "wordy", "plain")
        assert before.verdict == "better" and before.labels == 0
        chosen = {f"c{n:03}" for n in range(0, 120, 4)}
        rng = np.random.default_rng(1)
        labels = [
            PersonLabel(trial.trial_id, float(rng.choice([0.4, 0.5, 0.6])), sample=drawn_mark(run.id, trial.trial_id))
            for trial in run.trials()
            if trial.case_id in chosen
        ]
        add_labels(run, labels, by="ann")
        after = ft.compare(run, "wordy", "plain")
        assert (after.labels, after.verdict) == (30, "cannot tell") and after.method == "corrected by 30 labels"
        assert after.ci95[0] < 0 < after.ci95[1] and after.as_judged.difference == before.difference
        assert any("as the judges scored it: +" in line for line in brief_lines(after))
        assert "Corrected by human labels on 30 cases" in told(store, "compare", run.id)
        assert rank(read_scores(sources_of(run))).places[0].worst_rank == 2


class TestUnknown:
    @pytest.mark.slow
    async def test_an_unknown_variance_stays_unknown(self, run_suite, store, tmp_path):
        run = await run_suite(targets=[arm("a", 30), arm("b", 20)], cases=cases())
        export(run, tmp_path / "run.html")
        page = (tmp_path / "run.html").read_text()
        assert "without repeats, that of cases contains that of repeats" in page and "repeats 0 %" not in page
        assert "unknown" in told(store, "variance", run.id)

    @pytest.mark.slow
    async def test_noise_is_measured_or_not_known(self, run_suite, store):
        keys = {"scorer": "llm_judge", "judge": {"target": "mock:judge", "options": {"verdict": {"otherwise": 5}}}}
        once = await run_suite(targets=[arm("a", 30)], cases=cases(), **keys)
        assert any("not known: three repeats" in note for note in notes(once.summary()))
        twice = await run_suite(targets=[arm("a", 30)], cases=cases(), repeats=2, **keys)
        assert any("would differ by up to 0.0 points" in note for note in notes(twice.summary()))
        assert not any("5–10" in note for note in (*notes(once.summary()), *notes(twice.summary())))


class TestFewCases:
    async def test_what_can_never_show_is_said(self, run_suite, store):
        """All right against all wrong: with four cases no score could show any difference, with five none of these."""
        for count, why in (
            (4, "are too few to show any difference (at least 5 are needed)"),
            (5, "are not enough yet"),
        ):
            run = await run_suite(targets=[arm("a", count, count), arm("b", 0, count)], cases=cases(count))
            found = ft.compare(run, "a", "b")
            assert found.verdict == "cannot tell" and found.detectable is None
            assert f"{count} cases {why}" in sentence(found)
        six = await run_suite(targets=[arm("a", 6, 6), arm("b", 0, 6)], cases=cases(6))
        assert ft.compare(six, "a", "b").verdict == "better"

    @pytest.mark.slow
    async def test_plans_are_made_for_the_interval_that_will_be_used(self, run_suite, as_marked, store):  # noqa: F811
        values = np.clip(0.5 + np.random.default_rng(3).normal(0, 0.09, 20), 0, 1)
        run = await run_suite(
            targets=[marks("a", values.round(3)), marks("b", [0.5] * 20)], cases=cases(20), scorer=NUMBER
        )
        scores = read_scores(sources_of(run))
        pair = plan_power(scores, choose(scores), deltas=[0.1], margins=[0.05]).pairs[0]
        shown = ft.compare(run, "a", "b")
        assert shown.method == "bounded" and pair.detectable == pytest.approx(shown.detectable, rel=0.1)
        ((_, ((_, needed),)),) = pair.cases_needed
        assert 30 <= needed <= 80 and pair.for_margin[0].gate > 60

    @pytest.mark.slow
    async def test_kinds_of_cases_share_what_may_be_false(self, run_suite):
        rng = np.random.default_rng(1)
        kinds = [
            {**case, "difficulty": "hard" if n % 2 else "easy", "category": f"k{n % 3}"}
            for n, case in enumerate(cases(60))
        ]
        run = await run_suite(
            targets=[arm(name, set(np.flatnonzero(rng.random(60) < 0.5).tolist()), 60) for name in "abcd"], cases=kinds
        )
        found = ft.compare(run)
        assert {group.verdict for pair in found.pairs for group in pair.groups} == {"cannot tell"}
        assert all(
            item.p_value >= min(1.0, 12 * item.test.p_value) - 1e-9 for pair in found.pairs for item in pair.differs
        )


class TestPasses:
    @pytest.mark.slow
    async def test_right_at_least_once_and_every_time(self, run_suite, store, tmp_path):
        answers = {f"c{n:02}": ["42", "42", "x"] if n < 5 else "42" for n in range(10)}
        run = await run_suite(
            repeats=3, targets=[{"id": "m", "target": "mock:x", "options": {"answers": answers}}], cases=cases(10)
        )
        (one,) = run.arms
        assert [item.k for item in one.passes] == [2, 3]
        assert one.passes[-1].at_least_once.mean == 1 and one.passes[-1].every_time.mean == pytest.approx(0.5)
        (shape,) = document(run.summary())["arms"]
        assert shape["passes"][0]["pass_hat_k"]["mean"] == pytest.approx(100 * (5 + 5 / 3) / 10)
        assert "right at least once in 3 (pass@3): 100.0" in told(store, "show", run.id)
        export(run, tmp_path / "run.md")
        assert "right every time (pass^3): 50.0" in (tmp_path / "run.md").read_text().replace("\\", "")

    async def test_marks_have_no_passes(self, run_suite, as_marked):  # noqa: F811
        run = await run_suite(repeats=2, targets=[marks("a", [0.5] * 4)], cases=cases(4), scorer=NUMBER)
        assert run.arms[0].passes == []


class TestPlanning:
    @pytest.mark.slow
    async def test_a_margin_and_what_a_pilot_does_not_know(self, run_suite, store):
        run = await run_suite(targets=[arm("a", 40), arm("b", 28)], cases=cases())
        scores = read_scores(sources_of(run))
        pair = plan_power(scores, choose(scores), deltas=[0.1], margins=[0.05]).pairs[0]
        (row,) = pair.for_margin
        assert row.gate < row.equivalent and 0 < row.chance < 0.3
        shown = told(store, "power", run.id, "--margin", "5")
        assert f"{row.gate:,} pass a gate with that margin" in " ".join(shown.split())

    @pytest.mark.slow
    async def test_an_earlier_run_on_more_cases(self, run_suite, store):
        rng = np.random.default_rng(2)
        hard = rng.random(300)

        def right(p, n, seed):
            return set(np.flatnonzero(hard[:n] < p + np.random.default_rng(seed).normal(0, 0.03, n)).tolist())

        before = await run_suite(
            targets=[arm("a", right(0.7, 300, 1), 300), arm("b", right(0.4, 300, 2), 300)], cases=cases(300)
        )
        now = await run_suite(
            targets=[arm("a", right(0.7, 80, 3), 80), arm("b", right(0.4, 80, 4), 80)], cases=cases(80)
        )
        scores = read_scores(sources_of(now))
        from fairtrial.analyse.compare import compare

        plain = compare(scores, choose(scores)).pairs[0]
        found = compare(scores, choose(scores), earlier=read_scores(find_sources([before.id], store))).pairs[0]
        assert found.variance_saved > 0.3 and np.ptp(found.ci95) < np.ptp(plain.ci95)
        shown = told(store, "compare", now.id, "--earlier", before.id)
        assert "An earlier run on more cases reduces the variance by" in shown
        same = compare(scores, choose(scores), earlier=scores)
        assert same.pairs[0].variance_saved is None
        assert any("The earlier run was not used" in note for note in same.notes)
