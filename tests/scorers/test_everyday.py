"""choice, starts_with, refusal, length, latency, cost, tool_calls, levenshtein, f1, rouge, bleu, not, any_of, best_of."""

import asyncio
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fairtrial as ft
from fairtrial.core.accepted import score_answer
from fairtrial.core.answer import FILTERED, REFUSED, Answer, Usage
from fairtrial.core.errors import FairtrialError
from fairtrial.core.experiment import Case
from fairtrial.core.options import build_scorer, scorer_problems
from fairtrial.core.score import Score, ScoreContext, Unscored
from fairtrial.text.overlap import bleu_tokens, rouge_l, rouge_n, sentence_bleu, squad_tokens, terms, token_f1

OVERLAP = json.loads((Path(__file__).parents[1] / "data" / "overlap.json").read_text())["pairs"]


def score_with(spec: dict, text: str = "x", *, expected=None, metadata=None, **answer):
    case = Case(id="c", input="q", expected=expected, metadata=metadata)
    whole = Answer(text=text, **answer)
    context = ScoreContext(response=text, case=case, answer=whole, finish_reason=whole.finish_reason)
    return asyncio.run(score_answer(build_scorer(spec), context))


CITIES = {"choices": ["London", "Paris", "Rome"]}


@pytest.mark.parametrize(
    ("text", "expected", "metadata", "value"),
    [
        ("The answer is (B).", "B", None, 1),
        ("The answer is (B).", "C", None, 0),
        ("B. Paris", "Paris", CITIES, 1),
        ("It is Paris, of course.", "B", CITIES, 1),
        ("Paris or Rome", "B", CITIES, 0),
        ("no idea", "B", CITIES, 0),
        ("Answer: D", "B", CITIES, 0),  # D is none of the letters
        ("b", "b", None, 1),
        ("C", "Rome", {"columns": {"choices": '["London", "Paris", "Rome"]'}}, 1),
    ],
)
def test_choice(text, expected, metadata, value):
    assert score_with({"type": "choice"}, text, expected=expected, metadata=metadata).value == value


def test_choice_is_checked_beforehand():
    def problems(expected, metadata=None, **options):
        case = Case(id="c", input="q", expected=expected, metadata=metadata)
        return list(build_scorer({"type": "choice", **options}).check(case, Path()))

    assert problems("Paris", CITIES) == problems("A") == problems("T", letters="TF") == []
    assert "one of the letters ABC or the text of a choice, not 'Oslo'" in problems("Oslo", CITIES)[0]
    assert "3 choices, but there are 2 letters" in problems("A", CITIES, letters="AB")[0]


@pytest.mark.parametrize(
    ("text", "value"),
    [("Yes, it is.", 1), ("**Yes** — of course", 1), ("yes", 1), ("Yesterday", 0), ("No. Yes.", 0), ("", 0)],
)
def test_starts_with(text, value):
    assert ft.score("starts_with", response=text, expected="Yes").value == value
    assert ft.score("starts_with", response=text, text="yes").value == value


def test_starts_with_parts_of_words():
    assert ft.score("starts_with", response="Yesterday", expected="Yes", words=False).value == 1
    assert ft.score("starts_with", response="3.5 kg", expected="3").value == 0


REFUSALS = [
    "I'm sorry, but I can't help with that.",
    "I’m sorry, I can’t assist with that request.",
    "I cannot provide instructions for making weapons.",
    "I must decline this request.",
    "As an AI language model, I am not able to give medical advice.",
    "I'm not able to help with that.",
    "Sorry, I can't do that.",
    "I won't write that.",
    "Unfortunately, I am unable to share this.",
    "Ich kann dir dabei leider nicht helfen.",
    "Je ne peux pas vous aider.",
    "Lo siento, pero no puedo ayudarte con eso.",
    "抱歉，我无法提供这方面的帮助。",
]
ANSWERS = [
    "",
    "I'm sorry to hear that. Here is what you can do: call a friend.",
    "I can't believe how well this works! The capital is Paris.",
    "I cannot overstate how important sleep is.",
    "Sure, here is how to do it.",
    "You cannot provide a key twice: the dictionary keeps the last.",
    "The doctor said: do not worry.",
    "Ich kann schwimmen.",
]


@pytest.mark.parametrize("text", REFUSALS)
def test_refusals_are_recognised(text):
    assert ft.score("refusal", response=text).value == 1


@pytest.mark.parametrize("text", ANSWERS)
def test_answers_are_no_refusals(text):
    assert ft.score("refusal", response=text).value == 0


@pytest.mark.parametrize("reason", [REFUSED, FILTERED])
def test_a_reported_refusal_is_one_whatever_the_suite_says(reason):
    assert score_with({"type": "refusal"}, "", finish_reason=reason).value == 1
    assert score_with({"type": "not", "scorer": "refusal"}, "", finish_reason=reason).value == 0
    assert (
        score_with({"type": "any_of", "scorers": ["refusal", "match"]}, expected="y", finish_reason=reason).value == 1
    )
    # Without a part that looks at refusals, `on_refusal` decides about the whole, also under `not`.
    assert score_with({"type": "not", "scorer": "match"}, expected="y", finish_reason=reason).value == 0


@pytest.mark.parametrize(
    ("text", "unit", "length"),
    [
        (" abc ", "characters", 3),
        ("one two-three don't 3.5", "words", 4),
        ("日本語", "words", 3),
        ("a\n\n b\n", "lines", 2),
        ("It is 3.5 m. Really? Yes…", "sentences", 3),
        ("", "words", 0),
        ("No end", "sentences", 1),
    ],
)
def test_length(text, unit, length):
    assert ft.score("length", response=text, unit=unit, min=length, max=length).value == 1
    assert ft.score("length", response=text, unit=unit, min=length + 1).value == 0
    if length:
        assert (
            f"above the maximum of {length - 1}" in ft.score("length", response=text, unit=unit, max=length - 1).notes
        )


@pytest.mark.parametrize("name", ["length", "latency", "cost"])
def test_limits_are_checked_beforehand(name):
    with pytest.raises(FairtrialError, match="needs `min`, `max` or both"):
        ft.score(name, response="x")
    with pytest.raises(FairtrialError, match="no answer can be right"):
        ft.score(name, response="x", min=2, max=1)


def test_latency_and_cost():
    answer = {"latency_ms": 250.0, "cost_usd": 0.002}
    assert score_with({"type": "latency", "max": 300}, **answer).value == 1
    assert score_with({"type": "latency", "max": 200}, **answer).value == 0
    assert score_with({"type": "cost", "max": 0.003}, **answer).value == 1
    assert score_with({"type": "cost", "max": 0.001}, **answer).notes == "$0.002, above the maximum of 0.001"
    assert score_with({"type": "cost", "max": 1}).message == "the cost of the answer is unknown"
    assert isinstance(ft.score("latency", response="x", max=1), Unscored)


def test_what_is_no_text_needs_nothing_extracted():
    assert score_with({"type": "latency", "max": 300, "extract": "number"}, "no number").value == 1


CALLS = [
    {"tool": "search", "server": "web", "arguments": {"q": "Paris", "limit": 5}},
    {"tool": "read", "server": None, "arguments": '{"path": "a.txt"}'},
    {"tool": "search", "server": "web", "arguments": {"q": "Rome"}},
]


@pytest.mark.parametrize(
    ("options", "value"),
    [
        ({"names": ["search"]}, 1),
        ({"names": ["web.search", "read"]}, 1),
        ({"names": ["sea*"]}, 1),
        ({"names": ["write"]}, 0),
        ({"names": ["read", "search"], "order": "in_order"}, 1),
        ({"names": ["read", "search", "search"], "order": "in_order"}, 0),
        ({"names": ["search", "read", "search"], "order": "exact"}, 1),
        ({"names": ["search", "read"], "order": "exact"}, 0),
        ({"forbidden": ["write"]}, 1),
        ({"forbidden": ["web.*"]}, 0),
        ({"arguments": {"search": {"q": "Rome"}}}, 1),
        ({"arguments": {"search": {"q": "Oslo"}}}, 0),
        ({"arguments": {"read": {"path": "a.txt"}}}, 1),
        ({"arguments": {"write": {}}}, 0),
        ({"min": 3, "max": 3}, 1),
        ({"max": 2}, 0),
        ({"names": ["read"], "max": 1}, 1),
    ],
)
def test_tool_calls(options, value):
    assert score_with({"type": "tool_calls", **options}, trace={"tool_calls": CALLS}).value == value


@pytest.mark.parametrize(
    ("expected", "value"),
    [
        ("search", 1),
        ("write", 0),
        ('{"name": "search", "arguments": {"q": "Rome"}}', 1),
        ('[{"tool": "read"}, {"tool": "search", "arguments": {"q": "Rome"}}]', 1),
        ('[{"tool": "read"}, {"tool": "search", "arguments": {"q": "Paris"}}]', 0),
    ],
)
def test_expected_tool_calls(expected, value):
    assert score_with({"type": "tool_calls"}, expected=expected, trace={"tool_calls": CALLS}).value == value


def test_tool_calls_that_nobody_reports():
    spec = {"type": "tool_calls", "names": ["search"]}
    assert score_with(spec).message == "the target does not report which tools were used"
    assert score_with(spec, trace={"tool_calls": []}).value == 0
    assert score_with(spec, trace={"tool_calls": [None, {"tool": 3}, "x"]}).value == 0
    (problem,) = build_scorer({"type": "tool_calls"}).check(Case(id="c", input="q", expected='{"x": 1}'), Path())
    assert "tool's name" in problem


def test_levenshtein():
    assert ft.score("levenshtein", response="kitten", expected="sitting").value == pytest.approx(1 - 3 / 7)
    assert ft.score("levenshtein", response="PARIS", expected="Paris").value == pytest.approx(0.2)
    assert ft.score("levenshtein", response="PARIS", expected="Paris", fold=True).value == 1
    assert ft.score("levenshtein", response="", expected="abc").value == 0


@pytest.mark.parametrize(
    ("answer", "reference", "value"),
    [  # worked out by the definition in SQuAD's evaluation script
        ("the cat", "a cat", 1),
        ("Denver Broncos", "Denver", 2 / 3),
        ("in the year 1999", "1999", 0.5),
        ("London", "Paris", 0),
        ("", "Paris", 0),
        ("the", "a", 1),
    ],
)
def test_f1(answer, reference, value):
    assert token_f1(squad_tokens(answer), squad_tokens(reference)).f1 == pytest.approx(value)
    assert ft.score("f1", response=answer, expected=reference).value == pytest.approx(value)


@pytest.mark.parametrize("pair", OVERLAP, ids=range(len(OVERLAP)))
def test_overlap_is_that_of_the_reference_implementations(pair):
    """`tests/data/overlap.json` says which ones wrote it."""
    assert sentence_bleu(bleu_tokens(pair["answer"]), bleu_tokens(pair["reference"])) == pytest.approx(
        pair["bleu"], abs=1e-8
    )
    answer, reference = terms(pair["answer"]), terms(pair["reference"])
    assert rouge_n(answer, reference, 1) == pytest.approx(pair["1"], abs=1e-8)
    assert rouge_n(answer, reference, 2) == pytest.approx(pair["2"], abs=1e-8)
    assert rouge_l(answer, reference) == pytest.approx(pair["L"], abs=1e-8)


@pytest.mark.slow
@given(st.text(max_size=60), st.text(min_size=1, max_size=60))
def test_overlap_is_a_share(answer, reference):
    for value in (
        sentence_bleu(bleu_tokens(answer), bleu_tokens(reference)),
        *rouge_l(terms(answer), terms(reference)),
        *rouge_n(terms(answer), terms(reference), 2),
        *token_f1(squad_tokens(answer), squad_tokens(reference)),
    ):
        assert 0 <= value <= 1
    assert rouge_l(terms(reference), terms(reference)).f1 == float(bool(terms(reference)))


def test_rouge_and_bleu():
    options = {"response": "the cat sat on the mat", "expected": "the cat is on the mat"}
    assert ft.score("rouge", **options).value == pytest.approx(5 / 6)
    assert ft.score("rouge", variant="2", **options).value == pytest.approx(0.6)
    assert ft.score("rouge", variant="1", measure="recall", **options).value == pytest.approx(5 / 6)
    assert ft.score("bleu", **options).value == pytest.approx(0.379917843)


def test_a_threshold_makes_any_score_right_or_wrong():
    options = {"response": "the cat sat on the mat", "expected": "the cat is on the mat"}
    right = ft.score("rouge", threshold=0.8, **options)
    assert right.value == 1 and right.raw == pytest.approx(5 / 6)
    assert right.notes.endswith("(0.83, at least the threshold of 0.8)")
    assert ft.score("rouge", threshold=0.9, **options).value == 0
    assert ft.score("any_of", scorers=["rouge", "bleu"], threshold=0.8, **options).value == 1
    ((path, message),) = scorer_problems({"type": "rouge", "threshold": 80})
    assert path == ("threshold",) and "<= 1" in message


def test_a_threshold_of_a_plug_in_is_its_own():
    from fairtrial.plugins import Scorer

    class Distance(Scorer, frozen=True, kw_only=True):
        threshold: int = 5

        async def score(self, context):
            return Score(value=0.4)

    context = ScoreContext(response="x", case=Case(id="c", input="q"))
    assert asyncio.run(score_answer(Distance(), context)).value == 0.4


def test_not_any_of_and_best_of():
    assert ft.score("not", response="Rome", expected="Paris", scorer="match").value == 1
    assert ft.score("not", response="Paris", expected="Paris", scorer="match").notes == "not match: matches"
    either = {"scorers": ["match", {"type": "contains", "any": ["unknown"]}], "expected": "Paris"}
    assert ft.score("any_of", response="It is unknown.", **either).value == 1
    assert ft.score("any_of", response="Rome", **either).notes == "none satisfied"
    best = ft.score("best_of", response="bon matin", scorer="f1", references=["bonjour", "bon matin"])
    assert best.value == 1 and "bon matin" in best.notes
    assert ft.score("best_of", response="salut", expected="salut", scorer="match", references=["bonjour"]).value == 1
    with pytest.raises(FairtrialError, match="`references` is blank"):
        ft.score("best_of", response="x", scorer="match", references=["a", " "])


def test_own_functions_see_the_whole_answer(tmp_path):
    file = tmp_path / "own.py"
    file.write_text(
        "def cheap(response, vars, messages, trace, tool_calls, latency_ms, cost_usd, tokens, reasoning):\n"
        "    assert (response, latency_ms, cost_usd, reasoning) == ('4', 5.0, 0.5, 'hm')\n"
        "    assert tokens == {'prompt': 3, 'completion': 4, 'cache_read': 0, 'cache_write': 0, 'reasoning': 0, 'total': 7}\n"
        "    assert tool_calls == trace['tool_calls'] and vars == {'lang': 'fr'} and messages[-1]['role'] == 'user'\n"
        "    return {'score': 0.25, 'notes': 'seen', 'metrics': {'calls': len(tool_calls)}}\n"
        "def wrong(response):\n    return {'score': 0.5, 'metrics': {'a': 'b'}}\n"
        "def none(response):\n    return {'result': 'good'}\n"
    )
    whole = Answer(
        text="<think>hm</think>4",
        latency_ms=5.0,
        cost_usd=0.5,
        reasoning="hm",
        usage=Usage(prompt=3, completion=4),
        trace={"tool_calls": [{"tool": "t"}]},
    )
    context = ScoreContext(
        response=whole.text,
        answer=whole,
        case=Case(id="c", input="q"),
        vars={"lang": "fr"},
        messages=({"role": "user", "content": "q"},),
    )

    def run(name):
        return asyncio.run(score_answer(build_scorer({"type": "python", "function": f"{file}:{name}"}), context))

    score = run("cheap")
    assert score.value == 0.25 and score.notes.startswith("seen") and score.metrics == {"calls": 1}, score
    assert "metrics" in run("wrong").message
    assert run("none").kind == "range"
