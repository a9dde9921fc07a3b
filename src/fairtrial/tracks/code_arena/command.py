"""`fairtrial arena`: score front-end code by what a browser shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import yaml

from fairtrial.analyse.run import Run
from fairtrial.cli.asking import load_dotenv
from fairtrial.cli.finish import Ending, check_outputs
from fairtrial.cli.options import in_store
from fairtrial.cli.pairwise import print_pairs
from fairtrial.cli.run import run_suite
from fairtrial.cli.start import open_store, run_coroutine
from fairtrial.config import RunOptions, parse_suite
from fairtrial.core.errors import FairtrialError
from fairtrial.reports.export import export
from fairtrial.text.yaml_text import read_yaml
from fairtrial.tracks.code_arena.prompts import arena_document, demo_document
from fairtrial.workflows.pairwise import apair


def write_pages(
    targets: tuple[str, ...],
    demo: bool,
    pairs: bool,
    outputs: tuple[str, ...],
    store: str | None,
    as_json: bool,
    quiet: bool,
    budget_usd: float | None,
    lender: Path | None,
    **arena_options: Any,
) -> int:
    """Let models write pages, score them, and compare them if asked to."""
    if demo == bool(targets or lender):
        raise click.UsageError(
            "give either the models that should write pages (or --suite, which has some), or --demo, which has its own"
        )
    if demo and (arena_options["prompt"] or arena_options["judge"]):
        raise click.UsageError("--demo has its own prompts and judge; it cannot be combined with --prompt or --judge")
    if arena_options["prompt"] and arena_options["cases"]:
        raise click.UsageError("--prompt and --case cannot be combined")
    if pairs and not (arena_options["judge"] or demo):
        raise click.UsageError("--pairs needs a --judge")
    load_dotenv(lender)
    check_outputs(outputs)
    of, folder = (_document(lender), lender.parent) if lender else ({}, Path())
    document = demo_document(**arena_options) if demo else arena_document(list(targets), of=of, **arena_options)
    text = yaml.safe_dump(document, sort_keys=False, allow_unicode=True)
    try:
        suite = parse_suite(text, file="arena", folder=folder, options=RunOptions(budget_usd=budget_usd))
    except FairtrialError as error:
        if lender is None and "unknown provider" in str(error):
            raise FairtrialError(f"{error}; if a suite defines this provider, add --suite FILE") from None
        raise
    compare_pages = pairs or demo
    ending = Ending(outputs=() if compare_pages else outputs, as_json=as_json, quiet=quiet)
    code = run_suite(suite, ending, runs=1, store=store)
    if compare_pages and code in (0, 2):
        code = max(code, _compare_pages(store, outputs, quiet=quiet or as_json))
    if not quiet and not as_json:
        _print_next_steps(outputs)
    return code


def _document(lender: Path) -> dict[str, Any]:
    try:
        document = read_yaml(lender.read_text("utf-8"))
    except OSError as error:
        raise FairtrialError(f"cannot read {lender}: {error.strerror}") from None
    except (UnicodeDecodeError, yaml.YAMLError):
        document = None
    if not isinstance(document, dict):
        raise FairtrialError(f"{lender} is not a suite: `fairtrial validate {lender}` says what is wrong")
    return document


def _compare_pages(store: str | None, outputs: tuple[str, ...], *, quiet: bool) -> int:
    opened = open_store(store)
    summary = run_coroutine(apair("latest", store=opened))
    if not quiet:
        click.echo()
        print_pairs(summary)
    for output in outputs:
        export(Run.find("latest", opened), output)
        click.echo(f"written: {output}", err=True)
    return 2 if summary.exhausted or summary.failures else 0


def _print_next_steps(outputs: tuple[str, ...]) -> None:
    if not outputs:
        click.echo(f"`{in_store('fairtrial report latest -o arena.html')}` shows the pages side by side", err=True)
    vote = in_store("fairtrial vote latest")
    click.echo(f"`{vote}` lets you vote without knowing which model wrote which page", err=True)
