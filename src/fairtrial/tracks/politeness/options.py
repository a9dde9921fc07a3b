"""What is typed for `fairtrial replicate`."""

from __future__ import annotations

import click

from fairtrial.cli.options import (
    asking_options,
    budget_option,
    concurrency_option,
    done_by,
    option,
    output_option,
    quiet_option,
)


@click.command()
@done_by("fairtrial.tracks.politeness.command:replicate_studies")
@click.argument("targets", nargs=-1)
@option("--demo", is_flag=True, help="Use a scripted model that is indifferent to tone: no API key, no network.")
@option("--run", "run_id", metavar="RUN", help="Only analyse an earlier run.")
@option("--runs", type=click.IntRange(min=1), default=10, show_default=True, help="How many times everything is asked.")
@option("--limit", type=click.IntRange(min=1, max=50), help="Only N of the 50 questions, drawn at random.")
@option("--first", type=click.IntRange(min=1, max=50), help="Only the first N of the 50 questions.")
@concurrency_option
@budget_option
@output_option
@asking_options
@quiet_option
def replicate() -> None:
    """Ask TARGETS 50 multiple-choice questions in five tones, from very polite to very rude, ten times.

    This repeats the design of Dobariya and Kumar, "Mind Your Tone" (2025), with questions of our own. Both analyses are
    shown: the paired t-test over runs that the papers use, and the comparison over questions.
    """
