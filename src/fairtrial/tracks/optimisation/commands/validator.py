"""`fairtrial validate` of an optimisation problem in place of a suite."""

from __future__ import annotations

import re
from pathlib import Path

import click

from fairtrial.cli.documents import print_json
from fairtrial.core.errors import FairtrialError, Problem, ProblemsError
from fairtrial.text.printable import counted

_OBJECTIVE = re.compile(rb"(?:^|[{,])\s*[\"']?(?:objective|variables)[\"']?\s*:", re.MULTILINE)


def recognises(file: str) -> bool:
    """Return whether a file is an optimisation problem rather than a suite, without importing what problems need."""
    if file.endswith((".mps", ".lp", ".mps.gz", ".lp.gz")):
        return True
    path = Path(file)
    try:
        if not path.is_file() or not _OBJECTIVE.search(path.read_bytes()):
            return False
    except OSError:
        return False  # reading it as a suite says what is wrong
    from fairtrial.tracks.optimisation.problem_files import is_problem_file  # numpy: only problems need it

    return is_problem_file(path)


def report(file: str, *, as_json: bool) -> int:
    """Check a problem file and say what it holds; return the exit code."""
    from fairtrial.tracks.optimisation.problem_files import find_problem  # numpy: only problems need it
    from fairtrial.tracks.optimisation.structure import kind  # likewise

    try:
        problem = find_problem(file)
    except FairtrialError as error:
        if not as_json:
            raise
        problems = error.problems if isinstance(error, ProblemsError) else [Problem(str(error), file=file)]
        print_json({"valid": False, "problems": problems})
        return 1
    words = kind(problem.objective, problem.constraints, problem.integers)
    if as_json:
        facts = {"id": problem.id, "n": problem.n, "constraints": len(problem.constraints), "kind": words}
        more = {"sense": problem.sense, "convex": problem.convex, "difficulty": problem.difficulty}
        print_json({"valid": True, "problems": [], **facts, **more})
        return 0
    size = f"{counted(problem.n, 'variable')}, {counted(len(problem.constraints), 'constraint')}"
    shape = f"{words}{', convex' if problem.convex and words != 'linear' else ''}"
    click.echo(f"{file} is valid: {problem.sense} `{problem.id}`, {size}, {shape}, {problem.difficulty}")
    return 0
