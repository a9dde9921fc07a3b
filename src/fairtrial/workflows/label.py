"""Human labels: answers drawn for people to mark, blind, and their marks taken back in."""

from __future__ import annotations

import csv
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from fairtrial.analyse import Run
from fairtrial.config.dataset import FORMATS, rows_of
from fairtrial.core.errors import FairtrialError
from fairtrial.core.experiment import show_expected
from fairtrial.core.place import place_of
from fairtrial.reports.csv import cell
from fairtrial.store import opinions

_COLUMNS = ("trial", "input", "expected", "answer", "label", "note")
_WORDS = {"pass": 1.0, "yes": 1.0, "true": 1.0, "fail": 0.0, "no": 0.0, "false": 0.0}
_MOST_PROBLEMS = 20


class Label(NamedTuple):
    """What a person thinks that an answer is worth, 0–1."""

    trial: str
    value: float
    note: str = ""
    by: str = ""


def read_mark(text: Any) -> float:
    """A mark as people write it: 0 to 100, or pass and fail."""
    word = str(text).strip().lower()
    if word in _WORDS:
        return _WORDS[word]
    try:
        mark = float(word)
    except ValueError:
        mark = -1.0
    if not 0 <= mark <= 100:
        raise FairtrialError(f"a label is a number from 0 to 100, or pass or fail, not `{text}`")
    return mark / 100


def read_labels(path: Path) -> list[Label]:
    """Labels from a table with `trial` (or `trial_id`) and `label`, perhaps `note` and `by`; blanks are left out."""
    if path.suffix.lower() not in FORMATS:
        raise FairtrialError(f"labels come as one of {', '.join(FORMATS)}, not `{path.name}`")
    labels, problems = [], []
    for row in rows_of(path):
        try:
            label = _read_row(row.fields, row.problem)
        except FairtrialError as error:
            problems.append(f"{path}:{row.line}: {error}")
        else:
            labels += [label] if label else []
    if problems:
        raise FairtrialError("\n".join(problems[:_MOST_PROBLEMS]))
    if not labels:
        raise FairtrialError(f"{path} has no label: fill in the column `label`, 0 to 100 or pass or fail")
    return labels


def _read_row(fields: dict[str, Any], problem: str) -> Label | None:
    if problem:
        raise FairtrialError(problem)
    trial = fields.get("trial") or fields.get("trial_id")
    if not trial or "label" not in fields:
        raise FairtrialError("a label needs the columns `trial` and `label`")
    if fields["label"] is None or str(fields["label"]).strip() == "":
        return None
    note, by = (str(fields.get(name) or "") for name in ("note", "by"))
    return Label(str(trial), read_mark(fields["label"]), note, by)


def add_labels(run: Run, labels: Sequence[Label], *, by: str) -> int:
    """Keep labels; all of them, or none if one is for no trial of this run. How many answers they are for."""
    places, problems = _places(run), []
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for label in labels:
        fitting = [place for trial, place in places.items() if trial.startswith(label.trial)]
        if len(fitting) != 1:
            what = "no trial" if not fitting else f"{len(fitting)} trials"
            problems.append(f"`{label.trial}` is {what} of run {run.id} with an answer")
            continue
        case, arm, repeat = fitting[0]
        row = {"case_position": case, "arm_position": arm, "repeat": repeat, "labeller": label.by or by}
        found[tuple(row.values())] = {**row, "value": label.value, "note": label.note or None}
    if problems:
        raise FairtrialError("\n".join(problems[:_MOST_PROBLEMS]))
    opinions.add_labels(run.store, run.id, run.record.scoring, list(found.values()))
    return len({key[:3] for key in found})


def _places(run: Run) -> dict[str, tuple[int, int, int]]:
    rows = run.store.trial_rows(run.id, run.record.scoring)
    return {row["trial_id"]: place_of(row) for row in rows if row["failure_kind"] is None}


def write_sample(run: Run, path: Path, *, count: int, arms: Sequence[str] = (), seed: int | None = None) -> int:
    """Draw answers at random, `count` of each arm, and write them for people to mark. How many there are.

    One answer of a case at most, none that has a label already, and where judges score, only answers that they scored;
    in random order, and without the names of the arms and the judge's score: whoever marks them must not know.
    """
    unknown = sorted(set(arms) - {arm.name for arm in run.plan_arms})
    if unknown:
        known = ", ".join(arm.name for arm in run.plan_arms)
        raise FairtrialError(f"this run has no arm `{unknown[0]}`; its arms: {known}")
    if path.suffix.lower() not in (".csv", ".jsonl"):
        raise FairtrialError(f"{path}: a sample is written as .csv or .jsonl")
    if path.exists():
        raise FairtrialError(f"{path} is there already, and somebody may have filled it in; name another file")
    rng = random.Random(seed)
    drawn = _drawn(run, count, set(arms), rng)
    if not drawn:
        raise FairtrialError("there is nothing to label: no scored answer is without a label")
    rows = [_sample_row(run, trial) for trial in rng.sample(drawn, len(drawn))]
    try:
        with path.open("w", encoding="utf-8", newline="") as file:
            if path.suffix.lower() == ".jsonl":
                file.writelines(msgspec.json.encode(row).decode() + "\n" for row in rows)
            else:
                writer = csv.DictWriter(file, _COLUMNS, quoting=csv.QUOTE_NONNUMERIC)
                writer.writeheader()
                writer.writerows({name: cell(value) for name, value in row.items()} for row in rows)
    except OSError as error:
        raise FairtrialError(f"{path} cannot be written: {error.strerror}") from None
    return len(rows)


def _drawn(run: Run, count: int, arms: set[str], rng: random.Random) -> list[str]:
    """Trial ids, `count` of each arm."""
    labelled = {
        (row["arm_position"], row["case_position"])
        for row in opinions.labelled(run.store, run.id, run.record.scoring)
        if not row["stale"]
    }
    by_case: dict[int, dict[int, list[str]]] = {}
    judged = opinions.judged_places(run.store, run.id, run.record.scoring)
    for row in run.store.trial_rows(run.id, run.record.scoring):
        arm, case = row["arm_position"], row["case_position"]
        chosen = not arms or run.plan_arms[arm].name in arms
        if judged and (case, arm, row["repeat"]) not in judged:
            continue
        if chosen and row["score_value"] is not None and (arm, case) not in labelled:
            by_case.setdefault(arm, {}).setdefault(case, []).append(row["trial_id"])
    drawn = []
    for cases in by_case.values():
        some = rng.sample(sorted(cases), min(count, len(cases)))
        drawn += [rng.choice(cases[case]) for case in some]
    return drawn


def _sample_row(run: Run, trial_id: str) -> dict[str, Any]:
    trial = run.trial(trial_id)
    shown = {
        "trial": trial.trial_id,
        "input": trial.input,
        "expected": show_expected(trial.expected),
        "answer": trial.answer,
    }
    return {**shown, "label": "", "note": ""}
