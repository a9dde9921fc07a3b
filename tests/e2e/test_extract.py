"""`extract` from the suite file to the store and back: run, show, rescore, validate."""

import json

import pytest

import fairtrial as ft

SUITE = """\
name: extracting
extract: {after: "Answer:"}
targets:
  - id: model
    target: mock:x
    options:
      answers:
        plain: "<think>Is it Rome?</think>Because.\\nAnswer: Paris"
        letter: "It is (B), the second. Answer: see above."
        own: "Answer: 41 or rather 42"
        whole: "Answer: no"
        none: "no idea"
        wrong: "no idea"
scorer: match
cases:
  - {id: plain, input: q, expected: Paris}
  - {id: letter, input: q, expected: B, extract: choice}
  - {id: own, input: q, expected: 42, scorer: {type: match, extract: number}}
  - {id: whole, input: q, expected: "Answer: no", extract: whole}
  - {id: none, input: q, expected: Paris}
  - {id: wrong, input: q, expected: Paris, extract: {after: "Answer:", missing: wrong}}
"""


@pytest.fixture
def suite(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "suite.yaml"
    path.write_text(SUITE)
    return path


def scores(run) -> dict:
    return {
        trial.case_id: trial.score if trial.status == "scored" else trial.unscored_message for trial in run.trials()
    }


def test_from_the_suite_to_the_store_and_back(cli, suite, tmp_path):
    cli("run", suite, "--quiet")
    run = ft.open_run()
    expected = {"plain": 1, "letter": 1, "own": 1, "whole": 1, "wrong": 0}
    reason = "nothing to score: no 'Answer:' in the answer"
    assert scores(run) == {**expected, "none": reason}
    details = {trial.case_id: (trial.details or {}).get("extracted") for trial in run.trials()}
    assert details == {"plain": "Paris", "letter": "B", "own": "42", "whole": None, "none": None, "wrong": None}

    _, shown, _ = cli("show", "--trials")
    assert "extracted 'Paris'" in shown and "nothing to score" in shown
    _, exported, _ = cli("show", "--trial", run.trial(next(run.trials()).trial_id).trial_id, "--json")
    assert json.loads(exported)["details"] == {"extracted": "Paris"}

    suite.unlink()  # everything that scoring needs is in the store
    assert scores(ft.rescore(run)) == {**expected, "none": reason}
    again = scores(ft.rescore(run, {"type": "contains", "extract": {}}))
    assert again["none"] == 0 and again["plain"] == 1
    inherited = scores(ft.rescore(run, "contains"))
    assert inherited["none"] == reason and inherited["letter"] == 1


def test_problems_have_their_lines(cli, suite):
    suite.write_text(
        SUITE.replace('extract: {after: "Answer:"}', "extract: {aftr: x}", 1)
        .replace("extract: choice}", "extract: choise}")
        .replace("scorer: match\n", "scorer:\n  type: match\n  extract:\n    regex: '(('\n")
        .replace("extract: whole}", "extract: {python: 'own.py:f'}}")
    )
    code, out, err = cli("validate", suite)
    assert code == 1
    text = out + err
    for line, words in (
        (2, "did you mean `after`"),
        (17, "the pattern '((' is not valid"),
        (20, "did you mean `choice`"),
        (22, "there is no file"),
    ):
        assert any(f":{line}" in row and words in row for row in text.splitlines()), (line, words, text)


def test_scorers_that_see_the_whole_answer_work_from_the_store(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.py").write_text(
        "def check(response, vars, messages, latency_ms, cost_usd, tokens):\n"
        "    assert vars == {'lang': 'fr'}\n"
        "    assert messages == [{'role': 'system', 'content': 'Be kind.'}, {'role': 'user', 'content': 'Say hello.'}]\n"
        "    assert latency_ms >= 0 and cost_usd == 0 and tokens['total'] > 0\n"
        "    return True\n"
    )
    (tmp_path / "q.jsonl").write_text('{"input": "hello", "lang": "fr"}\n')
    (tmp_path / "suite.yaml").write_text(
        "name: seeing\nsystem: Be kind.\ntargets: [{target: mock:x, options: {answer: bonjour}}]\ndataset: q.jsonl\n"
        "conditions: {only: {prompt: 'Say {{input}}.'}}\nscorer: {type: python, function: 'own.py:check'}\n"
    )
    assert cli("run", tmp_path / "suite.yaml", "--quiet")[0] == 0
    assert scores(ft.open_run()) == {"row-1": 1}
    assert scores(ft.rescore(ft.open_run())) == {"row-1": 1}
    assert scores(ft.rescore(ft.open_run(), {"type": "cost", "max": 0.01})) == {"row-1": 1}
    assert scores(ft.rescore(ft.open_run(), {"type": "latency", "max": 600_000})) == {"row-1": 1}
