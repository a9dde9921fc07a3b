"""What of an answer is scored: every form, thinking, nothing found, and texts that try to hang it."""

import asyncio
import json
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fairtrial as ft
from fairtrial.core import extraction
from fairtrial.core.experiment import Arm, Case, Condition, TargetSpec
from fairtrial.core.extraction import Extraction, extract, without_thinking
from fairtrial.core.options import scorer_problems
from fairtrial.core.score import Unscored
from fairtrial.text.choices import find_choice, find_text, index_of, last_boxed
from fairtrial.text.json_path import follow, parse_path


def extracted(form, text: str, **options):
    spec = Extraction(**({form: True} if isinstance(form, str) else form), **options)
    return asyncio.run(extract(spec, text, Path(__file__).parent)).text


@pytest.mark.parametrize(
    ("form", "text", "part"),
    [
        ({"regex": r"answer is (\w+)"}, "The answer is Paris.", "Paris"),
        ({"regex": r"\d+"}, "between 7 and 9", "7"),
        ({"regex": r"(?P<a>\d+) (?P<b>\d+)", "group": "b"}, "1 2", "2"),
        ({"regex": r"(\d+) (\d+)", "group": 0}, "1 2", "1 2"),
        ({"regex": "/ANSWER: (.*)/i"}, "answer: x", "x"),
        ({"regex": r"(a)|(b)", "group": 2}, "a", None),
        ({"json": "answer.items[0].name"}, 'Sure: {"answer": {"items": [{"name": "Bo"}]}}', "Bo"),
        ({"json": "answer"}, '{"answer": 1}\nas [1] says', "1"),
        ({"json": "answer"}, '{"answer": 1} then {"answer": true}', "true"),
        ({"json": "[-1]"}, "[1, 2, 3]", "3"),
        ({"json": '["a key"]'}, '{"a key": {"b": 1.5}}', '{"b":1.5}'),
        ({"json": "items.0"}, '{"items": ["x"]}', "x"),
        ({"json": "answer"}, '{"other": 1}', None),
        ({"json": "answer"}, '{"answer": null}', None),
        ({"json": "answer"}, "no json", None),
        ({"after": "Answer:"}, "Answer: 1. No!\nAnswer: 2", "2"),
        ({"after": "Answer:"}, "ANSWER: 3", "3"),
        ({"after": "Answer:"}, "Answer: ", None),
        ({"after": "Answer:"}, "nothing", None),
        ("last_line", "one\ntwo\n\n", "two"),
        ("last_line", "  ", None),
        ("number", "3 apples and 4 pears make 7.", "7"),
        ("number", "The total is $1,234.50.", "$1,234.50"),
        ("number", "none", None),
        ("choice", "I think the answer is (B).", "B"),
        ("choice", "no idea", None),
        ("boxed", r"so \boxed{\frac{1}{2}}.", r"\frac{1}{2}"),
        ("boxed", r"\boxed{1", None),
        ("code", "```python\nprint(1)\n```\nor\n```\nprint(2)\n```", "print(2)"),
        ("code", "````md\n```\nx\n```\n````", "```\nx\n```"),
        ("code", "cut off:\n```js\nf(", "f("),
        ("code", "no code", None),
    ],
)
def test_forms(form, text, part):
    assert extracted(form, text) == part


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("<think>maybe 3</think>\n\n4", "4"),
        ("maybe 3\n</think>\n4", "4"),
        ("<think>maybe 3, the answer is", ""),
        ("<think>a</think>1 <think>b</think>2", "1 2"),
        ("<THINK>a</THINK> 5", "5"),
        ("<Think>a</Think> 5", "5"),
        ("The tag <think> opens it.", "The tag <think> opens it."),
        ("4", "4"),
        ("", ""),
    ],
)
def test_thinking_is_not_part_of_an_answer(text, answer):
    assert without_thinking(text) == answer
    assert extracted({}, text) == answer
    assert extracted({}, text, keep_thinking=True) == text


def test_thinking_is_left_out_without_any_extract():
    score = ft.score("match", response="<think>Rome? No.</think>Paris", expected="Paris")
    assert score.value == 1 and "without its thinking" in score.notes
    assert ft.score("contains", response="<think>Paris?</think>Rome", expected="Paris").value == 0
    kept = {"keep_thinking": True}
    assert ft.score("contains", response="<think>Paris?</think>Rome", expected="Paris", extract=kept).value == 1
    assert "nothing but thinking" in ft.score("match", response="<think>Paris", expected="Paris").notes


def test_what_was_extracted_is_said():
    score = ft.score("match", response="First A.\nAnswer: Paris", expected="Paris", extract={"after": "Answer:"})
    assert score.value == 1
    assert score.notes == "matches (extracted 'Paris')"
    assert score.details == {"extracted": "Paris"}


def test_nothing_found_is_unscored_or_wrong():
    unscored = ft.score("match", response="none", expected="1", extract="number")
    assert unscored == Unscored(kind="extract", message="nothing to score: no number in the answer")
    wrong = ft.score("match", response="none", expected="1", extract={"number": True, "missing": "wrong"})
    assert wrong.value == 0 and wrong.notes == "wrong, nothing to score: no number in the answer"


def test_nothing_found_stays_wrong_under_not():
    inner = {"type": "match", "extract": {"number": True, "missing": "wrong"}}
    assert ft.score("not", response="none", expected="1", scorer=inner).value == 0
    assert ft.score("not", response="2", expected="1", scorer=inner).value == 1


def test_parts_keep_their_own_and_inherit_the_rest():
    parts = ["numeric", {"type": "contains", "any": ["because"], "extract": {}}]
    text = "because 6 x 7\n42"
    score = ft.score("all_of", response=text, expected="42", scorers=parts, extract="last_line")
    assert score.value == 1
    assert [part.get("extracted") for part in score.details["parts"]] == ["42", None]


def test_a_function_of_ones_own(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(
        "def last(text):\n    return text.split()[-1]\n"
        "async def none(text):\n    return None\n"
        "def number(text):\n    return 7\n"
        "def broken(text):\n    raise KeyError('x')\n"
    )
    results = {
        name: ft.score("match", response="it is 7", expected="7", extract={"python": f"{file}:{name}"})
        for name in ("last", "none", "number", "broken")
    }
    assert results["last"].value == results["number"].value == 1
    assert results["none"].message.endswith("found nothing")
    assert "raised KeyError" in results["broken"].message
    absent = {"python": f"{file}:absent"}
    with pytest.raises(ft.FairtrialError, match="no function `absent`"):
        ft.score("match", response="x", expected="x", extract=absent)
    with pytest.raises(ft.FairtrialError) as raised:
        ft.score("all_of", response="x", expected="x", scorers=["match"], extract=absent)
    assert str(raised.value).count("absent") == 1


@pytest.mark.parametrize(
    ("spec", "path", "words"),
    [
        ({"regexx": "a"}, ("extract", "regexx"), "did you mean `regex`"),
        ("numbr", ("extract", "numbr"), "did you mean `number`"),
        ({"regex": "(("}, ("extract", "regex"), "not valid"),
        ({"regex": "a", "group": 1}, ("extract", "group"), "no group 1"),
        ({"group": 1}, ("extract", "group"), "needs a `regex`"),
        ({"json": "a..b"}, ("extract", "json"), "is not a path"),
        ({"after": " "}, ("extract", "after"), "must not be empty"),
        ({"number": True, "boxed": True}, ("extract",), "one form"),
        ({"number": True, "missing": "zero"}, ("extract", "missing"), "must be one of unscored, wrong"),
        (["number"], ("extract",), "must be a mapping"),
    ],
)
def test_problems_are_found_where_they_are(spec, path, words):
    ((found, message),) = scorer_problems({"type": "match", "extract": spec})
    assert found == path and words in message


def test_the_most_specific_one_wins():
    def arm(scorer, extract):
        target = TargetSpec(id="t", kind="mock", provider="mock")
        return Arm(name="a", target=target, condition=Condition(), params={}, scorer=scorer, extract=extract)

    suite, on_case, on_scorer = {"number": True}, {"boxed": True}, {"code": True}
    plain, own = {"type": "match"}, {"type": "match", "extract": on_scorer}
    case = Case(id="c", input="q")
    assert arm(plain, None).scorer_of(case) == plain
    assert arm(plain, suite).scorer_of(case)["extract"] == suite
    assert arm(own, suite).scorer_of(case)["extract"] == on_scorer
    special = Case(id="c", input="q", extract=on_case)
    assert arm(own, suite).scorer_of(special)["extract"] == on_case
    assert arm(plain, suite).scorer_of(Case(id="c", input="q", scorer=own, extract=on_case))["extract"] == on_scorer
    assert arm(own, suite).scorer_of(Case(id="c", input="q", scorer=plain))["extract"] == suite
    assert arm(own, suite).scorer_of(special, {"type": "exact"})["extract"] == on_case


CHOICES = {
    "B": "B",
    "(B)": "B",
    "b)": "B",
    "B. Paris": "B",
    "**B) Paris**": "B",
    "Answer: (B)": "B",
    "**Answer:** B": "B",
    "ANSWER: C": "C",
    "The answer is B.": "B",
    "the answer is b": "B",
    r"so $\boxed{\text{B}}$.": "B",
    "The correct option is C because A is wrong": "C",
    "Answer: A\nWait.\nAnswer: D": "D",
    "Answer: B.\nExplanation: option A is wrong": "B",
    "Let us see: A is wrong.\n\nC": "C",
    "I choose option D": "D",
    "I think (B) is right": "B",
    "Antwort: B": "B",
    "A cat sat.": None,
    "The answer is a city": None,
    "The answer is not B": None,
    "The answer is B or C": None,
    "Answer: A, B": None,
    "Either (A) or (B).": None,
    "": None,
}


@pytest.mark.parametrize("text", CHOICES)
def test_choices(text):
    assert find_choice(text) == CHOICES[text]


def test_choices_by_their_words():
    cities = ("Paris", "York", "New York")
    assert index_of("new york", cities, "ABC") == 2 and index_of("(c)", cities, "ABC") == 2
    assert index_of("Rome", cities, "ABC") is None
    assert find_text("It is New York.", cities) == 2
    assert find_text("Paris or New York", cities) is None


@given(st.text(max_size=200), st.sampled_from("ABCD"))
def test_a_letter_after_answer_is_found_behind_any_text(text, letter):
    assert find_choice(f"{text}\nAnswer: ({letter})", "ABCD") == letter


@pytest.mark.slow
@given(st.recursive(st.text("ab\\ ", max_size=4), lambda inner: st.lists(inner).map(lambda x: "{" + "".join(x) + "}")))
def test_boxes_with_any_balanced_content(content):
    content = content.replace("\\", r"\x")
    assert last_boxed(f"first \\boxed{{1}} then \\boxed{{{content}}} end") == content.strip()


_keys = st.text("abc xyz_-", min_size=1, max_size=5).filter(lambda key: key.strip() == key)


@given(st.lists(_keys | st.integers(0, 3), max_size=5), st.integers())
def test_paths_lead_to_what_they_name(steps, value):
    document = value
    for step in reversed(steps):
        document = {step: document} if isinstance(step, str) else [None] * step + [document]
    path = "".join(f'["{step}"]' if isinstance(step, str) else f"[{step}]" for step in steps)
    assert follow(json.loads(json.dumps(document)), parse_path(path)) == value


@pytest.mark.slow
@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("choice", "answer " + "(" * 50_000),
        ("choice", "answer" + " " * 50_000 + "x"),
        ("choice", "the answer is the option " * 5_000),
        ("boxed", "\\boxed{" * 20_000),
        ("code", "```\n" * 20_001),
        ("code", "~~~~~~~~~ x\n" * 10_000),
        ({}, "<think>" * 20_000),
        ({"json": "a"}, "[{" * 20_000),
    ],
)
def test_hostile_texts_take_little_time(form, text):
    started = time.process_time()
    extracted(form, text)
    assert time.process_time() - started < 5  # what grows with the square of the length would take minutes


@pytest.mark.slow
def test_a_pattern_that_runs_away_is_a_reason(monkeypatch):
    monkeypatch.setattr(extraction, "_PATTERN_TIMEOUT", 0.2)
    score = ft.score("match", response="a" * 40 + "b", expected="x", extract={"regex": "(a|aa)+$"})
    assert score == Unscored(kind="extract", message="nothing to score: the pattern timed out after 0.2 s")
