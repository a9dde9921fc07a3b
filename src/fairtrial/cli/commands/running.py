"""What is typed to run suites."""

from __future__ import annotations

from pathlib import Path

import click

from fairtrial.cli.options import (
    NOT_NEGATIVE,
    asking_options,
    concurrency_option,
    done_by,
    json_option,
    option,
    output_option,
    quiet_option,
    run_options,
    session_options,
    store_options,
    timeout_option,
    together,
)
from fairtrial.suites import KINDS


@click.command(short_help="Run the built-in suite on the embedded model: no API key, no network.")
@done_by("fairtrial.cli.demo:run_demo")
@output_option
@store_options
@quiet_option
def demo() -> None:
    """Run the built-in suite on the embedded model: no API key, and no network once the weights are downloaded.

    Without the extra `local`, which provides that model, a suite with scripted answers is run instead.
    """


@click.command(short_help="Write a commented example suite, ready to run.")
@done_by("fairtrial.cli.init:write_suite")
@click.argument("folder", default=".", type=click.Path(file_okay=False, path_type=Path), metavar="[DIR]")
@option("--kind", type=click.Choice(list(KINDS)), default="qa", help=f"What to start from: {', '.join(KINDS)}.")
@option("--force", is_flag=True, help="Overwrite existing files.")
def init() -> None:
    """Write a commented example suite, ready to run, with a JSON schema for your editor.

    Every kind runs offline and without a key: models are scripted until you name real ones.
    """


@click.command(short_help="Check a suite before spending anything: nothing is sent to a model.")
@done_by("fairtrial.cli.validate:validate_suite")
@click.argument("suite", type=click.Path(), required=False)
@option("--schema", is_flag=True, help="Print the JSON schema of suite files.")
@option("--no-keys", is_flag=True, help="Do not report variables and keys that are not set.")
@option("--servers", is_flag=True, help="Start every MCP server and list its tools.")
@option("--run-code", is_flag=True, help="Import its functions and read files outside its folder, as a run does.")
@json_option
def validate() -> None:
    """Check SUITE: syntax, keys, cases, patterns, numbers, files, variables, provider keys, prices.

    No model is called, nothing is spent, and no code of the suite is run: its functions are checked by reading their
    source. SUITE may be an optimisation problem instead (YAML, JSON, MPS, LP).
    """


@click.command(short_help="Run a suite.")
@done_by("fairtrial.cli.run:run_file")
@click.argument("suite", type=click.Path())
@option("--watch", is_flag=True, help="Run again whenever a file of the suite is saved; implies --cache.")
@run_options
def run() -> None:
    """Run SUITE: every target answers every case under every condition.

    Answers are stored as they arrive; nothing is lost on Ctrl-C, and `fairtrial resume` continues the run.
    """


# Of commands that continue a run.
_resume_options = together(
    click.argument("run", default="latest"),
    concurrency_option,
    timeout_option,
    option("--budget-usd", type=NOT_NEGATIVE, help="Budget for the whole run; stop before it is exceeded."),
    session_options,
)


@click.command(short_help="Continue a run that was stopped.")
@done_by("fairtrial.cli.resume:continue_run", mode="resume")
@_resume_options
def resume() -> None:
    """Continue RUN (an id, a prefix of one, or `latest`). Stored answers are not requested again; those without a
    score are scored. In a series, missing runs are also made.
    """


@click.command(short_help="Retry the failed trials of a run.")
@done_by("fairtrial.cli.resume:continue_run", mode="retry")
@_resume_options
def retry() -> None:
    """Retry the failed trials of RUN (an id, a prefix of one, or `latest`); no other trial is run or scored."""


@click.command(short_help="Show the batches of a run at their providers, or cancel them.")
@done_by("fairtrial.cli.batches:show_batches")
@click.argument("run", default="latest")
@option("--cancel", is_flag=True, help="Cancel the batches that have not ended; what is answered by then is kept.")
@asking_options
def batches() -> None:
    """Show the batches of RUN (an id, a prefix of one, or `latest`) and their progress at their providers.

    `fairtrial resume` collects their results. After --cancel it stores what was answered, and the rest as failures,
    which `fairtrial retry` asks again.
    """


@click.command(short_help="Score the stored answers of a run again.")
@done_by("fairtrial.cli.rescore:rescore_run")
@click.argument("run", default="latest")
@option("--scorer", metavar="S", help='A scorer\'s name, or JSON: \'{"type": "numeric", "tolerance": 0.05}\'.')
@option("--judge", metavar="T", help="Use another judge, given as provider:model.")
@option("--scoring", type=click.IntRange(min=0), metavar="N", help="Return to an earlier scoring; 0 is the first.")
@concurrency_option
@option("--budget-usd", type=NOT_NEGATIVE, help="New budget for the whole run.")
@session_options
def rescore() -> None:
    """Score the stored answers of RUN again, with another scorer, another judge, or as the suite says.

    No new answers are requested, and no verdict is paid for twice: a verdict on the same answer and the same prompt is
    reused. The earlier scores stay in the store; the new ones become the run's current scores.
    """
