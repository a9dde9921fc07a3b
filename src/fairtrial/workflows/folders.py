"""Reading and writing of optimisation experiment folders: INSTANCE/baseline.json, INSTANCE/STYLE_1.json, …"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import yaml

from fairtrial.analyse import Run
from fairtrial.config import Suite, parse_suite
from fairtrial.core.errors import FairtrialError
from fairtrial.optim.catalogue import by_name
from fairtrial.optim.problem import Baseline
from fairtrial.targets.replay import answer_files

_ANSWER = re.compile(r"(.+)_[^_]+\.(json|txt|md)")


def write_answer(path: Path, answer: dict[str, Any]) -> None:
    """Write a baseline to a file."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(msgspec.json.format(msgspec.json.encode(answer), indent=2) + b"\n")
    except OSError as error:
        raise FairtrialError(f"{path} cannot be written: {error.strerror or error}") from None


def write_folder(run: Run, folder: Path) -> int:
    """Write every answer of a run as INSTANCE/STYLE_N.json next to its baseline, and return their number.

    With several targets, the target's name precedes the style.
    """
    several_targets = len({arm.target.id for arm in run.plan_arms}) > 1
    names: dict[str, str] = {}
    count = 0
    for trial in run.trials():
        if trial.answer is None:
            continue
        instance = folder / trial.case_id
        if not (instance / "baseline.json").exists():
            write_answer(instance / "baseline.json", _baseline(run, trial.case_id).as_answer())
        style = f"{trial.target}-{trial.condition}" if several_targets else trial.condition
        name = _file_name(style, names)
        (instance / f"{name}_{trial.repeat}.json").write_text(trial.answer, "utf-8")
        count += 1
    return count


def _baseline(run: Run, case_id: str) -> Baseline:
    """Return the baseline that the run was scored against."""
    for first in range(0, run.plan.case_count, 250):
        for case in run.store.cases(run.plan.id, first, 250):
            if case.id == case_id and case.metadata and "baseline" in case.metadata:
                return msgspec.convert(case.metadata["baseline"], Baseline)
    raise FairtrialError(f"run {run.id} is not a run of optimisation problems: `{case_id}` has no baseline")


def _file_name(style: str, names: dict[str, str]) -> str:
    """Return a style as a file name; it is unique among the styles."""
    if style not in names:
        plain = re.sub(r"[^A-Za-z0-9.-]+", "-", style)
        taken = set(names.values())
        names[style] = next(name for name in (plain, *(f"{plain}-{n}" for n in range(2, 999))) if name not in taken)
    return names[style]


def read_folder(folder: Path) -> Suite:
    """Build a suite that replays the answers in a folder, with one arm per style."""
    if not folder.is_dir():
        raise FairtrialError(f"there is no folder {folder}")
    instances = sorted(path.name for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))
    if not instances:
        raise FairtrialError(f"{folder} has no instance folders; each must be named after a problem, such as box_qp-10")
    styles: dict[str, int] = {}
    for name in instances:
        by_name(name)
        files = [path.name for path in (folder / name).iterdir() if path.name != "baseline.json"]
        for style in {match[1] for file in files if (match := _ANSWER.fullmatch(file))}:
            styles[style] = max(styles.get(style, 0), len(answer_files(folder / name, style)))
    if not styles:
        raise FairtrialError(f"{folder} has no answers: add files like polite_1.json next to baseline.json")
    document = {
        "name": folder.resolve().name,
        "targets": [
            {"id": style, "target": f"replay:{folder.resolve()}", "options": {"prefix": style}, "repeats": repeats}
            for style, repeats in sorted(styles.items())
        ],
        "suite": {"kind": "optimisation", "ids": instances, "styles": []},
        "retry": {"attempts": 1},
    }
    return parse_suite(yaml.safe_dump(document, sort_keys=False), file=str(folder), folder=folder)
