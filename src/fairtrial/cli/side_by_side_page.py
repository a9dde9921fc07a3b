"""What `fairtrial show --trial ID --against OTHER` prints: the calls of two trials, and where they part."""

from __future__ import annotations

from typing import Any

import click
import msgspec
from rich.text import Text

from fairtrial.analyse.alignment import align
from fairtrial.analyse.run import Run
from fairtrial.analyse.steps import Step, Steps
from fairtrial.analyse.stored_run import TrialRecord
from fairtrial.cli.console import Console
from fairtrial.cli.documents import print_json
from fairtrial.cli.layout import FIRST, LOUD, QUIET, print_text
from fairtrial.core.errors import FairtrialError
from fairtrial.present.words.side_by_side import LineWords, left_out_words, line_words, parting_words
from fairtrial.present.words.steps import StepWords, left_words

_MOST = 200  # lines


def show_side_by_side(run: Run, name: str | None, against: str, *, as_json: bool) -> None:
    """Show the calls of a trial next to those of another one: of an arm on the same case, or any by its id."""
    if name is None:
        raise click.UsageError("--against needs a trial: give --trial ID, or CASE and ARM")
    trial = run.trial(name)
    other = _other(run, trial, against)
    alignment = align(_steps(run, trial), _steps(run, other))
    names = _names(trial, other)
    headline, lines = parting_words(alignment, *names), line_words(alignment.lines)
    parts = None if alignment.parts is None else alignment.parts + 1
    if as_json:
        print_json({"trials": [trial.trial_id, other.trial_id], "parts": parts, "lines": msgspec.to_builtins(lines)})
        return
    console = Console()
    print_text(console, "trials", f"{trial.case_id}: {names[0]} (<) and {names[1]} (>)")
    print_text(console, "calls", headline)
    for note in left_out_words(alignment, *names):
        print_text(console, "note", note, LOUD)
    console.print()
    for line in lines[:_MOST]:
        _print_line(console, line, parted=line.place == parts)
    if len(lines) > _MOST:
        print_text(console, "", left_words(len(lines) - _MOST), QUIET)


def _names(trial: TrialRecord, other: TrialRecord) -> tuple[str, str]:
    if trial.arm != other.arm:
        return trial.arm, other.arm
    return f"{trial.arm}, {trial.trial_id[:8]}", f"{other.arm}, {other.trial_id[:8]}"


def _other(run: Run, trial: TrialRecord, against: str) -> TrialRecord:
    if against not in (arm.name for arm in run.plan_arms):
        return run.trial(against)
    found = run.trial_at(run.locate(trial.case_id, against, trial.repeat)[0])
    if found is None:
        raise FairtrialError(f"{against} has not answered {trial.case_id}, repeat {trial.repeat}")
    return found


def _steps(run: Run, trial: TrialRecord) -> tuple[Step, ...]:
    events: Any = run.trajectory(*run.locate(trial.case_id, trial.arm, trial.repeat), trial)
    return Steps(events).all


def _print_line(console: Console, line: LineWords, *, parted: bool) -> None:
    if line.kind == "same" and line.a:
        print_text(console, f"= e{line.a.number}", _call(line.a, QUIET))
        return
    for sign, step in (("<", line.a), (">", line.b)):
        if step:
            difference = f"  [{line.difference}]" if line.difference else ""
            style = LOUD if parted else FIRST if sign == "<" else ""
            print_text(console, f"{sign} e{step.number}", _call(step, style).append(difference, QUIET))


def _call(step: StepWords, style: str) -> Text:
    facts = f" {step.state}" if step.state else ""
    return Text(f"{step.name}({step.brief}){facts}{f': {step.gave}' if step.gave else ''}", style)
