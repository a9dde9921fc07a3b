"""regex, boolean, json_schema, python and the composites."""

import asyncio
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fairtrial as ft
from fairtrial.core.errors import FairtrialError
from fairtrial.core.experiment import Case
from fairtrial.core.options import build_scorer
from fairtrial.core.score import ScoreContext, Unscored
from fairtrial.scorers.regex import compile_pattern
from fairtrial.text.json_text import last_json

OWN = Path(__file__).parent.parent / "contracts" / "own_scorer.py"


@pytest.mark.parametrize(
    ("pattern", "response", "score"),
    [
        ("par.s", "in Paris", 0),
        ("/par.s/i", "in Paris", 1),
        ("/par.s/gi", "in PARIS", 1),
        ("/^b/m", "a\nb", 1),
        ("^b", "a\nb", 0),
        ("/a.b/s", "a\nb", 1),
        ("/usr/bin", "in /usr/bin it is", 1),
        ("/usr/bin", "nowhere", 0),
        ("/a/b/", "a/b", 1),
        (r"\d{4}-\d\d", "on 2026-11", 1),
    ],
)
def test_regex(pattern, response, score):
    assert ft.score("regex", response=response, expected=pattern).value == score


def test_a_pattern_that_cannot_be_read_is_one_sentence():
    with pytest.raises(FairtrialError, match=r"the pattern '\(\(' is not valid"):
        ft.score("regex", response="x", expected="((")


def test_regex_flags_need_to_be_flags():
    assert compile_pattern("/usr/bin").pattern == "/usr/bin"
    assert compile_pattern("/usr/dig").pattern == "usr"


@pytest.mark.slow
def test_a_pattern_that_runs_away_is_unscored_and_blocks_nobody():
    async def both():
        context = ScoreContext(response="a" * 40 + "b", case=Case(id="c", input="q", expected=r"(a|aa)+$"))
        beats = 0

        async def heartbeat():
            nonlocal beats
            while True:
                await asyncio.sleep(0.001)
                beats += 1

        pulse = asyncio.create_task(heartbeat())
        # Its time is the processor's, so that the heart can beat however slow the machine is.
        result = await build_scorer({"type": "regex", "timeout": 1}).score(context)
        pulse.cancel()
        return result, beats

    result, beats = asyncio.run(both())
    assert result == Unscored(kind="timeout", message="pattern timed out after 1 s")
    assert beats > 2  # had it been blocked, there would be none


@pytest.mark.parametrize(
    ("response", "negate", "score"),
    [("It is PARIS", False, 1), ("London", False, 0), ("It is paris", True, 0), ("London", True, 1)],
)
def test_boolean(response, negate, score):
    assert ft.score("boolean", response=response, expected="Paris", negate=negate).value == score


SCHEMA = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}, "required": ["n"]}


@pytest.mark.parametrize(
    ("response", "score"),
    [
        ('{"n": 3}', 1),
        ('Sure!\n```json\n{"n": 3}\n```\nDone.', 1),
        ('{"n": 0}', 0),
        ('{"m": 1}', 0),
        ('first {"n": "x"}, then {"n": 2}', 1),
        ("no json", 0),
        ("", 0),
    ],
)
def test_json_schema(response, score):
    assert ft.score("json_schema", response=response, schema=SCHEMA).value == score


def test_json_schema_says_what_is_wrong():
    assert "minimum" in ft.score("json_schema", response='{"n": 0}', schema=SCHEMA).notes
    assert ft.score("json_schema", response='x {"n": 1}', schema=SCHEMA, strict=True).value == 0


def test_json_schema_compares_with_an_expected_value():
    assert ft.score("json_schema", response='{"n":  2}', expected='{"n": 2}', schema=SCHEMA).value == 1
    assert ft.score("json_schema", response='{"n": true}', expected='{"n": 1}', schema={}).value == 0
    assert ft.score("json_schema", response='{"n": [1.0]}', expected='{"n": [1]}', schema={}).value == 1
    assert ft.score("json_schema", response='{"n": 3}', expected='{"n": 2}', schema=SCHEMA).value == 0


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({}, "exactly one"),
        ({"schema": SCHEMA, "schema_file": "x.json"}, "exactly one"),
        ({"schema_file": "none.json"}, "cannot be used"),
        ({"schema": {"type": "no such type"}}, "cannot be used"),
    ],
)
def test_json_schema_is_checked_beforehand(options, word):
    (problem,) = build_scorer({"type": "json_schema", **options}).check(Case(id="c", input="q"), Path())
    assert word in problem


@pytest.mark.slow
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda x: st.lists(x) | st.dictionaries(st.text(), x),
        max_leaves=10,
    )
)
def test_json_is_found_in_prose(value):
    import json

    document = {"value": value}
    assert last_json(f"Well, {{ here [ it is: {json.dumps(document)} ok?").value == document


def score_own(function: str, response: str = "please", **options):
    return ft.score("python", response=response, function=f"{OWN}:{function}", **options)


def test_python_functions():
    assert score_own("length", "x" * 50).value == 0.5
    assert score_own("polite", arguments={"shout": True}).notes == "SHOUTED"
    assert score_own("too_much").kind == "range"
    assert score_own("broken").message.endswith("RuntimeError: no idea")
    assert score_own("slow", timeout=0.05).kind == "timeout"


@pytest.mark.parametrize(
    "function", ["nothing", "no.such.module:f", f"{OWN}:absent", f"{OWN}:not_a_function", "x.py:f"]
)
def test_python_functions_are_checked_beforehand(function):
    scorer = build_scorer({"type": "python", "function": function})
    assert list(scorer.check(Case(id="c", input="q"), Path()))


def test_all_of_takes_the_worst():
    result = ft.score(
        "all_of", response="Paris is nice", expected="Paris", scorers=["boolean", {"type": "regex", "pattern": "ugly"}]
    )
    assert result.value == 0 and "regex" in result.notes
    assert [part["value"] for part in result.details["parts"]] == [1, 0]


def test_weighted_takes_the_mean():
    parts = [{"scorer": "boolean", "weight": 3}, {"scorer": {"type": "regex", "pattern": "ugly"}}]
    assert ft.score("weighted", response="Paris", expected="Paris", scorers=parts).value == 0.75


def test_a_part_that_cannot_be_scored_leaves_the_whole_unscored():
    parts = [{"type": "python", "function": f"{OWN}:broken"}, "exact"]
    result = ft.score("all_of", response="x", expected="x", scorers=parts)
    assert isinstance(result, Unscored) and result.message.startswith("python: ")


def test_composites_check_their_parts():
    scorer = build_scorer({"type": "all_of", "scorers": ["numeric", {"type": "regexx"}]})
    problems = list(scorer.check(Case(id="c", input="q", expected="forty"), Path()))
    assert len(problems) == 2


async def test_the_expected_text_can_be_left_to_another_scorer(run_suite):
    parts = [{"type": "json_schema", "schema": {"required": ["a"]}, "schema_only": True}]
    parts.append({"type": "match", "extract": {"json": "a"}})
    run = await run_suite(
        targets=[{"target": "mock:x", "options": {"answer": '{"a": "Paris"}'}}],
        scorer={"type": "all_of", "scorers": parts},
        cases=[{"input": "a", "expected": "Paris"}, {"input": "b", "expected": "Rome"}],
    )
    assert [trial.score for trial in run.trials()] == [1.0, 0.0]


def test_a_function_makes_the_score_of_the_parts(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "worst.py").write_text("def worst(parts, response):\n    return min(parts.values())\n")
    parts = [{"scorer": "match", "name": "right"}, {"scorer": {"type": "length", "max": 3}}]
    scored = ft.score("weighted", response="Paris", expected="Paris", scorers=parts, function="worst.py:worst")
    assert scored.value == 0 and scored.notes == "right 1.00, length 0.00"
    (tmp_path / "odd.py").write_text("def odd(parts):\n    return parts['nothing']\n")
    scored = ft.score("weighted", response="Paris", expected="Paris", scorers=parts, function="odd.py:odd")
    assert scored.kind == "crashed" and "KeyError" in scored.message
