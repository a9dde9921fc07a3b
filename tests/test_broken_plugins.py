"""A plug-in that cannot be used is named in one sentence; everything else works as if it were not there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fairtrial.core import registry

SUITE = "name: s\ntargets: [mock:echo]\nscorer: match\ncases: [{input: hi, expected: hi}]\n"
PARTS = '''
import sys
from fairtrial.plugins import Format, Guide, Scorer

NUMBER = 7

class Match(Scorer, frozen=True, kw_only=True):
    """Says yes to everything."""
    guide = Guide(scale="1", reproducibility="deterministic", best_for="nobody")

class Guideless(Scorer, frozen=True, kw_only=True):
    """Says nothing."""

class Page:
    def __init__(self, site):
        site.menu.append(("Broken", "/broken"))
        raise ValueError("no page today")

class Routeless:
    def __init__(self, site):
        pass

HTML = Format("html", "Another report", (".html",), home="broken_parts")
MINE = Format("mine", "A report with a taken ending", (".html",), home="broken_parts")
'''
EXITS = "import sys\nsys.exit('goodbye')\n"
# Every way in which a part can be unusable, through every door; what must be said about it.
UNUSABLE = {
    ("scorers", "gone", "broken_nowhere:Gone"): "No module named 'broken_nowhere'",
    ("scorers", "number", "broken_parts:NUMBER"): "broken_parts:NUMBER is not a scorer, as `Scorer` describes it",
    ("scorers", "guideless", "broken_parts:Guideless"): "it has no `guide`",
    ("scorers", "match", "broken_parts:Match"): "fairtrial has one of that name",
    ("scorers", "json-schema", "broken_parts:Match"): "fairtrial has one of that name",
    ("scorers", "exits", "broken_exits:Scorer"): "SystemExit: goodbye",
    ("targets", "gone", "broken_nowhere:Gone"): "No module named 'broken_nowhere'",
    ("targets", "gone_api", "broken_nowhere:Gone"): "No module named 'broken_nowhere'",
    ("targets", "mock", "broken_parts:Match"): "fairtrial has one of that name",
    ("importers", "gone", "broken_nowhere:Gone"): "No module named 'broken_nowhere'",
    ("importers", "number", "broken_parts:NUMBER"): "broken_parts:NUMBER is not an importer: it has no `read`",
    ("results", "number", "broken_parts:NUMBER"): "not a reader of results: it has no `recognises`, `read`",
    ("traces", "number", "broken_parts:NUMBER"): "not a format of traces: it has no `recognises`, `calls`, `asides`",
    ("logs", "number", "broken_parts:NUMBER"): "not a format of logs: it has no `recognises`, `sessions`, `companions`",
    ("commands", "gone", "broken_nowhere:Gone"): "No module named 'broken_nowhere'",
    ("commands", "number", "broken_parts:NUMBER"): "broken_parts:NUMBER is not a command, as `Command` describes it",
    ("commands", "run", "broken_nowhere:Gone"): "fairtrial has one of that name",
    ("commands", "optim", "broken_nowhere:Gone"): "fairtrial has one of that name",
    ("pages", "gone", "broken_parts:Missing"): "has no attribute 'Missing'",
    ("pages", "number", "broken_parts:NUMBER"): "not a section of the web page",
    ("reports", "gone", "broken_nowhere:Gone"): "No module named 'broken_nowhere'",
    ("reports", "number", "broken_parts:NUMBER"): "not an export format, as `Format` describes it",
    ("reports", "html", "broken_parts:HTML"): "fairtrial has one of that name",
}
ONLY_WHEN_SHOWN = {("pages", "raises", "broken_parts:Page"): "ValueError: no page today"}
ONLY_WHEN_SHOWN[("pages", "routeless", "broken_parts:Routeless")] = "it has no `routes`"
FINE = {("reports", "mine", "broken_parts:MINE")}


def install(folder: Path, plugin: str, entry_points: str) -> None:
    """What `pip install` leaves behind for a plug-in."""
    info = folder / f"{plugin.replace('-', '_')}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {plugin}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(entry_points)


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a plug-in in which nothing can be used."""
    folder = tmp_path_factory.mktemp("broken")
    (folder / "broken_parts.py").write_text(PARTS)
    (folder / "broken_exits.py").write_text(EXITS)
    points = ["[fairtrial.scorrers]\nx = broken_parts:Match\n"]
    points += [f"[fairtrial.{door}]\n{name} = {where}\n" for door, name, where in {*UNUSABLE, *ONLY_WHEN_SHOWN, *FINE}]
    install(folder, "fairtrial-broken", "".join(points))
    return folder


def fairtrial(*arguments: str, folder: Path, program: str | None = None) -> subprocess.CompletedProcess[str]:
    command = ["-m", "fairtrial", *arguments] if program is None else ["-c", program]
    environment = {**os.environ, "PYTHONPATH": str(folder), "COLUMNS": "1000"}
    return subprocess.run([sys.executable, *command], check=False, capture_output=True, text=True, env=environment)


def said_of(door: str, text: str) -> bool:
    """Whether every sentence about the parts of a door is there, with the plug-in and the part named."""
    lines = text.splitlines()
    wanted = {(name, reason) for (family, name, _), reason in UNUSABLE.items() if family == door}
    return all(
        any(
            "the plug-in `fairtrial-broken`" in line and f"{door[:-1]} `{name}`" in line and reason in line
            for line in lines
        )
        for name, reason in wanted
    )


def test_every_door_is_tried():
    assert {door for door, _, _ in UNUSABLE} == set(registry.DOORS)


def test_the_help_lists_the_commands_and_names_the_plug_in(broken):
    shown = fairtrial("--help", folder=broken)
    assert shown.returncode == 0 and "Run a suite." in shown.stdout and "Compare prompt styles" in shown.stdout
    assert "gone" not in shown.stdout and said_of("commands", shown.stderr)


def test_metadata_that_cannot_be_read_are_named(tmp_path):
    install(tmp_path, "fairtrial-garbled", "[fairtrial.scorers]\nthis is not an entry point\n")
    shown = fairtrial("--help", folder=tmp_path)
    assert shown.returncode == 0 and "Run a suite." in shown.stdout
    assert "the plug-in `fairtrial-garbled` cannot be used" in shown.stderr and "Traceback" not in shown.stderr


def test_a_broken_command_is_one_sentence(broken):
    shown = fairtrial("gone", folder=broken)
    assert shown.returncode == 1 and shown.stderr.count("the plug-in `fairtrial-broken`: its command `gone`") == 1
    assert "internal error" not in shown.stderr


def test_the_other_scorers_are_listed(broken):
    shown = fairtrial("scorers", "--json", folder=broken)
    listed = json.loads(shown.stdout)
    assert {"match", "json_schema"} <= listed.keys() and "nobody" not in shown.stdout
    assert not {"gone", "number", "guideless", "json-schema", "exits"} & listed.keys()
    assert said_of("scorers", shown.stderr)


def test_the_doctor_says_all_of_it(broken):
    shown = fairtrial("doctor", "--json", folder=broken)
    findings = [finding for finding in json.loads(shown.stdout)["findings"] if finding["what"] == "plug-in"]
    bad = "\n".join(finding["found"] for finding in findings if finding["good"] is False)
    for door in registry.DOORS:
        assert said_of(door, bad), door
    assert "there is no door `fairtrial.scorrers`; did you mean `scorers`?" in bad
    assert shown.returncode == 1


def test_a_suite_runs_and_its_results_are_written(broken, tmp_path):
    (tmp_path / "suite.yaml").write_text(SUITE)
    ran = fairtrial("run", "suite.yaml", "-o", "result.html", folder=broken)
    assert ran.returncode == 0, ran.stderr
    assert "<!doctype html>" in (tmp_path / "result.html").read_text().lower()  # ours, although the ending is taken
    written = fairtrial("export", "latest", "-o", "result.json", folder=broken)
    assert written.returncode == 0 and json.loads((tmp_path / "result.json").read_text())["arms"]


def test_a_suite_that_names_a_broken_part_is_told_why(broken, tmp_path):
    (tmp_path / "suite.yaml").write_text(SUITE.replace("match", "gone"))
    shown = fairtrial("validate", "suite.yaml", folder=broken)
    assert shown.returncode == 1 and "the plug-in `fairtrial-broken`: its scorer `gone`" in shown.stderr
    (tmp_path / "suite.yaml").write_text(SUITE.replace("mock:echo", "gone:model"))
    shown = fairtrial("validate", "suite.yaml", folder=broken)
    assert shown.returncode == 1 and "the plug-in `fairtrial-broken`: its target `gone`" in shown.stderr


def test_results_suites_traces_and_logs_are_imported(broken, tmp_path):
    (tmp_path / "table.json").write_text('[{"case": "a", "model": "x", "score": 1}]')
    shown = fairtrial("import", "results", "table.json", folder=broken)
    assert shown.returncode == 0 and said_of("results", shown.stderr)
    shown = fairtrial("import", "--help", folder=broken)
    assert shown.returncode == 0 and "promptfoo" in shown.stdout and said_of("importers", shown.stderr)
    (tmp_path / "traces.json").write_text("{}")
    shown = fairtrial("import", "traces", "traces.json", folder=broken)
    assert said_of("traces", shown.stderr) and "Traceback" not in shown.stderr
    shown = fairtrial("import", "log", "traces.json", folder=broken)
    assert said_of("logs", shown.stderr) and "Traceback" not in shown.stderr


SERVED = """
import asyncio
from pathlib import Path
from starlette.testclient import TestClient
from fairtrial.store import Store
from fairtrial.web.app import make_app
from fairtrial.web.site import Site

site = Site(Store("sqlite:///s.db"), Path())
page = TestClient(make_app(site)).get("/suites")
print(page.status_code, "Suites" in page.text)
site.close()
"""


def test_the_web_page_has_its_other_pages(broken):
    shown = fairtrial(folder=broken, program=SERVED)
    assert shown.stdout.split() == ["200", "True"], shown.stderr
    assert said_of("pages", shown.stderr)
    for reason in ONLY_WHEN_SHOWN.values():
        assert reason in shown.stderr
