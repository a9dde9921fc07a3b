"""Reading and writing of optimisation experiment folders: INSTANCE/baseline.json, INSTANCE/STYLE_1.json, …"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import yaml

from fairtrial.analyse.run import Run
from fairtrial.config import Suite, parse_suite
from fairtrial.core.errors import FairtrialError
from fairtrial.core.private import write_shared
from fairtrial.targets.replay import answer_files
from fairtrial.tracks.optimisation.answer_folder import Instance, disagreement, read_instances
from fairtrial.tracks.optimisation.export import problem_yaml
from fairtrial.tracks.optimisation.scorer import problem_of


def write_answer(path: Path, answer: dict[str, Any]) -> None:
    """Write a baseline to a file."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_shared(path, msgspec.json.format(msgspec.json.encode(answer), indent=2).decode() + "\n")
    except OSError as error:
        raise FairtrialError(f"{path} cannot be written: {error.strerror or error}") from None


def write_folder(run: Run, folder: Path) -> int:
    """Write every answer of a run as INSTANCE/STYLE_N.json next to its baseline, and return their number.

    With several targets, the target's name precedes the style; where there is one condition only, it is the name.
    """
    several_targets = len({arm.target.id for arm in run.plan_arms}) > 1
    several_styles = len({arm.condition.name for arm in run.plan_arms}) > 1
    names: dict[str, str] = {}
    count = 0
    for place, trial in run.placed_trials():
        if trial.answer is None:
            continue
        instance = folder / trial.case_id
        if not (instance / "baseline.json").exists():
            _write_instance(run, place.case, instance)
        both = (trial.target, trial.condition) if several_styles else (trial.target,)
        style = "-".join(both) if several_targets else trial.condition
        name = _file_name(style, names)
        write_shared(instance / f"{name}_{trial.repeat}.json", trial.answer)
        count += 1
    return count


def _write_instance(run: Run, position: int, folder: Path) -> None:
    """Write the baseline that the run was scored against, and the problem if it is not built in."""
    case = run.store.cases_at(run.plan.id, [position])[0]
    if "baseline" not in (case.metadata or {}):
        raise FairtrialError(f"run {run.id} is not a run of optimisation problems: `{case.id}` has no baseline")
    problem, baseline = problem_of(case)
    write_answer(folder / "baseline.json", baseline.as_reference(problem) if problem else baseline.as_answer())
    if problem and not problem.seed:
        write_shared(folder / "problem.yaml", problem_yaml(problem))


def _file_name(style: str, names: dict[str, str]) -> str:
    """Return a style as a file name; it is unique among the styles."""
    if style not in names:
        plain = re.sub(r"[^A-Za-z0-9.-]+", "-", style)
        taken = set(names.values())
        names[style] = next(name for name in (plain, *(f"{plain}-{n}" for n in range(2, 999))) if name not in taken)
    return names[style]


def read_folder(folder: Path, *, time_limit: float = 60.0, partial_credit: bool = False) -> Suite:
    """Build a suite that replays the answers in a folder, with one arm per style.

    The folder has instance folders, or is one itself.
    """
    instances = read_instances(folder)
    root = folder.resolve().parent if instances[0].folder == folder.resolve() else folder.resolve()
    styles: dict[str, int] = {}
    for instance in instances:
        for style in instance.styles:
            styles[style] = max(styles.get(style, 0), len(answer_files(instance.folder, style)))
    if not styles:
        raise FairtrialError(f"{folder} has no answers: add files like polite_1.json next to baseline.json")
    document = {
        "name": folder.resolve().name,
        "targets": [
            {"id": style, "target": f"replay:{root}", "options": {"prefix": style}, "repeats": repeats}
            for style, repeats in sorted(styles.items())
        ],
        "suite": {
            "kind": "optimisation",
            "answers": str(folder.resolve()),
            "styles": [],
            "time_limit": time_limit,
            "partial_credit": partial_credit,
        },
        "retry": {"attempts": 1},
    }
    return parse_suite(yaml.safe_dump(document, sort_keys=False), file=str(folder), folder=folder)


def describe_folder(folder: Path, suite: Suite) -> list[str]:
    """Say what the answers of a folder are compared with, and where its baselines are not what its problems have."""
    instances = read_instances(folder)
    known = [one for one in instances if one.problem is not None]
    lines = []
    if known:
        kinds = ", ".join(dict.fromkeys(one.known_by for one in known))
        lines.append(f"{_listed(known)}: the problem is known ({kinds}); objective and constraints are computed from x")
    if alone := [one for one in instances if one.problem is None]:
        files = " and ".join(dict.fromkeys(one.reference_file for one in alone))
        lines.append(
            f"{_listed(alone)}: no problem file, only {files}; format, gaps of the claimed objective and distance "
            "are measured, feasibility cannot be"
        )
    solved = {case.id: problem_of(case)[1] for case in suite.cases()}
    lines += [f"{one.name}: {told}" for one in known if (told := disagreement(one, solved[one.name]))]
    lines += [f"{one.name}: no answers" for one in instances if not one.styles]
    return lines


def _listed(instances: list[Instance]) -> str:
    names = [one.name for one in instances]
    return ", ".join(names if len(names) <= 4 else [*names[:3], f"and {len(names) - 3} more"])
