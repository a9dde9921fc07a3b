"""What figures say and show, each with the smallest input that shows it."""

import sys
from types import SimpleNamespace

import msgspec
import pytest

from fairtrial.analyse.offer_rates import OfferRate
from fairtrial.analyse.pair_board import BoardArm, PairBoard
from fairtrial.present.figures import tools
from fairtrial.present.figures.boards import board_forest, small_board
from fairtrial.present.figures.leaders import _tokens, cost_figures
from fairtrial.present.figures.pairs import _kinds_words
from fairtrial.present.words.leaderboards import decided_words
from fairtrial.present.words.tools import _error_lines
from fairtrial.tracks.optimisation.analysis import Cell
from fairtrial.tracks.optimisation.figures import DrawnMeasure, _cell
from fairtrial.tracks.optimisation.words import length_lines


def board(*labels, rated=True):
    arms = [
        BoardArm(label=label, battles=3, won=2, lost=1, rank=1, worst_rank=2, rating=1010.0, ci95=(950.0, 1050.0))
        for label in labels
    ]
    return PairBoard(
        by="votes", battles=3, prompts=3, voters=1, pairs=3, compared=3, arms=arms, better=[], idle=[], concord=None,
        rated=rated, apart=[],
    )  # fmt: skip


@pytest.mark.parametrize(
    ("shown", "compared"), [(board("a", "b"), True), (board("a"), False), (board("a", "b", rated=False), False)]
)
def test_a_board_says_who_was_chosen_over_the_first_if_that_means_anything(shown, compared):
    assert ("Chosen over a" in board_forest(shown, lambda name: f"#{name}")) is compared


def test_marks_of_a_small_board_are_in_the_middle_of_their_rows():
    assert 'cy="18"' in small_board(board("a", "b"), 2)


def pair(*verdicts):
    groups = [SimpleNamespace(by="tag", value=f"t{n}", verdict=verdict) for n, verdict in enumerate(verdicts)]
    return SimpleNamespace(groups=[*groups, SimpleNamespace(by="category", value="x", verdict="better")])


@pytest.mark.parametrize(
    ("verdicts", "words"),
    [
        (["better", "worse"], "Decided: t0, t1."),
        (["better", "unsure", "unsure"], "Decided: t0. The other 2: too few cases to tell."),
        (["unsure"], "None of these groups decides by itself: each has too few cases, or the arms are alike."),
    ],
)
def test_groups_that_decide_are_named(verdicts, words):
    assert _kinds_words(pair(*verdicts), "tag") == words


def test_a_single_pair_needs_no_count_of_decided_pairs():
    def leaderboard(*verdicts):
        return SimpleNamespace(distances={"a": {str(n): SimpleNamespace(verdict=v) for n, v in enumerate(verdicts)}})

    assert decided_words(leaderboard("better")) == ""
    assert decided_words(leaderboard("better", "unsure", "equivalent")) == "2 of 3 pairs are decided."


def test_tokens_per_answer_are_unknown_without_answers_or_tokens():
    found = [(10, 4), (None, 4), (10, 0)]
    arms = [SimpleNamespace(completion_tokens=tokens, scored=scored) for tokens, scored in found]
    assert [_tokens(arm) for arm in arms] == [2.5, None, None]


@pytest.mark.parametrize(("higher", "tones"), [(True, ["lead", "behind", ""]), (False, ["behind", "lead", ""])])
def test_what_differs_from_the_mean_is_marked(higher, tones):
    how = DrawnMeasure("m", 1.0, 2, 1.0, "", higher)
    bounds = [(0.6, 0.8), (0.1, 0.3), (0.3, 0.7)]
    cells = [Cell(mean=0.5, std_dev=None, within=None, ci95=ci95, problems=9) for ci95 in bounds]
    assert [_cell(cell, 0.5, how).tone for cell in cells] == tones
    assert _cell(cells[0], None, how).tone == ""


def test_tools_that_recovered_are_counted():
    recovered = OfferRate(hits=1, of=2, share=0.5, ci95=None)
    (line,) = _error_lines(SimpleNamespace(recovered=recovered, invalid=[]))
    assert line.startswith("after an error, the same tool worked later in 1 of 2 trials")
    none = OfferRate(hits=0, of=0, share=None, ci95=None)
    assert _error_lines(SimpleNamespace(recovered=none, invalid=[("s.t", "no `x`", 3)])) == [
        "3 × wrong arguments for s.t: no `x`"
    ]


def test_arms_that_were_never_compared_stand_below_all_others():
    idle = msgspec.structs.replace(board("a", "b"), idle=["c"])
    shown = {most: board_forest(idle, lambda name: f"#{name}", most) for most in (None, 1)}
    assert "not compared yet" in shown[None] and "not compared yet" not in shown[1]
    assert "not compared yet" not in board_forest(board("a", "b"), lambda name: f"#{name}")


class TestCost:
    @staticmethod
    def leaderboard(*means):
        places = [
            SimpleNamespace(label=f"m{n}", aggregate=SimpleNamespace(mean=mean, ci95=(mean - 0.1, mean + 0.1)))
            for n, mean in enumerate(means)
        ]
        return SimpleNamespace(metric="", leading=places, places=places)

    def test_points_have_the_scores_with_their_intervals(self, monkeypatch):
        drawn = []
        monkeypatch.setattr(
            sys.modules[cost_figures.__module__], "scatter", lambda points, **_: drawn.append(points) or ""
        )
        arms = {
            f"m{n}": SimpleNamespace(
                cost_usd=cost, scored=10, latency_ms=SimpleNamespace(p50=None), completion_tokens=None
            )
            for n, cost in enumerate((0.02, 0.01))
        }
        (figure,) = cost_figures(self.leaderboard(0.5, 0.6), arms)
        assert figure.words == "m1 costs 50 % less than m0"
        assert [point.x for point in drawn[0]] == pytest.approx([2.0, 1.0])
        assert [end for point in drawn[0] for end in point.ci] == pytest.approx([40, 60, 50, 70])


def test_only_gains_in_other_metrics_have_figures_of_their_own(monkeypatch):
    monkeypatch.setattr(tools, "_lift_row", lambda lift, links: lift)
    monkeypatch.setattr(tools, "small_forest", lambda rows, **_: "")
    lifts = [
        SimpleNamespace(arm="a", metric=metric, paired=SimpleNamespace(difference=0.1))
        for metric in ("", "answer_relevance")
    ]
    report = SimpleNamespace(metric="", arms=[SimpleNamespace(arm="a", servers=["s"], skills=[])])
    figures = tools._metric_figures(SimpleNamespace(lifts=lifts), report, None)
    assert [figure.name for figure in figures] == ["answer relevance"]


def test_styles_of_like_length_need_no_remark():
    def lengths(*words):
        return SimpleNamespace(
            lengths=[SimpleNamespace(style=f"s{n}", words=n, fewest=n, most=n, wordings=1) for n in words]
        )

    assert len(length_lines(lengths(2, 3))) == 1
    assert "differ by up to 4 words" in length_lines(lengths(2, 6))[1]
