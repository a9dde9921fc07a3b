"""The politeness studies again: the design, the analysis of the papers beside ours, and a model without a preference."""

import json
from itertools import combinations

import numpy as np
import pytest
from click.testing import CliRunner

from fairtrial.cli.main import cli
from fairtrial.stats import holm, paired, paired_runs_test
from fairtrial.tracks.politeness.studies import demo_target, document, questions, tones
from tests.lazily import Library

reference = Library("scipy.stats")


def test_fifty_questions_in_five_tones():
    asked = document(["mock:echo"])
    assert len(asked["cases"]) == 50 and list(asked["prompts"]) == list(tones()) and asked["repeats"] == 10
    assert len({case["input"] for case in asked["cases"]}) == 50
    letters = [question["answer"] for question in questions()]
    assert min(letters.count(letter) for letter in "ABCD") >= 10
    assert all(len(set(question["choices"])) == 4 for question in questions())
    assert len({question["domain"] for question in questions()}) == 4


def test_tones_differ_in_nothing_but_what_stands_before_the_question():
    prompts = document(["mock:echo"])["prompts"]
    assert len({text.replace(f"{{{{ {tone} }}}}", "") for tone, text in prompts.items()}) == 1
    assert tones()["neutral"] == [""]
    wordings = [wording for own in tones().values() for wording in own]
    assert len(set(wordings)) == len(wordings) == 21


@pytest.mark.parametrize("seed", range(3))
def test_the_test_of_the_papers_is_the_paired_t_test(seed):
    rng = np.random.default_rng(seed)
    a, b = rng.random(10), rng.random(10)
    ours, theirs = paired_runs_test(a, b), reference.ttest_rel(a, b)
    assert ours.t_statistic == pytest.approx(theirs.statistic)
    assert (ours.p_value, ours.freedom) == (pytest.approx(theirs.pvalue), 9)


def test_runs_without_variation_are_said():
    assert paired_runs_test([0.5], [0.4]) is None
    constant = paired_runs_test([0.5, 0.6], [0.4, 0.5])
    assert constant.p_value == 0 and "same in all runs" in constant.note
    assert paired_runs_test([0.5, 0.6], [0.5, 0.6]).p_value == 1


def test_the_scripted_model_answers_each_tone_for_itself():
    answers = demo_target(4)["options"]["answers"]
    assert len(answers) == 250 and all(len(drawn) == 4 for drawn in answers.values())
    neutral = [place for place, key in enumerate(answers) if key.startswith("\n")]
    assert neutral == list(range(200, 250))  # a prompt without a tone is part of all others


@pytest.mark.slow
def test_both_analyses_from_one_command(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arguments = ["replicate", "--demo", "--runs", "3", "--first", "6"]
    result = json.loads(CliRunner().invoke(cli, [*arguments, "--json"], standalone_mode=False).stdout)
    assert result["questions"] == 6 and len(result["tones"]) == 5 and len(result["pairs"]) == 10
    by_tone = {tone["tone"]: tone for tone in result["tones"]}
    pair = result["pairs"][0]
    assert (pair["a"], pair["b"], pair["freedom"]) == ("very_polite", "polite", 2)
    assert pair["difference"] == pytest.approx(by_tone["very_polite"]["mean"] - by_tone["polite"]["mean"])
    assert pair["ci95"][0] <= pair["difference"] <= pair["ci95"][1]
    scripted = demo_target(3)["options"]["answers"]
    case = document([])["cases"][0]
    expected = [scripted[f"{case['vars']['rude']}\n\n{case['input']}"][repeat] for repeat in range(3)]
    shown = CliRunner().invoke(cli, ["show", "--trials", "--case", "q01", "--json"], standalone_mode=False).stdout
    trials = [trial for trial in json.loads(shown)["trials"] if trial["condition"] == "rude"]
    assert [trial["answer"] for trial in sorted(trials, key=lambda trial: trial["repeat"])] == expected
    told = CliRunner().invoke(cli, ["replicate", "--run", "latest"], standalone_mode=False).stdout
    assert "very_polite − very_rude" in told and "the papers' test calls" in " ".join(told.split())


def test_the_page_says_what_is_found_in_the_scripted_model():
    scripted = demo_target()["options"]["answers"]
    right = np.array(
        [
            [
                [answer == case["expected"] for answer in scripted[f"{case['vars'][tone]}\n\n{case['input']}"]]
                for case in document([])["cases"]
            ]
            for tone in tones()
        ]
    )
    names, pairs = list(tones()), list(combinations(range(5), 2))
    runs, cases = right.mean(1), right.mean(2)
    found = [(names[i], names[j]) for i, j in pairs if paired_runs_test(runs[i], runs[j]).p_value < 0.05]
    assert found == [("polite", "very_rude"), ("rude", "very_rude")]
    assert min(holm([paired(cases[i], cases[j]).p_value for i, j in pairs])) > 0.05


@pytest.mark.simulation
def test_a_model_without_a_preference_is_called_partial_by_runs_and_not_by_questions():
    """The rates on the page about the studies, with fewer studies: 82 % and 2.5 %."""
    rng = np.random.default_rng(1)
    by_runs = by_questions = 0
    pairs = list(combinations(range(5), 2))
    for _ in range(60):
        usual, other = rng.beta(1.2, 0.4, 50), rng.beta(1.2, 0.4, (5, 50))
        chance = np.where(rng.random((5, 50)) < 0.25, other, usual)
        right = rng.random((5, 50, 10)) < chance[:, :, None]
        runs, cases = right.mean(1), right.mean(2)
        by_runs += any(paired_runs_test(runs[i], runs[j]).p_value < 0.05 for i, j in pairs)
        by_questions += min(holm([paired(cases[i], cases[j]).p_value for i, j in pairs])) < 0.05
    assert by_runs >= 40
    assert by_questions <= 6


def test_one_of_three_ways_must_be_chosen():
    for arguments in ([], ["--demo", "mock:echo"]):
        result = CliRunner().invoke(cli, ["replicate", *arguments], standalone_mode=False)
        assert "--demo" in str(result.exception)
