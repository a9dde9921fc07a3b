"""One trial as a page in the terminal: score, question, answer, what judges and tools said, the other arms."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from shlex import quote
from typing import Any

from rich.text import Text

from fairtrial.analyse.run import Run
from fairtrial.analyse.stored_run import TrialRecord
from fairtrial.cli.console import Console
from fairtrial.cli.layout import FIRST, INDENT, LOUD, QUIET, print_commands, print_facts, print_text, wrapped
from fairtrial.cli.steps_page import IN_TERMINAL, print_steps
from fairtrial.core.expected import show_expected
from fairtrial.core.formatting import cost_fact, milliseconds, number
from fairtrial.core.trace import ending
from fairtrial.present.trajectory_view import trial_steps
from fairtrial.present.word_diff import word_diff
from fairtrial.present.words.limits import trial_limit
from fairtrial.present.words.turns import checked_turns
from fairtrial.store.browsing import CaseQuery, ordered_cases, positions_of
from fairtrial.text.printable import counted, printable

_WIDE, _MAX_BESIDE = 118, 1000  # columns and characters with which expected and answered stand side by side
_IN_COMMON = 0.25  # share of the words below which two texts are simply different
_MARKS = {True: ("✓", FIRST), False: ("✗", LOUD), None: ("·", QUIET)}


def print_trial(run: Run, trial: TrialRecord) -> None:
    """Print everything that is known about a trial."""
    console = Console()
    scored = trial.status == "scored"
    points = f"{number(trial.score).removesuffix('.0')} of 100" if scored else trial.status
    repeat = f"repeat {trial.repeat}" if trial.repeat > 1 else ""
    facts = [trial.case_id, trial.arm, repeat, points, milliseconds(trial.latency_ms), _cost(trial)]
    print_facts(console, [fact for fact in facts if fact and fact != "–"], "bold" if scored else f"bold {LOUD}")
    console.print()
    print_text(console, "asked", trial.input)
    _print_answer(console, show_expected(trial.expected) or None, trial.answer)
    print_text(console, "limit", trial_limit(trial) or None)
    print_text(console, "reason", trial.failure_message or trial.unscored_message, LOUD)
    for reason in trial.tried:
        print_text(console, "tried", reason, LOUD)
    _print_judges(console, run, trial)
    _print_turns(console, trial)
    _print_did(console, run, trial)
    _print_workspace(console, run, trial)
    _print_page(console, trial.details)
    _print_others(console, run, trial)
    _print_facts(console, trial)
    here = f"fairtrial show {run.record.number} {quote(trial.case_id)}"
    commands = [(here, "every arm on this case")]
    if next_difference(run, trial.case_id) is not None:
        commands.append((f"{here} {quote(trial.arm)} --next", "the next case where arms differ"))
    print_commands(Console(stderr=True), commands)


def next_difference(run: Run, case: str | None) -> int | None:
    """Return the position of the next case on which arms differ, after this one or the first; None if there is none."""
    after = -1 if case is None else positions_of(run.store, run.plan.id, case)[0]
    differing = ordered_cases(run.store, run.record, CaseQuery(show="differing")) if len(run.plan_arms) > 1 else ()
    return next((position for position in differing if position > after), None)


def _print_answer(console: Console, expected: str | None, answer: str | None) -> None:
    """Print what was expected and answered, side by side where there is room; what differs is underlined."""
    shown, said = _marked(expected, answer if answer != "" else "(empty)")
    short = max(len(expected or ""), len(answer or "")) <= _MAX_BESIDE
    if shown is None or said is None or not short or console.page_width < _WIDE:
        print_text(console, "expected", shown)
        print_text(console, "answered", said)
        return
    width = (console.page_width - 2 * INDENT - 3) // 2
    left, right = wrapped(console, shown, width), wrapped(console, said, width)
    for place in range(max(len(left), len(right))):
        cells = [own[place] if place < len(own) else Text("") for own in (left, right)]
        space = " " * (width - cells[0].cell_len + 2)
        heads = [Text(f"{name if place == 0 else '':<{INDENT - 1}}", QUIET) for name in ("expected", "answered")]
        line = Text.assemble(" ", heads[0], cells[0], space, heads[1], cells[1])
        line.rstrip()
        console.print(line, soft_wrap=True)


def _marked(expected: str | None, answer: str | None) -> tuple[Text | None, Text | None]:
    """Return both texts with what differs underlined, if they have enough in common for that to tell anything."""
    plain = tuple(None if text is None else Text(printable(text)) for text in (expected, answer))
    parts = word_diff(*(None if text is None else text.plain for text in plain))
    counts = Counter(part.kind for part in parts or () for _ in re.finditer(r"\w+", part.text))
    common = counts["same"]
    if parts is None or not common or common < _IN_COMMON * (common + min(counts["missing"], counts["added"])):
        return plain[0], plain[1]
    sides = [Text(), Text()]
    for part in parts:
        for side, kind, style in zip(sides, ("missing", "added"), (FIRST, LOUD), strict=True):
            if part.kind == "same":
                side.append(part.text)
            elif part.kind == kind:
                words = part.text.strip()
                before, after = part.text.split(words, 1) if words else (part.text, "")
                side.append(before).append(words, f"underline {style}").append(after)
    return sides[0], sides[1]


def _cost(trial: TrialRecord) -> str:
    return "" if trial.cost_usd == 0 else cost_fact(trial.cost)


def _print_judges(console: Console, run: Run, trial: TrialRecord) -> None:
    """Print how the answer was scored: by which scorer, why, and what each judge said."""
    if trial.score is None and not trial.scorer:
        return
    console.print()
    comments = run.judgements(trial.trial_id)
    notes = f": {trial.notes}" if trial.notes else ""
    print_text(
        console, "scored", f"{number(trial.score)} by {trial.scorer}{notes}" if trial.score is not None else None
    )
    for comment in comments:
        value = number(comment["value"]) if comment["value"] is not None else comment["failure_message"] or "no verdict"
        reasoning = comment["reasoning"]
        if isinstance(reasoning, dict):
            reasoning = "\n".join(f"{name}: {text}" for name, text in reasoning.items())
        said = f"\n{reasoning}" if reasoning and str(reasoning) not in notes else ""
        print_text(console, "judge", f"{value}, {comment['judge']}{said}")
    for claim in _listed(trial.details, "unverified_claims"):
        print_text(console, "unverified", str(claim), LOUD)


def _print_turns(console: Console, trial: TrialRecord) -> None:
    """Print what the checks after turns said, and why a conversation ended before its last turn."""
    for place, check in enumerate(checked_turns(trial.details)):
        print_text(console, "checks" if place == 0 else "", check.words, "" if check.passed else LOUD)
    print_text(console, "ended", ending(trial.trace) or None)


def _print_did(console: Console, run: Run, trial: TrialRecord) -> None:
    """Print what the target left out, and what it did step by step."""
    view = trial_steps(run, *run.locate(trial.case_id, trial.arm, trial.repeat), trial, size=IN_TERMINAL)
    notes = _listed(trial.trace, "left_out")
    if notes or view:
        console.print()
    for note in notes:
        print_text(console, "note", str(note), LOUD)
    if view:
        print_steps(console, view)


def _print_workspace(console: Console, run: Run, trial: TrialRecord) -> None:
    """Print what an agent changed in its workspace, and where the folder is if it was kept."""
    changes = (trial.trace or {}).get("workspace")
    if not isinstance(changes, dict):
        return
    console.print()
    counts = [f"{len(changes[word])} {word}" for word in ("added", "modified", "removed") if changes.get(word)]
    print_text(console, "workspace", ", ".join(counts) or "nothing changed")
    for line in str(changes.get("diff") or "").splitlines():
        style = {"+": FIRST, "-": LOUD, "@": QUIET}.get(line[:1], "")
        console.print(Text(f"{' ' * INDENT}{printable(line)}", style), soft_wrap=True)
    check = (trial.details or {}).get("check")
    if isinstance(check, dict) and check.get("output"):
        console.print()
        print_text(console, "check", str(check["output"]))
    kept = run.kept_workspace(trial)
    print_text(console, "kept in", str(kept) if kept else None)


def _listed(trace: dict[str, Any] | None, name: str) -> list[Any]:
    entries = (trace or {}).get(name)
    return entries if isinstance(entries, list) else []


def _print_page(console: Console, details: dict[str, Any] | None) -> None:
    """Print what a browser found in a page, if one has rendered it."""
    page = (details or {}).get("page")
    if page is None:
        return
    console.print()
    reasons = {True: " ({})", False: ""}
    checks = [
        (check["passed"], check["name"] + reasons[bool(check["reason"])].format(check["reason"]))
        for check in page["checks"]
    ]
    for place, (passed, words) in enumerate([*checks, *((p["passed"], p["words"]) for p in page["probes"])]):
        head = Text(f" {'page' if place == 0 else '':<{INDENT - 1}}", QUIET)
        console.print(Text.assemble(head, _MARKS[passed], f" {printable(words)}"), soft_wrap=True)


def _print_others(console: Console, run: Run, trial: TrialRecord) -> None:
    """Print how the other arms did on the same case, in the order of the suite."""
    if len(run.plan_arms) < 2:
        return
    (position,) = positions_of(run.store, run.plan.id, trial.case_id)[:1]
    others = _values(each for _, each in run.placed_trials(position, 1) if each.arm != trial.arm)
    if others:
        console.print()
        print_text(console, "others", " · ".join(f"{name} {value}" for name, value in others.items()))


def _values(trials: Iterable[TrialRecord]) -> dict[str, str]:
    values: dict[str, str] = {}
    for trial in trials:
        own = number(trial.score).removesuffix(".0") if trial.status == "scored" else trial.status
        values[trial.arm] = f"{values[trial.arm]}, {own}" if trial.arm in values else own
    return values


def _print_facts(console: Console, trial: TrialRecord) -> None:
    """Print how the call went, in small."""
    tokens = trial.prompt_tokens is not None or trial.completion_tokens is not None
    facts = [
        f"trial {trial.trial_id}",
        f"model {trial.model}" if trial.model else "",
        f"finished: {trial.finish_reason}" if trial.finish_reason else "",
        f"first token {milliseconds(trial.first_token_ms)}" if trial.first_token_ms is not None else "",
        f"{trial.prompt_tokens} tokens in, {trial.completion_tokens} out" if tokens else "",
        f"{trial.attempts} attempts, waited {milliseconds(trial.waited_ms)}" if trial.attempts > 1 else "",
        _tools(trial),
    ]
    console.print()
    print_facts(console, [fact for fact in facts if fact], QUIET)


def _tools(trial: TrialRecord) -> str:
    """Count the calls that went to MCP servers: the agent's own tools are among its steps."""
    if trial.tool_calls is None or not (trial.tool_calls or trial.missing):
        return ""
    failed = f", {trial.tool_errors} failed" if trial.tool_errors else ""
    missing = f" ({trial.missing})" if trial.missing else ""
    return f"{counted(trial.tool_calls, 'MCP call')}{failed}{missing}"
