"""A site of one or more runs: static files that any host can serve, and that open from a disk.

One run is one page. Several have an index with the leaderboard of every suite and a page each. Answers are next to the
pages in pieces, and are loaded when they are opened. Nothing is requested from anywhere else.
"""

from __future__ import annotations

import mimetypes
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import msgspec

from fairtrial.analyse.asked import cases_key
from fairtrial.analyse.guidance import unfinished
from fairtrial.analyse.overview import Overview, table_overview
from fairtrial.analyse.run import Run
from fairtrial.analyse.score_table import ArmScores, read_scores, sources_of
from fairtrial.analyse.summary import ArmSummary
from fairtrial.core.errors import FairtrialError
from fairtrial.core.private import write_shared
from fairtrial.present.charts import Curve, curves
from fairtrial.present.charts.svg import safe
from fairtrial.present.figures import Links, leaders
from fairtrial.present.words.leaderboards import headline, headline_parts, settle_words
from fairtrial.reports.badge import badge
from fairtrial.reports.card import card, write_card
from fairtrial.reports.html_answers import check_size, encoded, pieces_of
from fairtrial.reports.html_pages import pages
from fairtrial.reports.html_render import render
from fairtrial.reports.html_result import ReportedRun, day, own_parts, result_of
from fairtrial.store import Store, browsing
from fairtrial.store.browsing import RunQuery
from fairtrial.text.printable import counted

_LIST = "fairtrial-site.json"  # the files of a site, so that writing it again removes those that it no longer has
_FINISHED = ("completed", "incomplete", "stopped")
_MOST_RUNS = 200
_MOST_CARDS = 12  # pictures of single runs: each takes a second
_MOST_CURVES = 8


class WrittenSite(NamedTuple):
    """Where a site is, and what its reader should know."""

    folder: Path
    pages: int
    notes: list[str]


class SuiteBoard(NamedTuple):
    """The arms of all runs of one suite on the same cases, each from the latest run that has it."""

    suite: str
    overview: Overview
    arms: dict[str, ArmSummary]
    runs: dict[str, str]  # the run of every arm
    left_out: int  # runs on other cases
    notes: list[str]  # about runs that have some of their cases only


def check_address(base_url: str) -> None:
    """Raise FairtrialError if the address of a site is none."""
    parts = urlsplit(base_url)
    if base_url and (parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment):
        raise FairtrialError(f"{base_url}: the address of a site begins with https:// and has no ? or #")


def runs_of_suite(store: Store, suite: str) -> list[Run]:
    """Return every finished run of a suite, newest first."""
    records, _ = browsing.runs_page(store, RunQuery(suite=suite), 0, _MOST_RUNS)
    runs = [Run(store, record) for record in records if record.status in _FINISHED]
    if not runs:
        names = ", ".join(browsing.suite_names(store))
        raise FairtrialError(f"there is no finished run of a suite `{suite}`; the suites are: {names}")
    return runs


def write_site(runs: Sequence[Run], folder: str | Path, *, base_url: str = "") -> WrittenSite:
    """Write the site of these runs; `base_url` is where it will be, which link previews need."""
    place = Path(folder)
    runs = list({run.id: run for run in runs}.values())
    for run in runs:
        check_size(run)
    earlier = _earlier_files(place)
    try:
        place.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".fairtrial-", dir=place) as unfinished:
            writer = _SiteWriter(Path(unfinished), base_url.rstrip("/"))
            writer.write([result_of(run) for run in sorted(runs, key=lambda run: run.record.created_at, reverse=True)])
            files = sorted(path for path in writer.folder.rglob("*") if path.is_file())
            names = [path.relative_to(writer.folder).as_posix() for path in files]
            _write_list(place, earlier | set(names))  # first: what is left halfway is known to be ours
            for path, name in zip(files, names, strict=True):
                (place / name).parent.mkdir(parents=True, exist_ok=True)
                path.replace(place / name)
        for name in earlier - set(names):
            (place / name).unlink(missing_ok=True)
        _write_list(place, names)
    except OSError as error:
        raise FairtrialError(f"{place} cannot be written: {error.strerror or error}") from None
    return WrittenSite(place, sum(name.endswith(".html") for name in names), writer.notes)


def _write_list(place: Path, names: Iterable[str]) -> None:
    write_shared(place / _LIST, msgspec.json.encode({"files": sorted(names)}).decode())


def _earlier_files(place: Path) -> set[str]:
    """Return the files of the site that is already there; raise FairtrialError if something else is."""
    if place.exists() and not place.is_dir():
        raise FairtrialError(f"{place} is a file: name a folder for the site")
    try:
        names = msgspec.json.decode((place / _LIST).read_bytes(), type=dict[str, list[str]])["files"]
    except FileNotFoundError:
        if (place / "index.html").exists():
            raise FairtrialError(
                f"{place} has an index.html that fairtrial did not write: choose another folder"
            ) from None
        return set()
    except (msgspec.MsgspecError, KeyError, OSError):
        return set()
    inside = place.resolve()
    return {name for name in names if (place / name).resolve().is_relative_to(inside)}


class _SiteWriter:
    """Writes the files of a site."""

    def __init__(self, folder: Path, base_url: str) -> None:
        self.folder, self._base_url = folder, base_url
        self.notes: list[str] = []

    def write(self, results: Sequence[ReportedRun]) -> None:
        single = len(results) == 1
        if not single:
            self._write_index(results)
        for number, result in enumerate(results):
            name = "index" if single else result.run.id
            self._write_run(name, result, alone=single, pictured=single or number < _MOST_CARDS)
        if not self._base_url:
            self.notes.append("links to the site show no picture: --base-url says where it will be")

    def _write_run(self, name: str, result: ReportedRun, *, alone: bool, pictured: bool) -> None:
        run, leaderboard = result.run, result.overview.leaderboard
        index, files = self._write_answers(result)
        self._save("badge.svg" if alone else f"badges/{run.id}.svg", badge(leaderboard))
        image = "og.png"
        if pictured:
            drawn = card(
                leaderboard, result.headline, suite=result.summary.suite, facts=" · ".join(result.view.facts.lines())
            )
            image = self._write_card(drawn, "og" if alone else f"og/{run.id}")
        self._save(
            f"{name}.html",
            render(
                "site_run.html.j2",
                files=True,
                **result.values,
                title=f"{result.summary.suite}: {result.headline}",
                preview=self._preview(
                    f"{name}.html",
                    result.headline,
                    f"{result.summary.suite}: {', '.join(result.view.facts.lines())}",
                    image,
                ),
                home="" if alone else "index.html",
                **own_parts(pages(run, self._save_picture)),
                index=index,
                piece_files=files,
                cut=None,
            ),
        )

    def _write_answers(self, result: ReportedRun) -> tuple[str, list[str]]:
        """Write the answers next to the page; return their index, which is in the page, and the files."""
        files: list[str] = []
        index = b""
        for piece in pieces_of(result.run, result.order):
            if index:
                name = f"answers/{result.run.id}-{len(files)}.js"
                self._save(name, f'fairtrialPiece({len(files)}, "{encoded(index)}");\n')
                files.append(name)
            index = piece  # the last one is the index
        return encoded(index), files

    def _write_index(self, results: Sequence[ReportedRun]) -> None:
        boards = suite_boards(results)
        first = boards[0]
        title = (
            headline(first.overview.leaderboard)
            if len(boards) == 1
            else f"{counted(len(results), 'run')} of {len(boards)} suites"
        )
        days = sorted(result.summary.created_at for result in results)
        dates = " to ".join(dict.fromkeys((day(days[0]), day(days[-1]))))
        facts = [counted(len(results), "run"), dates] if len(boards) == 1 else [dates]
        drawn = card(
            first.overview.leaderboard, headline(first.overview.leaderboard), suite=first.suite, facts=" · ".join(facts)
        )
        image = self._write_card(drawn, "og")
        self._save("badge.svg", badge(first.overview.leaderboard))
        self._save(
            "index.html",
            render(
                "site_index.html.j2",
                files=True,
                title=title,
                headline=headline_parts(first.overview.leaderboard) if len(boards) == 1 else [],
                facts=facts,
                boards=[_board(board, results) for board in boards],
                results=results,
                preview=self._preview(
                    "", title, ", ".join([*dict.fromkeys(board.suite for board in boards), *facts]), image
                ),
            ),
        )

    def _preview(self, page: str, title: str, description: str, image: str) -> dict[str, str]:
        """Return what other sites show with a link; addresses must be absolute there."""
        base = self._base_url
        return {
            "title": title,
            "description": description,
            "address": f"{base}/{page}" if base else "",
            "image": f"{base}/{image}" if base and image.endswith(".png") else "",
        }

    def _write_card(self, svg: str, name: str) -> str:
        path = self.folder / name
        written = write_card(svg, path.parent, path.name)
        if written.endswith(".svg"):
            note = "pictures for links are SVG, which most services do not show: Chromium is needed to draw them as PNG"
            self.notes += [] if note in self.notes else [note]
        return (path.parent / written).relative_to(self.folder).as_posix()

    def _save_picture(self, sha256: str, media: str, body: bytes) -> str:
        name = f"pages/{sha256[:24]}{mimetypes.guess_extension(media) or ''}"
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(body)
        return name

    def _save(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")


def suite_boards(results: Sequence[ReportedRun]) -> list[SuiteBoard]:
    """Return the leaderboard of every suite, in the order of the runs given, newest first."""
    suites: dict[str, list[ReportedRun]] = {}
    for result in results:
        suites.setdefault(result.summary.suite, []).append(result)
    return [_suite_board(suite, of_suite) for suite, of_suite in suites.items()]


def _suite_board(suite: str, results: Sequence[ReportedRun]) -> SuiteBoard:
    """Rank the latest result of every arm on the largest set of cases: a run on two cases is not ranked with 200."""
    whole = max(results, key=lambda result: (result.run.plan.case_count, result.run.id)).run
    same = [result for result in results if cases_key(result.run) == cases_key(whole)]
    scores = read_scores(sources_of(result.run for result in same))
    latest: dict[str, ArmScores] = {}
    for arm in scores.arms:  # of the newest run first
        latest.setdefault(arm.arm.name, arm)
    for name, arm in latest.items():
        arm.label = name
    overview = table_overview(scores._replace(arms=tuple(latest.values())))
    summaries: dict[str, ArmSummary] = {}
    runs: dict[str, str] = {}
    for result in same:
        for arm_summary in result.summary.arms:
            summaries.setdefault(arm_summary.arm, arm_summary)
            runs.setdefault(arm_summary.arm, result.run.id)
    notes = list(map(str, unfinished(scores.sources)))
    return SuiteBoard(suite, overview, summaries, runs, len(results) - len(same), notes)


def _board(board: SuiteBoard, results: Sequence[ReportedRun]) -> dict[str, Any]:
    """Return what the index shows of a leaderboard."""
    links = Links(arm=lambda arm: f"{board.runs[arm]}.html" if arm in board.runs else "")
    return {
        "suite": board.suite,
        "headline": headline(board.overview.leaderboard),
        "leaders": leaders(board.overview.leaderboard, board.arms, links),
        "settle": settle_words(board.overview.leaderboard),
        "notes": board.notes,
        "left_out": counted(board.left_out, "run") if board.left_out else "",
        "history": _history(board, [result for result in results if result.summary.suite == board.suite]),
    }


def _history(board: SuiteBoard, results: Sequence[ReportedRun]) -> str:
    """Draw the arms that are in several runs over time."""
    leading = {one.label for one in board.overview.leaderboard.leading}
    points: dict[str, list[Any]] = {}
    for result in results:
        for arm in result.summary.arms:
            if arm.aggregate.mean is not None:
                bounds = arm.aggregate.ci95
                ci = None if bounds is None else (100 * bounds[0], 100 * bounds[1])
                at = result.summary.created_at
                points.setdefault(arm.arm, []).append((at, 100 * arm.aggregate.mean, ci, f"{result.run.id}.html"))
    lines = [
        Curve(one.label, points[one.label], "lead" if one.label in leading else "")
        for one in board.overview.leaderboard.places
        if len(points.get(one.label, ())) > 1
    ]
    return safe(curves(lines[:_MOST_CURVES])) if lines else ""
