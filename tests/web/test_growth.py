"""Runs of odd shapes on the page: many repeats of one case, many arms, long answers. Work is counted, not timed."""

import pytest
from starlette.testclient import TestClient

from benchmarks.size import suite
from benchmarks.size.fill import fill
from fairtrial.analyse.run import Run
from fairtrial.analyse.stored_run import StoredRun
from fairtrial.core.many_arms import MOST_ARMS
from fairtrial.core.place import Place
from fairtrial.store import Store
from fairtrial.web.app import make_app
from fairtrial.web.site import Site

LONG = 2_000_000  # characters of an answer


@pytest.fixture(scope="module")
def visited(tmp_path_factory):
    """Return a function for a run of a shape, and a client of its page."""
    sites = []

    def opened(cases, repeats, arms):
        folder = tmp_path_factory.mktemp("shape")
        store = Store(str(folder / "store.db"))
        run = Run(store, store.find_run(fill(store, suite.write_suite(folder, cases, repeats, arms=arms))))
        site = Site(store, folder)
        sites.append(site)
        return run, TestClient(make_app(site))

    yield opened
    for site in sites:
        site.close()
        site.store.close()


@pytest.fixture(scope="module")
def repeated(visited):
    return visited(1, 400, 2)


@pytest.fixture
def records(monkeypatch):
    """The place of every whole trial that is read."""
    read = []
    trial = StoredRun._trial

    def noting(self, row, *more):
        read.append((row["arm_position"], row["repeat"]))
        return trial(self, row, *more)

    monkeypatch.setattr(StoredRun, "_trial", noting)
    return read


def test_a_trial_is_read_without_its_siblings(repeated, records):
    run, client = repeated
    page = client.get(f"/runs/{run.id}/cases/1/2/200")
    assert page.status_code == 200 and records == [(1, 199)]
    assert "repeat 200<" in page.text and "repeat 220<" in page.text and "repeat 221<" not in page.text
    records.clear()
    found = run.trial_at(Place(0, 1, 5))
    assert found is not None and found.repeat == 6 and records == [(1, 5)]
    assert run.trial_at(Place(0, 1, 400)) is None


def test_a_case_shows_some_of_its_repeats_and_says_how_many_more_there_are(repeated, records):
    run, client = repeated
    page = client.get(f"/runs/{run.id}/cases/1")
    assert page.status_code == 200 and len(records) <= 2 * 50
    assert page.text.count("and 350 more answers") == 2
    following = f"/runs/{run.id}/cases/1/1/51"
    assert following in page.text and client.get(following).status_code == 200


def test_the_table_of_cases_has_the_best_of_very_many_arms_and_leads_to_all(visited):
    run, client = visited(3, 1, MOST_ARMS + 5)
    page = client.get(f"/runs/{run.id}?wait=1")
    assert page.text.count('scope="col" data-arm=') == MOST_ARMS and "and 5 more arms" in page.text
    whole = client.get(f"/runs/{run.id}?wait=1&arms=all")
    assert whole.text.count('scope="col" data-arm=') == MOST_ARMS + 5 and "more arms" not in whole.text
    result = client.get(f"/runs/{run.id}/result?wait=1").text
    assert f"The best {MOST_ARMS} of {MOST_ARMS + 5} arms are drawn." in result
    compared = client.get(f"/compare?runs={run.id}&wait=60").text
    assert "each is compared with the first one only" in compared and "Every pair</h2>" not in compared


def test_a_page_holds_the_beginnings_of_long_answers(visited):
    run, client = visited(1, 2, 2)
    with run.store.writing() as connection:
        connection.exec_driver_sql(
            "UPDATE trials SET answer = ?, row_hash = NULL WHERE answer IS NOT NULL", ("word " * (LONG // 5),)
        )
    for address in ("", "/cases/1", "/cases/1/1/1", "/cases/1/1/1?panel=1"):
        page = client.get(f"/runs/{run.id}{address}")
        assert page.status_code == 200 and len(page.text) < 200_000, address


def test_the_board_of_very_many_arms_has_the_best_and_leads_to_all(visited):
    run, client = visited(3, 1, MOST_ARMS + 5)
    run.store.write(
        {
            "votes": [
                {
                    "id": f"v{arm:03}", "run_id": run.id, "case_position": arm % 3, "repeat": 0, "arm_one": arm,
                    "arm_other": arm + 1, "choice": "one", "left": arm, "voter": "ada", "voted_at": 1.0,
                }
                for arm in range(10)
            ]
        }
    )  # fmt: skip
    board = client.get(f"/runs/{run.id}/board?wait=60").text
    assert board.count('class="arm"') == MOST_ARMS and f"Show all {MOST_ARMS + 5} arms" in board
    whole = client.get(f"/runs/{run.id}/board?wait=60&all=1").text
    assert whole.count('class="arm"') == MOST_ARMS + 5 and "Show all" not in whole
    assert client.get(f"/runs/{run.id}/vote?by=ada").status_code == 200
