"""A problem as data: variables, objective and constraints, with the only evaluator of objectives."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from fairtrial.tracks.optimisation.slopes import formula_gradient, formula_value

Floats = NDArray[np.float64]
UNBOUNDED = 1e20  # bounds of this size and more are none, as in solvers: JSON has no ∞
_VARIABLE = re.compile(r"\bx\[(\d+)\]")
Relation = Literal["<=", ">=", "=="]


class Square(msgspec.Struct, frozen=True, array_like=True):
    """weight · (Σ c·x_i + constant)²."""

    weight: float
    linear: tuple[tuple[int, float], ...]
    constant: float = 0.0


class Monomial(msgspec.Struct, frozen=True, array_like=True):
    """weight · Π x_i^p."""

    weight: float
    powers: tuple[tuple[int, int], ...]


class Wave(msgspec.Struct, frozen=True, array_like=True):
    """weight · cos(rate·x_i + shift)."""

    weight: float
    variable: int
    rate: float
    shift: float = 0.0


class Formula(msgspec.Struct, frozen=True, array_like=True):
    """weight · text, an expression over x[0], x[1], … that is none of the other terms."""

    weight: float
    text: str

    @property
    def variables(self) -> tuple[int, ...]:
        """The variables that occur in it."""
        return tuple(dict.fromkeys(int(number) for number in _VARIABLE.findall(self.text)))

    def written(self, name: Callable[[int], str]) -> str:
        """Return the text with other names of its variables."""
        return _VARIABLE.sub(lambda match: name(int(match[1])), self.text)


class Expression(msgspec.Struct, frozen=True, kw_only=True):
    """A sum of terms of every kind. Variables are counted from 0 here, and from 1 in texts."""

    constant: float = 0.0
    linear: tuple[tuple[int, float], ...] = ()
    quadratic: tuple[tuple[int, int, float], ...] = ()  # (i, j, q): q·x_i·x_j
    squares: tuple[Square, ...] = ()
    monomials: tuple[Monomial, ...] = ()
    waves: tuple[Wave, ...] = ()
    formulas: tuple[Formula, ...] = ()

    def value(self, x: Floats) -> float:
        """Return the value at a point; not a number where it is not defined, as log(-1), or too large to compute."""
        try:
            return self._total(x)
        except (OverflowError, ValueError):
            return math.nan

    def _total(self, x: Floats) -> float:
        total = self.constant
        total += math.fsum(c * x[i] for i, c in self.linear)
        total += math.fsum(q * x[i] * x[j] for i, j, q in self.quadratic)
        for square in self.squares:
            total += square.weight * (math.fsum(c * x[i] for i, c in square.linear) + square.constant) ** 2
        for monomial in self.monomials:
            total += monomial.weight * math.prod(float(x[i]) ** p for i, p in monomial.powers)
        total += math.fsum(wave.weight * math.cos(wave.rate * x[wave.variable] + wave.shift) for wave in self.waves)
        total += math.fsum(formula.weight * formula_value(formula.text, x) for formula in self.formulas)
        return float(total)

    def gradient(self, x: Floats) -> Floats:
        """Return the gradient at a point; not numbers where it is not defined, or too large to compute."""
        try:
            return self._slope(x)
        except (OverflowError, ValueError, ZeroDivisionError):
            return np.full(len(x), math.nan)

    def _slope(self, x: Floats) -> Floats:
        slope = np.zeros(len(x))
        for i, c in self.linear:
            slope[i] += c
        for i, j, q in self.quadratic:
            slope[i] += q * x[j]
            slope[j] += q * x[i]
        for square in self.squares:
            inside = math.fsum(c * x[i] for i, c in square.linear) + square.constant
            for i, c in square.linear:
                slope[i] += 2 * square.weight * inside * c
        for monomial in self.monomials:
            for i, p in monomial.powers:
                others = math.prod(float(x[j]) ** r for j, r in monomial.powers if j != i)
                slope[i] += monomial.weight * p * float(x[i]) ** (p - 1) * others
        for wave in self.waves:
            slope[wave.variable] -= wave.weight * wave.rate * math.sin(wave.rate * x[wave.variable] + wave.shift)
        for formula in self.formulas:
            slope += formula.weight * formula_gradient(formula.text, x)
        return slope

    def coefficients(self) -> Iterator[float]:
        """Yield every coefficient of a variable, which the row is scaled by."""
        yield from (c for _, c in self.linear)
        yield from (q for _, _, q in self.quadratic)
        for square in self.squares:
            yield from (square.weight * c for _, c in square.linear)
        yield from (monomial.weight for monomial in self.monomials)
        yield from (wave.weight for wave in self.waves)
        yield from (formula.weight for formula in self.formulas)

    def groups(self) -> Iterator[tuple[int, ...]]:
        """Yield the variables that occur together in a term."""
        yield from ((i,) for i, _ in self.linear)
        yield from ((i, j) for i, j, _ in self.quadratic)
        yield from (tuple(i for i, _ in square.linear) for square in self.squares)
        yield from (tuple(i for i, _ in monomial.powers) for monomial in self.monomials)
        yield from ((wave.variable,) for wave in self.waves)
        yield from (formula.variables for formula in self.formulas)

    @property
    def is_linear(self) -> bool:
        """Whether all terms are linear."""
        return not (self.quadratic or self.squares) and self.is_quadratic

    @property
    def is_quadratic(self) -> bool:
        """Whether all terms are linear, quadratic or squares of linear sums."""
        return not (self.monomials or self.waves or self.formulas)

    def negative(self) -> Expression:
        """Return the expression with the opposite sign."""
        return Expression(
            constant=-self.constant,
            linear=tuple((i, -c) for i, c in self.linear),
            quadratic=tuple((i, j, -q) for i, j, q in self.quadratic),
            squares=tuple(msgspec.structs.replace(s, weight=-s.weight) for s in self.squares),
            monomials=tuple(msgspec.structs.replace(m, weight=-m.weight) for m in self.monomials),
            waves=tuple(msgspec.structs.replace(w, weight=-w.weight) for w in self.waves),
            formulas=tuple(msgspec.structs.replace(f, weight=-f.weight) for f in self.formulas),
        )

    def normal(self) -> Expression:
        """Return the expression without terms whose coefficient is 0, and with 0 where there was -0."""
        squares = (Square(s.weight, tuple(t for t in s.linear if t[1]), s.constant + 0.0) for s in self.squares)
        return msgspec.structs.replace(
            self,
            constant=self.constant + 0.0,
            linear=tuple(term for term in self.linear if term[1]),
            quadratic=tuple(term for term in self.quadratic if term[2]),
            squares=tuple(squares),
            waves=tuple(Wave(w.weight, w.variable, w.rate, w.shift + 0.0) for w in self.waves),
        )


class Constraint(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """A constraint: body, relation, bound."""

    body: Expression
    relation: Relation
    bound: float

    @cached_property
    def norm(self) -> float:
        """The Euclidean norm of the row's coefficients; 1 for a row without any."""
        return math.sqrt(math.fsum(c * c for c in self.body.coefficients())) or 1.0

    def violation(self, x: Floats) -> float:
        """Return the violation at a point, scaled by the row's norm; 0 if the constraint holds."""
        gap = self.body.value(x) - self.bound
        if math.isnan(gap):
            return math.inf
        excess = {"<=": gap, ">=": -gap, "==": abs(gap)}[self.relation]
        return max(0.0, excess) / self.norm


class OptimisationProblem(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """A problem instance. `convex` and `tight` determine its difficulty, unless it is stated."""

    id: str
    family: str
    n: int
    seed: int
    sense: Literal["minimise", "maximise"] = "minimise"
    lower: tuple[float, ...]
    upper: tuple[float, ...]
    integers: tuple[int, ...] = ()
    objective: Expression
    constraints: tuple[Constraint, ...] = ()
    convex: bool = True
    tight: bool = False
    floor: float | None = None  # a bound of the objective known by construction
    names: tuple[str, ...] = ()  # of the variables, in a problem from a file
    text: str = ""  # what is asked, if it is not made from the rest
    level: str = ""  # a stated difficulty
    tolerance: float = 1e-6  # of violations
    variant_of: str = ""  # the problem that this one is another wording of

    @property
    def group(self) -> str:
        """The problem and its other wordings, which are not independent of each other."""
        return self.variant_of or self.id

    @property
    def difficulty(self) -> str:
        """easy: small, convex, few constraints; hard: non-convex or a tight feasible region; medium: the rest."""
        if self.level:
            return self.level
        if self.tight or (not self.convex and not (self.integers and self.n <= 10)):
            return "hard"
        small = self.n <= 10 and self.convex and len(self.constraints) <= self.n and self._plain
        return "easy" if small else "medium"

    @property
    def _plain(self) -> bool:
        return not self.integers and self.objective.is_quadratic

    @cached_property
    def box(self) -> tuple[Floats, Floats]:
        """The bounds as arrays; ±∞ where there is none."""
        low, high = np.asarray(self.lower, dtype=np.float64), np.asarray(self.upper, dtype=np.float64)
        return np.where(low <= -UNBOUNDED, -np.inf, low), np.where(high >= UNBOUNDED, np.inf, high)

    def value(self, x: Floats) -> float:
        """Return the objective at a point."""
        return self.objective.value(x)

    def violations(self, x: Floats) -> Violations:
        """Return all violations of a point."""
        low, high = self.box
        outside = np.maximum(np.maximum(low - x, x - high), 0.0)
        fractions = [abs(float(x[i]) - round(float(x[i]))) for i in self.integers]
        return Violations(
            constraints=tuple(constraint.violation(x) for constraint in self.constraints),
            bounds=float(outside.max(initial=0.0)),
            integrality=max(fractions, default=0.0),
        )

    def better(self, a: float, b: float) -> bool:
        """Return whether objective a is better than b."""
        return a < b if self.sense == "minimise" else a > b


class Violations(msgspec.Struct, frozen=True):
    """By how much a point violates each constraint (scaled by its row's norm), the bounds and integrality."""

    constraints: tuple[float, ...]
    bounds: float
    integrality: float

    @property
    def largest(self) -> float:
        """The largest violation."""
        return max((*self.constraints, self.bounds, self.integrality), default=0.0)


class Baseline(msgspec.Struct, frozen=True, kw_only=True):
    """The solution that a solver found, and whether it is certified."""

    problem: str
    status: Literal["optimal", "infeasible", "feasible", "unknown"]
    x: tuple[float, ...] | None
    objective: float | None
    bound: float | None
    gap: float | None  # relative, between objective and bound
    certified: bool
    solver: str
    version: str
    seconds: float
    random_objective: float | None  # the mean of random feasible points: "no better than chance"
    digest: str  # of the problem that was solved
    time_limit: float = 0.0  # seconds it was given
    sense: Literal["minimise", "maximise"] | None = None  # if it is all that is known of a problem

    @classmethod
    def unknown(cls, problem: OptimisationProblem, time_limit: float) -> Baseline:
        """Return that nothing is known of a problem after this many seconds."""
        times = {"seconds": time_limit, "time_limit": time_limit}
        about = {"problem": problem.id, "status": "unknown", "digest": problem_digest(problem)}
        return cls(**{**NOTHING_KNOWN, **about, **times})

    def as_answer(self) -> dict[str, Any]:
        """Return the baseline in the format of an answer."""
        status = "infeasible" if self.status == "infeasible" else "optimal" if self.certified else "timeout"
        return {"x": self.x, "objective_value": self.objective, "status": status}

    def as_reference(self, problem: OptimisationProblem) -> dict[str, Any]:
        """Return the baseline as an answer, with what other answers can be compared with."""
        more = {"sense": problem.sense, "bound": self.bound, "random_objective": self.random_objective}
        return {**self.as_answer(), **more}


NOTHING_KNOWN: dict[str, Any] = {
    **dict.fromkeys(("x", "objective", "bound", "gap", "random_objective")),
    **dict.fromkeys(("solver", "version", "digest"), ""),
    "certified": False,
    "seconds": 0.0,
}


def problem_digest(problem: OptimisationProblem) -> str:
    """Return a 16-character hash of what is solved, whatever it is called: a baseline belongs to it."""
    rows = [
        (msgspec.structs.replace(row.body.normal(), constant=0.0), row.relation, row.bound - row.body.constant + 0.0)
        for row in problem.constraints
    ]
    bounds = [[bound + 0.0 for bound in side] for side in (problem.lower, problem.upper)]
    solved = (problem.sense, bounds, problem.integers, problem.objective.normal(), rows)
    return hashlib.sha256(msgspec.json.encode(solved, order="deterministic")).hexdigest()[:16]
