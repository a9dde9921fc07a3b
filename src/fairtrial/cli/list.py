"""`fairtrial list`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

import click
from rich.text import Text

from fairtrial.analyse.leaderboard import Leaderboard, run_leaderboard
from fairtrial.analyse.run import Run
from fairtrial.analyse.summary import ArmSummary, RunSummary, ranked
from fairtrial.cli.axis import MIN_WIDTH, drawn
from fairtrial.cli.console import Console
from fairtrial.cli.documents import print_json
from fairtrial.cli.layout import FIRST, QUIET, Column, cells, print_lines, table_lines, total_width
from fairtrial.cli.options import in_store
from fairtrial.cli.start import open_store
from fairtrial.cli.tables import shortened
from fairtrial.present.words.asked import asked_brief
from fairtrial.reports.json import document
from fairtrial.store.browsing import RunQuery, runs_page
from fairtrial.text.printable import printable

_MIN_SUITE, _MAX_SUITE, _MIN_LEADS, _MAX_LEADS = 14, 32, 14, 34
_WIDE = 110  # from here on, there is room for bars and ids
_MOST_ARMS, _MOST_TRIALS = 12, 50_000  # in larger runs it takes too long to find out who leads


def list_runs(limit: int, ids: bool, plain: bool, store: str | None, as_json: bool) -> None:
    """Print the newest runs of the store."""
    opened = open_store(store)
    records, total = runs_page(opened, RunQuery(), 0, limit)
    tags: dict[str, list[str]] = {}
    for name, run_id in sorted(opened.tags().items()):
        tags.setdefault(run_id, []).append(name)
    runs = [Run(opened, record) for record in records]
    summaries = [run.summary() for run in runs]
    if as_json:
        print_json({"runs": [{**document(summary), "tags": tags.get(summary.run_id, [])} for summary in summaries]})
        return
    if not records:
        click.echo("No runs in this store yet; `fairtrial run SUITE` starts one.")
        return
    _print(runs, summaries, tags, total, ids=ids, plain=plain)


class _Leaders(NamedTuple):
    """Who leads a run, with the score of the first, 0–100."""

    glyph: str
    names: str
    short: str = ""  # the same in fewer words
    mean: float | None = None
    bounds: tuple[float, float] | None = None


def _print(
    runs: list[Run],
    summaries: list[RunSummary],
    tags: dict[str, list[str]],
    total: int,
    *,
    ids: bool,
    plain: bool,
) -> None:
    console = Console()
    leaders = [_leaders(run, summary) for run, summary in zip(runs, summaries, strict=True)]
    columns = _columns(runs, summaries, leaders, console.page_width, ids=ids, plain=plain)
    head, *lines = table_lines(columns)
    print_lines(console, [head])
    for line, summary in zip(lines, summaries, strict=True):
        print_lines(console, [line])
        if names := _below(summary, tags):
            print_lines(console, [Text(f"   {printable(names)}", QUIET)])
    facts = [f"{total} runs in all"] if total > 1 else []
    facts += [in_store(f"fairtrial list --limit {total}")] if total > len(runs) else []
    facts.append(f"{in_store(f'fairtrial show {runs[0].record.number}')} opens one")
    console.print(Text(f"\n {' · '.join(facts)}", QUIET), soft_wrap=True)


def _columns(
    runs: list[Run], summaries: list[RunSummary], leaders: list[_Leaders], width: int, *, ids: bool, plain: bool
) -> list[Column]:
    numbers = [str(run.record.number) for run in runs]
    scored = [_scored(summary) for summary in summaries]
    ending = [
        Column("score", cells(["" if one.mean is None else f"{one.mean:.1f}" for one in leaders]), right=True),
        Column("scored", cells(scored), right=True),
        Column("when", cells([_when(summary.created_at, summary.status) for summary in summaries], QUIET)),
    ]
    if ids or width >= _WIDE:
        ending.append(Column("id", cells([run.id for run in runs], QUIET)))
    number = Column("run", cells(numbers), right=True)
    fixed = total_width([number, *ending]) + 2
    drawn = width >= _WIDE and not plain
    interval = Column("95 % CI", cells(["" if one.bounds is None else _bounds(one.bounds) for one in leaders]))
    if not drawn and fixed + interval.width + 2 + _MIN_SUITE + 4 + _MIN_LEADS > width - 1:
        interval = Column("", cells([""] * len(runs)), gap=0)
    room = width - 3 - fixed - (MIN_WIDTH + 4 if drawn else interval.width + interval.gap)
    suite, leads = _name_columns(summaries, leaders, room)
    if drawn:
        left = width - 3 - fixed - suite.width - leads.width - 2
        interval = _bars(leaders, min(44, max(MIN_WIDTH, left)))
    return [suite, number, leads, interval, *ending]


def _name_columns(summaries: list[RunSummary], leaders: list[_Leaders], room: int) -> tuple[Column, Column]:
    """Return the columns with the suites' names, never cut below 14 characters, and with the leaders."""
    wanted = max(Text(summary.suite).cell_len for summary in summaries)
    leads = max(len("leads"), min(_MAX_LEADS, max(Text(f"{one.glyph} {one.names}").cell_len for one in leaders)))
    suite = min(wanted, _MAX_SUITE, max(_MIN_SUITE, room - leads))
    leads = max(_MIN_LEADS, min(leads, room - suite))
    names = cells([shortened(printable(summary.suite), suite) for summary in summaries])
    styles = {"▲": FIRST, "?": "", "●": "bold"}

    def named(one: _Leaders) -> str:
        whole, short = (printable(f"{one.glyph} {names}") for names in (one.names, one.short or one.names))
        return whole if Text(whole).cell_len <= leads else shortened(short, leads)

    shown = [Text(named(one), styles.get(one.glyph, QUIET)) for one in leaders]
    return Column("suite", names), Column("leads", shown)


def _bars(leaders: list[_Leaders], width: int) -> Column:
    styles = [FIRST if one.glyph == "▲" else "" for one in leaders]
    return drawn([(one.mean, one.bounds) for one in leaders], width, styles, within=(0.0, 100.0))


def _leaders(run: Run, summary: RunSummary) -> _Leaders:
    """Return who leads: `▲` alone, `?` together with others; `●` the run goes on, `■` it was stopped."""
    if summary.status == "running":
        return _Leaders("●", "running")
    scored = [arm for arm in ranked(summary.arms) if arm.aggregate.mean is not None]
    if not scored:
        return _Leaders("–", "no score")
    if summary.status == "interrupted":
        return _Leaders("■", "interrupted")
    if len(scored) == 1:
        return _Leaders(" ", scored[0].arm, "", *_score(scored[0]))
    trials = sum(arm.trials for arm in summary.arms)
    if len(scored) > _MOST_ARMS or trials > _MOST_TRIALS:
        return _first_of_many(run, scored)
    return _named(run_leaderboard(run), scored)


def _first_of_many(run: Run, scored: Sequence[ArmSummary]) -> _Leaders:
    """Name the arm with the best score, without a verdict; none where it is not the score that counts."""
    if run.settings.get("primary_metric"):
        return _Leaders(" ", f"{len(scored)} arms")
    return _Leaders(" ", f"{scored[0].arm} of {len(scored)} arms", scored[0].arm, *_score(scored[0]))


def _named(board: Leaderboard, scored: Sequence[ArmSummary]) -> _Leaders:
    """Name the arms that may be first, with the score of the best one."""
    names = [place.label for place in board.leading] or [board.places[0].label]
    first = next(arm for arm in scored if arm.arm == names[0])
    both = len(names) < 3 and len(", ".join(names)) <= _MIN_LEADS + 12
    shown = ", ".join(names) if both or len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
    short = f"{names[0]} +{len(names) - 1}" if len(names) > 1 else ""
    return _Leaders("▲" if len(board.leading) == 1 else "?", shown, short, *_score(first))


def _score(arm: ArmSummary) -> tuple[float, tuple[float, float] | None]:
    bounds = arm.aggregate.ci95
    return 100 * (arm.aggregate.mean or 0.0), None if bounds is None else (100 * bounds[0], 100 * bounds[1])


def _scored(summary: RunSummary) -> str:
    return f"{sum(arm.scored for arm in summary.arms):,}/{sum(arm.trials for arm in summary.arms):,}"


def _bounds(bounds: tuple[float, float]) -> str:
    return f"{bounds[0]:.0f} to {bounds[1]:.0f}"


def _when(created: float, status: str) -> str:
    """Return the time of a run of today, the day of an earlier one."""
    if status == "running":
        return "now"
    moment, now = datetime.fromtimestamp(created).astimezone(), datetime.now().astimezone()
    if moment.date() == now.date():
        return moment.strftime("%H:%M")
    return f"{moment.day} {moment:%b}" if moment.year == now.year else f"{moment.day} {moment:%b %Y}"


def _below(summary: RunSummary, tags: dict[str, list[str]]) -> str:
    """Return the line below a run: which cases it has if not all, its tags, its series and the series' tags."""
    series = summary.series_id
    parts = [asked_brief(summary.asked)] if summary.asked else []
    parts += tags.get(summary.run_id, ())
    if series is not None:
        parts += [f"of series {series}", *tags.get(series, ())]
    return " · ".join(parts)
