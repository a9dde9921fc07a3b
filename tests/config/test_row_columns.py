"""Columns of a dataset with attachments and with turns."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fairtrial as ft
from fairtrial.config import load_suite
from fairtrial.config.dataset import _names, _turns
from fairtrial.core.errors import ProblemsError

PNG = b"\x89PNG\r\n\x1a\n" + b"0" * 20


def suite_of(folder, dataset, target="mock:echo"):
    text = f"name: x\ntargets: [{json.dumps(target)}]\nscorer: contains\ndataset: {json.dumps(dataset)}\n"
    (folder / "suite.yaml").write_text(text)
    return load_suite(folder / "suite.yaml")


@pytest.fixture
def pictures(tmp_path):
    (tmp_path / "img").mkdir()
    (tmp_path / "img" / "a.png").write_bytes(PNG)
    (tmp_path / "img" / "b.png").write_bytes(PNG + b"1")
    (tmp_path / "notes.txt").write_text("Ann is in.")
    rows = ["question;picture;answer", "What?;img/a.png;x", 'Which?;"img/a.png; img/b.png";x', "Who?;notes.txt;Ann",
            "None?;;x"]  # fmt: skip
    (tmp_path / "q.csv").write_text("\n".join(rows))
    return tmp_path


COLUMNS = {"path": "q.csv", "input": "question", "expected": "answer", "attach": "picture"}


def test_a_column_has_pictures(pictures):
    suite = suite_of(pictures, COLUMNS)
    cases = list(suite.cases())
    assert [[file.name for file in case.attach] for case in cases] == [["a.png"], ["a.png", "b.png"], [], []]
    assert cases[2].input == "notes.txt:\nAnn is in.\n\nWho?" and "columns" not in (cases[0].metadata or {})
    assert [file.name for file in suite.files()] == ["a.png", "b.png"]
    assert pictures / "img" / "b.png" in suite.files_used()


def test_pictures_reach_the_target(pictures, monkeypatch):
    monkeypatch.chdir(pictures)
    (pictures / "agent.py").write_text(
        "def see(input, files):\n    return ' '.join(f'{file.name} {len(file.body)}' for file in files)\n"
    )
    run = ft.run(suite_of(pictures, COLUMNS, "python:agent.py:see"))
    assert [trial.answer for trial in run.trials()][:2] == ["a.png 28", "a.png 28 b.png 29"]


def test_another_picture_is_another_plan(pictures):
    before = suite_of(pictures, COLUMNS).plan_id
    (pictures / "img" / "b.png").write_bytes(PNG + b"22")
    assert suite_of(pictures, COLUMNS).plan_id != before


def test_a_picture_that_is_not_there_is_a_problem_of_its_row(pictures):
    (pictures / "img" / "b.png").unlink()
    with pytest.raises(ProblemsError, match=r"there is no file .*b\.png to attach"):
        suite_of(pictures, COLUMNS)


def test_a_column_has_turns(tmp_path):
    rows = [{"talk": ["I am Ann.", "Who am I?"], "answer": "Ann"}, {"talk": "Hello", "answer": "Hello"}]
    (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, rows)))
    suite = suite_of(tmp_path, {"path": "t.jsonl", "turns": "talk", "expected": "answer"})
    assert [(case.input, case.turns) for case in suite.cases()] == [("I am Ann.", ("Who am I?",)), ("Hello", ())]


def test_a_table_has_turns_as_json_and_an_empty_cell_is_the_input(tmp_path):
    (tmp_path / "t.csv").write_text('q,talk,answer\nHi,"[""One"", ""Two""]",Two\nHi,,Hi\n')
    suite = suite_of(tmp_path, {"path": "t.csv", "input": "q", "turns": "talk", "expected": "answer"})
    assert [(case.input, case.turns) for case in suite.cases()] == [("One", ("Two",)), ("Hi", ())]
    assert [trial.score for trial in ft.run(suite).trials()] == [1, 1]


@pytest.mark.parametrize(
    ("cell", "words"),
    [([1], "a list of texts"), ([{"role": "user", "content": "x"}], "without the answers"), ('["x"', "not valid JSON")],
)
def test_other_turns_are_problems(tmp_path, cell, words):
    (tmp_path / "t.jsonl").write_text(json.dumps({"talk": cell}))
    with pytest.raises(ProblemsError, match=words):
        suite_of(tmp_path, {"path": "t.jsonl", "turns": "talk"})


def test_a_target_that_takes_one_question_takes_no_turns(tmp_path):
    (tmp_path / "t.jsonl").write_text(json.dumps({"talk": ["a", "b"]}))
    command = {"target": "command", "options": {"command": ["cat"]}}
    with pytest.raises(ProblemsError, match="not several `turns`"):
        suite_of(tmp_path, {"path": "t.jsonl", "turns": "talk"}, command)


@pytest.mark.slow
@given(st.one_of(st.none(), st.text(max_size=20), st.lists(st.one_of(st.text(max_size=5), st.integers()), max_size=3)))
def test_any_cell_is_read_or_one_sentence(value):
    for read in (_names, _turns):
        try:
            assert all(isinstance(item, str) and item for item in read(value))
        except ValueError as error:
            assert "\n" not in str(error)
