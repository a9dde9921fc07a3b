"""The board of votes: the ratings of `rank --by votes`, without scores, and how often judges agree."""

from __future__ import annotations

import random
from typing import Any

import pytest

from fairtrial.analyse.pair_board import pair_board
from fairtrial.analyse.rank import rank
from fairtrial.analyse.score_table import read_scores, sources_of
from fairtrial.present.words.pair_boards import board_headline, board_next_step
from fairtrial.store.votes import Vote, add_vote
from fairtrial.workflows.vote import Poll


def headline(board: Any) -> str:
    return "".join(part.text for part in board_headline(board))


async def voted(run_suite: Any, *, arms: int, count: int, cases: int = 8, sure: float = 1.0) -> Any:
    """A run whose first arms are the ones that people prefer, the more surely the larger `sure` is."""
    run = await run_suite(
        targets=[{"id": f"m{n}", "target": f"mock:m{n}", "options": {"answer": f"m{n}"}} for n in range(arms)],
        cases=[{"id": f"c{n}", "input": f"q{n}", "expected": "m0"} for n in range(cases)],
    )
    poll, chance = Poll(run, "ada", seed=1), random.Random(3)
    for _ in range(count):
        ballot = poll.next()
        assert ballot is not None
        gap = sure * (ballot.right_arm - ballot.left_arm) + chance.gauss(0, 1)
        poll.cast(ballot, "left" if gap > 0.2 else "right" if gap < -0.2 else "tie")
    return run


@pytest.mark.slow
async def test_ratings_are_those_of_rank_by_votes(run_suite: Any) -> None:
    run = await voted(run_suite, arms=4, count=40, sure=0.5)
    board = pair_board([run], "votes")
    ranking = rank(read_scores(sources_of(run)), by="votes")
    assert board.rated and {arm.label for arm in board.arms} == {place.label for place in ranking.places}
    for place in ranking.places:
        arm = next(arm for arm in board.arms if arm.label == place.label)
        assert arm.rating == pytest.approx(place.rating) and arm.ci95 == pytest.approx(place.rating_ci95)
        assert (arm.rank, arm.worst_rank) == (place.rank, place.worst_rank)
    assert board.battles == 40 == board.compared and board.pairs == 48 and board.voters == 1


@pytest.mark.slow
async def test_a_clear_leader_leads_in_words(run_suite: Any) -> None:
    board = pair_board([await voted(run_suite, arms=2, count=40, cases=40, sure=0.9)], "votes")
    assert board.arms[0].label == "m0" and [arm.label for arm in board.leading] == ["m0"]
    assert headline(board).startswith("m0 leads by the votes: people prefer it to m1 ") and "95 % CI" in headline(board)


async def test_few_votes_claim_nothing(run_suite: Any) -> None:
    run = await voted(run_suite, arms=3, count=1)
    board = pair_board([run], "votes")
    assert not board.rated and len(board.idle) == 1 and headline(board) == "1 vote so far: too few to say who leads."
    assert "only won or only lost" in board_next_step(board)
    assert headline(pair_board([run], "verdicts")) == "No judge has compared answers yet."


async def test_agreement_counts_votes_in_which_both_prefer_one(run_suite: Any) -> None:
    run = await run_suite(
        targets=[{"id": n, "target": f"mock:{n}", "options": {"answer": n}} for n in ("right", "wrong")],
        cases=[{"id": f"c{n}", "input": f"q{n}", "expected": "right"} for n in range(4)],
    )
    poll = Poll(run, "ada", seed=1)
    for wanted in ("right", "right", "wrong", ""):
        ballot = poll.next()
        assert ballot is not None
        poll.cast(ballot, "tie" if not wanted else "left" if ballot.left == wanted else "right")
    concord = pair_board([run], "votes").concord
    assert concord is not None and (concord.agreed, concord.decided, concord.judge) == (2, 3, False)


@pytest.mark.slow
async def test_votes_that_go_in_circles_rank_nobody_anywhere(run_suite: Any, store: Any) -> None:
    """m0 beats m1, m1 beats m2, m2 beats m0: `rank`, the board and the words agree that there is no order."""
    run = await run_suite(
        targets=[{"id": f"m{n}", "target": f"mock:m{n}", "options": {"answer": f"m{n}"}} for n in range(3)],
        cases=[{"id": f"c{n}", "input": f"q{n}", "expected": "m0"} for n in range(20)],
    )
    for case in range(20):
        for one, other, choice in ((0, 1, "one"), (1, 2, "one"), (0, 2, "other" if case else "one")):
            vote = Vote(case_position=case, repeat=0, arm_one=one, arm_other=other, choice=choice, left=0)
            add_vote(store, run.id, vote)
    board, ranking = pair_board([run], "votes"), rank(read_scores(sources_of(run)), by="votes")
    assert board.circular and not board.rated and not board.better
    assert {(arm.rank, arm.worst_rank) for arm in board.arms} == {(1, 3)}
    assert {(place.rank, place.worst_rank) for place in ranking.places} == {(1, 3)}
    assert [place.rating for place in ranking.places] == [None] * 3 and ranking.matrix is not None
    assert "who is preferred depends on the pair" in headline(board)
    assert any("A beats B, B beats C" in note for note in ranking.notes)
    assert "A beats B, B beats C" in board_next_step(board)
