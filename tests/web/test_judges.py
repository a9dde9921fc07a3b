"""Judges: what is wrong stands next to its field, progress moves with every call, and words are true."""

import re
from html import unescape

import pytest

from fairtrial.config import judge_named
from fairtrial.core.score import Score, Unscored
from fairtrial.core.variables import Variables
from fairtrial.judging.calibration import CalibrationSample, calibration, sample_result
from fairtrial.present.words.judges import agreement_words, bias_words, calibration_headline, calibration_lines
from fairtrial.stats.agreement import Agreement
from fairtrial.workflows.calibrate import acalibrate

from .test_adversity import client, site  # noqa: F401
from .test_result import words


def calibrated(marks, expected, **more):
    """A calibration with these marks, 0 to 100; None is no verdict."""
    samples = [CalibrationSample(id=f"s{n}", question="q", answer="a", score=score) for n, score in enumerate(expected)]
    results = [
        sample_result(sample, [Unscored(kind="verdict", message="no") if mark is None else Score(value=mark / 100)])
        for sample, mark in zip(samples, marks, strict=True)
    ]
    return calibration(results, judge="m", judge_key="k", prompt_hash="p", runs=1, created_at=0.0, **more)


@pytest.mark.parametrize(
    ("marks", "expected", "said"),
    [
        ((8, 50, 100), (0, 50, 100), "gives 8 points too much on poor answers"),
        ((8, 50, 90), (0, 50, 100), "gives 8 points too much on poor answers and 10 too little on good answers"),
        ((0, 50, 100), (0, 50, 100), "gives the right marks"),
        ((2, 48, 100), (0, 50, 100), "is 1 point off on average, neither strict nor lenient"),
        ((70, 70, 70), (0, 50, 100), "gives every answer nearly the same mark"),
        ((None, None, None), (0, 50, 100), "gave no verdict that could be used"),
    ],
)
def test_a_bias_is_said_in_plain_words(marks, expected, said):
    found = calibrated(marks, expected)
    assert bias_words(found) == said
    assert calibration_headline(found).endswith(f"judge: it {said}.")


def test_a_calibration_is_said_in_plain_words():
    lines = calibration_lines(calibrated((100, 50, 0, None), (0, 50, 100, 50)))
    assert lines == [
        "1 of 4 marks are close enough to the right one",
        "off by 67 points on average, by 100 at most",
        "marks poor answers higher than good ones (correlation −1.00)",
        "no verdict on 1 of 4",
    ]


@pytest.mark.parametrize(
    ("value", "ci95", "said"),
    [
        (-0.42, (-0.6, -0.1), "contradict each other"),
        (-0.42, (-0.9, 0.1), "do not agree"),
        (0.3, (-0.1, 0.6), "may agree no more than by chance"),
        (0.5, (0.2, 0.7), "agree only roughly"),
        (0.85, (0.8, 0.9), "agree well"),
        (0.0, None, "do not agree"),
    ],
)
def test_agreement_is_called_agreement_only_where_it_is(value, ci95, said):
    found = agreement_words(Agreement(value=value, ci95=ci95, items=9, raters=2, method="bootstrap"))
    assert found.startswith(f"The judges {said}") and "-" not in found and f"{abs(value):.2f}" in found


async def test_progress_moves_with_every_call(store, tmp_path):
    judge = judge_named("mock:echo", Variables({}), tmp_path)
    seen = []
    await acalibrate(judge, runs=3, store=store, judged=lambda done, total: seen.append((done, total)))
    assert seen[0] == (0, 24) and seen[-1] == (24, 24)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert len({done for done, _ in seen}) > 9  # not only after each of the eight samples


def field_with_problem(page):
    return re.search(r'<(?:input|textarea|select) name="(\w+)"[^>]*aria-invalid="true"', page)[1]


@pytest.mark.parametrize(
    ("changes", "field", "said"),
    [
        ({"judge": "nobody:gpt"}, "judge", "nobody"),
        ({"judge": ""}, "judge", "name the model"),
        ({"judge": "mock:echo", "instructions": "{{ input"}, "instructions", "template"),
        ({"judge": "mock:echo", "runs": "many"}, "runs", "many"),
        ({"judge": "mock:echo", "scorer": "exact"}, "scorer", "llm_judge"),
    ],
)
def test_a_problem_stands_next_to_its_field(client, changes, field, said):  # noqa: F811
    form = {"judge": "mock:echo", "scorer": "golden_judge", "runs": "2", "instructions": "Be fair.", **changes}
    reply = client.post("/judges/calibrate", data=form)
    assert reply.status_code == 422 and field_with_problem(reply.text) == field
    assert said in words(reply.text.split('id="problem"')[1].split("</span>")[0])
    if field != "scorer":
        assert re.search(r"<option selected>golden_judge", reply.text)
    assert form["judge"] in reply.text and "Back" not in reply.text


@pytest.mark.slow
def test_a_judge_that_cannot_be_called_is_named_in_the_form(client, site, monkeypatch):  # noqa: F811
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-key-0001")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    form = {"judge": "openai:gpt-test", "scorer": "llm_judge", "runs": "1", "instructions": "Short."}
    there = client.post("/judges/calibrate", data=form, follow_redirects=False).headers["location"]
    task = site.tasks.find(there.rsplit("/", 1)[1])
    assert task.ended.wait(120)
    page = client.get(there)
    assert field_with_problem(page.text) == "judge" and "Short." in page.text
    assert task.error and task.error.splitlines()[0] in unescape(page.text)


async def test_judges_are_listed_with_a_picture(store, tmp_path, client):  # noqa: F811
    assert "No judge is calibrated yet" in client.get("/judges").text
    judge = judge_named("mock:echo", Variables({}), tmp_path)
    await acalibrate(judge, store=store)
    page = client.get("/judges").text
    assert 'class="dots"' in page and "mock:echo is a poor judge" in page
    address = re.search(r'/judges/[\w-]+(?=">mock:echo)', page)[0]
    shown = client.get(address).text
    assert "The judge against the truth" in shown and "plotbox chart square" in shown
