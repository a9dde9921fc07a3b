"""The result of a run as a page in the terminal: verdict, picture, what is missing, what to do next."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from math import comb
from shlex import quote

from rich.text import Text

from fairtrial.analyse.asked import by_budget
from fairtrial.analyse.kind_means import KindMeans
from fairtrial.analyse.leaderboard import Leaderboard, run_leaderboard
from fairtrial.analyse.run import Run
from fairtrial.analyse.summary import ArmSummary, Metric, RunSummary, summary_prices
from fairtrial.cli.console import Console
from fairtrial.cli.forest import forest_lines, more_arms
from fairtrial.cli.layout import (
    LOUD,
    QUIET,
    Column,
    cells,
    print_block,
    print_commands,
    print_facts,
    print_wrapped,
    table_lines,
    total_width,
)
from fairtrial.cli.options import in_store
from fairtrial.cli.tables import short_names, shortened
from fairtrial.core.formatting import cost_fact, number, span
from fairtrial.core.many_arms import MOST_ARMS, is_large
from fairtrial.present.arms import arm_table
from fairtrial.present.words.arm_notes import notes, other_lines
from fairtrial.present.words.judges import judges_words, rubric_words
from fairtrial.present.words.kinds import NOTE, KindTable, kind_tables
from fairtrial.present.words.leaderboards import headline, settle_words
from fairtrial.present.words.prices import price_words
from fairtrial.present.words.runs import (
    deviation_cell,
    deviation_legend,
    failure_line,
    left_words,
    metric_cell,
    scale_words,
)
from fairtrial.store.batches import open_counts
from fairtrial.text.printable import counted, printable

_MAX_FAILURES = 5
_MAX_KINDS = 8
_FEWEST_OF_KIND = 3  # kinds that all have fewer cases say nothing yet
_MAX_METRICS = 6
_MAX_ARMS = 12  # whose other lines are shown, unless all details are asked for
_MIN_CELL = 14  # room for the name of an arm above its means
_LONG_NAME = 24


def print_run(
    run: Run,
    summary: RunSummary,
    kinds: KindMeans | None = None,
    *,
    whole: bool = False,
    stored: bool = False,
    seconds: float | None = None,
    plain: bool = False,
    details: bool = False,
) -> Leaderboard:
    """Print the result of a run; a `stored` one with its date, judges and id. Return its board."""
    console = Console()
    board = run_leaderboard(run, summary_prices(summary))
    arms = {arm.arm: arm for arm in summary.arms}
    order = [arms[name] for name in [*(place.label for place in board.places), *board.unscored]]
    print_wrapped(console, headline(board), "bold")
    print_block(console, forest_lines(board, arms, console.page_width, plain=plain, whole=details))
    console.print()
    print_facts(console, _facts(run, summary, seconds, stored=stored))
    for words in filter(None, [settle_words(board), price_words(board)]):
        print_wrapped(console, words)
    _print_table(console, summary, board, details=details)
    if kinds is not None:
        _print_kinds(console, run, [arm.arm for arm in order if arm.scored], kinds, whole=whole)
    _print_metrics(console, order, board, details=details)
    if details or summary.judging is not None or summary.origin is not None:
        _print_deviations(console, order, details=details)
    _print_arms(console, summary, order, details=details)
    _print_notes(console, summary)
    _print_missing(console, summary)
    return board


def print_rest(run: Run, summary: RunSummary, *, seconds: float | None = None) -> None:
    """Print what is to be known of a run below a result that was printed already: facts, notes, what is missing."""
    console = Console()
    console.print()
    print_facts(console, _facts(run, summary, seconds, stored=False))
    _print_notes(console, summary)
    _print_missing(console, summary)


def _facts(run: Run, summary: RunSummary, seconds: float | None, *, stored: bool) -> list[str]:
    """Return what happened, in a few words each."""
    counts = {
        "failed": sum(arm.failed for arm in summary.arms),
        "without a score": sum(arm.unscored for arm in summary.arms),
    }
    scored, trials = (sum(getattr(arm, name) for arm in summary.arms) for name in ("scored", "trials"))
    facts = [f"{scored:,} of {trials:,} scored"]
    facts += [f"{count:,} {what}" for what, count in counts.items() if count]
    facts += [span(seconds)] if seconds is not None and seconds >= 1 else []
    if summary.spent.charged or summary.spent.unknown:
        facts.append(cost_fact(summary.spent))
    if not stored:
        return [*facts, f"{summary.suite}, run {run.record.number}"]
    facts.append(f"{summary.suite}, run {run.record.number} ({run.id})")
    facts.append(datetime.fromtimestamp(summary.created_at).astimezone().strftime("%-d %b %Y %H:%M"))
    if summary.judging is not None:
        judges = judges_words([judge.judge for judge in summary.judging.judges], summary.judging.second)
        facts.append(f"judged by {judges}{rubric_words(summary.judging)}")
    return facts


def _print_table(console: Console, summary: RunSummary, board: Leaderboard, *, details: bool) -> None:
    """Print what the picture has no room for."""
    found = arm_table(summary.arms, board, ("table", "details") if details else ("table",))
    columns = [
        Column(column.name, cells(texts), right=True)
        for column, texts in zip(found.columns, zip(*found.cells, strict=True), strict=False)
    ]
    _print_by_arm(console, [row.arm for row in found.rows], columns, whole=details)


def _print_metrics(console: Console, arms: Sequence[ArmSummary], board: Leaderboard, *, details: bool) -> None:
    """Print the other metrics with their intervals, an arm on each line; in parts where they are too wide."""
    names = list(dict.fromkeys(name for arm in arms for name in arm.metrics if name != board.metric))
    shown = names if details else names[:_MAX_METRICS]
    columns = [_metric_column(name, [arm.metrics.get(name) for arm in arms]) for name in shown]
    if board.metric:
        columns.insert(0, Column("score", cells([_score_cell(arm) for arm in arms])))
    _print_by_arm(console, arms, columns, whole=details)
    if len(names) > len(shown):
        console.print(Text(f" and {len(names) - len(shown)} more metrics: --details shows them", QUIET))


def _print_deviations(console: Console, arms: Sequence[ArmSummary], *, details: bool) -> None:
    """Print how much every metric varies, an arm on each line."""
    known = {name: metric for arm in arms for name, metric in arm.metrics.items() if metric.std_dev is not None}
    names = list(known)[: None if details else _MAX_METRICS]
    columns = []
    for name in names:
        own = [arm.metrics.get(name) for arm in arms]
        shown = ["–" if metric is None else deviation_cell(name, metric) for metric in own]
        columns.append(Column(f"sd of {name}", cells(shown)))
    _print_by_arm(console, arms, columns, whole=details)
    if columns:
        print_wrapped(console, deviation_legend(known), QUIET, hang=2)


def _print_by_arm(console: Console, arms: Sequence[ArmSummary], columns: Sequence[Column], *, whole: bool) -> None:
    """Print a table with an arm on each line, unless `whole` of very many the best; in parts if it is too wide."""
    more = 0 if whole or not columns else max(0, len(arms) - MOST_ARMS)
    arms = arms[: len(arms) - more]
    columns = [column._replace(cells=column.cells[: len(arms)]) for column in columns]
    label = Column("arm", cells(short_names([arm.arm for arm in arms], _LONG_NAME)))
    while columns:
        fitting = max(
            1, sum(total_width([label, *columns[:n]]) <= console.page_width for n in range(1, len(columns) + 1))
        )
        print_block(console, table_lines([label, *columns[:fitting]]))
        columns = columns[fitting:]
    if more:
        console.print(more_arms(more))


def _metric_column(name: str, metrics: Sequence[Metric | None]) -> Column:
    scale = next(scale_words(metric.scale) for metric in metrics if metric is not None)
    head = f"{name} ({scale.removeprefix('scale ')})" if scale else name
    return Column(head, cells(["–" if metric is None else metric_cell(metric) for metric in metrics]))


def _score_cell(arm: ArmSummary) -> str:
    bounds = arm.aggregate.ci95
    shown = "" if bounds is None else f" ({number(bounds[0])} to {number(bounds[1])})"
    return f"{number(arm.aggregate.mean)}{shown}"


def _print_arms(console: Console, summary: RunSummary, arms: Sequence[ArmSummary], *, details: bool) -> None:
    """Print what else is known about each arm: repeats, refusals, lifts, tools, labels."""
    lines = {arm.arm: other_lines(summary, arm) for arm in arms}
    known = [name for name, own in lines.items() if own]
    shown = known if details else known[:_MAX_ARMS]
    if shown:
        console.print()
    for name in shown:
        first, *others = lines[name]
        print_wrapped(console, f"{name}: {first}" if not others else name, hang=2)
        for line in lines[name] if others else ():
            print_wrapped(console, line, indent=3, hang=2)
    if len(known) > len(shown):
        console.print(Text(f" and {len(known) - len(shown)} more arms: --details shows them", QUIET))


def _print_notes(console: Console, summary: RunSummary) -> None:
    texts = notes(summary)
    told = summary.asked is not None and by_budget(summary.reason)  # the notes begin with it
    if summary.reason and not told and summary.status not in ("completed", summary.reason):
        texts.insert(0, f"{summary.status.capitalize()}: {summary.reason}.")
    elif summary.status == "running":
        texts.insert(0, "The run goes on: these numbers will change.")
    if texts:
        console.print()
    for text in texts:
        print_wrapped(console, text, QUIET, hang=2)


def _print_missing(console: Console, summary: RunSummary) -> None:
    """Print why trials have no score, and which arms they are of."""
    if not summary.failures:
        return
    console.print()
    for failure in summary.failures[:_MAX_FAILURES]:
        print_wrapped(console, failure_line(failure), LOUD, hang=4)
    if len(summary.failures) > _MAX_FAILURES:
        console.print(Text(f" and {len(summary.failures) - _MAX_FAILURES} more reasons", LOUD))
    lost = {arm.arm: arm.failed + arm.unscored for arm in summary.arms if arm.failed + arm.unscored}
    if len(summary.arms) > 1:
        most = sorted(lost, key=lambda name: -lost[name])
        named = ", ".join(f"{name} {lost[name]}" for name in most[:5])
        more = f" and {len(most) - 5} more arms" if len(most) > 5 else ""
        print_wrapped(console, f"of {named}{more}", LOUD, indent=1, hang=2)


def _print_kinds(console: Console, run: Run, names: Sequence[str], kinds: KindMeans, *, whole: bool) -> None:
    """Print the means by kind of case: every kind and arm, or the largest kinds and the best arms that fit."""
    tables = kind_tables(kinds, names, most=None if whole else _MAX_KINDS, whole=whole)
    tables = [shown for shown in tables if whole or max(kinds.cases[shown.by].values()) >= _FEWEST_OF_KIND]
    for shown in tables:
        parts = _parts(shown, console.page_width)
        for part in parts if whole else parts[:1]:
            print_block(console, _kind_lines(part, several=len(names) > 1))
        if not whole and (left_out := _left_out(shown, len(names) - len(parts[0].arms))):
            command = in_store(f"fairtrial show{_name(run)} --by {quote(printable(shown.by))}")
            console.print(Text(f" {left_out}: {command}", QUIET), soft_wrap=True)
    if tables:
        print_wrapped(console, NOTE, QUIET)


def _kind_lines(part: KindTable, *, several: bool) -> list[Text]:
    cell = max(_MIN_CELL, *(len(text) for row in part.rows for text in row.cells))
    kind = [shortened(printable(row.kind), _LONG_NAME) for row in part.rows]
    columns = [Column(part.by, cells(kind)), Column("cases", cells([row.cases for row in part.rows]), right=True)]
    heads = short_names(part.arms, cell) if several else ["score and 95 % CI"]
    for place, head in enumerate(heads):
        columns.append(Column(head, cells([row.cells[place] for row in part.rows])))
    return table_lines(columns)


def _left_out(shown: KindTable, arms: int) -> str:
    """Say what the short table leaves out; empty if nothing."""
    kinds = counted(shown.more, "more group") if shown.more else ""
    others = counted(arms, "other arm") if arms else ""
    return f"and {' and '.join(filter(None, (kinds, others)))}" if kinds or others else ""


def _parts(shown: KindTable, width: int) -> list[KindTable]:
    """Divide a table by arms into tables that fit the terminal."""
    cell = max(_MIN_CELL, *(len(text) for row in shown.rows for text in row.cells))
    counts = max(len("cases"), *(len(row.cases) for row in shown.rows))
    kind = min(_LONG_NAME, max(len(shown.by), *(Text(row.kind).cell_len for row in shown.rows)))
    most = max(1, (width - 2 - kind - counts - 2) // (cell + 2))
    return [
        shown._replace(
            arms=shown.arms[first : first + most],
            rows=[row._replace(cells=row.cells[first : first + most]) for row in shown.rows],
        )
        for first in range(0, len(shown.arms), most)
    ]


def print_next(
    run: Run,
    summary: RunSummary,
    *,
    stored: bool = False,
    needed: bool = False,
    more: Sequence[tuple[str, str]] = (),
) -> None:
    """Print what to do next on stderr, `more` first; with `needed`, only what it takes to complete the run."""
    commands = to_complete(run, summary)
    if not needed:
        commands += [*more, *_to_look(run, summary, stored=stored)]
    print_commands(Console(stderr=True), commands)


def to_complete(run: Run, summary: RunSummary) -> list[tuple[str, str]]:
    """Return the commands that would complete a run."""
    if summary.status in ("completed", "running") or summary.origin is not None:
        return []
    waiting = sum(arm.waiting for arm in summary.arms)
    lost = sum(arm.failed + arm.unscored for arm in summary.arms)
    name = _name(run)
    commands = []
    if lost and summary.status != "stopped":
        commands.append(
            (f"fairtrial retry{name}", f"the {lost:,} {'trial' if lost == 1 else 'trials'} without a score")
        )
    if waiting:
        more = " --budget-usd MORE" if by_budget(summary.reason) else ""
        trials = f"the {waiting:,} {'trial' if waiting == 1 else 'trials'} {left_words(summary.status)}"
        saved = "" if summary.status == "stopped" else "; everything is saved"
        commands.insert(0, (f"fairtrial resume{name}{more}", f"{trials}{saved}"))
    if batches := sum(count > 0 for count in open_counts(run.store, run.id).values()):
        goes_on = "a batch goes on" if batches == 1 else f"{batches} batches go on"
        commands.append((f"fairtrial batches{name}", f"{goes_on} at the provider"))
    return commands


def _to_look(run: Run, summary: RunSummary, *, stored: bool) -> list[tuple[str, str]]:
    name = _name(run)
    scored = [arm.aggregate.mean or 0.0 for arm in summary.arms if arm.scored]
    commands = []
    if len(scored) > 1:
        what = "every arm against the first" if is_large(comb(len(scored), 2)) else "every pair"
        commands.append((f"fairtrial compare{name}", what if len(scored) > 2 else "the two, case by case"))
    elif scored and scored[0] < 1.0:
        commands.append((f"fairtrial show{name} --wrong", "the answers that lost points"))
    elif not scored:
        commands.append((f"fairtrial show{name} --failures", "what went wrong"))
    if stored or scored == [1.0]:
        commands.append((f"fairtrial show{name} --trials", "the answers"))
    if not stored:
        commands.append(("fairtrial serve", "the same as a page"))
    return commands


def _name(run: Run) -> str:
    """Return how a command names the run: not at all if it is the latest."""
    return "" if run.store.newest_run().id == run.id else f" {run.record.number}"
