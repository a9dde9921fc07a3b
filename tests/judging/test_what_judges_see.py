"""Judges see the pictures of a case, and everything that was said."""

import base64
import json

import pytest

import fairtrial as ft

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
JUDGE = """
import json

def mark(input, files):
    seen = [f"{file.name} {file.media} {len(file.body)}" for file in files]
    return json.dumps({"reasoning": json.dumps([seen, input]), "score": 10})

def answer(input):
    return "a cat"
"""


@pytest.fixture
def suite(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "judge.py").write_text(JUDGE)
    (tmp_path / "cat.png").write_bytes(PNG)
    case = {"id": "a", "input": "What is it?", "attach": "cat.png"}

    def make(vision=None, **keys):
        judge = {"target": "python:judge.py:mark", **({} if vision is None else {"vision": vision})}
        return {"name": "x", "targets": ["python:judge.py:answer"], "judge": judge, "scorer": "llm_judge",
                "cases": [case], **keys}  # fmt: skip

    return make


def told(run):
    """Return the files that the judge of a run saw, its prompt, and the hash of that."""
    (trial,) = run.trials()
    (judgement,) = run.judgements(trial.trial_id)
    files, text = json.loads(judgement["reasoning"]["reasoning"])
    return files, text, judgement["prompt_hash"]


def test_a_judge_that_can_see_is_shown_the_pictures_of_the_case(suite):
    files, text, hashed = told(ft.run(suite(vision=True)))
    assert files == [f"cat.png image/png {len(PNG)}"]
    assert text.startswith("The question comes with files, which you are shown: cat.png.")
    plain = told(ft.run(suite(vision=True, cases=[{"input": "What is it?"}])))[2]
    assert plain != hashed


@pytest.mark.parametrize("vision", [None, False])
def test_a_judge_that_cannot_see_or_must_not_is_shown_none(suite, vision):
    files, text, _ = told(ft.run(suite(vision=vision)))
    assert files == [] and "comes with files" not in text


def test_a_judge_sees_what_a_simulated_user_said(suite):
    user = {"target": "mock:user", "persona": "You are Ann.", "max_turns": 2, "options": {"answer": "And its colour?"}}
    _, text, _ = told(ft.run(suite(user=user, cases=[{"input": "What is it?"}])))
    assert "USER: What is it?" in text and "ASSISTANT: a cat" in text and "USER: And its colour?" in text


def test_a_scorer_names_its_judges(suite):
    judges = [{"target": "python:judge.py:mark", "id": name} for name in ("one", "two")]
    whole = {key: value for key, value in suite(cases=[{"input": "q"}]).items() if key != "judge"}
    run = ft.run({**whole, "judges": judges, "scorer": {"type": "llm_judge", "by": ["two"]}})
    (trial,) = run.trials()
    assert [judgement["judge"] for judgement in run.judgements(trial.trial_id)] == ["two"]
    wrong = {"type": "all_of", "scorers": [{"type": "llm_judge", "by": ["tow"]}]}
    with pytest.raises(ft.FairtrialError, match="judged by `tow`, which is not defined as a judge; did you mean `two`"):
        ft.run({**whole, "judges": judges, "scorer": wrong})
