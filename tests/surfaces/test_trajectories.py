"""What a trial did is the same list on every surface: page, terminal, report and JSON, the same steps in the same order."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from starlette.testclient import TestClient

from fairtrial.analyse.run import Run
from fairtrial.cli.main import cli
from fairtrial.reports.export import export
from fairtrial.web.app import make_app
from fairtrial.web.site import Site
from tests.surfaces.test_one_voice import spoken
from tests.web.trajectories import BIDI, HTML, agents, hostile, reporting, searching

REPORTED = """() => [...document.querySelectorAll('#list .trial .steps > .step')].map((row) => [row.querySelector('.at').textContent,
  row.querySelector('.who').textContent, row.querySelector('.brief').textContent,
  row.querySelector('.pill')?.textContent ?? '', row.querySelector('.gave')?.textContent ?? ''])"""
Steps = list[list[str]]  # number, name, what it comes to, state, result


def on_page(site: Site, run: Run, place: str) -> Steps:
    page = TestClient(make_app(site)).get(f"/runs/{run.id}/cases/{place}").text
    found = []
    for row in re.findall(r'<li id="e.*?</li>', page.split('<ol class="steps">')[1].split("</ol>")[0], re.DOTALL):
        parts = {
            name: re.search(rf'class="{name}"[^>]*>(.*?)</(?:b|a|span)>', row, re.DOTALL)
            for name in ("at", "who", "brief", "pill behind", "gave")
        }
        found.append([spoken(part[1]) if part else "" for part in parts.values()])
    return found


def in_terminal(run: Run, trial: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("COLUMNS", "4000")
    found = CliRunner().invoke(cli, ["show", run.id, "--trial", trial, "--store", run.store.address])
    assert found.exit_code == 0, found.output
    return found.output


def terminal_steps(text: str) -> list[str]:
    """Each step on one line, whatever the width of the terminal."""
    own = text.split("\n did ")[1].partition("\n\n")[0]
    return [" ".join(step.split()) for step in re.split(r"^ e\d+ ", own, flags=re.MULTILINE)[1:]]


async def in_report(run: Run, folder: Path, browser: Any, arm: int) -> Steps:
    file = folder / "report.html"
    export(run, file)
    page = await browser.new_page()
    broken: list[str] = []
    page.on("pageerror", lambda error: broken.append(str(error)))
    page.on("dialog", lambda dialog: broken.append(dialog.message))
    await page.goto(file.as_uri())
    await page.wait_for_selector("html[data-ready]")
    await page.select_option("#order", "case") if await page.locator("#order option").count() else None
    await page.locator("#list .q").last.locator(".side1").nth(arm).click()
    steps: Steps = await page.evaluate(REPORTED)
    assert not broken
    await page.close()
    return steps


async def test_page_terminal_report_and_json_list_the_same_steps(
    run_suite: Any, model: Any, tmp_path: Path, browser: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    await model(searching)
    run = await run_suite(**agents())
    trial = next(one for one in run.trials() if (one.case_id, one.arm) == ("talk", "m/hasty"))
    site = Site(run.store, tmp_path)
    page = on_page(site, run, "2/2/1")
    site.close()
    text = in_terminal(run, trial.trial_id, monkeypatch)
    order = json.loads(
        CliRunner()
        .invoke(cli, ["show", run.id, "--trial", trial.trial_id, "--json", "--store", run.store.address])
        .output
    )
    events = order["trajectory"]
    kept = [(number, event) for number, event in enumerate(events, start=1) if event["type"] != "result"]
    assert [step[0] for step in page] == [f"e{number}" for number, _ in kept] and len(kept) > 12
    names = {"call": lambda one: f"{one['server']}.{one['tool']}", "message": lambda one: one.get("role", "agent")}
    assert [step[1] for step in page] == [names[event["type"]](event) for _, event in kept]
    lines = terminal_steps(text)
    assert len(lines) == len(page)
    assert re.findall(r"^ (e\d+) ", text, re.MULTILINE) == [step[0] for step in page]
    for line, (_, name, brief, state, gave) in zip(lines, page, strict=True):
        assert all(part in line for part in (name, brief.removesuffix("…"), state, gave.removesuffix("…"))), (
            line,
            name,
            brief,
        )
    first = next(place for place, arm in enumerate(run.plan_arms) if arm.name == "m/hasty")
    shown = await in_report(run, tmp_path, browser, first)
    assert shown == page
    assert "turn 1" in text and "turn 2" in text


async def test_what_is_written_in_them_is_data_everywhere(
    run_suite: Any, tmp_path: Path, browser: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = await run_suite(**reporting(tmp_path, repr(hostile())))
    trial = next(run.trials())
    text = in_terminal(run, trial.trial_id, monkeypatch)
    assert "\x1b" not in text and "\x9b" not in text and BIDI not in text and HTML in text
    for character in "\u202e\u2066":
        assert character not in text
    shown = await in_report(run, tmp_path, browser, 0)
    assert len(shown) == 10 and HTML in shown[1][2] and not any("\u202e" in part for step in shown for part in step)
    with_html = (tmp_path / "report.html").read_text()
    assert HTML not in with_html


async def test_the_agents_own_calls_are_counted_as_calls(run_suite, tmp_path, monkeypatch):
    """What went to MCP servers has another name: "1 tool call" and "0 tool calls" cannot both be true."""
    call = {"type": "call", "id": "1", "tool": "Bash", "arguments": {"command": "ls"}}
    run = await run_suite(**reporting(tmp_path, repr([call, {"type": "result", "call": "1", "text": "a"}])))
    (trial,) = run.trials()
    text = in_terminal(run, trial.trial_id, monkeypatch)
    assert "1 tool call" in text and "0 tool calls" not in text and "0 MCP" not in text
