"""One table of arms and one list of sections: what is added to them is shown by every surface.

A statistic is a kernel of `stats/per_arm.py` and a column of `present/arms.py`. Both are made up here; then every
surface is searched for the name and for the value of each arm, so that one with a table of its own is found out.
"""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from starlette.testclient import TestClient

import fairtrial as ft
from fairtrial.analyse.run import Run
from fairtrial.analyse.score_table import sources_of
from fairtrial.cli import gate_outputs
from fairtrial.cli.main import cli
from fairtrial.core.formatting import number
from fairtrial.present import arms, templates
from fairtrial.reports import html_render
from fairtrial.reports.export import export
from fairtrial.reports.site import write_site
from fairtrial.stats.per_arm import PER_ARM
from fairtrial.web import cache
from fairtrial.web import site as web_site
from fairtrial.web.app import make_app

NAME, TITLE = "oddity", "oddity of an arm"
RIGHT = {"first": 9, "second": 7, "third": 2}  # of ten cases


def _oddity(counts: Any, means: Any, squares: Any) -> float | None:
    """A statistic that nobody needs: its values are in no other column."""
    return float(np.sum(means) / 7.7) / 2 if len(means) else None


def _clear_caches() -> None:
    html_render._environment.cache_clear()
    web_site._templates.cache_clear()


@pytest.fixture
async def run(run_suite: Any) -> Run:
    return await run_suite(
        targets=[
            {"id": name, "target": "mock:x", "options": {"answers": {f"c{n}": "42" if n < right else "x" for n in range(10)}}}
            for name, right in RIGHT.items()
        ],
        cases=[
            {"id": f"c{n}", "input": f"case {n}", "expected": "42", "category": "odd" if n % 2 else "even"}
            for n in range(10)
        ],
        prices={"mock:x": {"input": 1, "output": 1}},
    )  # fmt: skip


@pytest.fixture
def statistic(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Add a statistic; it is in the terminal at once, or with --details."""

    def add(terminal: arms.In) -> None:
        column = arms.ArmColumn(NAME, lambda row: number(row.arm.statistics[NAME], 3), terminal, title=TITLE)
        monkeypatch.setitem(PER_ARM, NAME, _oddity)
        monkeypatch.setattr(arms, "COLUMNS", [*arms.COLUMNS, column])
        monkeypatch.setattr(cache, "code_key", lambda _: NAME)  # other sources: nothing that was kept is used

    return add


class Surfaces:
    """Everything that shows a run, as text."""

    def __init__(self, run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._run, self._folder, self._patch = run, folder, monkeypatch

    def terminal(self, *options: str) -> str:
        found = CliRunner().invoke(cli, ["show", self._run.id, *options, "--store", self._run.store.address])
        assert found.exit_code == 0, found.output
        return found.stdout

    def page(self, address: str) -> str:
        site = web_site.Site(self._run.store, self._folder)
        try:
            return _text(TestClient(make_app(site)).get(address).text)
        finally:
            site.close()

    def report(self) -> str:
        return _text(export(self._run, self._folder / "run.html").read_text("utf-8"))

    def site(self) -> str:
        return _text((write_site([self._run], self._folder / "site").folder / "index.html").read_text("utf-8"))

    def comment(self) -> str:
        written: list[str] = []
        self._patch.setattr(gate_outputs, "post_comment", lambda body, *_: written.append(body))
        [source] = sources_of(self._run)
        gate_outputs.comment(ft.gate(self._run, min_score=10), source, None, "", None)
        return _text(written[0])

    def all(self) -> dict[str, str]:
        return {
            "terminal": self.terminal("--details"),
            "page": self.page(f"/runs/{self._run.id}/result"),
            "leaderboard": self.page("/board/standings?suite=test"),
            "report": self.report(),
            "site": self.site(),
            "Markdown": export(self._run, self._folder / "run.md").read_text("utf-8"),
            "notebook": _text(self._run._repr_html_()),
            "comment": self.comment(),
        }


@pytest.fixture
def surfaces(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Surfaces:
    return Surfaces(run, tmp_path, monkeypatch)


def _text(markup: str) -> str:
    return html.unescape(re.sub(r"<[^>]*>", " ", re.sub(r"(?s)<(style|script|template)\b.*?</\1>", " ", markup)))


def _values(run: Run) -> dict[str, str]:
    return {arm: number(right / 7.7 / 2, 3) for arm, right in RIGHT.items()}


async def test_a_statistic_is_on_every_surface(run, surfaces, statistic):
    before = surfaces.all()
    assert not [name for name, text in before.items() if NAME in text.lower()]
    statistic("details")
    for surface, text in surfaces.all().items():
        assert (NAME if surface == "terminal" else TITLE) in text.replace("Oddity", "oddity"), surface
        for arm, value in _values(run).items():
            assert value in text and value not in before[surface], (surface, arm)
    assert NAME not in surfaces.terminal()


async def test_a_statistic_can_be_in_the_terminal_at_once(run, surfaces, statistic):
    statistic("table")
    shown = surfaces.terminal()
    assert all(re.search(rf"{arm} +{re.escape(value)}\n", shown) for arm, value in _values(run).items()), shown


async def test_a_statistic_is_in_the_document(run, surfaces, statistic):
    statistic("details")
    document = json.loads(surfaces.terminal("--json"))
    assert {arm["arm"]: arm[NAME] for arm in document["arms"]} == {
        arm: pytest.approx(100 * right / 7.7 / 2) for arm, right in RIGHT.items()
    }


async def test_every_column_is_on_every_surface(run, surfaces):
    """Its name, and the cells of every arm."""
    table = arms.arm_table(run.summary().arms)
    for surface, text in surfaces.all().items():
        shown = [column for column in table.columns if surface != "terminal" or column.terminal != "picture"]
        for column in shown:
            name = column.name if surface == "terminal" else column.long_name
            assert name.lower() in text.lower(), (surface, name)
            for row in table.rows:
                assert column.cell(row) in text.replace("\\", ""), (surface, name, row.arm.arm)


@pytest.fixture
def section(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Add one file to the sections."""
    folder = tmp_path / "more"
    (folder / "sections").mkdir(parents=True)
    make = templates.environment

    def with_more(own: Path) -> Any:
        made = make(own)
        made.loader.searchpath.append(str(folder))
        return made

    for module in (html_render, web_site):
        monkeypatch.setattr(module, "environment", with_more)
    _clear_caches()
    yield lambda name, text: (folder / "sections" / name).write_text(text, "utf-8")
    monkeypatch.undo()
    _clear_caches()


async def test_a_section_is_one_file(surfaces, section):
    section("35_weather.html.j2", "<h2>The weather</h2><p>{{ result.summary.arms|length }} clouds</p>")
    for surface in ("page", "report", "site"):
        text = surfaces.all()[surface]
        assert "The weather" in text and "3 clouds" in text, surface
        places = [text.index(title) for title in ("Who leads", "The weather", "All 10 cases", "All numbers")]
        assert places == sorted(places), surface


async def test_page_and_report_have_the_same_sections(surfaces, run):
    """What both know at once stands in both, in one order; notes and caveats included."""
    titles = {}
    site = web_site.Site(run.store, Path())
    try:
        page = TestClient(make_app(site)).get(f"/runs/{run.id}/result").text
    finally:
        site.close()
    report = export(run, Path("run.html")).read_text("utf-8")
    for name, markup in (("page", page), ("report", report)):
        headings = re.findall(r"<(?:h2[^>]*|summary)>(.*?)(?:</h2>|<span>|</summary>)", markup)
        titles[name] = [_text(heading).strip() for heading in headings]
    own = {"Answers", "Every pair in words", "Further figures", "every test", "Distribution of scores", "Arms", "Suite"}
    own |= {"Where the uncertainty comes from", "Settings, versions and machine", "How much would another run differ?"}
    lists = re.compile(r"[\d,]+ trials?")  # within the section on causes, which the page asks for when it is opened
    known = [title for title in titles["report"] if title not in own and not lists.fullmatch(title)]
    assert known == [title for title in titles["page"] if title not in own]
    for caveat in ("full reproducibility is not claimed", "no interval is adjusted for the number of groups"):
        assert caveat in page and caveat in report
