"""Problems as text: precise, compact and deterministic. Variables are counted from 1; sparse data are triplets."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence

from fairtrial.tracks.optimisation.families import FAMILIES
from fairtrial.tracks.optimisation.problem import Expression, Formula, OptimisationProblem, problem_digest

_FLOAT = re.compile(r"(?<![\w.])\d+\.\d+(?:e[+-]?\d+)?")

# It contains no complete object, so an answer that only repeats the question does not follow the format.
FORMAT = (
    "Give your answer as one JSON object, the last thing you write: "
    '{{"x": [x_1, ..., x_{n}], "objective_value": f(x), "status": "optimal"}}. '
    '"x" has exactly {n} numbers; bounds and constraints must hold to within {tolerance}. "status" is "optimal", or '
    '"timeout" if you are not sure. If no point satisfies all constraints, "status" is "infeasible", and "x" and '
    '"objective_value" are null.'
)


def label(problem: OptimisationProblem) -> str:
    """Return a neutral name: the name of the family would reveal that a problem is infeasible."""
    if not problem.seed:  # from a file
        return f"P-{problem_digest(problem)[:6]}"
    return f"P{list(FAMILIES).index(problem.family) + 1}-{problem.n}-{problem.seed}"


def problem_text(problem: OptimisationProblem) -> str:
    """Return the problem and the format instructions, which are the same in every style."""
    tolerance = f"{problem.tolerance:g}".replace("e-0", "e-")
    return f"{statement(problem)}\n\n{FORMAT.format(n=problem.n, tolerance=tolerance)}"


def statement(problem: OptimisationProblem) -> str:
    """Return the problem without the format instructions; a text of its own says what the numbers of x are."""
    if problem.text:
        return f"{problem.text}\n\n{_order(problem)}"
    lines = [
        f"Problem {label(problem)}.",
        f"Variables: x_1, ..., x_{problem.n}, {_domain(problem)}.",
        *_bounds(problem),
    ]
    lines.append(f"{problem.sense.capitalize()} f(x) = {joined(_terms(problem.objective, problem.n))}.")
    if problem.constraints:
        lines.append("Subject to:")
        lines += [f"({number}) {text}" for number, text in enumerate(constraint_texts(problem), 1)]
    else:
        lines.append("There are no other constraints.")
    return "\n".join(lines)


def constraint_texts(problem: OptimisationProblem) -> list[str]:
    """Return every constraint as written in the problem."""
    rows = problem.constraints
    return [f"{joined(_terms(row.body, problem.n))} {row.relation} {number(row.bound)}" for row in rows]


def _order(problem: OptimisationProblem) -> str:
    groups: dict[str, list[str]] = {}
    for name in problem.names:
        groups.setdefault(name.partition("[")[0], []).append(name)
    listed = (names if len(names) <= 8 else (*names[:2], "...", names[-1]) for names in groups.values())
    return f'In "x", give the values in this order: {", ".join(name for names in listed for name in names)}.'


def _domain(problem: OptimisationProblem) -> str:
    if not problem.integers:
        return "real numbers"
    if len(problem.integers) == problem.n:
        return "integers"
    return f"real numbers; integers are: {', '.join(f'x_{i + 1}' for i in problem.integers)}"


def _bounds(problem: OptimisationProblem) -> Iterator[str]:
    low, high = problem.box
    pairs = list(zip(low.tolist(), high.tolist(), strict=True))
    if len(set(pairs)) == 1:
        bounds = _interval("x_i", *pairs[0])
        yield f"Bounds: {bounds} for every i." if bounds else "The variables have no bounds."
    elif not any(math.isinf(bound) for pair in pairs for bound in pair):
        listed = "; ".join(f"({i}, {number(low)}, {number(high)})" for i, (low, high) in enumerate(pairs, 1))
        yield f"Bounds, as triplets (i, lower, upper): {listed}."
    else:
        listed = "; ".join(text for i, pair in enumerate(pairs, 1) if (text := _interval(f"x_{i}", *pair)))
        free = ", ".join(f"x_{i}" for i, pair in enumerate(pairs, 1) if pair == (-math.inf, math.inf))
        yield f"Bounds: {listed}." + (f" Without bounds: {free}." if free else "")


def _interval(name: str, low: float, high: float) -> str:
    if low == -math.inf and high == math.inf:
        return ""
    if low == -math.inf:
        return f"{name} <= {number(high)}"
    return f"{name} >= {number(low)}" if high == math.inf else f"{number(low)} <= {name} <= {number(high)}"


def joined(terms: Sequence[str]) -> str:
    """Join terms with their signs: `a + b - c`."""
    return " + ".join(terms).replace(" + -", " - ") or "0"


def times(weight: float, what: str) -> str:
    """Return a term with its factor, which is omitted if it is 1."""
    if abs(weight) == 1:
        return what if weight > 0 else f"-{what}"
    return f"{number(weight)}*{what}"


def _terms(body: Expression, n: int) -> list[str]:
    """Return the terms of every kind; terms that are the same for all variables are written once."""
    terms = [number(body.constant)] if body.constant else []
    terms += _linear(body.linear, n)
    terms += _quadratic(body.quadratic, n)
    for square in body.squares:
        inside = [*_linear(square.linear, n), *([number(square.constant)] if square.constant else [])]
        terms.append(times(square.weight, f"({joined(inside)})^2"))
    if body.monomials:
        listed = "; ".join(
            times(item.weight, "*".join(_power(i, p) for i, p in item.powers)) for item in body.monomials
        )
        terms.append(f"sum of [{listed}]")
    if body.waves:
        listed = "; ".join(
            f"({wave.variable + 1}, {number(wave.weight)}, {number(wave.rate)}, {number(wave.shift)})"
            for wave in body.waves
        )
        terms.append(f"sum over (i, a, b, c) of a*cos(b*x_i + c), with (i, a, b, c) in [{listed}]")
    terms += [times(item.weight, _formula(item)) for item in body.formulas]
    return terms


def _formula(formula: Formula) -> str:
    """Return a formula in the usual notation: x_1 for x[0], ^ for powers, 2 for 2.0."""
    text = formula.written(lambda i: f"x_{i + 1}").replace("**", "^")
    return _FLOAT.sub(lambda match: number(float(match[0])), text)


def _power(i: int, p: int) -> str:
    return f"x_{i + 1}" if p == 1 else f"x_{i + 1}^{p}"


def _linear(linear: Sequence[tuple[int, float]], n: int) -> list[str]:
    if not linear:
        return []
    if _uniform([i for i, _ in linear], [c for _, c in linear], n):
        return [times(linear[0][1], "sum(x_i for every i)")]
    if len(linear) <= 6:
        return [times(c, f"x_{i + 1}") for i, c in linear]
    listed = "; ".join(f"({i + 1}, {number(c)})" for i, c in linear)
    return [f"sum over (i, c) of c*x_i, with (i, c) in [{listed}]"]


def _quadratic(quadratic: Sequence[tuple[int, int, float]], n: int) -> list[str]:
    if not quadratic:
        return []
    diagonal = [(i, q) for i, j, q in quadratic if i == j]
    if len(diagonal) == len(quadratic) and _uniform([i for i, _ in diagonal], [q for _, q in diagonal], n):
        return [times(diagonal[0][1], "sum(x_i^2 for every i)")]
    if len(quadratic) <= 3:
        return [times(q, f"x_{i + 1}*x_{j + 1}" if i != j else f"x_{i + 1}^2") for i, j, q in quadratic]
    if len(diagonal) == len(quadratic):
        listed = "; ".join(f"({i + 1}, {number(q)})" for i, q in diagonal)
        return [f"sum over (i, q) of q*x_i^2, with (i, q) in [{listed}]"]
    listed = "; ".join(f"({i + 1}, {j + 1}, {number(q)})" for i, j, q in quadratic)
    return [f"sum over (i, j, q) of q*x_i*x_j, with (i, j, q) in [{listed}]"]


def _uniform(indices: Sequence[int], weights: Sequence[float], n: int) -> bool:
    return list(indices) == list(range(n)) and len(set(weights)) == 1 and n > 3


def number(value: float) -> str:
    """Return a number with exactly the digits it needs."""
    return repr(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(float(value))
