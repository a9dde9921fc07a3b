"""Human labels: answers sampled for blind marking by people, and import of their marks."""

from __future__ import annotations

import csv
import random
from collections.abc import Sequence
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from fairtrial.analyse.run import Run
from fairtrial.core.errors import FairtrialError
from fairtrial.core.expected import show_expected
from fairtrial.core.ids import content_hash
from fairtrial.core.place import place_of
from fairtrial.core.private import write_shared
from fairtrial.reports.csv import cell
from fairtrial.store import opinions
from fairtrial.store.arriving import check_arrived
from fairtrial.tables import FORMATS, format_of, rows_of

_COLUMNS = ("trial", "input", "expected", "answer", "label", "note", "sample")
_WORDS = {"pass": 1.0, "yes": 1.0, "true": 1.0, "fail": 0.0, "no": 0.0, "false": 0.0}
_MAX_PROBLEMS = 20


class PersonLabel(NamedTuple):
    """A person's mark for an answer, 0–1."""

    trial: str
    value: float
    note: str = ""
    by: str = ""
    sample: str = ""  # as a drawn sample has it; without, the answer was hand-picked


def read_mark(text: Any) -> float:
    """Read a mark: a number from 0 to 100, or a word such as pass or fail."""
    word = str(text).strip().lower()
    if word in _WORDS:
        return _WORDS[word]
    try:
        mark = float(word)
    except ValueError:
        mark = -1.0
    if not 0 <= mark <= 100:
        raise FairtrialError(f"a label must be a number from 0 to 100, or pass or fail, not `{text}`")
    return mark / 100


def read_labels(path: Path) -> list[PersonLabel]:
    """Read labels from a table with `trial` (or `trial_id`) and `label`; skip blanks.

    It may also have `note`, `by`, and `sample` as a drawn sample has it.
    """
    if format_of(path) is None:
        raise FairtrialError(f"a label file must be one of {', '.join(FORMATS)}, not `{path.name}`")
    labels, problems = [], []
    for row in rows_of(path):
        try:
            label = _read_row(row.fields, row.problem)
        except FairtrialError as error:
            problems.append(f"{path}:{row.line}: {error}")
        else:
            labels += [label] if label else []
    if problems:
        raise FairtrialError("\n".join(problems[:_MAX_PROBLEMS]))
    if not labels:
        raise FairtrialError(f"{path} has no labels: fill in the column `label` with 0 to 100, or pass or fail")
    return labels


def _read_row(fields: dict[str, Any], problem: str) -> PersonLabel | None:
    if problem:
        raise FairtrialError(problem)
    trial = fields.get("trial") or fields.get("trial_id")
    if not trial or "label" not in fields:
        raise FairtrialError("the columns `trial` and `label` are required")
    if fields["label"] is None or str(fields["label"]).strip() == "":
        return None
    note, by, sample = (str(fields.get(name) or "") for name in ("note", "by", "sample"))
    return PersonLabel(str(trial), read_mark(fields["label"]), note, by, sample)


def add_labels(run: Run, labels: Sequence[PersonLabel], *, by: str) -> int:
    """Store labels and return how many answers have one; store none if any label matches no trial of this run."""
    check_arrived(run.record)
    places, problems = _places(run), []
    rows: dict[tuple[Any, ...], dict[str, Any]] = {}
    for label in labels:
        matches = [(trial, place) for trial, place in places.items() if trial.startswith(label.trial)]
        if len(matches) != 1:
            count = "no trial" if not matches else f"{len(matches)} trials"
            problems.append(f"`{label.trial}` matches {count} with an answer in run {run.id}")
            continue
        trial, (case, arm, repeat) = matches[0]
        row = {"case_position": case, "arm_position": arm, "repeat": repeat, "labeller": label.by or by}
        drawn = label.sample == drawn_mark(run.id, trial)
        rows[tuple(row.values())] = {**row, "value": label.value, "note": label.note or None, "drawn": drawn}
    if problems:
        raise FairtrialError("\n".join(problems[:_MAX_PROBLEMS]))
    opinions.add_labels(run.store, run.id, run.record.scoring, list(rows.values()))
    return len({key[:3] for key in rows})


def drawn_mark(run_id: str, trial_id: str) -> str:
    """Return what a sample says of an answer that was drawn, so that its label counts as one of a random answer."""
    return content_hash([run_id, trial_id])[:12]


def _places(run: Run) -> dict[str, tuple[int, int, int]]:
    rows = run.store.trial_rows(run.id, run.record.scoring)
    return {row["trial_id"]: place_of(row) for row in rows if row["failure_kind"] is None}


def write_sample(run: Run, path: Path, *, count: int, arms: Sequence[str] = (), seed: int | None = None) -> int:
    """Sample `count` answers of each arm at random, write them for people to mark, and return their number.

    At most one answer per case and arm, none that already has a label, and if judges score, only answers that they
    scored. In random order, without the arms' names and the judge's scores, because marking must be blind.
    """
    unknown = sorted(set(arms) - {arm.name for arm in run.plan_arms})
    if unknown:
        names = ", ".join(arm.name for arm in run.plan_arms)
        raise FairtrialError(f"this run has no arm `{unknown[0]}`; its arms: {names}")
    if path.suffix.lower() not in (".csv", ".jsonl"):
        raise FairtrialError(f"{path}: a sample can only be written as .csv or .jsonl")
    if path.exists():
        raise FairtrialError(f"{path} already exists and may contain labels; choose another file name")
    rng = random.Random(seed)
    trial_ids = _sample_trials(run, count, set(arms), rng)
    if not trial_ids:
        raise FairtrialError("nothing to label: there is no scored answer without a label")
    rows = [_sample_row(run, trial) for trial in rng.sample(trial_ids, len(trial_ids))]
    try:
        write_shared(path, _table(rows, lines=path.suffix.lower() == ".jsonl"))
    except OSError as error:
        raise FairtrialError(f"{path} cannot be written: {error.strerror}") from None
    return len(rows)


def _table(rows: Sequence[dict[str, Any]], *, lines: bool) -> str:
    if lines:
        return "".join(msgspec.json.encode(row).decode() + "\n" for row in rows)
    table = StringIO(newline="")
    writer = csv.DictWriter(table, _COLUMNS, quoting=csv.QUOTE_NONNUMERIC)
    writer.writeheader()
    writer.writerows({name: cell(value) for name, value in row.items()} for row in rows)
    return table.getvalue()


def _sample_trials(run: Run, count: int, arms: set[str], rng: random.Random) -> list[str]:
    """Return the ids of random trials, `count` of each arm: of the same cases, so that they correct comparisons too."""
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
    everything = sorted({case for cases in by_case.values() for case in cases})
    order = rng.sample(everything, len(everything))
    return [
        rng.choice(cases[case])
        for _, cases in sorted(by_case.items())
        for case in [case for case in order if case in cases][:count]
    ]


def _sample_row(run: Run, trial_id: str) -> dict[str, Any]:
    trial = run.trial(trial_id)
    row = {
        "trial": trial.trial_id,
        "input": trial.input,
        "expected": show_expected(trial.expected),
        "answer": trial.answer,
    }
    return {**row, "label": "", "note": "", "sample": drawn_mark(run.id, trial.trial_id)}
