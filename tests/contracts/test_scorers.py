"""One contract for every scorer: what YAML, CLI, web and docs rely on, whatever the scorer does."""

import asyncio
import json
from functools import partial
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairtrial.agents.workspace.making import Workspaces
from fairtrial.core import registry
from fairtrial.core.accepted import case_problems, score_answer
from fairtrial.core.answer import Answer, Usage
from fairtrial.core.experiment import Case
from fairtrial.core.judge import Judge, Panel
from fairtrial.core.options import build_scorer, scorer_problems
from fairtrial.core.score import Score, ScoreContext, Unscored
from fairtrial.core.scorer import Guide, Scorer
from fairtrial.core.workshop import Workshop
from fairtrial.core.workspace import WorkspaceSpec


async def no_files(attachment):
    raise AssertionError("nothing is attached")


_CHECKS = [{"name": "c", "steps": [{"click": "button"}]}]
# One example of every scorer, with an expected text that fits it.
EXAMPLES = {
    "match": ({"type": "match"}, "Paris"),
    "contains": ({"type": "contains"}, "Paris"),
    "exact": ({"type": "exact"}, "Paris"),
    "regex": ({"type": "regex"}, "/par.s/i"),
    "numeric": ({"type": "numeric"}, "42"),
    "boolean": ({"type": "boolean"}, "Paris"),
    "json_schema": ({"type": "json_schema", "schema": {"type": "object"}}, None),
    "python": ({"type": "python", "function": "math:isfinite"}, None),
    "pairwise": ({"type": "pairwise"}, "Paris"),
    "llm_judge": ({"type": "llm_judge", "criteria": [{"name": "depth"}]}, "Paris"),
    "browser": ({"type": "browser", "checks": _CHECKS}, None),
    "code_judge": ({"type": "code_judge", "quick": True, "checks": _CHECKS}, None),
    "golden_judge": ({"type": "golden_judge"}, "Paris"),
    "all_of": ({"type": "all_of", "scorers": ["exact", "boolean"]}, "Paris"),
    "weighted": ({"type": "weighted", "scorers": [{"scorer": "exact", "weight": 2}, {"scorer": "boolean"}]}, "Paris"),
}
EXAMPLES |= {
    "choice": ({"type": "choice"}, "B"),
    "starts_with": ({"type": "starts_with"}, "Paris"),
    "refusal": ({"type": "refusal"}, None),
    "length": ({"type": "length", "max": 10}, None),
    "latency": ({"type": "latency", "max": 1000}, None),
    "cost": ({"type": "cost", "max": 0.01}, None),
    "tool_calls": ({"type": "tool_calls", "names": ["search"]}, None),
    "trajectory": ({"type": "trajectory", "required": ["search"]}, None),
    "turns": ({"type": "turns", "checks": [{"after": 1, "check": ["match"], "expected": "Paris"}]}, None),
    "trigger": ({"type": "trigger"}, None),
    "javascript": ({"type": "javascript", "code": "output.length < 100"}, None),
    "levenshtein": ({"type": "levenshtein"}, "Paris"),
    "f1": ({"type": "f1"}, "Paris"),
    "rouge": ({"type": "rouge"}, "Paris"),
    "bleu": ({"type": "bleu"}, "Paris"),
    "similar": ({"type": "similar", "embedder": "mock:echo"}, "Paris"),
    "check": ({"type": "check", "command": "true"}, None),
    "not": ({"type": "not", "scorer": "match"}, "Paris"),
    "any_of": ({"type": "any_of", "scorers": ["match", "contains"]}, "Paris"),
    "best_of": ({"type": "best_of", "scorer": "f1", "references": ["Lutetia"]}, "Paris"),
}
EXAMPLES["optimisation"] = ({"type": "optimisation"}, None)
# What shows everything that a scorer measures, where not every answer does.
_PAGE = "<!doctype html><html><body><h1>x</h1><button onclick='this.textContent = 1'>Go</button></body></html>"
TELLING = {
    "browser": _PAGE,
    "code_judge": _PAGE,
    "optimisation": '{"x": [0, 0, 0, 0], "objective_value": 0, "status": "optimal", "constraint_violations": [0]}',
}
OWN = Path(__file__).parent / "own_scorer.py"


def metadata(name: str) -> dict | None:
    """What travels with a case of this scorer."""
    if name == "trigger":
        return {"skill": "silent"}
    if name != "optimisation":
        return None
    from fairtrial.tracks.optimisation.families import make
    from fairtrial.tracks.optimisation.problem import Baseline, problem_digest

    problem = make("original", 4)
    baseline = Baseline(
        problem=problem.id,
        status="optimal",
        x=(0.0,) * 4,
        objective=0.0,
        bound=0.0,
        gap=0.0,
        certified=True,
        solver="by hand",
        version="1",
        seconds=0.0,
        random_objective=130.0,
        digest=problem_digest(problem),
    )
    return {"problem": msgspec.to_builtins(problem), "baseline": msgspec.to_builtins(baseline)}


def answer(text: str) -> Answer:
    """An answer of which everything is known."""
    trace = {"tool_calls": [{"tool": "search", "server": None, "arguments": {"q": "Paris"}}]}
    return Answer(text=text, latency_ms=12.0, cost_usd=0.001, usage=Usage(prompt=3, completion=4), trace=trace)


def example(name: str) -> tuple[dict, str | None]:
    spec, expected = EXAMPLES[name]
    return ({"type": "python", "function": f"{OWN}:length"} if name == "python" else spec), expected


async def ask_mock(request):
    """A judge that always gives the same mark."""
    from fairtrial.core.answer import Answer, Outcome
    from fairtrial.targets.mock import MockVerdict, _fill_schema

    reply = _fill_schema(request.schema, 3, MockVerdict())
    if "better" in reply:
        reply["better"] = "first"
    return Outcome(result=Answer(text=json.dumps(reply)))


async def embed(name, text):
    """The embedding of the mock."""
    from fairtrial.targets.mock import _count_words

    return [float(number) for number in json.loads(_count_words(text))]


PANEL = Panel(judges=(Judge(name="j", key="k", family="f", ask=ask_mock),))


@pytest.fixture(scope="module")
def runner():
    """One event loop for thousands of answers."""
    with asyncio.Runner() as opened:
        yield opened


@pytest.fixture(scope="module")
def workshop(runner):
    """One browser for all scorers that look at pages."""
    opened = Workshop()
    yield opened
    runner.run(opened.__aexit__())


def test_every_scorer_has_an_example():
    assert sorted(EXAMPLES) == list(registry.builtin_names("scorers"))


@pytest.mark.parametrize("name", registry.builtin_names("scorers"))
class TestEveryScorer:
    def test_it_is_a_scorer_with_a_guide(self, name):
        cls = registry.load("scorers", name)
        assert issubclass(cls, Scorer)
        assert isinstance(cls.guide, Guide)
        assert cls.__doc__

    def test_it_serialises_itself(self, name):
        scorer = build_scorer(example(name)[0])
        again = msgspec.json.decode(msgspec.json.encode(scorer), type=type(scorer))
        assert again == scorer

    def test_unknown_options_are_refused_by_name(self, name):
        spec = {**example(name)[0], "tolerence_of_nonsense": 1}
        assert [path for path, _ in scorer_problems(spec)] == [("tolerence_of_nonsense",)]

    def test_its_example_has_no_problem(self, name):
        spec, expected = example(name)
        case = Case(id="c", input="q", expected=expected, metadata=metadata(name))
        assert "".join(build_scorer(spec).check(case, Path())) == ""

    @pytest.mark.slow
    @settings(max_examples=60, deadline=None)
    @given(response=st.text(max_size=300))
    def test_any_answer_gets_the_same_valid_score_twice(self, name, response, runner):
        spec, expected = example(name)
        context = ScoreContext(
            response=response,
            case=Case(id="c", input="q", expected=expected, metadata=metadata(name)),
            panel=PANEL,
            embed=embed,
            answer=answer(response),
        )
        first, second = (runner.run(build_scorer(spec).score(context)) for _ in range(2))
        assert first == second
        if isinstance(first, Score):
            assert 0 <= first.value <= 1
            assert first.max > 0
        else:
            assert isinstance(first, Unscored) and first.message

    @pytest.mark.slow
    def test_its_metrics_have_scales(self, name, runner, workshop):
        spec, expected = example(name)
        context = ScoreContext(
            response=TELLING.get(name, "x"),
            case=Case(id="c", input="q", expected=expected, metadata=metadata(name)),
            panel=PANEL,
            embed=embed,
            answer=answer("x"),
            workshop=workshop,
        )
        result = runner.run(build_scorer(spec).score(context))
        scales = build_scorer(spec).scales()
        assert set(getattr(result, "metrics", {})) == set(scales)
        for metric, value in getattr(result, "metrics", {}).items():
            worst, best = scales[metric]  # less may be better, and nothing too bad to be
            known = [bound for bound in (worst, best) if bound is not None]
            assert not known or (min(known) <= value and (None in (worst, best) or value <= max(known)))

    def test_an_empty_answer_is_an_answer(self, name):
        spec, expected = example(name)
        context = ScoreContext(
            response="",
            case=Case(id="c", input="q", expected=expected, metadata=metadata(name)),
            panel=PANEL,
            embed=embed,
            answer=answer(""),
            workspace=partial(Workspaces(no_files).make, WorkspaceSpec()),
        )
        assert isinstance(asyncio.run(build_scorer(spec).score(context)), Score)


# Every scorer that holds an answer against the expected text, with two that are right and an answer like the second.
SEVERAL = {
    "match": ({"type": "match"}, ("Lutetia", "Paris"), "paris"),
    "contains": ({"type": "contains"}, ("Lutetia", "Paris"), "It is Paris."),
    "boolean": ({"type": "boolean"}, ("Lutetia", "Paris"), "It is Paris."),
    "exact": ({"type": "exact"}, ("Lutetia", "Paris"), "Paris"),
    "regex": ({"type": "regex"}, ("^L", "^P"), "Paris"),
    "numeric": ({"type": "numeric"}, ("7", "42"), "42"),
    "json_schema": ({"type": "json_schema", "schema": {}}, ('{"n": 1}', '{"n": 2}'), '{"n": 2}'),
    "python": ({"type": "python", "function": f"{OWN}:same"}, ("Lutetia", "Paris"), "Paris"),
    "all_of": ({"type": "all_of", "scorers": ["match", "boolean"]}, ("Lutetia", "Paris"), "Paris"),
    "weighted": ({"type": "weighted", "scorers": [{"scorer": "match"}]}, ("Lutetia", "Paris"), "Paris"),
}
SEVERAL |= {
    "choice": ({"type": "choice"}, ("A", "B"), "B"),
    "starts_with": ({"type": "starts_with"}, ("Lutetia", "Paris"), "Paris it is"),
    "tool_calls": ({"type": "tool_calls"}, ("find", "search"), "x"),
    "turns": (
        {"type": "turns", "checks": [{"after": 1, "check": ["cost"], "weight": 0}], "answer": "match"},
        ("Lutetia", "Paris"),
        "Paris",
    ),
    "javascript": ({"type": "javascript", "code": "output === expected"}, ("Lutetia", "Paris"), "Paris"),
    "levenshtein": ({"type": "levenshtein"}, ("Lutetia", "Paris"), "Paris"),
    "f1": ({"type": "f1"}, ("Lutetia", "Paris"), "Paris"),
    "rouge": ({"type": "rouge"}, ("Lutetia", "Paris"), "Paris"),
    "bleu": ({"type": "bleu"}, ("Lutetia", "Paris"), "Paris"),
    "similar": ({"type": "similar", "embedder": "mock:echo"}, ("Lutetia", "Paris"), "Paris"),
    "any_of": ({"type": "any_of", "scorers": ["match", "boolean"]}, ("Lutetia", "Paris"), "Paris"),
    "best_of": ({"type": "best_of", "scorer": "match", "references": ["Lyon"]}, ("Lutetia", "Paris"), "Paris"),
}
# Those that see all of them at once, and those that do not look at the expected text.
SEEN_AT_ONCE = {"llm_judge", "golden_judge"}
NOT_LOOKED_AT = {
    *(
        "browser",
        "check",
        "code_judge",
        "optimisation",
        "refusal",
        "length",
        "latency",
        "cost",
        "trajectory",
        "trigger",
    ),
}
REVERSED = {"not"}  # none of them may be met


def test_every_scorer_says_what_it_does_with_several_right_answers():
    assert {*SEVERAL, *SEEN_AT_ONCE, *NOT_LOOKED_AT, *REVERSED, "pairwise"} == set(registry.builtin_names("scorers"))


def score_several(spec: dict, expected, response: str) -> Score | Unscored:
    case = Case(id="c", input="q", expected=expected)
    context = ScoreContext(response=response, case=case, panel=PANEL, answer=answer(response), embed=embed)
    return asyncio.run(score_answer(build_scorer(spec), context))


@pytest.mark.parametrize("name", SEVERAL)
class TestSeveralRightAnswers:
    def test_any_of_them_is_right(self, name):
        spec, expected, response = SEVERAL[name]
        for order in (expected, expected[::-1]):
            result = score_several(spec, order, response)
            assert result.value == 1
            told = result.notes + str(result.details)
            assert expected[1] in told.replace("\\", "") or name == "all_of"

    def test_the_best_one_counts(self, name):
        spec, expected, response = SEVERAL[name]
        for answer in (response, "nonsense", ""):
            alone = [score_several(spec, text, answer).value for text in expected]
            assert score_several(spec, expected, answer).value == max(alone)

    def test_a_blank_one_is_a_problem(self, name):
        spec, expected, _ = SEVERAL[name]
        case = Case(id="c", input="q", expected=(*expected, " "))
        assert "one of the texts in `expected` is blank" in list(case_problems(build_scorer(spec), case, Path()))


@pytest.mark.parametrize("name", ["boolean", "regex"])
def test_none_of_several_forbidden_answers_may_occur(name):
    spec, expected, response = SEVERAL[name]
    for order in (expected, expected[::-1]):
        assert score_several({**spec, "negate": True}, order, response).value == 0
    assert score_several({**spec, "negate": True}, expected, "Rome").value == 1


def test_not_holds_against_all_of_several():
    spec = {"type": "not", "scorer": "match"}
    assert score_several(spec, ("Lutetia", "Paris"), "Paris").value == 0
    assert score_several(spec, ("Lutetia", "Paris"), "Rome").value == 1


def test_a_reason_is_no_answer_but_a_right_answer_is():
    spec = {"type": "python", "function": f"{OWN}:picky"}
    assert score_several(spec, ("trouble", "Paris"), "Paris").value == 1
    assert isinstance(score_several(spec, ("trouble", "Paris"), "Rome"), Unscored)


@pytest.mark.parametrize("name", sorted(SEEN_AT_ONCE))
def test_judges_see_every_right_answer(name):
    asked = []

    async def ask(request):
        asked.append(request.input)
        return await ask_mock(request)

    panel = Panel(judges=(Judge(name="j", key="k", family="f", ask=ask),))
    case = Case(id="c", input="q", expected=("Lutetia", "Paris"))
    asyncio.run(score_answer(build_scorer({"type": name}), ScoreContext(response="x", case=case, panel=panel)))
    (text,) = asked
    assert "ANSWER 1" in text and "\nLutetia\n" in text and "\nParis\n" in text and "right by itself" in text


def test_pairwise_refuses_several():
    case = Case(id="c", input="q", expected=("Lutetia", "Paris"))
    (problem,) = case_problems(build_scorer({"type": "pairwise"}), case, Path())
    assert "not a list" in problem
