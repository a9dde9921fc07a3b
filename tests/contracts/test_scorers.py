"""One contract for every scorer: what YAML, CLI, web and docs rely on, whatever the scorer does."""

import asyncio
import json
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairtrial.core import registry
from fairtrial.core.judge import Judge, Panel
from fairtrial.core.options import build_scorer, scorer_problems
from fairtrial.core.score import Score, ScoreContext, Unscored
from fairtrial.core.scorer import Guide, Scorer
from fairtrial.core.suite import Case

_CHECKS = [{"name": "c", "steps": [{"click": "button"}]}]
# One example of every scorer, with an expected text that fits it.
EXAMPLES = {
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
    if name != "optimisation":
        return None
    from fairtrial.optim.families import make
    from fairtrial.optim.problem import Baseline, problem_digest

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


def example(name: str) -> tuple[dict, str | None]:
    spec, expected = EXAMPLES[name]
    return ({"type": "python", "function": f"{OWN}:length"} if name == "python" else spec), expected


async def ask_mock(request):
    """A judge that always gives the same mark."""
    from fairtrial.core.answer import Answer, Outcome
    from fairtrial.targets.mock import MockVerdict, _filled

    reply = _filled(request.schema, 3, MockVerdict())
    if "better" in reply:
        reply["better"] = "first"
    return Outcome(result=Answer(text=json.dumps(reply)), cost_usd=0.0)


PANEL = Panel(judges=(Judge(name="j", key="k", family="f", ask=ask_mock),))


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
        assert list(build_scorer(spec).check(case, Path())) == []

    @settings(max_examples=60, deadline=None)
    @given(response=st.text(max_size=300))
    def test_any_answer_gets_the_same_valid_score_twice(self, name, response):
        spec, expected = example(name)
        context = ScoreContext(
            response=response, case=Case(id="c", input="q", expected=expected, metadata=metadata(name)), panel=PANEL
        )
        first, second = (asyncio.run(build_scorer(spec).score(context)) for _ in range(2))
        assert first == second
        if isinstance(first, Score):
            assert 0 <= first.value <= 1
            assert first.max > 0
        else:
            assert isinstance(first, Unscored) and first.message

    def test_its_metrics_have_scales(self, name):
        spec, expected = example(name)
        context = ScoreContext(
            response=TELLING.get(name, "x"),
            case=Case(id="c", input="q", expected=expected, metadata=metadata(name)),
            panel=PANEL,
        )
        result = asyncio.run(build_scorer(spec).score(context))
        scales = build_scorer(spec).scales()
        assert set(getattr(result, "metrics", {})) == set(scales)
        for metric, value in getattr(result, "metrics", {}).items():
            worst, best = scales[metric]  # less may be better, and nothing too bad to be
            known = [bound for bound in (worst, best) if bound is not None]
            assert not known or (min(known) <= value and (None in (worst, best) or value <= max(known)))

    def test_an_empty_answer_is_an_answer(self, name):
        spec, expected = example(name)
        context = ScoreContext(
            response="", case=Case(id="c", input="q", expected=expected, metadata=metadata(name)), panel=PANEL
        )
        assert isinstance(asyncio.run(build_scorer(spec).score(context)), Score)
