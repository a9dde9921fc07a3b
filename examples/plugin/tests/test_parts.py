"""Every part through its door: in a suite, on the command line, on the web page, in a file."""

import csv
import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from starlette.testclient import TestClient

import fairtrial
from fairtrial.plugins import check_scorer, web_app
from fairtrial_readability.command import command
from fairtrial_readability.scorer import ReadingEase

SUITE = Path(__file__).parent.parent / "suite.yaml"
HOSTILE = "<script>alert(1)</script> is it. \x1b[31mRed & <b>bold</b> administrative responsibilities.\n"


@pytest.fixture
def store(tmp_path):
    return f"sqlite:///{tmp_path}/store.db"


@pytest.fixture
def run(store):
    return fairtrial.run(SUITE, store=store)


@pytest.fixture
def hostile(store):
    suite = fairtrial.Suite(
        name="<i>hostile</i>",
        targets=["mock:echo"],
        scorer="reading_ease",
        cases=[fairtrial.Case(HOSTILE, id="<u>case</u>")],
    )
    return fairtrial.run(suite, store=store)


@pytest.mark.parametrize("goal", [1, 60, 100])
def test_the_scorer_keeps_to_its_contract(goal):
    check_scorer(ReadingEase(goal=goal), answers=[HOSTILE, "The cat sat on the mat."])


def test_the_suite_runs_and_plain_words_are_easier(run):
    means = {arm.arm: arm.aggregate.mean for arm in run.arms}
    assert run.status == "completed" and means["plain"] > means["official"]
    answers = {trial.case_id: trial.answer for trial in run.trials() if trial.arm == "plain"}
    assert answers["pay"] == "After the end, pay is stopped. Help is available."


def test_an_option_that_cannot_be_is_refused(tmp_path):
    text = SUITE.read_text("utf-8")
    for right, wrong, told in (("goal: 60", "goal: 0", "goal"), ("remuneration: pay", '" ": pay', "empty word")):
        (tmp_path / "suite.yaml").write_text(text.replace(right, wrong), "utf-8")
        with pytest.raises(fairtrial.FairtrialError, match=told):
            fairtrial.load_suite(tmp_path / "suite.yaml")


def test_the_command_shows_the_arms(run, store):
    shown = CliRunner().invoke(command, [run.id, "--store", store])
    assert shown.exit_code == 0 and [line.split()[0] for line in shown.output.splitlines()] == [
        "arm",
        "plain",
        "official",
    ]
    document = json.loads(CliRunner().invoke(command, ["--json", "--store", store]).output)
    assert [arm["arm"] for arm in document["arms"]] == ["plain", "official"]


def test_the_report_has_a_row_for_every_answer(run, tmp_path):
    file = fairtrial.export(run, tmp_path / "answers.readability.csv")
    rows = list(csv.DictReader(file.read_text("utf-8").splitlines()))
    assert len(rows) == 6 and {row["arm"] for row in rows} == {"official", "plain"}


def test_the_page_is_in_the_menu_and_on_the_pages_of_runs_and_trials(run, store):
    with web_app(store) as app:
        client = TestClient(app)
        assert '<a href="/readability">Readability</a>' in client.get("/runs").text
        assert f'href="/readability/{run.id}"' in client.get("/readability").text
        assert f'href="/readability/{run.id}"' in client.get(f"/runs/{run.id}").text
        assert "Hardest answers" in client.get(f"/readability/{run.id}").text
        assert "Hardest sentence: Subsequent to" in client.get(f"/runs/{run.id}/cases/2/1/1").text


def test_what_models_write_is_only_text(hostile, store):
    with web_app(store) as app:
        client = TestClient(app)
        for page in ("/readability", f"/readability/{hostile.id}", f"/runs/{hostile.id}/cases/1/1/1"):
            text = client.get(page).text
            assert "Readability" in text
            assert not any(tag in text for tag in ("<script>alert", "<b>bold", "<u>case", "<i>hostile"))
        part = text.partition('<section aria-label="Readability">')[2].partition("</section>")[0]
        assert "Red &amp; &lt;b&gt;bold&lt;/b&gt; administrative" in part and "\x1b" not in part
