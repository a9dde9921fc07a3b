"""Problems of one's own: expressions are read, never executed; files of every format become the same kind of problem."""

import contextlib
import json
import math
import re
import subprocess
import sys
from pathlib import Path

import msgspec
import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from fairtrial.cli.main import cli
from fairtrial.core.errors import FairtrialError, ProblemsError
from fairtrial.tracks.optimisation import formula, sample
from fairtrial.tracks.optimisation.algebra import Sum, add, as_expression, functions
from fairtrial.tracks.optimisation.answer import read_answer
from fairtrial.tracks.optimisation.arrays import FormulaError
from fairtrial.tracks.optimisation.catalogue import baselines, known_baseline, shipped
from fairtrial.tracks.optimisation.certify import baseline, check_solved
from fairtrial.tracks.optimisation.export import problem_yaml
from fairtrial.tracks.optimisation.families import DEFAULT, FAMILIES, can_make, make
from fairtrial.tracks.optimisation.formula import FUNCTIONS, Interpreter
from fairtrial.tracks.optimisation.multistart import search
from fairtrial.tracks.optimisation.problem import UNBOUNDED, Expression, problem_digest
from fairtrial.tracks.optimisation.problem_file import parse_problem, read_problem
from fairtrial.tracks.optimisation.problem_files import find_problem, find_problems, is_problem_file
from fairtrial.tracks.optimisation.sample import finite_box, random_points
from fairtrial.tracks.optimisation.structure import is_convex, kind
from fairtrial.tracks.optimisation.text import problem_text, statement

EXAMPLES = Path(__file__).parents[3] / "examples" / "problems"


def call(*args, ok=True):
    found = CliRunner().invoke(cli, list(map(str, args)), standalone_mode=False)
    if ok:
        assert found.exception is None, found.exception
    return found


def variables(count):
    sums = np.empty(count, dtype=object)
    sums[:] = [Sum.variable(i) for i in range(count)]
    return sums


NAMES = {"A": np.array([[1.0, 0.0, 2.0], [0.0, 3.0, -1.0]]), "c": np.array([2.0, -1.0, 0.5]), "k": 3.0}


def read(text):
    """The expression of a text over y[0], y[1], y[2]."""
    return as_expression(Sum.of(Interpreter({**NAMES, "y": variables(3)}, functions(), add).value(text)))


ATOMS = st.sampled_from(["y[0]", "y[1]", "y[2]", "k", "2", "0.5", "c[1]"])
TEXTS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*"]), inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
        inner.map(lambda t: f"({t})**2"),
        inner.map(lambda t: f"-({t})"),
        inner.map(lambda t: f"sin({t})"),
        inner.map(lambda t: f"cos({t})"),
        inner.map(lambda t: f"exp(-({t})**2)"),
        inner.map(lambda t: f"1/(1 + ({t})**2)"),
        inner.map(lambda t: f"sqrt(1 + ({t})**2)"),
        inner.map(lambda t: f"(2 + sin({t}))**1.5"),
        inner.map(lambda t: f"abs({t})"),
        inner.map(lambda t: f"sum(c[i]*y[i]*({t}) for i in range(3) if i != 1)"),
    ),
    max_leaves=6,
)


class TestExpressions:
    @pytest.mark.slow
    @settings(max_examples=150, deadline=None)
    @given(TEXTS, st.lists(st.floats(-1.5, 1.5), min_size=3, max_size=3))
    def test_terms_and_numbers_agree(self, text, point):
        """The structure that is found in an expression has its value, and its gradient is the slope."""
        x = np.asarray(point)
        direct = Interpreter({**NAMES, "y": x}, FUNCTIONS).value(text)
        expression = read(text)
        size = max(1.0, abs(direct))
        assert expression.value(x) == pytest.approx(direct, rel=1e-8, abs=1e-8 * size)
        if "abs" in text or size > 1e4:
            return
        step, direction = 1e-6, np.array([0.6, -0.5, 0.7])
        change = (expression.value(x + step * direction) - expression.value(x - step * direction)) / (2 * step)
        assert float(expression.gradient(x) @ direction) == pytest.approx(change, rel=1e-3, abs=1e-3 * size)

    def test_structure_is_found(self):
        linear = read("c @ y + 3*y[0] - sum(y)")
        assert linear.is_linear and dict(linear.linear) == {0: 4.0, 1: -2.0, 2: -0.5}
        square = read("(y[0] - 2*y[1] + 1)**2")
        assert square.squares and square.is_quadratic and not square.quadratic
        assert read("y @ y").quadratic == ((0, 0, 1.0), (1, 1, 1.0), (2, 2, 1.0))
        assert read("5*cos(2*y[0] + 1)").waves and not read("5*cos(2*y[0] + 1)").formulas
        assert read("y[0]*(y[1] - 1)**2").monomials and not read("y[0]*(y[1] - 1)**2").formulas
        general = read("(y[0] + y[1])/(1 + y[2]) + y[0]**0.5")
        assert [one.text for one in general.formulas] == ["(x[0] + x[1])/(x[2] + 1.0)", "x[0]**0.5"]
        assert read("y[0] - y[0] + 2**3").linear == () and read("y[0] - y[0] + 2**3").constant == 8

    def test_what_is_not_defined_is_no_number(self):
        expression = read("log(y[0]) + 1/y[1]")
        assert math.isnan(expression.value(np.array([-1.0, 1.0, 0.0])))
        assert math.isnan(expression.value(np.array([1.0, 0.0, 0.0])))

    @pytest.mark.parametrize(
        ("text", "says"),
        [
            ("yy[0]", "unknown name `yy`; did you mean `y`?"),
            ("y[3]", "the index 3 is outside of 0 … 2"),
            ("y[-1]", "the index -1 is outside"),
            ("y[0]^2", "write `**` for a power"),
            ("y[0] = 3", "write `==`"),
            ("2y", "not an expression"),
            ("sinn(y[0])", "did you mean `sin`?"),
            ("sum(y[0])", "is one number"),
            ("A @ c[0]", "`@` multiplies vectors and matrices"),
            ("A @ A", "cannot multiply shapes 2×3 and 2×3"),
            ("A + c", "the shapes 2×3 and 3 differ"),
            ("y", "there is a vector where a number is needed"),
            ("1/0", "division by zero"),
            ("log(0)", "cannot be computed"),
            ("(-1)**0.5", "root of a negative number"),
            ("9**9**9", "too large"),
            ("y[0]**y[1]", "write exp(b*log(a))"),
            ("-" * 200 + "1", "too deeply nested"),
            ("(" * 500 + "1" + ")" * 500, "nested"),
            ("'a'*3", "is not a number"),
            ("True", "is not a number"),
            ("y[0] <= 3", "between the two sides of a constraint"),
        ],
    )
    def test_mistakes_say_what_to_write(self, text, says):
        with pytest.raises(FormulaError, match=re.escape(says)):
            read(text)

    @pytest.mark.parametrize(
        "text", ["sum(1 for i in range(10**12))", "sum(1 for i in range(2000) for j in range(2000))"]
    )
    def test_a_loop_without_end_is_stopped(self, text, monkeypatch):
        assert formula._MAX_STEPS == 1_000_000  # which takes seconds
        monkeypatch.setattr(formula, "_MAX_STEPS", 10_000)
        with pytest.raises(FormulaError, match="takes more than 10,000 operations"):
            read(text)

    @pytest.mark.parametrize(
        "text",
        [
            "__import__('os').system('touch /tmp/h')",
            "().__class__.__bases__[0].__subclasses__()",
            "(lambda: 1)()",
            "[i for i in c]",
            "y.tofile('x')",
            "c.__class__",
            "open('/etc/passwd')",
            "exec('1')",
            "f'{k}'",
            "(k := 3)",
            "y if k else c",
            "{1: 2}",
            "sum(*c)",
            "exp(x=1)",
            "getattr(c, 'T')",
        ],
    )
    def test_nothing_else_of_python_is_there(self, text):
        with pytest.raises(FormulaError):
            read(text)

    @pytest.mark.slow
    @settings(max_examples=200, deadline=None)
    @given(st.text(alphabet="y[]()+-*/@0123., forinageslqtc<>='_", max_size=40))
    def test_any_text_is_an_expression_or_a_mistake(self, text):
        with contextlib.suppress(FormulaError, OverflowError):
            read(text)


GOOD = """
sense: max
variables:
  - {name: x0, lower: 0, upper: 1, integer: true}
  - {name: y, size: 4, lower: -10, upper: 10}
data: {c: [10, 13, 7, 8], A: {file: A.csv}, b: [4, 1e1]}
objective: 10*x0 + sum(c[i]*y[i] for i in range(4))
constraints: ["A @ y <= b", "0 <= y[0]*exp(-x0) <= 5", "y[i] <= y[i+1] for i in range(3)"]
"""
BAD = """\
sence: max
variables:
  - {name: x0, lower: 2, upper: 1}
  - {name: sum, lower: 0}
  - {name: y, size: 4, lower: [1, 2]}
data:
  c: [10, 13, oops]
  A: {file: nowhere.csv}
  M: [[1, 2], [3]]
objective: 10*x0 + 13*xx
constraints:
  - 5*x0 < 10
  - yy[0] <= 3
  - 3 <= 4
  - 3 + x0
"""


class TestFiles:
    def test_a_file_is_a_problem(self, tmp_path):
        (tmp_path / "A.csv").write_text("a;b;c;d\n1;2;3;4\n0;1;0;1\n")
        (tmp_path / "own.yaml").write_text(GOOD)
        problem = read_problem(tmp_path / "own.yaml")
        assert (problem.id, problem.n, problem.sense, problem.integers) == ("own", 5, "maximise", (0,))
        assert problem.names == ("x0", "y[0]", "y[1]", "y[2]", "y[3]") and len(problem.constraints) == 7
        assert problem.constraints[0].body.linear == ((1, 1.0), (2, 2.0), (3, 3.0), (4, 4.0))
        assert problem.constraints[1].bound == 10 and not problem.convex
        assert kind(problem.objective, problem.constraints, problem.integers) == "mixed-integer non-linear"
        as_json = json.dumps({"variables": [{"name": "x", "lower": 0}], "objective": "x", "text": "Choose x."})
        (tmp_path / "own.json").write_text(as_json)
        assert read_problem(tmp_path / "own.json").upper == (UNBOUNDED,)
        assert 'In "x", give the values in this order: x.' in statement(read_problem(tmp_path / "own.json"))

    def test_every_mistake_has_its_line(self, tmp_path):
        (tmp_path / "bad.yaml").write_text(BAD)
        with pytest.raises(ProblemsError) as caught:
            read_problem(tmp_path / "bad.yaml")
        found = [(one.line, one.message) for one in caught.value.problems]
        for line, says in [
            (1, "did you mean `sense`"),
            (3, "is below `lower`"),
            (4, "has a meaning in expressions"),
            (5, "has 2 numbers, and there are 4"),
            (7, "must be a number, a vector"),
            (8, "there is no such file"),
            (9, "rows of the same length"),
            (10, "unknown name `xx`"),
            (12, "write `<=` or `>=`"),
            (13, "did you mean `y`"),
            (14, "has no variables"),
            (15, "a constraint needs `<=`"),
        ]:
            assert any(at == line and says in message for at, message in found), (line, says, found)

    @pytest.mark.parametrize(
        ("change", "says"),
        [
            ("data: {q: 1}", "`q` is in no expression"),
            ("variables: [{name: x}, {name: z}]", "`z` is in no expression"),
            ("variables: [{name: 2x}]", "is not a name"),
            ("variables: [{name: x}, {name: x}]", "there are two `x`"),
            ("variables: []", "must not be empty"),
            ("variables: [{name: x, size: 100000}]", "more than 10000 variables"),
            ('text: \'Answer like {"x": [1], "objective_value": 2, "status": "optimal"}\'', "a complete answer"),
            ("tolerance: 0", "must be > 0"),
            ("difficulty: brutal", "must be one of easy, medium, hard"),
        ],
    )
    def test_other_mistakes(self, change, says):
        base = {"variables": "variables: [{name: x, lower: 0}]", "objective": "objective: x**2"}
        base[change.partition(":")[0]] = change
        with pytest.raises(ProblemsError, match=re.escape(says)):
            parse_problem("\n".join(base.values()), default_id="p")

    @pytest.mark.parametrize(
        ("text", "says"),
        [("1,2\n3\n", "A.csv:2: has 1 numbers"), ("1,b\n", "A.csv:1: `b`"), ("", "has no numbers")],
    )
    def test_mistakes_in_tables(self, tmp_path, text, says):
        (tmp_path / "A.csv").write_text(text)
        (tmp_path / "own.yaml").write_text(GOOD)
        with pytest.raises(ProblemsError, match=re.escape(says)):
            read_problem(tmp_path / "own.yaml")

    def test_no_text_breaks_the_reader(self):
        for text in ("", "[]", "a", "variables: 3\nobjective: [1]", "variables: [3]\nobjective: x", "&a [*a]", "{"):
            with pytest.raises(FairtrialError):
                parse_problem(text, default_id="p")

    def test_generated_texts_hold_no_answer(self):
        for file in sorted(EXAMPLES.glob("*.yaml")):
            problem = read_problem(file)
            answered = read_answer(problem_text(problem), problem.n)
            assert answered.x is None and not answered.follows, file
        free = parse_problem(
            "variables: [{name: x}, {name: y, lower: 0}]\nobjective: (x - 1)**2 + sqrt(y)", default_id="p"
        )
        assert "Bounds: x_2 >= 0. Without bounds: x_1." in statement(free) and "sqrt(x_2)" in statement(free)

    @pytest.mark.parametrize("family", sorted(FAMILIES))
    def test_built_in_problems_read_back_equal(self, family):
        keys = [key for key in DEFAULT if key[0] == family and key[1] <= 50]
        keys += [(family, 15, 3)] if can_make(family, 15, 3) else []
        for key in keys:
            problem = make(*key)
            again = parse_problem(problem_yaml(problem))
            assert problem_digest(again) == problem_digest(problem) and again.id == problem.id
            assert (again.convex, again.floor, again.family) == (problem.convex, problem.floor, problem.family)
            assert again.difficulty == problem.difficulty
            twice = parse_problem(problem_yaml(again))
            assert twice == again

    @pytest.mark.parametrize("file", sorted(EXAMPLES.glob("*.yaml")), ids=lambda file: file.stem)
    def test_own_problems_read_back_with_their_names(self, file):
        problem = read_problem(file)
        again = parse_problem(problem_yaml(problem))
        assert problem_digest(again) == problem_digest(problem) and again.text == problem.text
        assert again.names == problem.names or problem.id == "transport"  # a matrix becomes a vector

    @pytest.mark.slow
    def test_the_example_of_the_documentation(self):
        page = (EXAMPLES.parents[1] / "docs" / "tutorial-optimisation.md").read_text("utf-8")
        (block,) = [text for text in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL) if "# knapsack.yaml" in text]
        found = baseline(parse_problem(block, default_id="knapsack"), time_limit=30)
        assert found.certified and found.objective == pytest.approx(21)  # items 1 and 3, nothing to spare

    @pytest.mark.slow
    def test_mps_lp_and_pyomo_are_the_same_problem(self, tmp_path):
        (tmp_path / "own.yaml").write_text(
            "sense: max\nvariables: [{name: x, lower: 0, upper: 3}, {name: y, lower: 0, integer: true}]\n"
            "objective: 3*x + 2*y\nconstraints: [x + y <= 4, x - y <= 2]"
        )
        (tmp_path / "own.lp").write_text(
            "max\n obj: 3 x + 2 y\nst\n c1: x + y <= 4\n c2: x - y <= 2\nbounds\n x <= 3\ngeneral\n y\nend\n"
        )
        (tmp_path / "own.py").write_text(
            "from pyomo.environ import *\n\ndef build():\n    m = ConcreteModel()\n    m.x = Var(bounds=(0, 3))\n"
            "    m.y = Var(domain=NonNegativeIntegers)\n    m.c = Constraint(expr=m.x + m.y <= 4)\n"
            "    m.d = Constraint(expr=m.x - m.y <= 2)\n    m.o = Objective(expr=3*m.x + 2*m.y, sense=maximize)\n"
            "    return m\n\nmodel = build()\n"
        )
        problems = [find_problem(name, tmp_path) for name in ("own.yaml", "own.lp", "own.py", "own.py:build")]
        assert len({problem_digest(problem) for problem in problems}) == 1
        import highspy

        solver = highspy.Highs()
        solver.silent()
        solver.readModel(str(tmp_path / "own.lp"))
        solver.writeModel(str(tmp_path / "own.mps"))
        assert problem_digest(find_problem("own.mps", tmp_path)) == problem_digest(problems[0])

    @pytest.mark.parametrize(
        ("name", "content", "says"),
        [
            ("own.mps", "NAME t\nROWS\n N o\nCOLUMNS\n x nowhere 1\nENDATA\n", "cannot be read"),
            ("own.lp", "max what", "cannot be read"),
            ("own.py", "1/0", "ZeroDivisionError"),
            ("own.py", "x = 3", "has no ConcreteModel"),
            ("own.py", "from pyomo.environ import *\nm = ConcreteModel()\nm.x = Var()", "has 0"),
        ],
    )
    def test_files_that_are_no_models(self, tmp_path, name, content, says):
        (tmp_path / name).write_text(content)
        with pytest.raises(FairtrialError, match=says):
            find_problem(name, tmp_path)

    def test_folders_run_no_code(self, tmp_path):
        (tmp_path / "own.py").write_text("raise SystemExit('executed')")
        (tmp_path / "suite.yaml").write_text("name: s\ntargets: [mock:echo]\n")
        (tmp_path / "polite_1.json").write_text('{"x": [1], "objective_value": 1}')
        (tmp_path / "a.yaml").write_text("variables: [{name: x, lower: 0}]\nobjective: x")
        assert [problem.id for problem in find_problems(["."], tmp_path)] == ["a"]
        assert not is_problem_file(tmp_path / "suite.yaml")
        (tmp_path / "b.yaml").write_text("id: a\nvariables: [{name: x, lower: 0}]\nobjective: x")
        with pytest.raises(FairtrialError, match="two problems are called `a`"):
            find_problems(["."], tmp_path)
        with pytest.raises(FairtrialError, match="no problem `nonsense`"):
            find_problem("nonsense", tmp_path)


PUBLISHED = {
    "knapsack-p01": 309,
    "flugpl": 1201500,
    "wyndor": 36,
    "transport": 153.675,
    "nocedal-wright-16-4": 0.8,
    "hs43": -44,
    "hs71": 17.0140173,
    "haverly": 400,
    "ex1221": 7.66718007,
    "six-hump-camel": -1.0316284535,
    "rastrigin": 0,
    "ex2_1_1": -17,
    "ex3_1_3": -310,
}


class TestBaselines:
    def test_every_example_has_a_published_optimum(self):
        assert {file.stem for file in EXAMPLES.glob("*.yaml")} == {*PUBLISHED, "hs112"}

    @pytest.mark.slow
    def test_the_examples_have_their_published_optima(self, monkeypatch):
        """MIPLIB, MINLPLib, Hock and Schittkowski, and textbooks. Chance needs few points to be worse than an optimum."""
        monkeypatch.setattr(sample, "_POINTS", 20)
        monkeypatch.setattr(sample, "_CORNERS", 3)
        for name, optimum in PUBLISHED.items():
            problem = read_problem(EXAMPLES / f"{name}.yaml")
            found = baseline(problem, time_limit=300)
            assert found.certified, found
            assert found.objective == pytest.approx(optimum, rel=1e-6, abs=1e-6), name
            assert problem.better(found.objective, found.random_objective), name

    @pytest.mark.slow
    def test_several_are_solved_by_a_pool(self, monkeypatch, tmp_path):
        monkeypatch.setattr("os.cpu_count", lambda: 1)  # one process: it imports as much as many
        problems = [read_problem(EXAMPLES / f"{name}.yaml") for name in ("wyndor", "ex2_1_1")]
        watched = []
        found = baselines(problems, tmp_path, time_limit=300, watch=lambda *so_far: watched.append(so_far))
        assert [one.objective for one in found] == [pytest.approx(PUBLISHED[problem.id]) for problem in problems]
        assert watched == [(0, 2), (1, 2), (2, 2)] and len(list(tmp_path.glob("*.json"))) == 2

    @pytest.mark.slow
    def test_what_is_not_certified_is_the_best_known_and_goes_on(self, tmp_path):
        problem = read_problem(EXAMPLES / "hs112.yaml")
        first = baselines([problem], tmp_path, time_limit=8)[0]
        assert first.status == "feasible" and not first.certified and first.bound < first.objective
        assert first.objective == pytest.approx(-47.76109, abs=1e-4)
        assert baselines([problem], tmp_path, time_limit=8)[0] == first  # known, at no cost
        second = baselines([problem], tmp_path, time_limit=8.8)[0]
        assert second.time_limit == 8.8 and second.objective <= first.objective and second.bound >= first.bound
        assert second.random_objective == first.random_objective is not None

    def test_a_cached_point_is_believed_only_if_the_problem_agrees(self, tmp_path):
        """Another version wrote it, perhaps one that computed objectives or constraints otherwise."""
        problem = read_problem(EXAMPLES / "wyndor.yaml")
        right = baselines([problem], tmp_path, time_limit=60)[0]
        (file,) = tmp_path.glob("*.json")
        assert known_baseline(problem, tmp_path) == right
        for wrong in ({"objective": right.objective + 1}, {"x": right.x[:-1]}, {"x": tuple(9 * v for v in right.x)}):
            file.write_bytes(msgspec.json.encode(msgspec.structs.replace(right, **wrong)))
            assert known_baseline(problem, tmp_path) is None
            assert baselines([problem], tmp_path, time_limit=60)[0].objective == right.objective

    def test_without_an_optimum_or_a_point(self):
        endless = parse_problem("variables: [{name: x}, {name: y, lower: 0}]\nobjective: x + y", default_id="p")
        with pytest.raises(FairtrialError, match="improves without end"):
            baseline(endless, time_limit=10)
        empty = parse_problem("variables: [{name: x}]\nobjective: x\nconstraints: [x <= 1, x >= 2]", default_id="p")
        assert baseline(empty, time_limit=10).status == "infeasible"
        check_solved(baseline(empty, time_limit=10))

    def test_bounds_hold_without_bounds_of_variables(self):
        free = parse_problem("variables: [{name: x}, {name: y}]\nobjective: (x-1)**2 + (y+2)**2 + x*y", default_id="p")
        found = baseline(free, time_limit=30)
        assert found.certified and found.objective == pytest.approx(-13 / 3) and found.bound <= found.objective + 1e-9
        concave = parse_problem(
            "sense: max\nvariables: [{name: x, size: 2, lower: 0, upper: 5}]\n"
            "objective: 6*x[0] - x[0]**2 + 4*x[1] - x[1]**2\nconstraints: [sum(x) <= 4]",
            default_id="p",
        )
        found = baseline(concave, time_limit=30)
        assert found.certified and found.objective == pytest.approx(12.5) and found.solver == "HiGHS"

    def test_chance_has_a_region_without_bounds_too(self):
        problem = parse_problem(
            "variables: [{name: x, size: 2, lower: 0}, {name: z}]\nobjective: sum(x) + z**2\n"
            "constraints: ['x[0] + x[1] <= 7']",
            default_id="p",
        )
        low, high = finite_box(problem)
        assert low.tolist() == [0, 0, -100] and high.tolist() == [7, 7, 100]
        points = random_points(problem)
        assert len(points) >= 50 and max(problem.violations(point).largest for point in points) < 1e-9

    @pytest.mark.slow
    def test_local_search_finds_the_best_of_many_minima(self):
        problem = read_problem(EXAMPLES / "six-hump-camel.yaml")
        found = search(problem, 60)
        assert problem.value(found) == pytest.approx(PUBLISHED["six-hump-camel"], abs=1e-8)
        mixed = parse_problem(
            "variables: [{name: n, lower: 0, upper: 9, integer: true}, {name: y, lower: 0.1, upper: 5}]\n"
            "objective: (n - 3.4)**2 + y + 1/y\nconstraints: ['n + y >= 4']",
            default_id="p",
        )
        assert mixed.value(search(mixed, 60)) == pytest.approx(0.16 + 2, abs=1e-6)

    def test_a_known_problem_needs_no_solver(self):
        exported = parse_problem(problem_yaml(make("box_qp", 50)))
        assert problem_digest(exported) in shipped()


@pytest.mark.slow
def test_the_commands(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.yaml").write_text(BAD)
    said = call("validate", EXAMPLES / "transport.yaml").stdout
    assert "is valid: minimise `transport`, 6 variables, 5 constraints, linear" in said
    wrong = call("validate", "bad.yaml", ok=False).exception
    assert isinstance(wrong, ProblemsError) and "bad.yaml:1: sence" in str(wrong)
    told = json.loads(call("validate", "bad.yaml", "--json").stdout)
    assert told["valid"] is False and {"line", "message", "file", "key"} == set(told["problems"][0])
    found = call("baseline", EXAMPLES / "wyndor.yaml", "out/baseline.json")
    written = json.loads((tmp_path / "out/baseline.json").read_text())
    assert written["objective_value"] == pytest.approx(36) and written["status"] == "optimal"
    assert written["sense"] == "maximise" and written["random_objective"] < 36 and "certified" in found.stderr
    assert "A factory makes doors" in call("baseline", EXAMPLES / "wyndor.yaml", "--text").stdout
    call("baseline", "box_qp-10", "--export", "box.yaml")
    assert json.loads(call("baseline", "box.yaml").stdout)["objective_value"] == pytest.approx(-67.5)
    ran = call("optim", "run", "mock:echo", "--problems", EXAMPLES / "wyndor.yaml", "--repeats", "1", "--quiet")
    assert ran.return_value == 0
    report = json.loads(call("optim", "report", "--json").stdout)
    assert all(arm["overall"]["echoes"] == 1 for arm in report["arms"])
    assert all(arm["overall"]["instruction_following"] == 0 for arm in report["arms"])


def test_help_stays_light():
    code = "import sys, fairtrial.cli.main as m; m.cli(['validate', '--help'], standalone_mode=False); print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip().endswith("False")


@pytest.mark.parametrize("rank", [1, 5, 8, 12])
@pytest.mark.parametrize("least", [0.0, 1e-3, -1e-6, -1.0])
def test_convexity_agrees_with_the_eigenvalues(rank, least):
    rng = np.random.default_rng(rank)
    root = rng.normal(size=(12, rank))
    matrix = root @ root.T + least * np.eye(12)
    terms = tuple((i, j, float(matrix[i, j])) for i in range(12) for j in range(12))
    convex = bool(np.linalg.eigvalsh(matrix).min() >= -1e-9)
    assert is_convex(Expression(quadratic=terms), "minimise", (), ()) == convex
    assert not is_convex(Expression(quadratic=terms), "maximise", (), ())
