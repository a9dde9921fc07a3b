"""Answers that are programs: what is asked for, the program in an answer, and what it returned as an answer."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Any

import msgspec

from fairtrial.tracks.optimisation.answer import STEPS, Answered, read_answer, without_prompt
from fairtrial.tracks.optimisation.problem import OptimisationProblem
from fairtrial.tracks.optimisation.text import statement

RUNNER = Path(__file__).with_name("program_runner.py")
SECONDS = 60.0
MEMORY_MB = 2048.0
FAILURES = ("no_code", "crashed", "out_of_time", "out_of_memory", "no_result")
_BLOCK = re.compile(r"^[ \t]*(`{3,}|~{3,})[^\n`]*\n(.*?)(?:^[ \t]*\1[ \t]*$|\Z)", re.DOTALL | re.MULTILINE)

# It contains no complete program, so an answer that only repeats the question has none.
FORMAT = (
    "Do not solve the problem yourself: write a program that solves it. Answer with one block of Python code that "
    "defines a function `solve` without arguments. It returns x, the list of the {n} numbers described above; bounds "
    "and constraints must hold to within {tolerance}. It may instead return a Pyomo ConcreteModel whose variables have "
    "the names above, which is then solved; and None if no point satisfies all constraints. Pyomo with the solvers "
    "`highs` (linear, convex quadratic, integer) and `scip_direct` (all others), NumPy and SciPy are installed. The "
    "program has {seconds:g} seconds of processor time, {memory_mb:g} MB of memory and no network."
)


def program_text(problem: OptimisationProblem, *, seconds: float = SECONDS, memory_mb: float = MEMORY_MB) -> str:
    """Return the problem and the request for a program, which is the same in every style."""
    tolerance = f"{problem.tolerance:g}".replace("e-0", "e-")
    request = FORMAT.format(n=problem.n, tolerance=tolerance, seconds=seconds, memory_mb=memory_mb)
    return f"{statement(problem)}\n\n{request}"


def variable_names(problem: OptimisationProblem) -> tuple[str, ...]:
    """Return the names of the variables in the text of a problem."""
    return problem.names if problem.text else tuple(f"x_{i}" for i in range(1, problem.n + 1))


def find_program(text: str, prompt: str = "") -> tuple[str | None, bool, bool]:
    """Return the program in an answer, whether that is all of it, and whether it only repeats the question."""
    own, repeated = without_prompt(text, prompt)
    blocks = [match[2] for match in _BLOCK.finditer(own)]
    for wanted in ("def solve", "ConcreteModel", ""):
        if chosen := [block for block in blocks if wanted in block and block.strip()]:
            return chosen[-1], not _BLOCK.sub("", text).strip(), False
    if _is_program(own):
        return own, True, False
    return None, False, repeated


def _is_program(text: str) -> bool:
    if "def solve" not in text and "ConcreteModel" not in text:
        return False
    try:
        ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def without_program(*, echo: bool, truncated: bool) -> Answered:
    """Return an answer that has no program in it."""
    reason = "echo" if echo else "truncated" if truncated else "no_code"
    return Answered(findings=(reason,), echo=echo)


def valued_by(result: dict[str, Any], *, only_code: bool) -> tuple[Answered, str]:
    """Return the value that a program returned, where the point is not asked for, and why it returned none."""
    if "error" in result:
        return answered_by(result, 0, only_code=only_code)
    infeasible = result.get("status") == "infeasible"
    answered = read_answer(json.dumps({"x": [], "objective_value": result.get("objective_value")}), 0)
    if infeasible or answered.objective is None:
        why = "no point is feasible" if infeasible else "it returned no number"
        return Answered(findings=("no_result",), steps=2), f"the program has no result: {why}"
    steps = len(STEPS) if only_code else len(STEPS) - 1
    return msgspec.structs.replace(answered, x=None, only_json=only_code, steps=steps), ""


def answered_by(result: dict[str, Any], n: int, *, only_code: bool) -> tuple[Answered, str]:
    """Return what a program returned in the form of any other answer, and why it returned nothing."""
    if "error" in result:
        error = result["error"] if result["error"] in FAILURES else "no_result"  # the program may have written it
        told = {"crashed": "crashed", "out_of_time": "ran out of time", "out_of_memory": "ran out of memory"}
        failed = Answered(findings=(error,), steps=1)
        return failed, f"the program {told.get(error, 'has no result')}: {result.get('message', '')}"
    claimed = result.get("objective_value")
    answered = read_answer(json.dumps({"objective_value": 0.0, **result}), n)
    # What an answer of numbers is to JSON, a program is to code: found, run, right length, right types, nothing else.
    steps = min(answered.steps, len(STEPS) if only_code else len(STEPS) - 1)
    objective = None if claimed is None else answered.objective
    return msgspec.structs.replace(answered, objective=objective, only_json=only_code, steps=steps), ""
