"""Finding problems: built in by their names, in files of every format, and in folders."""

from __future__ import annotations

from pathlib import Path

import yaml

from fairtrial.core.errors import FairtrialError
from fairtrial.core.trust import within
from fairtrial.tracks.optimisation.catalogue import by_name
from fairtrial.tracks.optimisation.exchange import SUFFIXES, read_model_file, read_pyomo
from fairtrial.tracks.optimisation.problem import OptimisationProblem
from fairtrial.tracks.optimisation.problem_file import read_problem

_TEXTS = (".yaml", ".yml", ".json")
_KEYS = ("variables", "objective")
_MAX_SNIFFED = 10_000_000  # bytes of a file that is opened to see what it is


def find_problem(name: str, folder: Path = Path()) -> OptimisationProblem:
    """Return a problem: `box_qp-10`, `own.yaml`, `own.mps`, `own.lp`, or `own.py:model`, which is executed.

    Args:
        folder: What the paths of files are relative to.
    """
    file, _, attribute = name.rpartition(":")
    if file.endswith(".py"):
        return read_pyomo(folder / file, attribute)
    path = folder / name
    if name.endswith(".py"):
        return read_pyomo(path)
    if path.suffix in _TEXTS:
        return read_problem(path)
    if _is_model(path):
        return read_model_file(path)
    if path.is_dir():
        raise FairtrialError(f"{path} is a folder; give a problem file in it")
    return by_name(name)


def find_problems(names: list[str], folder: Path = Path()) -> list[OptimisationProblem]:
    """Return the problems of files and folders; in folders, all files that are problems and no Python code."""
    problems: list[OptimisationProblem] = []
    for name in names:
        path = within(folder, name.rpartition(":")[0] or name)
        if path.is_dir():
            files = [within(folder, file.absolute()) for file in problem_files(path)]
            if not files:
                raise FairtrialError(f"{path} has no problem files (YAML, JSON, MPS or LP)")
            problems += [find_problem(str(file)) for file in files]
        else:
            problems.append(find_problem(name, folder))
    seen: dict[str, OptimisationProblem] = {}
    for problem in problems:
        if seen.setdefault(problem.id, problem) is not problem:
            raise FairtrialError(f"two problems are called `{problem.id}`; give one of them another `id`")
    return problems


def problem_files(folder: Path) -> list[Path]:
    """Return the problem files in a folder and in its folders, in the order of their names."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("."))
    return [path for path in files if _is_model(path) or is_problem_file(path)]


def problem_in(folder: Path) -> Path | None:
    """Return the only problem file right inside a folder; None if there is none."""
    files = [path for path in sorted(folder.iterdir()) if path.is_file() and (_is_model(path) or is_problem_file(path))]
    named = [path for path in files if path.name.partition(".")[0] == "problem"] or files
    if len(named) > 1:
        raise FairtrialError(f"{folder} has several problem files: {', '.join(path.name for path in named)}; keep one")
    return named[0] if named else None


def _is_model(path: Path) -> bool:
    return path.suffix in SUFFIXES or (path.suffix == ".gz" and Path(path.stem).suffix in SUFFIXES)


def is_problem_file(path: Path) -> bool:
    """Return whether a YAML or JSON file is meant to be a problem: it has an objective or variables."""
    if path.suffix not in _TEXTS or not path.is_file() or path.stat().st_size > _MAX_SNIFFED:
        return False
    try:
        text = path.read_text("utf-8")
        node = yaml.compose(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError, OSError):
        return False
    keys = {key.value for key, _ in node.value} if isinstance(node, yaml.MappingNode) else set()
    return any(key in keys for key in _KEYS) and "targets" not in keys
