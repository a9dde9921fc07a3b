"""What is typed for `fairtrial audit`."""

from __future__ import annotations

import click

from fairtrial.cli.options import FILE, POSITIVE, done_by, json_option, option, quiet_option

_SKIPPED = "Leave out this probe; may be repeated."


@click.command()
@done_by("fairtrial.tracks.audit.command:audit_tasks")
@click.argument("suite", type=FILE)
@option("--case", "cases", multiple=True, metavar="ID", help="Only this case; may be repeated.")
@option("--limit", type=click.IntRange(min=1), help="Only N cases, drawn at random: the same each time.")
@option("--probe", "probes", multiple=True, metavar="P", help="Only this probe; may be repeated.")
@option("--skip", multiple=True, metavar="P", help=_SKIPPED)
@option("--repeats", type=click.IntRange(1, 100), default=5, show_default=True, help="How often a solution must pass.")
@option("--concurrency", type=click.IntRange(min=1), default=4, show_default=True, help="Attempts at the same time.")
@option("--timeout", type=POSITIVE, default=300.0, show_default=True, help="Seconds for an attempt, and for its check.")
@option(
    "--fail-on",
    type=click.Choice(["finding", "missing", "unchecked", "nothing"]),
    default="finding",
    show_default=True,
    help="What makes the exit code 1: findings; also missing solutions; also what was not checked; nothing.",
)
@option("-o", "--output", "--report", "output", type=FILE, metavar="FILE", help="Write the audit as an HTML page.")
@json_option
@quiet_option
def audit() -> None:
    """Check the tasks of SUITE before money is spent: their solutions pass, doing nothing and known cheats fail.

    No target is asked and no key is needed. Scripted agents do one thing each, such as deleting the tests, in the
    workspaces and sandboxes of a run, and are scored as in a run. So the suite's own code runs: its setup commands, its
    checks and its solutions.

    A case names its solution with `solution: {files: …, patch: …, run: …}`, of a question a text; there, `expected` is
    one already.
    """
