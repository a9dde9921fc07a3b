"""Answers that are programs: found, run in a sandbox with limits, and verified like any other answer."""

import asyncio
import json
import re
import shutil
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from docs.names import named_models
from fairtrial.agents.workspace import program as programs
from fairtrial.cli.main import cli
from fairtrial.config import parse_suite
from fairtrial.config.advice import warnings
from fairtrial.core.errors import ProblemsError
from fairtrial.core.experiment import Case
from fairtrial.core.score import ScoreContext, Unscored
from fairtrial.tracks.optimisation.problem import Baseline, problem_digest
from fairtrial.tracks.optimisation.problem_file import parse_problem
from fairtrial.tracks.optimisation.program import FORMAT, answered_by, find_program, program_text
from fairtrial.tracks.optimisation.scorer import Optimisation

PROBLEM = parse_problem(
    """
id: three
sense: max
variables: [{name: take, size: 3, lower: 0, upper: 1, integer: true}]
data: {worth: [1, 2, 3]}
objective: worth @ take
constraints: [sum(take) <= 2]
text: Of three things, take two at most.
"""
)
BASELINE = Baseline(
    problem="three",
    status="optimal",
    x=(0.0, 1.0, 1.0),
    objective=5.0,
    bound=5.0,
    gap=0.0,
    certified=True,
    solver="by hand",
    version="1",
    seconds=0.0,
    random_objective=2.0,
    digest=problem_digest(PROBLEM),
)
CASE = Case(
    id="three",
    input=program_text(PROBLEM),
    metadata={"problem": msgspec.to_builtins(PROBLEM), "baseline": msgspec.to_builtins(BASELINE)},
)
MODEL = """
import pyomo.environ as pe
def solve():
    model = pe.ConcreteModel()
    model.unused = pe.Var(bounds=(0, 1), initialize=1)
    model.take = pe.Var(range(3), domain=pe.Binary)
    model.worth = pe.Objective(expr=sum((i + 1) * model.take[i] for i in range(3)), sense=pe.maximize)
    model.limit = pe.Constraint(expr=sum(model.take[i] for i in range(3)) <= 2)
    return model
"""
needs_bubblewrap = pytest.mark.skipif(
    bool(programs.missing_sandbox("bubblewrap")), reason="bubblewrap cannot be used here"
)


def score(program, sandbox="none", fence=True, **options):
    text = f"```python\n{program}\n```" if fence else program
    scorer = Optimisation(answer="code", sandbox=sandbox, **options)
    return asyncio.run(scorer.score(ScoreContext(response=text, case=CASE)))


# (program, value, finding, words of the notes)
PROGRAMS = {
    "optimal": ("def solve():\n    return [0, 1, 1]", 1.0, None, "feasible, objective 5"),
    "numpy": ("import numpy\ndef solve():\n    return numpy.array([0.0, 1, 1])", 1.0, None, "objective 5"),
    "object": ("def solve():\n    return {'x': (0, 1, 1), 'objective_value': 9}", 1.0, None, "objective 5"),
    "poor": ("def solve():\n    return [1, 0, 1]", 2 / 3, None, "objective 4"),
    "infeasible": ("def solve():\n    return [1, 1, 1]", None, None, "infeasible by"),
    "gives up": ("def solve():\n    return None", 0.0, None, "claims that none is feasible"),
    "short": ("def solve():\n    return [1, 1]", 0.0, "wrong_length", "wrong_length"),
    "texts": ("def solve():\n    return ['a', 1, 1]", 0.0, "strings_in_x", "strings_in_x"),
    "crash": ("def solve():\n    return 1/0", 0.0, "crashed", "the program crashed: ZeroDivisionError"),
    "no syntax": ("def solve(:", 0.0, "crashed", "SyntaxError"),
    "nothing": ("answer = 42", 0.0, "no_result", "neither a function `solve` nor a Pyomo model"),
    "leaves": ("import sys\nsys.exit(0)", 0.0, "crashed", "SystemExit"),
    "asks": ("def solve():\n    return input()", 0.0, "crashed", "EOFError"),
    "fakes": (
        "import os\ndef solve():\n    open('result.json', 'w').write('{\"x\": [1, 1, 0.5]}'); os._exit(0)",
        None,
        None,
        "infeasible by",
    ),
    "floods": ("def solve():\n    return [0.0] * 10**10", 0.0, "out_of_memory", "ran out of memory"),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_is_scored_by_what_it_returns(name):
    program, value, finding, words = PROGRAMS[name]
    result = score(program)
    assert words in result.notes
    assert result.value == pytest.approx(value) if value is not None else 0 < result.value <= 0.5
    findings = result.details["findings"]
    assert findings == ([finding] if finding else [])
    assert result.metrics["instruction_following"] == (not findings)
    assert result.metrics["has_code"] == 1
    assert result.metrics["code_ran"] == ("the program" not in result.notes)
    if name == "object":
        assert result.metrics["misreported_objective"] == 1
    elif name == "optimal":
        assert "misreported_objective" not in result.metrics  # nothing was claimed
        assert result.metrics["format_steps"] == 5


@pytest.mark.parametrize(
    ("left", "message"),
    [
        ("os.mkfifo('result.json')", "nothing was returned"),
        ("os.symlink('/dev/zero', 'result.json')", "nothing was returned"),
        ("os.mkdir('result.json')", "nothing was returned"),
        ("open('result.json', 'w').write('[' + '1,' * 6_000_000 + '1]')", "it returned more than 10 MB"),
    ],
)
def test_what_a_program_leaves_in_place_of_a_result_is_not_waited_for(left, message):
    result = score(f"import os\n{left}\nos._exit(0)")
    assert result.value == 0 and message in result.notes


@needs_bubblewrap
def test_in_the_sandbox_pyomo_is_there_and_the_rest_of_the_machine_is_not(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("s")
    probes = (
        "import os, socket\n"
        f"assert not os.path.exists({str(secret)!r})\n"
        f"assert os.path.realpath('.') != {str(tmp_path)!r}\n"
        "assert not any('KEY' in name for name in os.environ)\n"
        "try:\n    socket.create_connection(('127.0.0.1', 9), 1)\n"
        "except ConnectionRefusedError:\n    pass  # a loopback of its own\n"
        "try:\n    socket.create_connection(('192.0.2.1', 80), 1)\n    raise SystemError('a network')\n"
        "except OSError:\n    pass\n"
    )
    result = score(probes + MODEL, "bubblewrap")
    assert result.value == 1, result.notes
    assert result.details["sandbox"] == "bubblewrap"


def test_a_program_that_was_cut_off_is_truncated():
    context = ScoreContext(response="```python\ndef solve():\n    return [0,", case=CASE, finish_reason="length")
    result = asyncio.run(Optimisation(answer="code", sandbox="none").score(context))
    assert result.details["findings"] == ["truncated", "crashed"] and result.metrics["truncated"] == 1


@pytest.mark.slow
def test_too_much_time_is_said():
    result = score("def solve():\n    while True: pass", seconds=1)
    assert result.value == 0 and result.details["findings"] == ["out_of_time"]
    assert "ran out of time" in result.notes


@pytest.mark.parametrize(
    ("text", "finding"),
    [("It is [0, 1, 1].", "no_code"), ("```json\n\n```", "no_code"), (CASE.input, "echo")],
)
def test_an_answer_without_a_program(text, finding):
    result = score(text, fence=False)
    assert (result.value, result.details["findings"]) == (0, [finding])
    assert result.metrics["has_code"] == 0 and result.metrics["format_steps"] == 0
    assert result.metrics["echo"] == (finding == "echo")


@pytest.mark.parametrize(
    ("text", "program", "only"),
    [
        ("```python\ndef solve(): 1\n```", "def solve(): 1\n", True),
        (
            "First:\n```\nx = 1\n```\nthen\n```python\ndef solve(): 2\n```\nand\n```\noutput\n```",
            "def solve(): 2\n",
            False,
        ),
        ("def solve():\n    return [1]", "def solve():\n    return [1]", True),
        ("~~~py\nmodel = ConcreteModel()\n~~~", "model = ConcreteModel()\n", True),
        ("```python\ndef solve(): 3", "def solve(): 3", True),
        ("You could use def solve().", None, False),
    ],
)
def test_the_program_is_found(text, program, only):
    assert find_program(text)[:2] == (program, only)


@given(st.text())
def test_any_text_has_a_program_or_none(text):
    program, only, _ = find_program(text)
    assert program is not None or not only


@pytest.mark.slow
@given(
    st.dictionaries(
        st.sampled_from(["x", "status", "error", "message", "objective_value"]),
        st.recursive(
            st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(max_size=5),
            lambda inner: st.lists(inner, max_size=3),
        ),
    )
)
def test_whatever_a_program_wrote_becomes_an_answer(result):
    answered, failure = answered_by(result, 2, only_code=True)
    assert (answered.x is None) or len(answered.x) == 2
    assert isinstance(failure, str)


def test_without_a_sandbox_nothing_is_run(monkeypatch, tmp_path):
    programs.missing_sandbox.cache_clear()
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    try:
        reasons = list(Optimisation(answer="code").check(CASE, tmp_path))
        assert len(reasons) == 1
        assert "need a sandbox" in reasons[0] and "`sandbox: none` does without" in reasons[0]
        result = score("raise SystemError('was run')", "bubblewrap")
        assert isinstance(result, Unscored) and result.kind == "sandbox"
        assert not list(Optimisation(answer="code", sandbox="none").check(CASE, tmp_path))
        with pytest.raises(ProblemsError, match="need a sandbox"):
            parse_suite(SUITE.replace("sandbox: none, ", ""), file="s.yaml", folder=tmp_path)
    finally:
        programs.missing_sandbox.cache_clear()


SUITE = """
name: code
targets: [{target: mock:model, options: {answer: "```python\\ndef solve():\\n    return [0]*10\\n```"}}]
repeats: 1
suite: {kind: optimisation, ids: [original-10], answer: code, sandbox: none, seconds: 30, styles: [polite]}
"""


@needs_bubblewrap
def test_the_suite_in_the_documentation_is_right(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = (Path(__file__).parents[3] / "docs/problems.md").read_text("utf-8")
    (text,) = [block for block in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL) if block.startswith("name:")]
    text = text.replace("problems: problems/", "ids: [original-10]").replace(
        named_models()["openai-small"].target, "mock:echo"
    )
    (case,) = parse_suite(text, file="suite.yaml", folder=tmp_path).cases()
    assert case.scorer["answer"] == "code" and case.scorer["seconds"] == 60


def test_a_suite_that_asks_for_code(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "suite.yaml").write_text(SUITE)
    suite = parse_suite(SUITE, file="suite.yaml", folder=tmp_path)
    (case,) = suite.cases()
    assert FORMAT[:40] in case.input and "30 seconds" in case.input and "JSON" not in case.input
    assert any("runs with your rights" in warning for warning in warnings(suite))
    result = CliRunner().invoke(cli, ["run", "suite.yaml", "--json"], standalone_mode=False)
    (arm,) = json.loads(result.stdout)["arms"]
    assert arm["mean"] == 100 and arm["metrics"]["code_ran"]["mean"] == 1
