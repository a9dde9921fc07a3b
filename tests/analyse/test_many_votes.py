"""Votes and verdicts on very many arms: work that does not grow with the square of their number, or a refusal."""

import math
import random

import pytest

from benchmarks.size import suite
from benchmarks.size.fill import fill
from fairtrial.analyse import pair_board as boards
from fairtrial.analyse import rank as ranks
from fairtrial.analyse.rank import rank
from fairtrial.analyse.run import Run
from fairtrial.analyse.score_table import read_scores, sources_of
from fairtrial.analyse.variance import arm_variances
from fairtrial.core.errors import FairtrialError
from fairtrial.core.ids import new_id
from fairtrial.core.many_arms import MOST_ARMS
from fairtrial.present.words import pair_boards
from fairtrial.present.words.pair_boards import board_next_step
from fairtrial.stats import ratings
from fairtrial.store import Store
from fairtrial.workflows import vote
from fairtrial.workflows.pairwise import apair
from fairtrial.workflows.vote import Poll

CASES = 8
MANY = MOST_ARMS + 4


@pytest.fixture(scope="module")
def voted(tmp_path_factory):
    """Return a function for a run of so many arms that people have voted on, made up once."""
    made = {}

    def run(arms):
        if arms not in made:
            folder = tmp_path_factory.mktemp("arms")
            store = Store(str(folder / "store.db"))
            made[arms] = Run(store, store.find_run(fill(store, suite.write_suite(folder, CASES, 1, arms=arms))))
            store.write({"votes": made_up(made[arms].id, arms, random.Random(arms))})
        return made[arms]

    yield run
    for one in made.values():
        one.store.close()


def made_up(run_id, arms, chance):
    """Votes that link all arms both ways: each against its neighbour, and against a random one."""
    pairs = [(arm, (arm + 1) % arms) for arm in range(arms)] * 2
    pairs += [tuple(chance.sample(range(arms), 2)) for _ in range(6 * arms)]
    common = {"run_id": run_id, "repeat": 0, "voter": "ada", "voted_at": 1.0}
    for number, (one, other) in enumerate(pairs):
        yield {
            **common, "id": new_id(), "case_position": number % CASES, "arm_one": min(one, other),
            "arm_other": max(one, other), "left": one, "choice": chance.choice(("one", "other")),
        }  # fmt: skip


def test_gaps_that_are_worked_out_grow_with_arms(voted, monkeypatch):
    worked_out = []
    error = ratings._jackknife
    monkeypatch.setattr(ratings, "_jackknife", lambda moved: worked_out.append(1) or error(moved))
    counts = []
    for arms in (MANY, 2 * MANY):
        worked_out.clear()
        assert boards.pair_board([voted(arms)], "votes").rated
        counts.append(len(worked_out))
    assert 0 < counts[1] < 3 * counts[0], counts


def test_levels_of_gaps_are_worked_out_once(voted, monkeypatch):
    asked = []
    levels = ranks.holm_levels
    monkeypatch.setattr(ranks, "holm_levels", lambda values: asked.append(len(values)) or levels(values))
    assert boards.pair_board([voted(12)], "votes").rated
    assert asked == [math.comb(12, 2)]


def test_board_and_ranking_of_very_many_arms_agree_and_compare_with_the_first(voted):
    board = boards.pair_board([voted(MANY)], "votes")
    ranking = rank(read_scores(sources_of(voted(MANY))), by="votes")
    assert [arm.label for arm in board.arms] == [place.label for place in ranking.places]
    assert [(arm.rank, arm.worst_rank) for arm in board.arms] == [(one.rank, one.worst_rank) for one in ranking.places]
    assert [arm.to_first is None for arm in board.arms] == [True] + [False] * (MANY - 1)
    assert all(better == board.arms[0].label for better, _ in board.better) and board.brackets == []
    for arm in board.arms[1:]:
        assert arm.to_first.decided == (arm.to_first.ci95 is not None and not 0 < arm.to_first.ci95[0] <= 0.5)
    assert ranking.matrix is None and any("each is compared with the first one only" in note for note in ranking.notes)


def test_more_arms_than_can_be_rated_are_counted_only(voted, monkeypatch):
    for module in (boards, ranks, pair_boards):
        monkeypatch.setattr(module, "MOST_RATED", 11)
    board = boards.pair_board([voted(12)], "votes")
    assert not board.rated and all(arm.won + arm.lost == arm.battles for arm in board.arms)
    assert board_next_step(board) == "There are no ratings of more than 11 arms: this is who won and lost."
    with pytest.raises(FairtrialError, match="at most 11 arms, and there are 12: rank them with --by scores"):
        rank(read_scores(sources_of(voted(12))), by="votes")


def test_a_ballot_is_drawn_without_listing_every_pair(voted, monkeypatch):
    def listing(*_):
        raise AssertionError("every pair was listed")

    monkeypatch.setattr(vote, "combinations", listing)
    poll, drawn = Poll(voted(MANY), "grace", seed=1), set()
    assert poll.total > vote._MANY
    for _ in range(30):
        ballot = poll.next()
        arms = sorted((ballot.left_arm, ballot.right_arm))
        drawn.add((ballot.case_position, *arms))
    assert len(drawn) == 30 and poll.remaining == poll.total - 30


def test_every_pair_is_as_likely_to_be_drawn(voted):
    counts: dict[tuple[int, int], int] = {}
    poll = Poll(voted(5), "grace", seed=2)
    for _ in range(2000):
        pair = poll._any_pair(0)
        assert pair is not None
        counts[pair[2:]] = counts.get(pair[2:], 0) + 1
    assert len(counts) == 10 and all(140 < count < 260 for count in counts.values())


async def test_judges_do_not_compare_every_two_of_very_many_arms(voted):
    said = f"at most {MOST_ARMS} arms, and these are {MANY}, which makes {math.comb(MANY, 2):,} pairs for every case"
    with pytest.raises(FairtrialError, match=f"{said}: choose two with --arms A B"):
        await apair(voted(MANY).id, judge="mock:echo", store=voted(MANY).store)
    chosen = await apair(voted(MANY).id, judge="mock:echo", arms=["arm-0", "arm-9"], store=voted(MANY).store)
    assert {(pair.one, pair.other) for pair in chosen.pairs} == {("arm-0", "arm-9")}


def test_one_case_says_that_nothing_varies_and_what_to_do(tmp_path):
    store = Store(str(tmp_path / "store.db"))
    run = Run(store, store.find_run(fill(store, suite.write_suite(tmp_path, 1, 50, arms=2))))
    with pytest.raises(FairtrialError, match=r"nothing varies yet, .* Add cases to the suite and run it again"):
        arm_variances(run)
    store.close()
