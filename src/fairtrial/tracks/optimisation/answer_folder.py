"""Folders of answers: INSTANCE/{problem.yaml, baseline.json, STYLE_1.json, …}, or one instance flat.

The baseline may be called `baseline_solution.json` too.
"""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import numpy as np

from fairtrial.core.errors import FairtrialError
from fairtrial.text.printable import counted
from fairtrial.tracks.optimisation.answer import read_reference
from fairtrial.tracks.optimisation.catalogue import by_name
from fairtrial.tracks.optimisation.problem import Baseline, Floats, OptimisationProblem
from fairtrial.tracks.optimisation.problem_files import find_problem, problem_in

BASELINE = "baseline.json"
_BASELINES = (BASELINE, "baseline_solution.json")
_NUMBERED = re.compile(r"(.+)_[^_]+\.(json|txt|md)")  # polite_1.json, very_strict_2.txt
_SINGLE = re.compile(r"([^_]+)\.json")  # polite.json


class Instance(msgspec.Struct, frozen=True, kw_only=True):
    """One problem's folder: the problem if it is known, its baseline.json if there is one, and the styles."""

    name: str
    folder: Path
    problem: OptimisationProblem | None
    known_by: str  # the problem file, "built in", or baseline.json alone
    reference: Baseline | None
    reference_file: str  # its name; empty if there is none
    styles: tuple[str, ...]


def is_flat(folder: Path) -> bool:
    """Return whether a folder is one instance, rather than a folder of them."""
    return bool(_answers(folder)) or _reference_file(folder) is not None


def read_instances(folder: Path) -> list[Instance]:
    """Return the instances in a folder of answers."""
    if not folder.is_dir():
        raise FairtrialError(f"there is no folder {folder}")
    inside = sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))
    filled = [path for path in inside if is_flat(path)]
    if is_flat(folder):
        if filled:
            raise FairtrialError(
                f"{folder} has answers next to folders with answers; move those of one instance into a folder"
            )
        return [_instance(folder.resolve())]
    if not inside:
        raise FairtrialError(
            f"{folder} has no instance folders and no answers: it needs files like polite_1.json next to problem.yaml "
            f"or {BASELINE}, or a folder with such files for each instance"
        )
    instances = [_instance(path) for path in inside]
    if not any(instance.styles for instance in instances):
        raise FairtrialError(f"{folder} has no answers: add files like polite_1.json next to {BASELINE}")
    return instances


def _instance(folder: Path) -> Instance:
    file = problem_in(folder)
    problem, known_by = (find_problem(str(file)), file.name) if file else (_built_in(folder.name), "built in")
    path = _reference_file(folder)
    reference = None if path is None else _reference(path, None if problem is None else problem.n)
    if problem is None and reference is None:
        raise FairtrialError(
            f"{folder} has neither a problem file nor {BASELINE}, and there is no problem `{folder.name}`: add one"
        )
    return Instance(
        name=folder.name,
        folder=folder,
        problem=None if problem is None else msgspec.structs.replace(problem, id=folder.name),
        known_by=known_by if problem is not None else path.name if path else "",
        reference=reference,
        reference_file=path.name if path else "",
        styles=tuple(_answers(folder, file)),
    )


def _reference_file(folder: Path) -> Path | None:
    """Return the file with the baseline of an instance, by either of its names; None if there is none."""
    found = [folder / name for name in _BASELINES if (folder / name).is_file()]
    if len(found) > 1:
        raise FairtrialError(f"{folder} has two baselines: {' and '.join(path.name for path in found)}; keep one")
    return found[0] if found else None


def _built_in(name: str) -> OptimisationProblem | None:
    try:
        return by_name(name)
    except FairtrialError:
        return None


def _answers(folder: Path, problem: Path | None = None) -> list[str]:
    """Return the styles that have answers in a folder."""
    names = sorted(path.name for path in folder.iterdir() if path.is_file() and path != problem)
    matches = [_NUMBERED.fullmatch(name) or _SINGLE.fullmatch(name) for name in names if not name.startswith(".")]
    styles = dict.fromkeys(match[1] for match in matches if match)
    return [style for style in styles if style not in ("baseline", "problem")]


def _reference(path: Path, n: int | None) -> Baseline:
    try:
        found = read_reference(path.read_text("utf-8"), path.parent.name)
    except (OSError, UnicodeDecodeError) as error:
        raise FairtrialError(f"{path} cannot be read: {error}") from None
    except ValueError as error:
        raise FairtrialError(f"{path} is not a baseline: {error}") from None
    if n is not None and found.x is not None and len(found.x) != n:
        raise FairtrialError(
            f"{path} has {counted(len(found.x), 'number')} in x, and its problem has {counted(n, 'variable')}"
        )
    return found


def disagreement(instance: Instance, solved: Baseline) -> str:
    """Return how the folder's baseline differs from the solution of its problem; empty if it does not."""
    given, problem = instance.reference, instance.problem
    if given is None or problem is None:
        return ""
    if (given.status == "infeasible") != (solved.status == "infeasible"):
        return f"{instance.reference_file} says {given.status}, and the problem is {solved.status}"
    if given.x is None or given.objective is None or solved.objective is None:
        return ""
    x = np.asarray(given.x, dtype=np.float64)
    return _fault(problem, given.objective, x, solved.objective, instance.reference_file)


def _fault(problem: OptimisationProblem, stated: float, x: Floats, best: float, file: str) -> str:
    """Return what is wrong with a point that a file says to be the best."""
    violation, value = problem.violations(x).largest, problem.value(x)
    slack = 1e-5 * max(1.0, abs(best))
    if violation > max(problem.tolerance, 1e-6):
        return f"the x of {file} violates a constraint by {violation:.3g}"
    if abs(value - stated) > slack:
        return f"the x of {file} has the objective {value:.8g}, not {stated:.8g}"
    if abs(value - best) > slack:
        word = "better" if problem.better(value, best) else "worse"
        return f"{file} has the objective {value:.8g}, which is {word} than {best:.8g}"
    return ""
