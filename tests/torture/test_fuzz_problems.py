"""Optimisation problems that were changed at random: each is a problem, or is refused in sentences."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from fairtrial.tracks.optimisation import model_reader
from fairtrial.tracks.optimisation.problem_files import find_problem
from fairtrial.tracks.optimisation.structure import kind
from fairtrial.tracks.optimisation.text import problem_text
from tests.torture.campaign import Campaign
from tests.torture.fuzz import Document, cut_everywhere, fuzz

EXAMPLES = Path(__file__).parents[2] / "examples" / "problems"
OWN = b"""variables:
  - {name: x, size: 3, lower: 0, upper: [1, 2, 3]}
  - {name: y, integer: true, lower: -5, upper: 5}
data: {c: [1, 2, 3], A: [[1, 0, 2], [0, 1, 1]], k: 2}
objective: sum(c[i] * x[i] for i in range(3)) + k * y ** 2
sense: max
constraints: ["A @ x <= 4", "sum(x) >= 1", "x[0] * y <= 3", "abs(y) <= 4"]
bound: 20
"""
LP = b"""\\ a comment
Maximize
 obj: 3 x + 2 y - z + [ x ^2 + 2 x * y ] / 2
Subject To
 c1: x + y <= 4
 c2: x + 3 y + z >= 1
 c3: -1 <= x - z <= 5
Bounds
 0 <= x <= 3
 y free
 z >= -2
General
 z
Binary
 b
End
"""
MPS = b"""NAME          SMALL
OBJSENSE
    MAX
ROWS
 N  COST
 L  LIM1
 G  LIM2
 E  EQ1
COLUMNS
    X         COST         1.0   LIM1         1.0
    X         LIM2         1.0
    MARKER                 'MARKER'                 'INTORG'
    Y         COST         2.0   LIM1         1.0
    Y         EQ1         -1.0
    MARKER                 'MARKER'                 'INTEND'
    Z         COST        -1.0   EQ1          1.0
RHS
    RHS       LIM1         4.0   LIM2         1.0
    RHS       EQ1          7.0
RANGES
    RNG       LIM1         2.5
BOUNDS
 UP BND       X            4.0
 LO BND       Y           -1.0
 UP BND       Y            1.0
 FR BND       Z
QUADOBJ
    X         X            1.0
ENDATA
"""
MODELS = [Document("lp", LP), Document("mps", MPS)]


def read_problem(folder: Path, document: Document) -> str:
    path = folder / f"p.{document.kind}"
    path.write_bytes(document.body)
    problem = find_problem(str(path))
    if document.kind == "yaml":
        assert problem_text(problem)
    return kind(problem.objective, problem.constraints, problem.integers)


def test_problems(tmp_path: Path, campaign: Campaign):
    seeds = [Document("yaml", file.read_bytes()) for file in sorted(EXAMPLES.glob("*.yaml"))]
    seeds = [one for one in seeds if len(one.body) < 5000]
    fuzz(campaign, seeds + [Document("yaml", OWN)] * 3, partial(read_problem, tmp_path), short=2)


def test_models(tmp_path: Path, campaign: Campaign, monkeypatch: pytest.MonkeyPatch):
    """Files that HiGHS reads."""
    monkeypatch.setattr(model_reader, "SECONDS", 3.0)  # some mistakes make it go on for ever
    fuzz(campaign, MODELS, partial(read_problem, tmp_path), short=2)


def test_problems_that_are_cut(tmp_path: Path, campaign: Campaign, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(model_reader, "SECONDS", 3.0)
    cut_everywhere(campaign, [*MODELS, Document("yaml", OWN)], partial(read_problem, tmp_path))
