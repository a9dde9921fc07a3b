"""Benchmarks of optimisation: imported from the layouts in which they are published, and their labels certified."""

import asyncio
import json

import pytest
import yaml
from click.testing import CliRunner

from fairtrial.agents.workspace import program as programs
from fairtrial.agents.workspace.program import run_program
from fairtrial.cli.main import cli
from fairtrial.foreign.suites import Imported, Reference, write_suite
from fairtrial.tracks.optimisation import catalogue
from fairtrial.tracks.optimisation.importers._labelled import LabelledQuestion, labelled_suite, number
from fairtrial.tracks.optimisation.labels import certify_labels
from fairtrial.tracks.optimisation.problem_file import parse_problem
from fairtrial.tracks.optimisation.program import valued_by
from fairtrial.tracks.optimisation.recording import FOLDER
from tests.tracks.interchange.importers.optimisation_benchmarks import write

# (tool, file, labels by case)
BENCHMARKS = {
    "industryor": ("IndustryOR.json", {"0": "not-certified", "2": "not-certified"}),
    "mamo": ("mamo_easy_lp.jsonl", {"1": "not-certified", "2": "not-certified"}),
    "optibench": ("OptiBench.json", {"0": "certified", "1": "wrong-label", "2": "not-certified"}),
    "nlp4lp": ("NLP4LP", {"1": "certified", "2": "wrong-label"}),
    "complexor": ("ComplexOR", {"diet": "certified"}),
}


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    from fairtrial.tracks.optimisation.certify import baseline

    monkeypatch.setattr(  # processes take longer to start than these problems to solve
        catalogue, "solve_all", lambda tasks, _: (baseline(one.problem, time_limit=one.time_limit) for one in tasks)
    )
    monkeypatch.setattr(
        "fairtrial.tracks.optimisation.certify.random_objective", lambda *_: None
    )  # not needed for a label
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("tool", BENCHMARKS)
def test_labels_are_certified_where_there_is_a_model(tool, here):
    name, expected = BENCHMARKS[tool]
    path = write(here, name)
    arguments = ["import", tool, str(path), "-o", "suite.yaml", "--run-code", "--sandbox", "none"]
    result = CliRunner().invoke(cli, arguments, standalone_mode=False)
    assert result.exception is None, result.exception
    suite = yaml.safe_load((here / "suite.yaml").read_text())
    assert {case["id"]: case["tags"][0] for case in suite["cases"]} == expected
    weights = {case["id"]: case.get("weight", 1) for case in suite["cases"]}
    assert all((weights[case] == 0) == (tag == "wrong-label") for case, tag in expected.items())
    counts = [sum(tag == kind for tag in expected.values()) for kind in ("certified", "wrong-label", "not-certified")]
    assert "labels: {} certified, {} wrong, {} as published".format(*counts) in result.stderr
    if tool == "nlp4lp":
        assert "80 was published, and its reference model has the optimum 60" in result.stderr
        assert "Need = [2, 3, 4]" in suite["cases"][0]["input"]
    elif tool == "optibench":
        assert "addConsSOS2 is not known here" in result.stderr
        assert suite["cases"][0]["expected"] == "1250"
    elif tool == "industryor":
        assert "question 1: its answer 'No Best Solution' is not a number" in result.stderr
        assert suite["cases"][0]["difficulty"] == "easy"


def test_no_reference_program_is_run_unless_told_so(here):
    path = write(here, BENCHMARKS["nlp4lp"][0])
    result = CliRunner().invoke(cli, ["import", "nlp4lp", str(path), "-o", "suite.yaml"], standalone_mode=False)
    assert "labels: 0 certified, 0 wrong, 2 as published" in result.stderr
    assert "its reference program was not run (--run-code runs it in a sandbox)" in result.stderr


def test_without_a_sandbox_no_reference_program_is_run(here, monkeypatch):
    monkeypatch.setattr("fairtrial.tracks.optimisation.labels.missing_sandbox", lambda _: "there is none")
    program = f"open({str(here / 'ran')!r}, 'w')"
    imported = labelled_suite("B", [LabelledQuestion("a", "q", "1", reference=Reference(program=program))])
    marked, labels = certify_labels(imported)
    assert [(one.kind, one.reason) for one in labels] == [("not-certified", "there is none")]
    assert marked.suite["cases"][0]["tags"] == ["not-certified"] and not (here / "ran").exists()


def record(program, **task):
    found = asyncio.run(
        run_program(program, FOLDER / "run.py", "none", seconds=20, memory_mb=2048, task=task, read=(FOLDER,))
    )
    return found.result


GUROBI = """
from gurobipy import *
with Env() as env, Model("m", env=env) as m:
    m.Params.OutputFlag = 0
    x = m.addVars([1, 2], ["a", "b"], ub={(1, "a"): 4, (1, "b"): 5, (2, "a"): 6, (2, "b"): 7}, name="x")
    y = m.addVar(lb=-GRB.INFINITY, name="y", obj=2)
    z = m.addVar(vtype=GRB.BINARY, name="z")
    unused = m.addVar(name="unused")
    y.UB = 3
    z.vtype = GRB.CONTINUOUS
    z.VType = GRB.BINARY
    import numpy
    m.addConstr(x.sum(1, "*") - (y - 2) / 2 >= 1)
    m.addConstr(numpy.float64(1) * x[2, "a"] ** 2, GRB.LESS_EQUAL, 9)
    m.addConstrs(x[i, "b"] <= -(y + z) * 2 + 30 for i in (1, 2))
    m.setObjective(x.prod({key: 2.5 for key in x}) - 3 * z + y, GRB.MAXIMIZE)
    m.optimize()
raise SystemError("after the model")
"""


@pytest.mark.skipif(programs.sys.platform == "win32", reason="programs cannot be run there")
def test_what_gurobipy_would_have_solved_is_recorded():
    document = record(GUROBI)["document"]
    problem = parse_problem(yaml.safe_dump({"id": "m", **document}))
    assert problem.names == ("x_1_a", "x_1_b", "x_2_a", "x_2_b", "v_y", "v_z")
    assert problem.upper[:5] == (4, 5, 6, 7, 3) and problem.lower[4] < -1e19
    assert problem.sense == "maximise" and problem.integers == (5,)
    import numpy as np

    point = np.array([1.0, 2, 3, 4, -5, 1])
    assert problem.value(point) == 2.5 * 10 - 3 - 5
    values = [row.body.value(point) - row.bound for row in problem.constraints]
    assert values == [1 + 2 + 3.5 - 1, 0, 2 - (8 + 30), 4 - (8 + 30)]


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("x = 1", "never solves"),
        ("1/0", "ZeroDivisionError"),
        ("from gurobipy import *\nm = Model()\nx = m.addVar()\nm.addConstr(1 <= x <= 2)", "neither true nor false"),
        ("from gurobipy import abs_", "ImportError"),
        ("from gurobipy import *\nm = Model()\nx = m.addVar()\nx.Obj = 3", "a change of the variable's Obj"),
        ("from gurobipy import *\nModel()\nModel()", "more than one model"),
        ("from pyscipopt import *\nm = Model()\nx = m.addVar(vtype='S')\nm.addCons(x <= 1)\nm.optimize()", "kind S"),
    ],
)
def test_why_nothing_was_recorded_is_said(program, words):
    assert words in record(program)["error"]


@pytest.mark.parametrize(
    ("label", "value"),
    [
        ("1,200", 1200),
        (["10.5"], 10.5),
        (3, 3),
        ("No Best Solution", None),
        (True, None),
        ("1 or 2", None),
        (None, None),
    ],
)
def test_labels_are_numbers_or_none(label, value):
    assert number(label) == value


def test_a_benchmark_without_numbers_is_refused():
    from fairtrial.core.errors import FairtrialError

    with pytest.raises(FairtrialError, match="no question with a number"):
        labelled_suite("B", [LabelledQuestion("a", "q", "none")])
    assert isinstance(labelled_suite("B", [LabelledQuestion("a", "q", "1")]), Imported)


@pytest.mark.slow
def test_a_benchmark_that_asks_for_programs(here):
    path = write(here, "mamo_easy_lp.jsonl")
    arguments = ["import", "mamo", str(path), "-o", "suite.yaml", "--answer", "code"]
    assert CliRunner().invoke(cli, arguments, standalone_mode=False).exception is None
    suite = yaml.safe_load((here / "suite.yaml").read_text())
    suite["scorer"]["sandbox"] = "none"
    programs_ = {
        "1": "import numpy\ndef solve():\n    return numpy.float64(30)",
        "2": "def solve():\n    return {'objective_value': 7.5}",
    }
    answers = {name: f"```python\n{program}\n```" for name, program in programs_.items()}
    suite["targets"] = [{"target": "mock:coder", "options": {"answers": answers}}]
    (here / "suite.yaml").write_text(yaml.safe_dump(suite))
    result = CliRunner().invoke(cli, ["run", "suite.yaml", "--json"], standalone_mode=False)
    assert result.exception is None, result.exception
    shown = CliRunner().invoke(cli, ["show", "--trials", "--json"], standalone_mode=False).stdout
    trials = {trial["case_id"]: trial for trial in json.loads(shown)["trials"]}
    assert trials["1"]["score"] == 100 and trials["2"]["score"] == 0
    assert trials["2"]["metrics"]["relative_gap"] == 0.0625 and "value 7.5, published 8" in trials["2"]["notes"]


@pytest.mark.slow
@pytest.mark.skipif(programs.sys.platform == "win32", reason="programs cannot be run there")
@pytest.mark.parametrize(
    ("asked", "answer"), [("value", "Answer: 10.4"), ("code", "```python\ndef solve():\n    return 10.4\n```")]
)
def test_a_label_that_was_rounded_is_certified_together_with_the_exact_optimum(asked, answer, here):
    program = (
        "from gurobipy import *\nm = Model()\nx = m.addVar(ub=10.4)\nm.setObjective(x, GRB.MAXIMIZE)\nm.optimize()"
    )
    questions = [
        LabelledQuestion(name, "q", "10", reference=Reference(program=program)) for name in ("exact", "rounded")
    ]
    imported, labels = certify_labels(labelled_suite("B", questions, asked), sandbox="none")
    assert [(one.kind, one.optimum) for one in labels] == [("certified", pytest.approx(10.4))] * 2
    suite = imported.suite
    answers = {"exact": answer, "rounded": answer.replace("10.4", "10")}
    suite["targets"] = [{"target": "mock:m", "options": {"answers": answers}}]
    suite["scorer"] |= {"sandbox": "none"} if asked == "code" else {}
    write_suite(imported, here / "suite.yaml", source="b", tool="b")
    result = CliRunner().invoke(cli, ["run", "suite.yaml", "--json"], standalone_mode=False)
    assert result.exception is None, result.exception
    shown = CliRunner().invoke(cli, ["show", "--trials", "--json"], standalone_mode=False).stdout
    scores = {trial["case_id"]: trial["score"] for trial in json.loads(shown)["trials"]}
    assert scores == {"exact": 100, "rounded": 100 if asked == "value" else 0}


@pytest.mark.parametrize(
    ("result", "value", "words"),
    [
        ({"objective_value": 3}, 3, ""),
        ({"x": [1, 2], "objective_value": 3.5}, 3.5, ""),
        ({"x": [1, 2]}, None, "it returned no number"),
        ({"x": None, "status": "infeasible"}, None, "no point is feasible"),
        ({"error": "crashed", "message": "E"}, None, "crashed: E"),
        ({"objective_value": "3"}, None, "it returned no number"),
    ],
)
def test_only_the_value_of_a_program_counts(result, value, words):
    answered, failure = valued_by(result, only_code=True)
    assert answered.objective == value and words in failure and bool(failure) == (value is None)
