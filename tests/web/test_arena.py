"""The arena: what can be voted on, blind votes, labels, and pages while they are written."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from fairtrial.analyse.run import Run
from fairtrial.store import Store, opinions
from fairtrial.store.votes import votes
from fairtrial.tracks.code_arena.pages import GrowingPages
from fairtrial.web.app import make_app
from fairtrial.web.site import Site

ARMS = ("paris", "lyon")


@pytest.fixture
def client(store: Store, tmp_path: Path) -> Any:
    site = Site(store, tmp_path)
    yield TestClient(make_app(site), headers={"origin": "http://testserver"}, raise_server_exceptions=False)
    site.close()


def targets(*names: str) -> list[dict[str, Any]]:
    return [{"id": name, "target": f"mock:{name}", "options": {"answer": f"It is **{name}**."}} for name in names]


def cases(count: int) -> list[dict[str, Any]]:
    return [{"id": f"c{n}", "input": f"Question {n}?", "expected": "It is **paris**."} for n in range(count)]


def field(page: str, name: str) -> str:
    found = re.search(rf'name="{name}" value="([^"]*)"', page)
    assert found, f"no field {name}"
    return found[1]


def vote(client: TestClient, run: Run, choice: str, by: str = "me") -> Any:
    page = client.get(f"/runs/{run.id}/vote?by={by}").text
    data = {"ballot": field(page, "ballot"), "by": by, "choice": choice}
    return client.post(f"/runs/{run.id}/vote", data=data)


async def test_the_question_is_on_top_in_full_and_no_name_is_seen_before_the_vote(
    client: TestClient, run_suite: Any
) -> None:
    run = await run_suite(targets=targets("paris", "lyon"), cases=[{**cases(1)[0], "input": "Long question. " * 150}])
    page = client.get(f"/runs/{run.id}/vote?by=me").text
    question = page.index("Long question.")
    assert page.count("Long question.") == 150 and question < page.index('aria-label="Left answer"')
    assert "<summary>" not in page and "<strong>lyon</strong>" in page  # not folded; Markdown is rendered
    assert "pair 1 of 1" in page


async def test_after_a_vote_the_names_are_revealed_with_who_won(client: TestClient, run_suite: Any) -> None:
    run = await run_suite(targets=targets(*ARMS), cases=cases(3))
    page = client.get(f"/runs/{run.id}/vote?by=me").text
    left = page.split('aria-label="Left answer"')[1].split("</section>")[0]
    winner, loser = ARMS if "paris" in left else ARMS[::-1]
    shown = vote(client, run, "left").text
    assert f"<b>{winner}</b> over <b>{loser}</b>" in shown and "pair 2 of 3" in shown
    judge = "The score prefers the same." if winner == "paris" else "The score prefers paris."
    assert judge in shown and f"Left was {winner}." in shown


@pytest.mark.parametrize(("choice", "words"), [("tie", "a tie"), ("neither", "both bad")])
async def test_a_tie_and_two_bad_answers_are_revealed_too(
    choice: str, words: str, client: TestClient, run_suite: Any
) -> None:
    run = await run_suite(targets=targets(*ARMS), cases=cases(2))
    assert words in vote(client, run, choice).text


@pytest.mark.slow
async def test_a_vote_is_undone_and_its_pair_comes_again_on_the_same_sides(
    client: TestClient, run_suite: Any, store: Store
) -> None:
    run = await run_suite(targets=targets(*ARMS), cases=cases(5))
    before = client.get(f"/runs/{run.id}/vote?by=me").text
    shown = vote(client, run, "right").text
    undo = re.search(r'name="undo" value="([^"]+)"', shown)
    assert undo and len(list(votes(store, run.id))) == 1
    other = client.post(f"/runs/{run.id}/vote", data={"by": "somebody else", "undo": undo[1]})
    assert len(list(votes(store, run.id))) == 1 and "Nothing was counted" in other.text  # not theirs
    again = client.post(f"/runs/{run.id}/vote", data={"by": "me", "undo": undo[1]}).text
    assert not list(votes(store, run.id)) and "pair 1 of 5" in again
    sides = [page.split('<div class="half sides">')[1].split("</form>")[0] for page in (before, again)]
    assert [re.findall(r"<strong>(\w+)", side) for side in sides] == [re.findall(r"<strong>(\w+)", sides[0])] * 2
    assert re.search(r"Question · (c\d)", before)[1] == re.search(r"Question · (c\d)", again)[1]  # type: ignore[index]


async def test_a_vote_that_cannot_be_counted_is_not_passed_over_in_silence(client: TestClient, run_suite: Any) -> None:
    run = await run_suite(targets=targets(*ARMS), cases=cases(2))
    data = {"ballot": "of-yesterday", "by": "me", "choice": "left"}
    assert "Nothing was counted" in client.post(f"/runs/{run.id}/vote", data=data).text


@pytest.mark.slow
async def test_every_pair_once_then_the_page_says_so(client: TestClient, run_suite: Any, store: Store) -> None:
    run = await run_suite(targets=targets("paris", "lyon", "nice"), cases=cases(2))
    for _ in range(6):
        reply = vote(client, run, "left")
    assert "You have voted on all 6 pairs." in reply.text and "Your last vote" in reply.text
    rows = {(row["case_position"], row["arm_one"], row["arm_other"]) for row in votes(store, run.id)}
    assert len(rows) == 6


async def test_the_wording_of_an_arm_does_not_tell_it_from_the_other(client: TestClient, run_suite: Any) -> None:
    conditions = {"polite": {"prompt": "Dear model, {{ input }} Thank you."}, "curt": {"prompt": "{{ input }} Now!"}}
    run = await run_suite(targets=targets("paris"), conditions=conditions, cases=cases(1))
    page = client.get(f"/runs/{run.id}/vote?by=me").text
    assert "Question 0?" in page and "Dear model" not in page and "Now!" not in page


async def test_what_models_write_stays_data(client: TestClient, run_suite: Any) -> None:
    evil = "<script>alert(1)</script> <img src=x onerror=alert(2)> [link](javascript:alert(3))"
    mocks = [{"id": n, "target": f"mock:{n}", "options": {"answer": f"{evil} {n}"}} for n in ARMS]
    run = await run_suite(targets=mocks, cases=cases(1))
    for page in (f"/runs/{run.id}/vote?by=me", f"/runs/{run.id}/label"):
        text = client.get(page).text
        assert "<script>alert" not in text and "<img" not in text and 'href="javascript' not in text


@pytest.mark.slow
async def test_the_arena_lists_what_can_be_voted_on(client: TestClient, run_suite: Any, store: Store) -> None:
    alone = await run_suite(cases=cases(2))
    run = await run_suite(targets=targets(*ARMS), cases=cases(4))
    vote(client, run, "left")
    vote(client, run, "left", by="you")
    page = client.get("/arena/votes").text
    assert f"/runs/{run.id}/vote" in page and f"/runs/{alone.id}/vote" not in page
    voted = {(row["case_position"]) for row in votes(store, run.id)}
    assert f"{len(voted)} of 4" in page and "Board of votes" in page
    assert re.search(r"\d+ % \(\d+ to \d+\)", page) or "100 %" in page  # how often the score agrees


def test_an_arena_without_runs_leads_on_with_one_button(client: TestClient) -> None:
    page = client.get("/arena").text.split("Code arena")[0].split('id="main"')[1]
    assert "Nothing to vote on yet." in page and page.count('class="btn') == 1 and 'href="/new"' in page


def test_the_old_address_of_the_code_arena_leads_here(client: TestClient) -> None:
    reply = client.get("/code", follow_redirects=False)
    assert reply.status_code in (301, 302, 307, 308) and reply.headers["location"] == "/arena#code"


async def test_a_board_is_there_without_any_score(client: TestClient, run_suite: Any) -> None:
    failing = {"target": "mock:judge", "options": {"answer": "no verdict"}}
    run = await run_suite(targets=targets(*ARMS), cases=cases(2), scorer="llm_judge", judge=failing)
    vote(client, run, "left")
    page = client.get(f"/runs/{run.id}/board?wait=1").text
    assert "1 vote so far: too few to say who leads." in page and "1 won, 0 lost" in page


# -- labels --------------------------------------------------------------------------------------


async def test_the_score_is_hidden_until_the_answer_is_labelled(
    client: TestClient, run_suite: Any, store: Store
) -> None:
    judge = {"target": "mock:judge", "options": {"verdict": {"otherwise": 8}}}
    run = await run_suite(targets=targets("paris"), cases=cases(3), scorer="llm_judge", judge=judge)
    page = client.get(f"/runs/{run.id}/label?by=me").text
    assert "judge: <b>" not in page and "paris on c" not in page and "0 of 20" in page
    data = {"place": field(page, "place"), "by": "me", "mark": "40"}
    shown = client.post(f"/runs/{run.id}/label", data=data).text
    assert "You: <b>40</b> · judge: <b>" in shown and "paris on c" in shown and "1 of 20" in shown
    result = client.get(f"/runs/{run.id}/label/result?wait=1").text
    assert "On 1 labelled answer, the scores are" in result and "not corrected yet: at least 20 labels" in result
    client.post(f"/runs/{run.id}/label", data={"place": data["place"], "by": "me", "undo": "1"})
    assert not list(opinions.labelled(store, run.id, 0))


# -- pages ---------------------------------------------------------------------------------------

PAGE = "<!doctype html><html><body><h1>Begin</h1>" + "<p>more</p>" * 60 + "<p id='end'>The end</p></body></html>"


def test_a_finished_page_is_shown_once_and_whole() -> None:
    pages = GrowingPages()
    assert "The end" not in (pages.grown((0, 0), PAGE[:400]) or "")
    assert pages.grown((0, 0), PAGE[:420]) is None  # too little more
    assert "The end" in (pages.finished((0, 0), PAGE) or "")
    assert pages.finished((0, 0), PAGE) is None
    assert pages.finished((1, 0), "no page") is None
