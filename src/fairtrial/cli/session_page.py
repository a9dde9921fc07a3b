"""What `fairtrial show --sessions` prints: what agents do that have not ended, or did when a run was interrupted."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec

from fairtrial.analyse.run import Run
from fairtrial.cli.console import Console
from fairtrial.cli.documents import print_json
from fairtrial.cli.layout import print_text
from fairtrial.cli.steps_page import IN_TERMINAL, print_steps
from fairtrial.engine.journals import SessionState, open_sessions
from fairtrial.present.trajectory_view import trajectory_view
from fairtrial.store.files import kept_journals


def show_sessions(run: Run, *, as_json: bool) -> None:
    """Show the sessions of a run whose outcome is not stored yet, or never will be."""
    states = open_sessions(kept_journals(run.store, run.id))
    if as_json:
        print_json({"run": run.id, "sessions": msgspec.to_builtins(states)})
        return
    console = Console()
    if not states:
        console.print(f"No session of an agent is open in run {run.id}.")
    for state in states:
        _print_session(console, run, state)


def _print_session(console: Console, run: Run, state: SessionState) -> None:
    console.print()
    print_text(console, "trial", f"{state.case_id} · {state.arm} · {state.repeat}")
    print_text(console, "started", _time(state.started_at))
    print_text(console, "last seen", f"{_time(state.updated_at)}, {state.doing or 'nothing is known about it'}")
    if state.usage is not None:
        print_text(console, "tokens", f"{state.usage.prompt} in, {state.usage.completion} out, so far")
    if state.trace:
        events = run.trajectory_so_far(*run.locate(state.case_id, state.arm, state.repeat), state.trace)
        print_steps(console, trajectory_view(events, at_end=True, size=IN_TERMINAL))


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).astimezone().strftime("%Y-%m-%d %H:%M:%S")
