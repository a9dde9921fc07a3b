"""What is typed to show results, and to decide by them."""

from __future__ import annotations

import click

from fairtrial.cli.options import (
    FILE,
    FINITE,
    NOT_NEGATIVE,
    POSITIVE,
    Margin,
    asking_options,
    done_by,
    option,
    plain_option,
    store_options,
)
from fairtrial.core.looks import LOOKS, MOST_LOOKS


@click.command(short_help="List the runs in the store.")
@done_by("fairtrial.cli.list:list_runs")
@option("--limit", type=click.IntRange(min=1), default=20, show_default=True, help="Show the newest N runs.")
@option("--ids", is_flag=True, help="Show the full ids, also in a narrow terminal.")
@plain_option
@store_options
def list() -> None:
    """List the runs in the store, newest first. Commands take a run's number, its id or a prefix of it, or a tag."""


@click.command(short_help="Show a run or one of its trials.")
@done_by("fairtrial.cli.show:show_run")
@click.argument("run", default="latest")
@click.argument("case", required=False)
@click.argument("arm", required=False)
@option("--by", metavar="KIND", help="Show means by category, difficulty, tag or a column of the dataset.")
@option("--wrong", is_flag=True, help="Show the wrong answers of the best arm (or of --arm), worst first.")
@option("--trials", is_flag=True, help="Show the trials; the filters below do so too.")
@option("--arm", "arms", multiple=True, metavar="A", help="Only trials of this arm; may be repeated.")
@option("--case", "case_ids", multiple=True, metavar="ID", help="Only trials of this case; may be repeated.")
@option("--category", multiple=True, metavar="K", help="Only cases of this category; may be repeated.")
@option("--difficulty", multiple=True, metavar="D", help="Only cases of this difficulty; may be repeated.")
@option("--tag", multiple=True, metavar="T", help="Only cases with this tag; may be repeated.")
@option("--below", type=FINITE, metavar="X", help="Only scores below X (0-100).")
@option("--above", type=FINITE, metavar="X", help="Only scores above X (0-100).")
@option("--failed", is_flag=True, help="Only trials whose call failed.")
@option("--unscored", is_flag=True, help="Only answers without a score.")
@option("--failures", is_flag=True, help="Only trials without a score: --failed and --unscored together.")
@option("--limit", type=click.IntRange(min=1), metavar="N", help="At most N trials; default: 50, with --json all.")
@option("--full", is_flag=True, help="Do not shorten questions and answers.")
@option("--next", "go_on", is_flag=True, help="Show the next case on which arms differ, after CASE if it is given.")
@option("--trial", metavar="ID", help="Show one trial: prompt, answer, score, timings.")
@option("--against", metavar="OTHER", help="With a trial: its calls next to those of an arm, or of a trial by its id.")
@option("--pictures", type=FILE, metavar="FOLDER", help="With --trial: write its screenshots and code to this folder.")
@option("--cases", is_flag=True, help="Show a line for every case and arm.")
@option("--sessions", is_flag=True, help="Show what agents are doing, or were doing when the run was interrupted.")
@option("--causes", is_flag=True, help="Show failures by cause: the reason, the last failed call, how the trial ended.")
@option("--late", is_flag=True, help="Show answers that came when another process had taken over the run.")
@option("--claims", is_flag=True, help="Show every claim that goes beyond the golden answer.")
@option("--baseline", metavar="C", help="Show the gain of the other conditions over this one.")
@option("--context", is_flag=True, help="Show suite, parameters, prompts and versions.")
@option("--details", is_flag=True, help="Also show deviations, costs and latencies, and every metric.")
@plain_option
@store_options
def show() -> None:
    """Show RUN (a number, an id, a prefix of one, a tag or `latest`), its trials, one of them, or a whole series.

    With CASE, show the trials of that case; with CASE and ARM, the whole trial; with --next, that of the next case on
    which arms differ, by ARM or else by the arm with the lowest score there.
    """


@click.command(short_help="Say which of two arms is better, or that nobody can tell yet.")
@done_by("fairtrial.cli.compare:compare_runs")
@click.argument("runs", nargs=-1)
@option("--arms", nargs=2, metavar="A B", help="Only these two arms; ARM@RUN if several runs have one.")
@option("--metric", metavar="M", help="Metric to compare; default: the suite's primary metric, or the score.")
@option("--margin", type=Margin(), help="Differences smaller than this do not matter.")
@option("--largest", type=POSITIVE, help="Largest difference possible on one case.")
@option("--earlier", metavar="RUN", help="A run of the same arms on more cases, to reduce the variance.")
@option("--details", is_flag=True, help="Also show other tests and groups of cases, for every pair.")
@plain_option
@store_options
def compare() -> None:
    """Say which of two arms is better, or that nobody can tell yet.

    RUNS are runs, series or tags; NAME@STORE reads one from another store. In one run, every pair of arms is compared;
    in several runs, the same arm in each of them. Two --arms that are in several runs are compared over all of them.
    Differences are first minus second, on the cases that both have; of two arms, the better one is printed first.
    """


@click.command(short_help="Rank the arms, with the range of ranks that each may have.")
@done_by("fairtrial.cli.rank:rank_runs")
@click.argument("runs", nargs=-1)
@option(
    "--by",
    type=click.Choice(["scores", "verdicts", "votes", "both"]),
    help="Source of the ratings; default: the first available of verdicts, votes and scores.",
)
@option("--control-style", is_flag=True, help="Adjust ratings for the length and markup of answers.")
@option("--metric", metavar="M", help="Metric to rank by; default: the suite's primary metric, or the score.")
@option("--matrix", is_flag=True, help="Show how often each arm beat each other arm.")
@plain_option
@store_options
def rank() -> None:
    """Rank the arms of RUNS on their common cases, with the range of ranks that the pairwise comparisons leave open.

    Ratings are Bradley–Terry (and Elo) from judges' verdicts on pairs (`fairtrial pairwise`), from people's votes
    (`fairtrial vote`), from both, or from scores: the arm with the higher score on a case wins it.
    """


@click.command(short_help="Find hard, uninformative and probably wrong cases, and how few would be enough.")
@done_by("fairtrial.cli.cases:show_cases")
@click.argument("runs", nargs=-1)
@option("--all", "everything", is_flag=True, help="Show every case, hardest first.")
@option("--subset", type=click.IntRange(min=1), metavar="N", help="Choose N cases that represent all of them.")
@option("-o", "--output", type=FILE, metavar="FILE", help="With --subset: write the ids to this file.")
@store_options
def cases() -> None:
    """Analyse the cases themselves, from how the arms of RUNS did on them.

    Shows which cases are hard, which do not distinguish the arms, which probably have a wrong expected answer, and how
    few cases would keep the order of the arms.
    """


@click.command(short_help="Say whether servers, tools and skills help, and how agents use them.")
@done_by("fairtrial.cli.tools:show_tools")
@click.argument("run", default="latest")
@option("-o", "--output", metavar="FILE", help="Write it as Markdown (.md), for a README; - for standard output.")
@store_options
def tools() -> None:
    """Show whether the MCP servers, tools and skills of RUN help, what they cost, and how agents used them.

    A gain is the paired difference between two conditions of a target of which one lacks only that server, tool or
    skill. Shares have 95 % intervals over cases.
    """


@click.command(short_help="Estimate how many cases are needed to detect a difference.")
@done_by("fairtrial.cli.power:show_power")
@click.argument("runs", nargs=-1)
@option("--arms", nargs=2, metavar="A B", help="Only these two arms.")
@option("--delta", "deltas", multiple=True, type=POSITIVE, help="Difference to detect, in points.")
@option(
    "--margin",
    "margins",
    multiple=True,
    type=Margin(),
    help="Loss that does not matter: shows the cases needed for equivalence and for a gate.",
)
@option(
    "--power",
    type=click.FloatRange(min=0.5, max=0.999),
    default=0.8,
    show_default=True,
    help="Probability of detecting a difference of that size.",
)
@option(
    "--looks",
    type=click.IntRange(min=2, max=MOST_LOOKS),
    is_flag=False,
    flag_value=LOOKS,
    metavar="[N]",
    help=f"Also plan N looks (default {LOOKS}): how many cases they take on average.",
)
@store_options
def power() -> None:
    """Estimate how many cases or repeats are needed to detect a difference between arms, based on RUNS.

    The numbers allow for the uncertainty of the spread measured in RUNS: the fewer cases there, the more are needed.
    """


@click.command(short_help="Show where the uncertainty comes from and what would reduce it.")
@done_by("fairtrial.cli.variance:show_variances")
@click.argument("run", default="latest")
@option("--case-cost", type=NOT_NEGATIVE, default=1.0, show_default=True, help="Cost of a new case, in answers.")
@store_options
def variance() -> None:
    """Show where the uncertainty of RUN comes from, and where the next dollar helps most."""


@click.command(short_help="Pass or fail a run, for CI.")
@done_by("fairtrial.cli.gate:decide")
@click.argument("run", default="latest")
@option("--min-score", type=FINITE, metavar="X", help="Minimum score of every arm.")
@option(
    "--against",
    metavar="RUN",
    help="No arm may be worse than in this run, series or tag, or branch:main, commit:SHA, file:PATH, notes:. "
    "auto: the branch that the CI job's pull request targets, else the default branch.",
)
@option("--margin", type=NOT_NEGATIVE, help="Acceptable loss; default: 5 points, or 0 with --these-cases.")
@option("--min-coverage", type=click.FloatRange(0, 100), help="Minimum percentage of scored trials; default: 95.")
@option("--arm", "arms", multiple=True, metavar="A", help="Only this arm; may be repeated.")
@option("--metric", default="", metavar="M", help="Check this metric instead of the score.")
@option("--largest", type=POSITIVE, help="Largest difference possible on one case.")
@option(
    "--unsure",
    type=click.Choice(["pass", "fail", "101"]),
    default="101",
    show_default=True,
    help="Exit code if nobody can tell: 0, 100 or 101.",
)
@option("--plan", is_flag=True, help="Show in advance what a gate against RUN can decide; decide nothing.")
@option("--aa", is_flag=True, help="Show how often this gate would contradict itself on unchanged input.")
@option("--repeats", type=click.IntRange(min=1), metavar="N", help="Answers to a case, of SUITE or planned (--plan).")
@option("--until-sure", is_flag=True, help="If nobody can tell, ask more until it is decided; needs --budget-usd.")
@option("--budget-usd", type=NOT_NEGATIVE, help="With --until-sure: the most that further answers may cost.")
@option("--replay", is_flag=True, help="With SUITE: use stored answers only, and ask nothing.")
@option(
    "--keep",
    metavar="FILE",
    help="Keep RUN as a baseline if it passes: a file, or `notes` for the git note of its commit.",
)
@option(
    "--comment",
    type=click.Choice(["auto", "github", "gitlab"]),
    help="Comment on the pull request of this CI job; an earlier comment is updated.",
)
@option("--report-url", metavar="URL", help="A link to the full report, for the comment.")
@option("--these-cases", is_flag=True, help="Treat these cases as all there are: compare means without intervals.")
@option(
    "-o",
    "--output",
    "outputs",
    multiple=True,
    metavar="FILE",
    help="Write the result: .md .junit.xml .json, or the whole report: .html; may be repeated.",
)
@asking_options
@option("-q", "--quiet", is_flag=True, help="Print no progress.")
def gate() -> None:
    """Pass or fail RUN, for CI: exit 0 passed, 100 failed, 101 cannot tell (--unsure).

    RUN may be a suite file: then the suite is run first, reusing stored answers that the change cannot affect.
    The suite's `gate` applies too; options override it. If there is no run to compare with, nobody can
    tell.

    A minimum is met when the whole 95 % interval is above it. A regression is ruled out when the whole 95 % interval of
    the difference, as `compare` prints it, lies above −margin. Both must hold whatever scores the failed trials would
    have got. If $GITHUB_STEP_SUMMARY is set, a summary is added to that file.

    --plan and --aa use RUN to learn about cases and noise: it needs two answers to a case (--repeats 2), or
    two runs (--runs 2). They try the gate on simulated merges, cost nothing, and exit 0.
    """


@click.command(short_help="Watch a suite over time, and say when an arm has changed.")
@done_by("fairtrial.cli.drift:show_drift")
@click.argument("runs", nargs=-1)
@option("--branch", metavar="NAME", help="All runs of this git branch instead of all tagged ones.")
@store_options
def drift() -> None:
    """Watch a suite over time: RUNS in this order, or all tagged runs of the latest suite, the oldest first.

    The first 8 runs show how much runs vary; every later one is compared with them, on the cases that all runs have,
    on an exponentially weighted control chart. Exit 100 if an arm has got worse beyond the limits.
    """
