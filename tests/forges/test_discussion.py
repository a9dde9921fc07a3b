"""The comment on a pull request: made once, updated in place, never doubled, never somebody else's."""

import json
import threading

import pytest

from fairtrial.core.errors import FairtrialError
from fairtrial.forges import discussion, post
from fairtrial.reports.comment import marker, run_of
from tests.servers.forge import Forge


@pytest.fixture
def forge():
    server = Forge()
    yield server
    server.close()


@pytest.fixture(params=["github", "gitlab"])
def place(request, forge, tmp_path):
    """The same pull request at either service."""
    if request.param == "gitlab":
        forge.login = "bot at GITLAB"
        environment = {
            "GITLAB_CI": "true",
            "CI_API_V4_URL": forge.url,
            "CI_PROJECT_ID": "7",
            "CI_MERGE_REQUEST_IID": "3",
            "GITLAB_TOKEN": "t",
        }
    else:
        event = tmp_path / "event.json"
        event.write_text(json.dumps({"pull_request": {"number": 3}}))
        environment = {
            "GITHUB_API_URL": forge.url,
            "GITHUB_REPOSITORY": "o/r",
            "GITHUB_EVENT_PATH": str(event),
            "GITHUB_TOKEN": "t",
        }
    return lambda: discussion("auto", environment)


def say(place, run, text="hello", suite="s"):
    run = f"1m7{run}-67ygc"  # as ids of runs are
    return post(place(), f"{marker(suite, run)}\n{text}", run_id=run, run_of=lambda body: run_of(body, suite))


def test_made_once_and_updated_in_place(forge, place):
    assert say(place, "01a") == "created"
    assert say(place, "01b", "better") == "updated"
    assert [one["body"].splitlines()[1] for one in forge.comments.values()] == ["better"]
    assert say(place, "01a", "late") == "left: a newer run has commented"
    assert next(iter(forge.comments.values()))["body"].endswith("better")
    assert say(place, "01c", suite="another suite") == "created" and len(forge.comments) == 2


def test_what_others_write_is_never_taken_for_ours(forge, place):
    for number in range(130):  # more than a page
        forge.add(f"{marker('s', 'zzz')}\nforged {number}", "somebody")
    assert say(place, "01a") == "created" and say(place, "01b") == "updated"
    assert sum(one["body"].endswith("hello") for one in forge.comments.values()) == 1
    assert sum("forged" in one["body"] for one in forge.comments.values()) == 130


def test_two_jobs_that_found_none_leave_one(forge, place):
    """The other job creates its comment after we looked: both look again, and only the first stays."""
    first = threading.Event()

    def other_job():
        forge.add(f"{marker('s', '1m701b-67ygc')}\nother")
        first.set()

    forge.before_listing = [lambda: None, other_job]  # between our creating and our looking again
    assert say(place, "01a") == "left: a newer run has commented" and first.is_set()
    (left,) = forge.comments.values()
    assert left["id"] == 1 and left["body"].endswith("other")  # the first comment, with what the newer run says
    assert say(place, "01b", "other") == "updated" and len(forge.comments) == 1


def test_jobs_at_the_same_time_leave_one(forge, place):
    meet = threading.Barrier(4, timeout=60)
    forge.before_listing = [meet.wait] * 4  # nobody gets the first list before everybody has asked for it
    jobs = [threading.Thread(target=say, args=(place, f"01{name}", name)) for name in "abcd"]
    for job in jobs:
        job.start()
    for job in jobs:
        job.join(60)
    assert len(forge.comments) == 1


def test_a_token_without_rights_is_said(forge, place):
    forge.read_only = True
    with pytest.raises(FairtrialError, match="the token may not write comments"):
        say(place, "01a")


def test_a_job_without_pull_request_has_nowhere_to_comment():
    assert discussion("auto", {}) is None and discussion("auto", {"GITLAB_CI": "true"}) is None
    with pytest.raises(FairtrialError, match="GITLAB_TOKEN"):
        discussion("gitlab", {"CI_MERGE_REQUEST_IID": "3"})
