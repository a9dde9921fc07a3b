"""Problem files at random: nonlinear, integer, infeasible, unbounded, huge and silly ones, and a second opinion on them.

`python -m tests.tracks.optimisation.random_problems 200` sends so many of them through `fairtrial baseline`, one after the other.
"""

from __future__ import annotations

import itertools
import json
import math
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

NAMES = ("x", "y", "z")
_FUNCTIONS = {name: getattr(math, name) for name in ("exp", "log", "sqrt", "sin", "cos")} | {"abs": abs}
_FINE = 41  # points of the grid along an axis
_SLACK = 1e-5

_numbers = st.sampled_from([-100.0, -7.0, -2.5, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 3.0, 10.0, 1000.0])


def _terms(names: list[str]) -> st.SearchStrategy[str]:
    plain = st.sampled_from(names) | _numbers.map(str)
    silly = st.sampled_from(
        ["0*x", "x - x", "x**(10**9)", "9**9**9", "1/x", "x**0", "1e300*x", "exp(exp(x))", "sqrt(x - 50)"]
    )

    def larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        return st.one_of(
            st.tuples(inner, st.sampled_from(["+", "-", "*"]), inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
            st.tuples(inner, st.sampled_from([2, 3, 4])).map(lambda t: f"({t[0]})**{t[1]}"),
            st.tuples(st.sampled_from(["sin", "cos", "abs", "exp", "log", "sqrt"]), inner).map(
                lambda t: f"{t[0]}({t[1]})"
            ),
        )

    return st.recursive(plain, larger, max_leaves=8) | st.recursive(plain, larger, max_leaves=8) | silly


@st.composite
def small_problems(draw: Any) -> dict[str, Any]:
    """A problem of a few variables, which a grid can check."""
    names = list(NAMES[: draw(st.integers(1, 3))])
    variables = []
    for name in names:
        one: dict[str, Any] = {"name": name, "integer": draw(st.booleans())}
        low = draw(st.sampled_from([-5, -3, 0, 1]))
        if draw(st.integers(0, 5)):
            one["lower"] = low
        if draw(st.integers(0, 5)):
            one["upper"] = low + draw(st.sampled_from([0, 1, 4, 6]))
        variables.append(one)
    everything = " + ".join(f"0.1*{name}" for name in names)  # a variable in no expression is a mistake
    constraints = draw(
        st.lists(
            st.tuples(_terms(names), st.sampled_from(["<=", "<=", ">=", ">=", "=="]), _numbers).map(
                lambda t: f"{t[0]} + {everything} {t[1]} {t[2]}"
            ),
            max_size=2,
        )
    )
    return {
        "sense": draw(st.sampled_from(["min", "max"])),
        "variables": variables,
        "objective": f"{draw(_terms(names))} + {everything}",
        "constraints": constraints,
    }


@st.composite
def huge_problems(draw: Any) -> dict[str, Any]:
    """A problem of many variables, which nobody solves in seconds."""
    n = draw(st.sampled_from([40, 300, 2000]))
    objective = draw(
        st.sampled_from(
            [
                "sum(sin(3*x[i])*x[i] for i in range(len(x)))",
                "sum(x[i]*x[i+1] for i in range(len(x)-1)) - sum(x)",
                "sum(x)**2 + prod(x[0:9])",
                "sum(x[i]*x[j] for i in range(40) for j in range(40)) + sum(x)",
                "sum(x)",
            ]
        )
    )
    constraints = draw(st.lists(st.sampled_from(["sum(x) >= 3", "x[0]*x[1] == 2", "sum(x[i]**2 for i in range(40)) == 20", "sum(x) == 0.5"]), max_size=2, unique=True))  # fmt: skip
    one = {"name": "x", "size": n, "lower": -4, "upper": 9, "integer": draw(st.booleans())}
    return {"variables": [one], "objective": objective, "constraints": constraints}


def problems() -> st.SearchStrategy[dict[str, Any]]:
    """Most are small; some are huge."""
    return st.one_of(*[small_problems()] * 7, huge_problems())


def second_opinion(problem: dict[str, Any], found: dict[str, Any]) -> str:
    """Return what is wrong with a baseline, judged by a grid and Python's own arithmetic; empty if nothing is."""
    names = [one["name"] for one in problem["variables"]]
    if "size" in problem["variables"][0]:
        return ""
    if found["x"] is not None:
        point = dict(zip(names, found["x"], strict=True))
        if (by := _violation(problem, point)) > _SLACK:
            return f"its point violates a constraint by {by}"
        value = _value(problem["objective"], point)
        if not math.isclose(value, found["objective_value"], rel_tol=1e-6, abs_tol=1e-6):
            return f"the objective at its point is {value}"
    best = _best_of_grid(problem)
    if best is None or not found["certified"]:
        return ""
    if found["status"] == "infeasible":
        return f"{best} is feasible"
    sign = 1 if problem["sense"] == "min" else -1
    if sign * (found["objective_value"] - best[0]) > _SLACK * max(1, abs(best[0])):
        return f"{best} is better"
    return ""


def _value(expression: str, point: dict[str, float]) -> float:
    try:
        value = eval(
            expression, {"__builtins__": {}}, {**_FUNCTIONS, "e": math.e, "pi": math.pi, **point}
        )  # our own text
        return float(value) if not isinstance(value, complex) else math.nan
    except (ArithmeticError, ValueError):
        return math.nan


def _violation(problem: dict[str, Any], point: dict[str, float]) -> float:
    """Return the largest violation, relative to the size of the numbers in it."""
    worst = 0.0
    for row in problem["constraints"]:
        relation = next(sign for sign in ("<=", ">=", "==") if sign in row)
        left, right = (_value(side, point) for side in row.split(relation))
        gap = {"<=": left - right, ">=": right - left, "==": abs(left - right)}[relation]
        worst = max(worst, math.inf if math.isnan(gap) else gap / max(1.0, abs(left), abs(right)))
    for one in problem["variables"]:
        at = point[one["name"]]
        worst = max(worst, one.get("lower", -math.inf) - at, at - one.get("upper", math.inf))
        if one["integer"]:
            worst = max(worst, abs(at - round(at)))
    return worst


def _best_of_grid(problem: dict[str, Any]) -> tuple[float, list[float]] | None:
    """Return the best feasible point of a grid, and of some steps of chance around it."""
    if any(name in f"{problem['objective']} {problem['constraints']}" for name in ("10**9", "9**9")):
        return None  # too large for Python's own numbers
    axes = []
    for one in problem["variables"]:
        low, high = one.get("lower", -10), one.get("upper", max(10, one.get("lower", 0)))
        axes.append(range(math.ceil(low), math.floor(high) + 1) if one["integer"] else np.linspace(low, high, _FINE))
    names = [one["name"] for one in problem["variables"]]
    sign = 1 if problem["sense"] == "min" else -1
    best: tuple[float, list[float]] | None = None
    for values in itertools.product(*axes):
        best = _better(problem, names, [float(v) for v in values], best, sign)
    rng = np.random.default_rng(1)
    for number in range(600 if best else 0):
        assert best is not None
        step = rng.normal(size=len(names)) * 10.0 ** -(number % 6)
        near = [v if one["integer"] else v + s for v, s, one in zip(best[1], step, problem["variables"], strict=True)]
        best = _better(problem, names, near, best, sign)
    return best


def _better(
    problem: dict[str, Any], names: list[str], values: list[float], best: tuple[float, list[float]] | None, sign: int
) -> tuple[float, list[float]] | None:
    point = dict(zip(names, values, strict=True))
    value = _value(problem["objective"], point)
    if not math.isfinite(value) or (best is not None and sign * (value - best[0]) >= 0):
        return best
    return best if _violation(problem, point) > 1e-12 else (value, values)


def main(count: int, limit: float) -> None:
    """Send random problems through the command, and print what came of each."""
    times: list[float] = []
    outcomes: dict[str, int] = {}
    wrong: list[str] = []

    @seed(20261118)
    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate],
    )
    @given(problems())
    def one(problem: dict[str, Any]) -> None:
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "p.yaml").write_text(yaml.safe_dump(problem))
            command = [sys.executable, "-m", "fairtrial", "baseline", "p.yaml", "--json", "--time-limit", str(limit)]
            started = time.monotonic()
            try:
                ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
            except subprocess.TimeoutExpired:
                wrong.append(f"120 s: {problem}")
                return
            times.append(time.monotonic() - started)
            if ran.returncode == 0:
                said = json.loads(ran.stdout)
                kind = said["baseline"]["status"]
                fault = second_opinion(problem, {**said, **said["baseline"]})
            else:
                lines = ran.stderr.strip().splitlines()
                kind, fault = "refused", "" if "Traceback" not in ran.stderr else ran.stderr
                kind = next((k for k in ("no optimum", "no feasible point") if k in ran.stderr), kind)
                if ran.returncode != 1:
                    fault = f"exit {ran.returncode}: {lines[-1:]}"
            outcomes[kind] = outcomes.get(kind, 0) + 1
            print(
                f"{times[-1]:5.1f} s {kind:12} {ran.stderr.strip().splitlines()[-1][:150] if ran.stderr else ''}",
                flush=True,
            )
            if fault or times[-1] > 2 * limit:
                wrong.append(f"{times[-1]:.1f} s {fault}: {json.dumps(problem)}")
                print("   WRONG", wrong[-1], flush=True)

    one()
    print(f"{len(times)} problems, longest {max(times):.1f} s, {outcomes}, {len(wrong)} wrong")


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else 5.0)
