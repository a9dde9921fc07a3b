"""Very many arms: work that grows with their number, not its square, and the same numbers on every surface."""

import io
import math
import re

import numpy as np
import pytest
from rich.text import Text

from benchmarks.size import suite
from benchmarks.size.fill import fill
from fairtrial.analyse import pair_comparer, planning
from fairtrial.analyse.compare import compare, compared, decided
from fairtrial.analyse.leaderboard import comparison_leaderboard, run_leaderboard
from fairtrial.analyse.rank import rank
from fairtrial.analyse.run import Run
from fairtrial.analyse.run_numbers import result_numbers
from fairtrial.analyse.score_table import choose, read_scores, sources_of
from fairtrial.cli.forest import forest_lines
from fairtrial.cli.layout import Column, table_lines
from fairtrial.cli.main import _run
from fairtrial.config import RunOptions
from fairtrial.core.errors import FairtrialError
from fairtrial.core.many_arms import MOST_ARMS
from fairtrial.pipeline import load
from fairtrial.present.charts import points
from fairtrial.present.figures import Links
from fairtrial.present.run_view import RunView
from fairtrial.reports.export import write_text
from fairtrial.reports.formats import format_named
from fairtrial.store import Store

CASES = 20
MANY = MOST_ARMS + 12
SAID = "each is compared with the first one only"


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """Return a function for the run of a suite with this many arms, made up once."""
    made = {}

    def run(arms):
        if arms not in made:
            folder = tmp_path_factory.mktemp("arms")
            store = Store(str(folder / "store.db"))
            name = fill(store, suite.write_suite(folder, CASES, 1, arms=arms))
            made[arms] = Run(store, store.find_run(name))
        return made[arms]

    yield run
    for one in made.values():
        one.store.close()


@pytest.fixture
def compared_pairs(monkeypatch):
    """Every pair whose evidence is looked at, in the order of looking."""
    seen = []
    evidence = pair_comparer.PairComparer.__init__

    def noting(self, found, margin):
        seen.append((found.a.label, found.b.label))
        evidence(self, found, margin)

    monkeypatch.setattr(pair_comparer.PairComparer, "__init__", noting)
    return seen


def compared_briefly(run):
    return compared(run, detailed=0)


def ranked_by_scores(run):
    return rank(read_scores(sources_of(run)))


@pytest.mark.parametrize(
    "work", [run_leaderboard, compared_briefly, result_numbers, ranked_by_scores], ids=lambda work: work.__name__
)
def test_pairs_that_are_compared_grow_with_arms(filled, compared_pairs, work):
    counts = []
    for arms in (MANY, 2 * MANY):
        run = filled(arms)
        compared_pairs.clear()
        work(run)
        counts.append(len(compared_pairs))
    assert 0 < counts[1] < 3 * counts[0], counts


def test_as_many_as_people_can_follow_are_compared_with_each_other(filled):
    board = run_leaderboard(filled(MOST_ARMS))
    assert board.every_pair and sum(map(len, board.distances.values())) == math.comb(MOST_ARMS, 2)
    assert not run_leaderboard(filled(MOST_ARMS + 1)).every_pair


def test_every_surface_has_the_same_numbers(filled):
    run = filled(MANY)
    board, comparisons = run_leaderboard(run), compared_briefly(run)
    again = comparison_leaderboard(comparisons)
    assert again is not None and again.places == board.places and again.distances == board.distances
    assert [one.to_first is None for one in board.places] == [True] + [False] * (MANY - 1)
    assert result_numbers(run).overview.leaderboard.places == board.places


def test_a_pair_that_was_picked_has_the_number_that_it_has_among_all(filled):
    scores = read_scores(sources_of(filled(MANY)))
    first = run_leaderboard(filled(MANY)).places[0].label
    among_all = {(pair.a, pair.b): pair for pair in compare(scores, choose(scores), detailed=0).pairs}
    for pair in choose(scores):
        if first in (pair[0].label, pair[1].label):
            (picked,) = decided(scores, [pair], [""], family=choose(scores), detailed=0)
            same = among_all[picked.a, picked.b]
            assert (picked.ci95, picked.verdict, picked.p_adjusted) == (same.ci95, same.verdict, same.p_adjusted)
            assert picked.comparisons == math.comb(MANY, 2)
            assert picked.p_value is None or picked.p_adjusted == min(1.0, picked.p_value * math.comb(MANY, 2))
            excludes_0 = picked.ci95 is not None and not picked.ci95[0] <= 0 <= picked.ci95[1]
            assert excludes_0 == (picked.p_adjusted is not None and picked.p_adjusted < 0.05)


def test_the_comparison_says_what_was_compared(filled):
    run = filled(MANY)
    comparisons = compared(run, detailed=0)
    assert len(comparisons.pairs) == MANY - 1
    assert any(SAID in note and f"{math.comb(MANY, 2):,} pairs (Bonferroni)" in note for note in comparisons.notes)
    view = RunView(run, result_numbers(run), Links())
    assert any(SAID in note for note in view.notes) and not view.matrix


def test_ranks_say_what_the_verdicts_say(filled):
    run = filled(MANY)
    places = run_leaderboard(run).places
    beaten = sum(one.to_first is not None and one.to_first.verdict == "worse" for one in places)
    assert (places[0].rank, places[0].worst_rank) == (1, MANY - beaten)
    for one in places[1:]:
        assert (one.rank, one.worst_rank) == ((2, MANY) if one.to_first.verdict == "worse" else (1, MANY))


def test_a_ranking_leaves_out_what_takes_every_pair(filled):
    ranking = ranked_by_scores(filled(MANY))
    assert len(ranking.places) == MANY and ranking.matrix is None
    assert all(one.rating is None and one.elo is None for one in ranking.places)
    assert any("There are no ratings of more than" in note for note in ranking.notes)


def test_very_many_arms_are_ranked_though_some_arm_failed_on_every_case(filled):
    scores = read_scores(sources_of(filled(4 * MANY)))
    complete = ~np.isnan([arm.means("") for arm in scores.arms]).any(axis=0)
    assert len(rank(scores).places) == 4 * MANY and complete.sum() < CASES


@pytest.mark.parametrize("command", ["rank 1", "variance 1", "compare 1", "show 1", "power 1"])
def test_commands_print_some_of_very_many_arms_and_say_how_many_more(filled, monkeypatch, capsys, command):
    monkeypatch.setenv("FAIRTRIAL_STORE", f"sqlite:///{filled(2 * MANY).store.address}")
    monkeypatch.setenv("COLUMNS", "80")
    assert _run(command.split()) == 0
    lines = capsys.readouterr().out.splitlines()
    assert sum(re.match(r" ?(1|\d+[–-]\d+)? *arm-\d+ ", line) is not None for line in lines) <= 2 * MOST_ARMS
    assert any(re.search(r"and [\d,]+ more (arms|pairs)", line) for line in lines)
    assert max(len(line) for line in lines) <= 80 or command == "power 1"


def test_pairs_that_are_planned_grow_with_arms(filled, monkeypatch):
    planned = []
    one = planning._pair_power
    monkeypatch.setattr(
        planning, "_pair_power", lambda scores, a, b, *more: planned.append(1) or one(scores, a, b, *more)
    )
    scores = read_scores(sources_of(filled(MANY)))
    plan = planning.plan_power(scores, choose(scores), deltas=(0.1,))
    assert len(planned) == MANY - 1 and plan.alpha == pytest.approx(0.05 / math.comb(MANY, 2))


def test_a_run_of_very_many_arms_cannot_stop_early(tmp_path):
    file = suite.write_suite(tmp_path, CASES, 1, arms=MANY)
    with pytest.raises(FairtrialError, match=f"takes at most {MOST_ARMS} arms: this suite has {MANY}"):
        load(file, RunOptions(stop_when="decided"))


def test_the_terminal_shows_the_best_unless_all_are_asked_for(filled):
    run = filled(MANY)
    board, arms = run_leaderboard(run), {one.arm: one for one in run.arms}
    short = [line.plain for line in forest_lines(board, arms, 80, whole=False)]
    assert sum("arm-" in line for line in short) == MOST_ARMS
    assert short[-1].strip() == f"and {MANY - MOST_ARMS} more arms: --details shows them"
    whole = [line.plain for line in forest_lines(board, arms, 80)]
    assert sum("arm-" in line for line in whole) == MANY


@pytest.mark.slow
@pytest.mark.parametrize("form", ["html", "md"])
def test_reports_say_it_too(filled, form):
    file = io.StringIO()
    write_text(filled(MANY), format_named(form), file)
    assert SAID in re.sub(r"\s+", " ", file.getvalue())


def test_the_width_of_a_column_is_worked_out_once():
    class Counted(Text):
        asked = 0

        @property
        def cell_len(self):
            Counted.asked += 1
            return super().cell_len

    def asked(rows):
        Counted.asked = 0
        table_lines([Column("arm", [Counted(str(number)) for number in range(rows)])])
        return Counted.asked

    assert asked(400) < 3 * asked(200)


def test_labels_of_points_are_placed_for_the_best_only(monkeypatch):
    """Each label is held against all points: with as many labels as points, that would be their square."""
    tried = []
    overlap = points._overlap
    monkeypatch.setattr(points, "_overlap", lambda a, b: tried.append(1) or overlap(a, b))

    def work(count):
        tried.clear()
        drawn = [points.Point(f"arm-{n}", 1 + n % 97, 100 * n / count, (0.0, 100.0)) for n in range(count)]
        points.scatter(drawn, x_name="cost")
        return len(tried)

    assert 0 < work(600) < 3 * work(300)


@pytest.mark.parametrize(("count", "drawn"), [(60, 60), (61, 2)])
def test_intervals_of_very_many_points_are_drawn_on_the_line_only(count, drawn):
    """Five hundred of them were one blot."""
    made = [points.Point(f"arm-{n}", 1 + n, 90.0 if n == 30 else 50.0, (20.0, 95.0)) for n in range(count)]
    plot = points.scatter(made, x_name="cost")
    assert plot.count('class="iv thin"') == drawn
    assert ("only those on the line have their intervals" in plot) == (count > 60)
