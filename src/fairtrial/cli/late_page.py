"""What `fairtrial show --late` prints: answers that were paid for by a session that had lost the run."""

from __future__ import annotations

from fairtrial.analyse.run import Run
from fairtrial.cli.console import Console
from fairtrial.cli.documents import print_json
from fairtrial.cli.layout import print_text
from fairtrial.core.formatting import money
from fairtrial.reports.json import late_document, late_names
from fairtrial.store.late import late_answers


def show_late(run: Run, *, as_json: bool) -> None:
    """Show what came too late for a run."""
    if as_json:
        print_json(late_document(run))
        return
    console = Console()
    late = late_answers(run.store, run.id)
    if not late:
        console.print(f"No answer came too late for run {run.id}.")
    for answer, (case, arm) in zip(late, late_names(run, late), strict=True):
        console.print()
        print_text(console, answer.what, f"{case} · {arm} · {answer.repeat + 1}")
        print_text(console, "cost", money(answer.cost))
        print_text(console, "failed" if answer.failed else "said", answer.text or "(empty)")
