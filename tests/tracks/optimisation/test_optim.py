"""Optimisation problems: data, text, Pyomo and evaluator agree; answers get exactly what the decisions say."""

import asyncio
import json
import math
import pickle
import re
import sys

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fairtrial as ft
from fairtrial import pipeline
from fairtrial.agents.mcp.server import connected
from fairtrial.config import parse_suite
from fairtrial.config.advice import warnings
from fairtrial.config.styles import confounded, styles
from fairtrial.core.errors import FairtrialError, ProblemsError
from fairtrial.core.experiment import McpServer
from fairtrial.tracks.optimisation import sample
from fairtrial.tracks.optimisation.analysis import optimisation_report
from fairtrial.tracks.optimisation.answer import read_answer
from fairtrial.tracks.optimisation.catalogue import ProblemSelection, baselines, by_name, select, shipped
from fairtrial.tracks.optimisation.certify import baseline, components
from fairtrial.tracks.optimisation.families import DEFAULT, FAMILIES, can_make, make
from fairtrial.tracks.optimisation.folders import read_folder, write_folder
from fairtrial.tracks.optimisation.model import pyomo_model
from fairtrial.tracks.optimisation.problem import Baseline, Constraint, Expression, OptimisationProblem, problem_digest
from fairtrial.tracks.optimisation.sample import random_points
from fairtrial.tracks.optimisation.text import problem_text, statement
from fairtrial.tracks.optimisation.verify import verify
from fairtrial.workflows.resume import arescore
from tests import forks
from tests.scripted import Say, scripted_model

KINDS = st.tuples(st.sampled_from(sorted(FAMILIES)), st.sampled_from([5, 10, 20]), st.integers(1, 5)).filter(
    lambda kind: can_make(*kind)
)


def from_text(text: str, point: np.ndarray) -> tuple[float, list[tuple[float, str, float]]]:
    """An independent reader of the texts: the objective at x, and every constraint as (body, relation, bound)."""
    values = {f"x_{i}": float(v) for i, v in enumerate(point, 1)}

    def number(token: str) -> float:
        return float(token)

    def evaluate(body: str) -> float:
        body = body.strip()
        x = [float(value) for value in point]
        for pattern, term in (
            (r"sum over \(i, c\) of c\*x_i, with \(i, c\) in \[([^\]]*)\]", lambda i, c: c * x[int(i) - 1]),
            (r"sum over \(i, q\) of q\*x_i\^2, with \(i, q\) in \[([^\]]*)\]", lambda i, q: q * x[int(i) - 1] ** 2),
            (
                r"sum over \(i, j, q\) of q\*x_i\*x_j, with \(i, j, q\) in \[([^\]]*)\]",
                lambda i, j, q: q * x[int(i) - 1] * x[int(j) - 1],
            ),
            (
                r"sum over \(i, a, b, c\) of a\*cos\(b\*x_i \+ c\), with \(i, a, b, c\) in \[([^\]]*)\]",
                lambda i, a, b, c: a * math.cos(b * x[int(i) - 1] + c),
            ),
        ):
            while found := re.search(pattern, body):
                rows = [[number(t) for t in item.strip("() ").split(",")] for item in found.group(1).split(";")]
                total = sum(term(*row) for row in rows)
                body = body[: found.start()] + f"({total!r})" + body[found.end() :]
        while found := re.search(r"sum of \[([^\]]*)\]", body):
            inside = " + ".join(f"({item.strip()})" for item in found.group(1).split(";"))
            body = body[: found.start()] + f"({inside})" + body[found.end() :]
        body = body.replace("sum(x_i^2 for every i)", f"({sum(v * v for v in x)!r})")
        body = body.replace("sum(x_i for every i)", f"({sum(x)!r})")
        body = re.sub(r"x_\d+", lambda m: f"({values[m.group()]!r})", body)
        return float(eval(body.replace("^", "**"), {"__builtins__": {}}))

    objective = re.search(r"(?:Minimise|Maximise) f\(x\) = (.*)\.$", text, re.MULTILINE).group(1)
    rows = re.findall(r"^\(\d+\) (.*) (<=|>=|==) (\S+)$", text, re.MULTILINE)
    return evaluate(objective), [(evaluate(body), relation, number(bound)) for body, relation, bound in rows]


class TestOneProblem:
    @pytest.mark.slow
    @settings(max_examples=60, deadline=None)
    @given(KINDS, st.integers(0, 2**32 - 1))
    def test_text_evaluator_and_pyomo_agree(self, kind, seed):
        problem = make(*kind)
        low, high = problem.box
        x = np.random.default_rng(seed).uniform(low, high)
        said, rows = from_text(statement(problem), x)
        model = pyomo_model(problem)
        for i in range(problem.n):
            model.x[i].set_value(float(x[i]), skip_validation=True)
        from pyomo.environ import value

        assert problem.value(x) == pytest.approx(said, rel=1e-9, abs=1e-7)
        assert value(model.objective) == pytest.approx(said, rel=1e-9, abs=1e-7)
        assert len(rows) == len(problem.constraints) == len(model.rows)
        for constraint, (body, relation, bound), row in zip(
            problem.constraints, rows, model.rows.values(), strict=True
        ):
            assert constraint.body.value(x) == pytest.approx(body, rel=1e-9, abs=1e-7)
            assert (constraint.relation, constraint.bound) == (relation, bound)
            assert value(row.body) - value(row.upper if relation != ">=" else row.lower) == pytest.approx(
                body - bound, rel=1e-9, abs=1e-7
            )

    @pytest.mark.slow
    @settings(max_examples=40, deadline=None)
    @given(KINDS, st.integers(0, 2**32 - 1))
    def test_the_slope_is_the_slope(self, kind, seed):
        problem = make(*kind)
        low, high = problem.box
        rng = np.random.default_rng(seed)
        x = rng.uniform(low, high)
        direction = rng.normal(size=problem.n)
        step = 1e-6
        change = (problem.value(x + step * direction) - problem.value(x - step * direction)) / (2 * step)
        slope = float(problem.objective.gradient(x) @ direction)
        assert change == pytest.approx(slope, rel=1e-3, abs=1e-2)

    @pytest.mark.slow
    @given(KINDS)
    def test_the_same_seed_makes_the_same_problem(self, kind):
        assert problem_digest(make(*kind)) == problem_digest(make(*kind))
        again = msgspec.json.decode(msgspec.json.encode(make(*kind)), type=OptimisationProblem)
        assert again == make(*kind) and problem_digest(again) == problem_digest(make(*kind))
        assert problem_digest(pickle.loads(pickle.dumps(again))) == problem_digest(again)

    def test_what_is_called_convex_is(self):
        for key in DEFAULT:
            problem = make(*key)
            if not problem.convex or problem.objective.monomials or problem.objective.waves:
                continue
            matrix = np.zeros((problem.n, problem.n))
            for i, j, q in problem.objective.quadratic:
                matrix[i, j] += q / 2
                matrix[j, i] += q / 2
            for square in problem.objective.squares:
                row = np.zeros(problem.n)
                for i, c in square.linear:
                    row[i] += c
                matrix += square.weight * np.outer(row, row)
            assert np.linalg.eigvalsh(matrix).min() > -1e-9, problem.id
        assert np.linalg.eigvalsh(_quadratic(make("box_qp", 10))).min() < -0.1

    def test_difficulty_follows_the_rule(self):
        found = {make(*key).id: make(*key).difficulty for key in DEFAULT}
        assert found["original-10"] == "easy" and found["original-100"] == "medium"
        assert found["box_qp-10"] == found["tight-10"] == found["rosenbrock-10"] == "hard"
        assert {*found.values()} == {"easy", "medium", "hard"}

    def test_thirty_instances_of_three_sizes(self):
        problems = [make(*key) for key in DEFAULT]
        assert len({problem.id for problem in problems}) == 30
        assert {problem.n for problem in problems} == {10, 50, 100}
        assert len(make("original", 100, 2).constraints) == 20


def _quadratic(problem: OptimisationProblem) -> np.ndarray:
    matrix = np.zeros((problem.n, problem.n))
    for i, j, q in problem.objective.quadratic:
        matrix[i, j] += q / 2
        matrix[j, i] += q / 2
    return matrix


class TestBaselines:
    @pytest.mark.slow
    @pytest.mark.parametrize("name", ["original-10", "convex_qp-10", "box_qp-10", "mixed_integer-10", "infeasible-10"])
    def test_solved_again_they_are_what_ships(self, name):
        problem = by_name(name)
        new, old = baseline(problem, time_limit=60), shipped()[problem_digest(problem)]
        assert new.status == old.status
        if new.objective is not None:
            assert new.objective == pytest.approx(old.objective, rel=1e-6, abs=1e-6)
            assert new.certified and new.gap <= 1e-6

    def test_every_default_instance_ships(self):
        found = baselines([make(*key) for key in DEFAULT])
        by_id = {item.problem: item for item in found}
        assert by_id["original-100"].objective == pytest.approx(0, abs=1e-9)
        assert by_id["infeasible-50"].status == "infeasible"
        for name in ("box_qp-10", "trigonometric-10", "rosenbrock-10", "bilinear-10"):
            assert by_id[name].certified and by_id[name].gap <= 1e-6
        for item in found:
            assert item.status == "infeasible" or item.bound is not None, item.problem
            if item.x is not None:
                problem = by_name(item.problem)
                assert problem.violations(np.asarray(item.x)).largest <= 1e-6
                assert problem.better(item.objective, item.random_objective)

    @pytest.mark.slow
    def test_random_points_are_feasible(self, monkeypatch):
        monkeypatch.setattr(sample, "_POINTS", 50)
        for name in ("original-10", "portfolio-10", "sparse_equality_qp-10", "tight-10"):
            problem = by_name(name)
            points = random_points(problem)
            assert len(points) == 50
            assert max(problem.violations(point).largest for point in points) < 1e-6

    def test_separable_problems_are_taken_apart(self):
        assert len(components(make("trigonometric", 10))) == 10
        assert len(components(make("original", 10))) == 1

    @pytest.mark.slow
    def test_what_is_not_certified_says_so(self):
        found = baseline(make("box_qp", 100), time_limit=1)
        assert found.certified is False and found.status in ("feasible", "unknown")

    @pytest.mark.slow
    def test_selection(self):
        assert len(select(ProblemSelection())) == 30
        assert {p.n for p in select(ProblemSelection(n=(10,)))} == {10}
        assert {p.family for p in select(ProblemSelection(family=("portfolio",)))} == {"portfolio"}
        assert len(select(ProblemSelection(count=10))) == 10 and len(select(ProblemSelection(count=50))) == 50
        assert len({p.id for p in select(ProblemSelection(count=50))}) == 50
        assert {p.seed for p in select(ProblemSelection(seed=7, family=("tight",), n=(20,)))} == {7}
        assert [p.id for p in select(ProblemSelection(family=("mixed_integer",), n=(100,)))] == ["mixed_integer-100"]
        other = select(ProblemSelection(seed=2))
        assert {p.n for p in other} == {10, 50, 100} and "rosenbrock" not in {p.family for p in other}
        assert by_name("P6-10-1").id == "box_qp-10"
        with pytest.raises(FairtrialError, match="no seed 3"):
            make("rosenbrock", 10, 3)
        with pytest.raises(FairtrialError, match="unknown family `nonsense`"):
            select(ProblemSelection(family=("nonsense",)))
        with pytest.raises(FairtrialError, match="no problem `nonsense`"):
            by_name("nonsense")


SMALL = OptimisationProblem(
    id="small",
    family="small",
    n=2,
    seed=1,
    lower=(0.0, 0.0),
    upper=(10.0, 10.0),
    objective=Expression(linear=((0, 1.0), (1, 1.0))),
    constraints=(Constraint(body=Expression(linear=((0, 3.0), (1, 4.0))), relation=">=", bound=12.0),),
)
SOLVED = Baseline(
    problem="small",
    status="optimal",
    x=(0.0, 3.0),
    objective=3.0,
    bound=3.0,
    gap=0.0,
    certified=True,
    solver="by hand",
    version="1",
    seconds=0.0,
    random_objective=13.0,
    digest="",
)


def judged(answer, **options):
    text = answer if isinstance(answer, str) else json.dumps(answer)
    return verify(SMALL, SOLVED, read_answer(text, 2), **options)


class TestDecisions:
    def test_quality_is_the_way_from_random_to_the_optimum(self):
        assert judged({"x": [0, 3], "objective_value": 3, "status": "optimal"}).quality == pytest.approx(100)
        assert judged({"x": [4, 4], "objective_value": 8}).quality == pytest.approx(50)
        assert judged({"x": [10, 10], "objective_value": 20}).quality == 0

    def test_a_false_objective_changes_nothing_but_its_metric(self):
        honest = judged({"x": [4, 4], "objective_value": 8})
        liar = judged({"x": [4, 4], "objective_value": 3})
        assert honest.quality == liar.quality and honest.objective == liar.objective == 8
        assert (honest.misreported_objective, liar.misreported_objective) == (False, True)

    def test_close_to_feasible_is_not_feasible(self):
        """3x + 4y = 11.9 instead of 12: off by 0.1 over a row norm of 5."""
        found = judged({"x": [0, 2.975], "objective_value": 2.975})
        assert found.violation == pytest.approx(0.02) and not found.feasible and not found.beaten
        assert found.quality == pytest.approx(50 * 1 * (1 - 0.02))
        assert judged({"x": [0, 2.975], "objective_value": 2.975}, tolerance=0.05).feasible

    def test_an_infeasible_answer_never_exceeds_50(self):
        for y in np.linspace(0, 2.9, 20):
            assert judged({"x": [0, y], "objective_value": y}).quality <= 50

    def test_a_false_status(self):
        assert judged({"x": [4, 4], "objective_value": 8, "status": "optimal"}).status_right is False
        assert judged({"x": [0, 3], "objective_value": 3, "status": "optimal"}).status_right is True
        wrong = judged({"x": None, "objective_value": None, "status": "infeasible"})
        assert (wrong.quality, wrong.status_right, wrong.normalised_gap) == (0, False, 1)

    def test_infeasible_problems_want_the_status(self):
        none = msgspec.structs.replace(SOLVED, status="infeasible", x=None, objective=None)
        right = read_answer('{"x": null, "objective_value": null, "status": "infeasible"}', 2)
        wrong = read_answer('{"x": [1, 1], "objective_value": 2, "status": "optimal"}', 2)
        assert verify(SMALL, none, right).quality == 100 and right.follows
        assert verify(SMALL, none, wrong).quality == 0

    def test_a_beaten_baseline_is_loud(self):
        poor = msgspec.structs.replace(SOLVED, objective=5.0, x=(1.0, 4.0))
        found = verify(SMALL, poor, read_answer('{"x": [0, 3], "objective_value": 3}', 2))
        assert found.beaten and "BASELINE BEATEN" in found.note and found.quality == 100

    def test_numbers_too_large_to_compute_with_are_an_answer_that_scores_0(self):
        for name in ("convex_qp-10", "rosenbrock-10", "box_qp-10"):
            problem = by_name(name)
            for size in (1e160, 1e308):
                answer = read_answer(json.dumps({"x": [size] * 10, "objective_value": 0}), 10)
                assert verify(problem, baselines([problem])[0], answer).quality == 0

    def test_leaving_the_constraints_out_does_not_pay(self):
        from fairtrial.tracks.optimisation.analysis import composites

        infeasible = judged({"x": [0, 0], "objective_value": 0, "status": "optimal"})
        metrics = {"instruction_following": 1.0, "quality": infeasible.quality, "normalised_gap": 0.0}
        guide, ours = (parts.of(metrics) for parts in composites((0.5, 0.5)).values())
        assert infeasible.normalised_gap == 0 and guide == 1 and ours <= 0.75

    def test_the_tolerance_beats_no_baseline(self):
        found = judged({"x": [0, 3 - 1e-6], "objective_value": 3}, tolerance=1e-5)
        assert found.feasible and not found.beaten

    def test_a_solvable_problem_is_never_rightly_called_infeasible(self):
        assert judged({"x": [10, 10], "objective_value": 20, "status": "infeasible"}).status_right is False

    def test_claimed_violations_are_held_against_the_truth(self):
        answer = {"x": [0, 2], "objective_value": 2, "constraint_violations": [0]}
        assert judged(answer).misreported_violations is True
        assert judged({**answer, "constraint_violations": {"c1": 0.8}}).misreported_violations is False


@pytest.mark.parametrize(
    ("text", "findings"),
    [
        ('{"x": [1, 2], "objective_value": 3}', ()),
        ('Sure!\n```json\n{"x": [1, 2], "objective_value": 3}\n```\nDone.', ()),
        ('I tried {"x": [9, 9], "objective_value": 1} first. Then {"x": [1, 2], "objective_value": 3}', ()),
        ('{"x": [1, 2, 3], "objective_value": 3}', ("wrong_length",)),
        ('{"x": [1, "2"], "objective_value": 3}', ("strings_in_x",)),
        ('{"x": [1, NaN], "objective_value": 3}', ("not_finite",)),
        ('{"x": [1, -Infinity], "objective_value": 3}', ("not_finite",)),
        ('{"x": [1, null], "objective_value": 3}', ("wrong_types_in_x",)),
        ('{"x": [1, true], "objective_value": 3}', ("wrong_types_in_x",)),
        ('{"x": "1, 2", "objective_value": 3}', ("x_not_a_list",)),
        ('{"objective_value": 3}', ("missing_x",)),
        ('{"x": [1, 2]}', ("missing_objective_value",)),
        ('{"x": [1, 2], "objective_value": "three"}', ("objective_not_a_number",)),
        ('{"x": [1, 2], "objective_value": 3, "status": "great"}', ("unknown_status",)),
        ("The optimum is at (0, 3).", ("no_json",)),
        ('{"x": [1, 2], "objective_value": 3} Check: {"status": "ok"}', ()),
        (
            '{"x": [1, 2], "objective_value": 3}. Were there none: {"x": null, "objective_value": null, "status": "infeasible"}',
            (),
        ),
        ('{"x": [1, 2', ("truncated",)),
        ("", ("no_json",)),
        ("[1, 2]", ("no_json",)),
    ],
)
def test_every_fault_is_its_own_finding(text, findings):
    assert read_answer(text, 2).findings == findings


def test_a_truncated_answer_is_recognised_by_its_finish_reason():
    assert read_answer('{"x": [1, 2], "objective_value": 3}', 2, truncated=True).findings == ("truncated",)


@pytest.mark.slow
@given(st.text())
def test_no_text_breaks_the_reader(text):
    found = read_answer(text, 3)
    assert found.x is None or len(found.x) == 3


@pytest.mark.slow
@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["x", "objective_value", "status"]), inner),
    )
)
def test_no_json_breaks_reader_or_verifier(value):
    found = read_answer(json.dumps(value), 2)
    assert 0 <= verify(SMALL, SOLVED, found).quality <= 100


class TestStyles:
    def test_every_style_has_wordings_without_a_word_on_the_format(self):
        assert {"polite", "strict", "neutral", "terse", "expert", "chain_of_thought"} <= set(styles())
        for wordings in styles().values():
            assert len(set(wordings)) >= 3 and not any(confounded(wording) for wording in wordings)
        assert confounded("Return YAML, rounded to 3 digits") and confounded("reply with numbers and nothing else")
        assert not confounded("This is the key point: solve.")

    def test_the_format_sentence_is_the_same_in_all(self):
        suite = parse_suite(
            "name: s\ntargets: [mock:echo]\nsuite: {kind: optimisation, n: [10], styles: [polite, strict]}"
        )
        case = next(suite.cases())
        texts = [arm.condition.render(case, 0).question for arm in suite.arms]
        assert len(set(texts)) == 2 and all(case.input in text for text in texts)
        assert suite.arms[0].condition.render(case, 1).question != texts[0]  # another repeat, another wording

    def test_choosing(self, write_suite):
        suite = pipeline.load(write_suite(suite={"kind": "optimisation", "family": "original", "n": 10}))
        assert suite.case_count == 1 and {arm.repeats for arm in suite.arms} == {5}  # five wordings, five repeats
        suite = pipeline.load(write_suite(suite="optimisation", repeats=2))
        assert suite.case_count == 30 and {arm.repeats for arm in suite.arms} == {2}

    def test_own_styles(self, write_suite, tmp_path):
        (tmp_path / "mine.md").write_text("Dear friend, answer in JSON with two decimals:\n{{problem}}")
        path = write_suite(
            suite={"kind": "optimisation", "family": ["original"]},
            conditions={"mine": {"prompt_file": "mine.md"}, "plain": {"prompt": "Solve: {{input}}"}},
        )
        suite = pipeline.load(path)
        assert any("`mine` mentions the answer format (`JSON`)" in warning for warning in warnings(suite))
        assert not any("`plain`" in warning for warning in warnings(suite))

    @pytest.mark.parametrize(
        ("keys", "says"),
        [
            ({"conditions": {"a": {"prompt": "no place"}}}, "needs {{ input }}"),
            ({"conditions": {"a": {"style": "rude"}}}, "unknown style `rude`"),
            ({"conditions": {"a": {"style": "polite", "prompt": "{{input}}"}}}, "mutually exclusive"),
            ({"conditions": {"a": {"prompt_file": "nowhere.md"}}}, "no file"),
            ({"suite": {"kind": "optimisation", "styles": ["rude"]}}, "unknown style `rude`"),
            ({"suite": {"kind": "nonsense"}}, "suite.kind"),
        ],
    )
    def test_bad_styles_are_refused(self, write_suite, keys, says):
        with pytest.raises((ProblemsError, FairtrialError), match=re.escape(says)):
            pipeline.load(write_suite(**keys))


@pytest.mark.slow
async def test_a_run_with_styles(run_suite):
    """Scripted targets of known quality: the optimum, a wrong length, prose."""
    problems = select(ProblemSelection(n=(10,)))
    found = {item.problem: item for item in baselines(problems)}
    best = {
        problem.id: json.dumps(
            {
                "x": found[problem.id].x,
                "objective_value": found[problem.id].objective,
                "status": "infeasible" if found[problem.id].x is None else "optimal",
            }
        )
        for problem in problems
    }
    run = await run_suite(
        suite={"kind": "optimisation", "n": [10], "styles": ["polite", "strict"]},
        repeats=2,
        targets=[
            {"id": "solver", "target": "mock:x", "options": {"answers": best}},
            {"id": "short", "target": "mock:x", "options": {"answer": '{"x": [1], "objective_value": 1}'}},
            {"id": "prose", "target": "mock:x", "options": {"answer": "It is zero."}},
        ],
    )
    assert run.status == "completed"
    arms = {arm.arm: arm for arm in run.arms}
    assert arms["solver/polite"].aggregate.mean == pytest.approx(1, abs=1e-6)
    assert arms["short/strict"].aggregate.mean == 0 and arms["prose/polite"].aggregate.mean == 0
    assert arms["solver/polite"].metrics["instruction_following"].mean == 1
    assert arms["short/polite"].metrics["instruction_following"].mean == 0
    assert arms["solver/polite"].metrics["feasible"].mean == 1
    compared = ft.compare(run, "short/polite", "solver/polite", metric="normalised_gap")
    assert compared.difference == pytest.approx(1, abs=1e-6) and compared.verdict == "worse"
    assert compared.units == len({problem.family for problem in problems})
    trial = next(run.trials())
    assert trial.category and problem_text(by_name(trial.case_id)) in trial.input


@pytest.mark.slow
async def test_the_baseline_command(tmp_path):
    from click.testing import CliRunner

    from fairtrial.cli.main import cli

    def call(*args):
        found = CliRunner().invoke(cli, ["baseline", *args], standalone_mode=False)
        assert found.exception is None, found.exception
        return found

    found = call("original-10", str(tmp_path / "baseline.json"))
    written = json.loads((tmp_path / "baseline.json").read_text())
    assert written["status"] == "optimal" and written["objective_value"] == pytest.approx(0, abs=1e-9)
    assert json.loads(found.stdout) == written and "certified" in found.stderr
    assert read_answer((tmp_path / "baseline.json").read_text(), 10).follows
    rows = json.loads(call("--list", "--json").stdout)["problems"]
    assert len(rows) == 30 and {"id", "family", "n", "difficulty", "objective", "status", "gap"} <= set(rows[0])
    assert "box_qp-10" in call("--list").stdout and "Minimise f(x)" in call("box_qp-10", "--text").stdout


PLANTED = '''
"""A target of known quality: it starts at the optimum and walks away from it, farther in the strict style."""
import hashlib, json, re
import numpy as np
from fairtrial import Answer
from fairtrial.tracks.optimisation.catalogue import baselines, by_name

FOUND = {}

def answer(prompt, system, servers):
    name = re.search(r"Problem (\\S+)\\.", prompt).group(1)
    if name not in FOUND:
        FOUND[name] = by_name(name), baselines([by_name(name)])[0]
    problem, best = FOUND[name]
    if best.x is None:
        return json.dumps({"x": None, "objective_value": None, "status": "infeasible"})
    # Chance depends on the wording and the problem, and on nothing else: a run can be repeated.
    rng = np.random.default_rng(int(hashlib.sha256(prompt.encode()).hexdigest()[:8], 16))
    strict = any(word in prompt for word in ("You must", "No mistakes", "Get it done", "do it right", "nothing less"))
    far = %s
    low, high = problem.box
    x = np.asarray(best.x) + far * rng.random() * (rng.uniform(low, high) - np.asarray(best.x))
    luck = rng.random()
    if strict and luck < %s:
        return Answer(text="Let me think. I believe that all of them are 0.")
    if strict and luck < 2 * %s:
        return Answer(text='{"x": [0.1, 0.2, ', finish_reason="length")
    if strict and luck < 3 * %s:
        x = x[:-1]
    return "Here you are: " + json.dumps({"x": x.tolist(), "objective_value": problem.value(x) if len(x) == problem.n else 0})
'''


@pytest.mark.slow
@pytest.mark.parametrize("planted", [True, False])
async def test_a_planted_effect_is_found_and_none_where_there_is_none(run_suite, tmp_path, planted):
    # An effect of the size that 12 families can show: by the composite, about 0.5.
    far, cut = ("1.0 if strict else 0.0", "0.2") if planted else ("0.3", "0.0")
    (tmp_path / "planted.py").write_text(PLANTED % (far, cut, cut, cut))
    run = await run_suite(
        suite={"kind": "optimisation", "styles": ["polite", "strict"]},
        repeats=5,
        concurrency=8,
        targets=[{"id": "m", "target": "python:planted.py:answer"}],
    )
    report = optimisation_report(run)
    polite, strict = report.arms
    (pair,) = report.comparisons.pairs
    assert (polite.style, strict.style) == ("polite", "strict") and polite.overall.trials == 150
    assert pair.count == 30 and pair.units == 12
    if planted:
        assert pair.verdict == "better" and polite.overall.mean("instruction_following") == 1
        assert strict.overall.mean("instruction_following") < 0.9 and strict.overall.truncated > 0
        assert strict.overall.mean("normalised_gap") > polite.overall.mean("normalised_gap")
    else:
        assert pair.verdict == "cannot tell" and polite.overall.mean("instruction_following") == 1
    assert {"easy", "medium", "hard"} == set(polite.by["difficulty"]) and len(polite.by["family"]) == 12
    following, quality = polite.overall.mean("instruction_following"), polite.overall.mean("quality")
    assert polite.overall.mean("composite") == pytest.approx(
        0.5 * following + 0.5 * (1 - polite.overall.mean("normalised_gap"))
    )
    assert polite.overall.mean("quality composite") == pytest.approx(0.5 * following + 0.5 * quality / 100)
    assert pair.wordings == 10
    assert any(found.by == "difficulty" for found in pair.differs)


@pytest.mark.slow
@pytest.mark.simulation
def test_no_effect_is_found_where_none_is():
    """100 experiments on the default suite's families without an effect: at most 5 % are called one.

    `benchmarks/styles.py` makes 500 of many kinds. A test that is wrong in 15 % fails here with a probability of 99 %.
    """
    from fairtrial.stats import paired

    families = np.unique([family for family, _, _ in DEFAULT], return_inverse=True)[1]
    rng = np.random.default_rng(8)
    wrong = 0
    for _ in range(100):
        base = rng.beta(2, 2, 30)

        def style(base=base):
            luck = rng.normal(0, 0.1, 12)[families]
            return np.clip(base + luck + rng.normal(0, 0.15, (5, 30)).mean(axis=0), 0, 1)

        wrong += paired(style(), style(), families).p_value < 0.05
    assert wrong / 100 <= 0.06


class TestFolders:
    async def test_written_and_evaluated_again(self, run_suite, tmp_path):
        run = await run_suite(
            suite={"kind": "optimisation", "family": ["original"], "n": [10], "styles": ["polite", "strict"]},
            repeats=2,
            targets=[
                {
                    "id": "m",
                    "target": "mock:x",
                    "options": {"answer": '{"x": [1,1,1,1,1,1,1,1,1,1], "objective_value": 10}'},
                }
            ],
        )
        folder = tmp_path / "answers"
        assert write_folder(run, folder) == 4
        assert sorted(path.name for path in (folder / "original-10").iterdir()) == [
            "baseline.json",
            "polite_1.json",
            "polite_2.json",
            "strict_1.json",
            "strict_2.json",
        ]
        (folder / "original-10" / "strict_2.json").unlink()
        (folder / ".git").mkdir()
        (folder / "original-10" / "polite_v2_1.json").write_text("of another style")
        (folder / "original-10" / "strict_1.json").write_text("no idea")
        again = await pipeline.arun(read_folder(folder), store=run.store)
        arms = {arm.arm: arm for arm in again.arms}
        assert arms["polite"].aggregate.mean == pytest.approx(run.arms[0].aggregate.mean) and arms["polite"].scored == 2
        assert arms["strict"].aggregate.mean == 0 and arms["strict"].scored == 1
        assert arms["polite_v2"].trials == 1

    async def test_no_two_styles_share_a_file(self, run_suite, tmp_path):
        run = await run_suite(
            suite={"kind": "optimisation", "ids": "original-10"},
            repeats=1,
            targets=[{"id": "m", "target": "mock:x", "options": {"answer": "?"}}],
            conditions={name: {"prompt": "{{input}}"} for name in ("my style", "my-style", "my_style")},
        )
        assert write_folder(run, tmp_path / "f") == 3
        assert len(list((tmp_path / "f" / "original-10").glob("my*_1.json"))) == 3

    @pytest.mark.parametrize(
        ("make_it", "says"),
        [((), "no instance folders"), (("nonsense",), "no problem `nonsense`"), (("original-10",), "no answers")],
    )
    def test_what_is_no_such_folder(self, tmp_path, make_it, says):
        (tmp_path / "f").mkdir()
        for name in make_it:
            (tmp_path / "f" / name).mkdir()
        with pytest.raises(FairtrialError, match=says):
            read_folder(tmp_path / "f")


class TestAgentsWithASolver:
    SERVER = McpServer(name="solver", command=sys.executable, args=("-m", "fairtrial.tracks.optimisation.mcp_server"))

    @pytest.mark.slow
    async def test_the_tools(self):
        async with connected(self.SERVER) as client:
            names = {tool.name for tool in (await client.list_tools()).tools}
            assert names == {"evaluate", "solve", "describe"}
            found = await client.call_tool("evaluate", {"problem": "original-10", "x": [1.0] * 10})
            said = json.loads(found.content[0].text)
            assert said["objective_value"] == 10 and said["feasible"] is True
            wrong = await client.call_tool("evaluate", {"problem": "original-10", "x": [1.0]})
            assert "has 10 variables" in wrong.content[0].text
            both = await asyncio.gather(*(client.call_tool("solve", {"problem": f"original-{n}"}) for n in (11, 12)))
            assert all('"status":"optimal"' in one.content[0].text.replace(" ", "") for one in both)

    @pytest.mark.slow
    async def test_what_a_tool_brings(self, run_suite, monkeypatch):
        """A scripted model that guesses without the tool and copies its answer with it: the lift is the tool's."""
        python = str(forks.programs() / "python")

        def script(turn):
            tool = next((name for name in turn.tools if name.endswith("solve")), None)
            name = re.search(r"Problem (\S+)\.", turn.question).group(1)
            if tool and not turn.results:
                return Say("", ((tool, {"problem": name}),))
            return Say(turn.results[-1] if turn.results else '{"x": [1], "objective_value": 1}')

        async with scripted_model(script) as served:
            monkeypatch.setenv("OPENAI_BASE_URL", served.url + "/v1")
            monkeypatch.setenv("OPENAI_API_KEY", "sk-test-key-0001")
            run = await run_suite(
                suite={"kind": "optimisation", "ids": ["box_qp-10"]},
                repeats=1,
                targets=[{"id": "agent", "target": "tool-agent", "options": {"model": "openai:m"}}],
                mcp_servers={"solver": {"command": python, "args": ["-m", "fairtrial.tracks.optimisation.mcp_server"]}},
                conditions={"alone": {}, "with-solver": {"mcp": ["solver"], "require_tool_use": True}},
            )
        arms = {arm.condition: arm for arm in run.arms}
        assert arms["alone"].aggregate.mean == 0 and arms["with-solver"].aggregate.mean == pytest.approx(1, abs=1e-6)
        assert arms["with-solver"].tools.rate == 1


def test_whoever_repeats_the_question_has_not_followed_it():
    """Parroting is no answer, and the format is the same text whatever the style."""
    for key in DEFAULT:
        problem = make(*key)
        text = problem_text(problem)
        form = text.rpartition("\n\n")[2]
        for wordings in styles().values():
            for wording in wordings:
                asked = wording.replace("{{problem}}", text).replace("{{input}}", text)
                assert form in asked
                answered = read_answer(asked, problem.n)
                assert not answered.follows and answered.x is None and answered.status is None


async def test_an_echo_follows_no_instruction(run_suite):
    run = await run_suite(targets=["mock:echo"], suite={"kind": "optimisation", "difficulty": "easy", "count": 3})
    for arm in run.summary().arms:
        assert arm.metrics["instruction_following"].mean == 0 and arm.metrics["quality"].mean == 0


@pytest.mark.slow
async def test_the_table_of_variables_names_the_scorers_that_were_used(run_suite):
    from fairtrial.present.words.variables import variables

    def named(run):
        return next(one.value for one in variables(run) if one.name == "scorers")

    run = await run_suite(targets=["mock:echo"], suite={"kind": "optimisation", "difficulty": "easy", "count": 1})
    assert named(run) == "optimisation"
    cases = [{"input": "1", "expected": "1", "scorer": "numeric"}, {"input": "a", "expected": "a"}]
    assert named(await run_suite(cases=cases, scorer="exact")) == "exact, numeric"
    run = await run_suite(cases=cases[:1], scorer="exact")
    assert named(run) == "numeric"
    assert named(await arescore(run.id, scorer={"type": "match"}, store=run.store)) == "match"
