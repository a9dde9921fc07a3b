"""What is typed to ask judges and people."""

from __future__ import annotations

import click

from fairtrial.cli.options import (
    FILE,
    POSITIVE,
    asking_options,
    budget_option,
    concurrency_option,
    done_by,
    option,
    quiet_option,
    store_option,
    store_options,
)


@click.command(short_help="Let a judge compare stored answers, two at a time, in both orders.")
@done_by("fairtrial.cli.pairwise:judge_pairs")
@click.argument("run", default="latest")
@option("--judge", metavar="T", help="The judge; default: the judges of the run.")
@option("--arms", nargs=2, metavar="A B", help="Only these two arms.")
@option("--instructions", default="", metavar="TEXT", help="Additional instructions for the judge.")
@concurrency_option
@budget_option
@asking_options
@quiet_option
def pairwise() -> None:
    """Let a judge compare the stored answers of RUN, two arms at a time, in both orders.

    A preference that changes with the order counts as a tie. Pairs that were compared before are not judged again.
    """


@click.command(short_help="Measure how reliable a judge is.")
@done_by("fairtrial.cli.calibrate:calibrate_judges")
@click.argument("judge", required=False)
@option(
    "--suite",
    type=FILE,
    metavar="FILE",
    help="Calibrate this suite's judges, or JUDGE, with its providers, instructions and scorer.",
)
@option("--samples", type=FILE, metavar="FILE", help="Your own samples, as YAML or JSONL.")
@option("--scorer", metavar="S", help="llm_judge (default), golden_judge, or JSON with options.")
@option(
    "--runs",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Ask N times, to measure how much its marks vary.",
)
@option("--injection", is_flag=True, help="Instead of the samples, try attacks that ask for a good mark.")
@option("--concurrency", type=click.IntRange(min=1), default=5, show_default=True, help="Calls at the same time.")
@option("--timeout", type=POSITIVE, default=120.0, help="Time limit for one request, in seconds.")
@asking_options
def calibrate() -> None:
    """Let JUDGE (provider:model) mark answers whose right score is known, and rate the judge.

    Eight samples are built in. Your own samples are a list with id, question, answer, score (0 to 100), and optionally
    expected and tolerance. With --suite, the suite's judges (or JUDGE alone) are calibrated with the suite's
    instructions and scorer; a JUDGE from a provider that the suite defines needs --suite.
    """


@click.command(short_help="Let people label answers, and correct a judge's scores with the labels.")
@done_by("fairtrial.cli.label:label_run")
@click.argument("run", default="latest")
@option("--sample", type=click.IntRange(min=1), metavar="N", help="Draw N answers of each arm to label.")
@option("-o", "--output", type=FILE, metavar="FILE", help="File for the sample: .csv or .jsonl.")
@option("--arm", "arms", multiple=True, metavar="A", help="Draw from this arm only; may be repeated.")
@option("--seed", type=int, help="Random seed, to draw the same sample again.")
@option("--import", "file", type=FILE, metavar="FILE", help="Import labelled answers.")
@option("--trial", metavar="ID", help="Label one answer.")
@option("--score", metavar="X", help="The label for --trial: 0 to 100, or pass or fail.")
@option("--note", default="", help="Reason for the label.")
@option("--by", default="person", show_default=True, metavar="NAME", help="Name of the person who labels.")
@option("--renew", is_flag=True, help="Compare stale labels with the current judge.")
@store_options
def label() -> None:
    """Let people label answers of RUN, and correct its judge's scores with the labels.

    \b
    fairtrial label RUN --sample 30 -o marks.csv   draws answers at random, blind
    (fill in the column `label`: 0 to 100, or pass and fail)
    fairtrial label RUN --import marks.csv         shows corrected means

    Without options, shows the result of the labels so far.
    """


@click.command(short_help="Vote between answers without knowing which arm wrote them.")
@done_by("fairtrial.cli.vote:vote_on_run")
@click.argument("run", default="latest")
@option("--by", metavar="NAME", help="Name of the voter; default: your user name.")
@option("--port", type=click.IntRange(0, 65535), default=0, help="Port to listen on; default: any free port.")
@option("--open/--no-open", "opens", default=True, help="Open the page in your browser.")
@store_option
def vote() -> None:
    """Vote between the answers of RUN, two at a time, on random sides, without knowing which arm wrote them.

    Web pages are shown sealed, other answers as text. Every vote is stored at once; `fairtrial rank RUN --by votes`
    shows the ranking, and `--by both` also counts judges' verdicts. Ctrl-C stops the server. `fairtrial serve` has the
    same page.
    """
