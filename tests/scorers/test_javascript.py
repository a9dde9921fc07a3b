"""JavaScript in an engine of its own: what promptfoo's users write, and what must not get far."""

import asyncio
from pathlib import Path

import pytest

import fairtrial as ft
from fairtrial.core.accepted import score_answer
from fairtrial.core.answer import Answer
from fairtrial.core.errors import FairtrialError
from fairtrial.core.experiment import Case
from fairtrial.core.options import build_scorer
from fairtrial.core.score import ScoreContext

pytest.importorskip("quickjs")


def js(code: str, response: str = "It is Paris.", **options):
    return ft.score("javascript", response=response, expected="Paris", code=code, **options)


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("output.includes('Paris')", 1),
        ("output.includes('Rome')", 0),
        ("output.includes(expected) && response === output;", 1),
        ("output.length / 100", 0.12),
        ("const n = output.split(' ').length;\nreturn n === 3;", 1),
        ("if (/paris/i.test(output)) { return true; } return false", 1),
        ("({pass: true, score: 0.5, reason: 'half'})", 0.5),
        ("return {pass: false, score: 0.9}", 0),
        ("[1, 2].map((x) => { return x; }).length === 2", 1),
        ("context.vars.lang === undefined", 1),
        ("JSON.parse('{\"a\": 1}').a === 1", 1),
        ("typeof fetch + typeof require + typeof process + typeof std === 'undefined'.repeat(4)", 1),
    ],
)
def test_code(code, value):
    assert js(code).value == pytest.approx(value)


def test_reasons_are_notes():
    assert js("({pass: true, reason: 'fine'})").notes == "fine"


def test_it_sees_the_whole_answer():
    context = ScoreContext(
        response="x",
        answer=Answer(text="x", latency_ms=5.0, cost_usd=0.25, trace={"tool_calls": [{"tool": "search"}]}),
        case=Case(id="c", input="q"),
        vars={"lang": "fr"},
        messages=({"role": "user", "content": "Bonjour"},),
    )
    code = (
        "context.vars.lang === 'fr' && vars.lang === 'fr' && tool_calls[0].tool === 'search' && latency_ms === 5 "
        "&& cost_usd === 0.25 && context.prompt === 'Bonjour' && messages[0].role === 'user' && input === 'q'"
    )
    assert asyncio.run(score_answer(build_scorer({"type": "javascript", "code": code}), context)).value == 1


def test_files(tmp_path):
    file = tmp_path / "check.js"
    file.write_text("const want = 'Paris';\nmodule.exports = (output, context) => output.includes(want);\n")
    assert ft.score("javascript", response="Paris!", file=str(file)).value == 1
    file.write_text("export default function (output) { return output.length > 100; }\n")
    assert ft.score("javascript", response="Paris!", file=str(file)).value == 0
    file.write_text("const x = 1;\n")
    assert "must set module.exports" in ft.score("javascript", response="x", file=str(file)).message


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "exactly one of `code` and `file`"),
        ({"code": "output.includes("}, "cannot be read"),
        ({"file": "none.js"}, "cannot be read"),
    ],
)
def test_problems_are_found_beforehand(options, words):
    (problem,) = build_scorer({"type": "javascript", **options}).check(Case(id="c", input="q"), Path())
    assert words in problem
    with pytest.raises(FairtrialError):
        ft.score("javascript", response="x", **options)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("(() => { while (true) {} })()", "took longer than 0.2 s"),
        ("/(a|aa)+$/.test('a'.repeat(60) + 'b')", "took longer than 0.2 s"),
        ("'x'.repeat(1e8).length", "more than 64 MB of memory"),
        ("(function f() { return f(); })()", "too deeply"),
        ("undefined.x", "raised TypeError"),
        ("(async () => true)()", "promise"),
        ("'text'", "not a number from 0 to 1"),
        ("7", "not a number from 0 to 1"),
        ("undefined", "not a number from 0 to 1"),
        ("import('fs')", ""),
    ],
)
def test_what_goes_wrong_is_one_sentence(code, message):
    result = js(code, timeout=0.2 if "took longer" in message else 100)
    assert message in result.message and "\n" not in result.message


def test_code_may_have_names_of_its_own():
    code = "const expected = context.vars.wanted, input = 1; return output === 'x' && input === 1;"
    assert ft.score("javascript", response="x", expected="y", code=code).value == 1
