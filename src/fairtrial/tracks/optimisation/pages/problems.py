"""Optimisation problems that the pages know: built in, in files of the served folder, and in stored runs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from fairtrial.analyse.run import Run
from fairtrial.core.errors import FairtrialError
from fairtrial.store import browsing
from fairtrial.tracks.optimisation.arrays import limited_work
from fairtrial.tracks.optimisation.cases import CACHE
from fairtrial.tracks.optimisation.catalogue import by_name, known_baseline
from fairtrial.tracks.optimisation.problem import Baseline, OptimisationProblem
from fairtrial.tracks.optimisation.problem_files import find_problem, is_problem_file
from fairtrial.tracks.optimisation.scorer import problem_of

_SKIPPED = {"node_modules", "__pycache__", "site-packages", "venv", "dist", "build"}
_TEXTS = (".yaml", ".yml", ".json")
_ENDINGS = (*_TEXTS, ".mps", ".lp")
_MAX_DEPTH = 3
_MAX_FILES = 200
_MAX_LOOKED_AT = 2000
_MAX_BYTES = 2**20
_MAX_WORK = 1_000_000  # of reading a problem: somebody waits for the page


class OwnProblem(NamedTuple):
    """A problem file of the folder; what is wrong with it, if it cannot be read."""

    path: str
    problem: OptimisationProblem | None
    trouble: str = ""


class Known(NamedTuple):
    """A problem with its baseline, if it is solved, and where it comes from."""

    problem: OptimisationProblem
    baseline: Baseline | None
    source: str


def own_problems(folder: Path) -> list[OwnProblem]:
    """Return the problem files in a folder and its subfolders; no Python is executed for it."""
    found: list[OwnProblem] = []
    for path in islice(_files(folder), _MAX_LOOKED_AT):
        stat = path.stat()
        own = _read(str(path), path.relative_to(folder).as_posix(), stat.st_mtime_ns, stat.st_size)
        found += [] if own is None else [own]
        if len(found) >= _MAX_FILES:
            break
    return found


def _files(folder: Path) -> Iterator[Path]:
    for place, folders, names in os.walk(folder):
        here = Path(place)
        depth = len(here.relative_to(folder).parts)
        folders[:] = sorted(f for f in folders if not f.startswith(".") and f not in _SKIPPED and depth < _MAX_DEPTH)
        yield from (here / name for name in sorted(names) if name.endswith(_ENDINGS) and not name.startswith("."))


@lru_cache(2 * _MAX_LOOKED_AT)
def _read(file: str, path: str, changed: int, size: int) -> OwnProblem | None:
    """Read a problem file; None if it is none. A file that has not changed is not read again."""
    if size > _MAX_BYTES or (file.endswith(_TEXTS) and not is_problem_file(Path(file))):
        return None
    try:
        with limited_work(_MAX_WORK):
            return OwnProblem(path, find_problem(file))
    except FairtrialError as error:
        return OwnProblem(path, None, str(error).replace(file, path))


def find_known(name: str, folder: Path, runs: list[Run]) -> Known:
    """Return a problem by its id: from a run that asked it, else built in, else from a file of the folder."""
    for run in runs:
        for position in browsing.positions_of(run.store, run.plan.id, name)[:1]:
            case = run.store.cases_at(run.plan.id, [position])[0]
            if (case.metadata or {}).get("baseline"):
                problem, baseline = problem_of(case)
                if problem is not None:
                    return Known(problem, baseline, f"run {run.id}")
    cache = folder / CACHE
    for own in own_problems(folder):
        if own.problem is not None and own.problem.id == name:
            return Known(own.problem, known_baseline(own.problem, cache), own.path)
    problem = by_name(name)
    return Known(problem, known_baseline(problem, cache), "built in")
