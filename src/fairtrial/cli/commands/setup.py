"""What is typed to serve, list and check what is there."""

from __future__ import annotations

from pathlib import Path

import click

from fairtrial.cli.options import done_by, env_addresses_option, json_option, option, store_option, store_options


@click.command(short_help="Start the web interface: suites, runs, comparisons, judges, votes.")
@done_by("fairtrial.cli.serve:serve_pages")
@option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Address to listen on; by default only this machine can connect.",
)
@option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8321,
    show_default=True,
    help="Port to listen on; 0 picks a free one.",
)
@option(
    "--folder",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=".",
    help="Folder with the suites.",
)
@option("--token", metavar="T", help="Access token; default: a new one, which is printed.")
@option("--open/--no-open", "opens", default=False, help="Open the page in your browser.")
@env_addresses_option
@store_option
def serve() -> None:
    """Start the web interface: write suites, run them, watch, compare, judge, vote.

    Every visitor needs the token, also on this machine. The printed address contains a token and logs you in. To use
    your own token, preferably set FAIRTRIAL_TOKEN in the environment or in `.env`; it is not printed. Ctrl-C stops the
    server: active runs are interrupted and saved, and can be resumed.
    """


@click.command(short_help="List the scorers and what each is good for.")
@done_by("fairtrial.cli.scorers:list_scorers")
@json_option
def scorers() -> None:
    """List the scorers: scale, reproducibility, how many runs each needs, and what it is good for."""


@click.command(short_help="List the providers, and their models with prices, context windows and what they take.")
@done_by("fairtrial.cli.models:show_models")
@click.argument("names", nargs=-1, metavar="[PROVIDER | PROVIDER:MODEL | SUITE…]")
@option("--refresh", is_flag=True, help="Fetch the providers' lists and public tables of models and prices.")
@option("--retiring", is_flag=True, help="List the models that end, with their successors; those of SUITE…, if given.")
@option(
    "--within", type=click.IntRange(min=0), metavar="DAYS", help="With --retiring: within this many days; default: 90."
)
@env_addresses_option
@json_option
def models() -> None:
    """List providers and their variables, the models of a PROVIDER, or everything known about a PROVIDER:MODEL.

    Prices are USD per million tokens. fairtrial ships with model data; only --refresh fetches newer data,
    from the providers whose keys are set and from public tables. Your own file overrides both.
    """


@click.command(short_help="Download the weights of the embedded model.")
@done_by("fairtrial.cli.fetch:fetch_weights")
@click.argument("model", default="smollm2")
def fetch() -> None:
    """Download the weights of the embedded MODEL (default smollm2, 98 MB) to the cache folder, once."""


@click.command(short_help="Check what is installed, reachable and configured.")
@done_by("fairtrial.cli.doctor:check_everything")
@option("--ping", is_flag=True, help="Send a short message to every configured provider; costs next to nothing.")
@store_options
def doctor() -> None:
    """Check what is installed, reachable and configured, and show how to fix what is not."""
