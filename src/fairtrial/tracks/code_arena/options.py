"""What is typed for `fairtrial arena`."""

from __future__ import annotations

import click

from fairtrial.cli.options import FILE, asking_options, budget_option, done_by, option, output_option, quiet_option


@click.command()
@done_by("fairtrial.tracks.code_arena.command:write_pages")
@click.argument("targets", nargs=-1)
@option("--prompt", metavar="TEXT", help="Ask for this page; default: the built-in prompts.")
@option("--judge", metavar="T", help="A model as judge; without one, checks and probes give the score.")
@option(
    "--suite",
    "lender",
    type=FILE,
    metavar="FILE",
    help="Use this suite's providers, prices, parameters, and its models and judge by name.",
)
@option("--pairs", is_flag=True, help="Also let the judge compare pages two at a time, in both orders.")
@option("--case", "cases", multiple=True, metavar="ID", help="Only this built-in prompt; may be repeated.")
@option("--repeats", type=click.IntRange(min=1), default=1, show_default=True, help="Number of pages for every prompt.")
@budget_option
@option("--demo", is_flag=True, help="Use two prepared models and a mock judge: no API key, no network.")
@output_option
@asking_options
@quiet_option
def arena() -> None:
    """Let TARGETS write web pages, and score them in a real browser: checks, probes, screenshots, a judge.

    A suite file with `suite: code_arena`, or with cases that have `checks:`, has more options.
    """
