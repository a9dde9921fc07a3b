"""The steps of a trial in the terminal: one line each, with the numbers that they have on the page."""

from __future__ import annotations

from rich.text import Text

from fairtrial.cli.console import Console
from fairtrial.cli.layout import LOUD, QUIET, print_text
from fairtrial.present.trajectory_view import Bar, Slice, TrajectoryView
from fairtrial.present.words.steps import StepWords, left_words

IN_TERMINAL = Slice(most=200, longest=400)
_TIMELINE = 13  # columns of a bar


def print_steps(console: Console, view: TrajectoryView) -> None:
    """Print steps in their order; what is not printed is counted."""
    print_text(console, "did", view.headline)
    if view.before:
        print_text(console, "", left_words(view.before_count), QUIET)
    turn = 0
    for step in view.steps:
        if step.turn != turn and (view.turns > 1 or step.turn in view.unknown):
            print_text(console, f"turn {step.turn}" if view.turns > 1 else "", view.unknown.get(step.turn, ""), LOUD)
        turn = step.turn
        print_text(console, f"e{step.number}", _line(step, view.bars.get(step.number), bool(view.bars)))
    if view.after:
        words = f"{left_words(view.after_count)}, from e{view.after} on: --json and the page have them all"
        print_text(console, "", words, QUIET)


def _line(step: StepWords, bar: Bar | None, barred: bool) -> Text:
    """Return a step on one line: when, who or what, how it ended, and what came of it."""
    style = LOUD if step.mark else QUIET if step.kind == "reasoning" else ""
    result = next((" ".join(text.text.split()) for text in step.texts if text.name == "result"), step.gave)
    line = Text("  " * step.depth)
    if barred and step.kind == "call":
        line.append(f"{_drawn(bar)} {step.took:>6}  ", QUIET)
    own = next((" ".join(text.text.split()) for text in step.texts if not text.name), step.brief)
    line.append(f"{step.name}({step.brief})" if step.kind == "call" else f"{step.name}: {own}", style)
    for fact in (step.state, "" if barred else step.took, step.source):
        line.append(f" {fact}" if fact else "", style)
    return line.append(f": {result}" if result else "", style)


def _drawn(bar: Bar | None) -> str:
    """Draw when a call was under way, in its turn: `▕   ███   ▏`."""
    if bar is None:
        return " " * (_TIMELINE + 2)
    first = min(_TIMELINE - 1, round(_TIMELINE * bar.start / 100))
    drawn = " " * first + "█" * max(1, round(_TIMELINE * bar.width / 100))
    return f"▕{drawn[:_TIMELINE]:<{_TIMELINE}}▏"
