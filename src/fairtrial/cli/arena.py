"""`fairtrial arena`: front-end code, judged by what a browser shows."""

from __future__ import annotations

from typing import Any

import click

from fairtrial.cli.options import (
    json_option,
    load_dotenv,
    open_store,
    option,
    output_option,
    quiet_option,
    store_option,
    work_quietly,
)


@click.command()
@click.argument("targets", nargs=-1)
@option("--prompt", metavar="TEXT", help="Ask for this page; else the built-in prompts.")
@option("--judge", metavar="T", help="A model that judges; without one, checks and probes score.")
@option("--pairs", is_flag=True, help="Let the judge also compare pages two at a time, in both orders.")
@option("--case", "cases", multiple=True, metavar="ID", help="Only this built-in prompt; may be repeated.")
@option("--repeats", type=click.IntRange(min=1), default=1, show_default=True, help="Pages for every prompt.")
@option("--budget-usd", type=click.FloatRange(min=0), help="Stop before spending more.")
@option("--demo", is_flag=True, help="Two prepared models and a mock judge: no key, no network.")
@output_option
@store_option
@json_option
@quiet_option
def command(
    targets: tuple[str, ...],
    demo: bool,
    pairs: bool,
    outputs: tuple[str, ...],
    store: str | None,
    as_json: bool,
    quiet: bool,
    budget_usd: float | None,
    **asked: Any,
) -> int:
    """Let TARGETS write web pages, and look at them in a real browser: checks, probes, screenshots, a judge.

    A suite file with `suite: code_arena`, or with cases that have `checks:`, can do more.
    """
    import yaml

    from fairtrial.cli.finish import check_outputs
    from fairtrial.cli.run import run_suite
    from fairtrial.config import RunOptions, parse_suite
    from fairtrial.suites.code_arena import arena_document, demo_document

    if demo == bool(targets):
        raise click.UsageError("name the models that should write pages, or try --demo, which has its own")
    if demo and (asked["prompt"] or asked["judge"]):
        raise click.UsageError("--demo has prompts and a judge of its own")
    if asked["prompt"] and asked["cases"]:
        raise click.UsageError("--prompt and --case do not go together")
    if pairs and not (asked["judge"] or demo):
        raise click.UsageError("--pairs needs a --judge")
    load_dotenv()
    check_outputs(outputs)
    document = demo_document(**asked) if demo else arena_document(list(targets), **asked)
    text = yaml.safe_dump(document, sort_keys=False, allow_unicode=True)
    suite = parse_suite(text, file="arena", options=RunOptions(budget_usd=budget_usd))
    comparing = pairs or demo
    code = run_suite(suite, runs=1, outputs=() if comparing else outputs, store=store, as_json=as_json, quiet=quiet)
    if comparing and code in (0, 2):
        code = max(code, _compare(store, outputs, quiet=quiet or as_json))
    if not quiet and not as_json:
        _say_what_next(outputs)
    return code


def _compare(store: str | None, outputs: tuple[str, ...], *, quiet: bool) -> int:
    """Pages two at a time, and the board that comes of it."""
    from fairtrial.analyse import Run
    from fairtrial.cli.pairwise import print_pairs
    from fairtrial.reports.export import export
    from fairtrial.workflows.pairwise import apair

    opened = open_store(store)
    summary = work_quietly(apair("latest", store=opened))
    if not quiet:
        click.echo()
        print_pairs(summary)
    for output in outputs:
        export(Run.find("latest", opened), output)
        click.echo(f"written: {output}", err=True)
    return 2 if summary.exhausted or summary.failures else 0


def _say_what_next(outputs: tuple[str, ...]) -> None:
    if not outputs:
        click.echo("`fairtrial report latest -o arena.html` shows the pages side by side", err=True)
    click.echo("`fairtrial vote latest` lets you vote without knowing whose page is whose", err=True)
