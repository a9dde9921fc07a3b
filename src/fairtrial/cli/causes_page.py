"""What `fairtrial show --causes` prints: trials that went wrong, by what went wrong."""

from __future__ import annotations

from fairtrial.analyse.causes import causes
from fairtrial.analyse.run import Run
from fairtrial.cli.console import Console
from fairtrial.cli.documents import print_json
from fairtrial.cli.layout import LOUD, QUIET, print_text
from fairtrial.present.words.causes import causes_words
from fairtrial.reports.json import causes_document


def show_causes(run: Run, *, as_json: bool) -> None:
    """Show the causes of a run's failures, the most frequent first."""
    found = causes(run)
    if as_json:
        print_json(causes_document(found))
        return
    console = Console()
    words = causes_words(found, lambda trial: trial.trial_id[:8])
    print_text(console, f"run {run.record.number}", words.headline)
    for cause in words.groups:
        console.print()
        print_text(console, f"{cause.count:,}", cause.title, LOUD)
        for fact in (*cause.facts, cause.arms):
            print_text(console, "", fact)
        print_text(console, "such as", cause.example or None, QUIET)
        more = f" and {cause.more:,} more" if cause.more else ""
        names = ", ".join(f"{trial.name} ({trial.address})" for trial in cause.trials)
        print_text(console, "trials", f"{names}{more}", QUIET)
    print_text(console, "", words.more or None, QUIET)
