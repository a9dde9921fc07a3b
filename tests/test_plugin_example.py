"""The example of a plug-in, installed as its users would: every part comes in through its door."""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

REPO = Path(__file__).parent.parent
PLUGIN = REPO / "examples" / "plugin"
HOSTILE = """name: hostile
targets: [mock:echo]
scorer: reading_ease
cases: [{input: "<script>alert(1)</script> is it. Administrative <b>responsibilities</b>."}]
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which pip has installed the plug-in, with nothing from the network."""
    source = shutil.copytree(PLUGIN, tmp_path_factory.mktemp("source") / "plugin")  # building leaves files behind
    folder = tmp_path_factory.mktemp("installed")
    command = [
        "pip",
        "install",
        "--no-index",
        "--no-deps",
        "--no-build-isolation",
        "--target",
        str(folder),
        str(source),
    ]
    subprocess.run([sys.executable, "-m", *command], check=True, capture_output=True, text=True)
    return folder


def start(installed: Path, *arguments: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *arguments]
    environment = {**os.environ, "PYTHONPATH": str(installed), "COLUMNS": "200"}
    return subprocess.run(command, check=False, capture_output=True, text=True, env=environment, cwd=folder)


@pytest.fixture
def fairtrial(installed: Path):
    """Run a command that is expected to work, and return what it prints."""

    def run(*arguments: str) -> str:
        done = start(installed, "-m", "fairtrial", *arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.mark.slow
def test_its_parts_are_listed(fairtrial, installed):
    assert re.search(r"^ +readability +Show how easy the answers of RUN are to read", fairtrial("--help"), re.MULTILINE)
    assert "English answers" in json.loads(fairtrial("scorers", "--json"))["reading_ease"]["best_for"]
    findings = json.loads(start(installed, "-m", "fairtrial", "doctor", "--json").stdout)["findings"]
    (found,) = [finding["found"] for finding in findings if finding["what"] == "plug-in"]
    points = tomllib.loads((PLUGIN / "pyproject.toml").read_text("utf-8"))["project"]["entry-points"]
    for door, parts in points.items():
        assert all(f"{door.removeprefix('fairtrial.')[:-1]} {name}" in found for name in parts)


@pytest.mark.slow
def test_a_suite_runs_with_its_target_and_scorer_and_is_shown_and_written(fairtrial, tmp_path):
    shutil.copy(PLUGIN / "suite.yaml", tmp_path)
    fairtrial("run", "suite.yaml")
    arms = {arm["arm"]: arm for arm in json.loads(fairtrial("show", "latest", "--json"))["arms"]}
    assert arms.keys() == {"official", "plain"}
    table = fairtrial("readability")
    assert [line.split()[0] for line in table.splitlines()] == ["arm", "plain", "official"]
    assert [arm["arm"] for arm in json.loads(fairtrial("readability", "--json"))["arms"]] == ["plain", "official"]
    fairtrial("export", "latest", "-o", "x.readability.csv")
    rows = list(csv.DictReader((tmp_path / "x.readability.csv").read_text("utf-8").splitlines()))
    assert len(rows) == 6 and float(rows[0]["reading_ease"]) >= 0
    fairtrial("export", "latest", "-o", "x.csv")  # the longest ending decides
    assert (tmp_path / "x.csv").read_text("utf-8").startswith('"run_id"')


@pytest.mark.slow
def test_errors_of_its_command_are_one_sentence(installed):
    done = start(installed, "-m", "fairtrial", "readability", "nowhere")
    assert done.returncode == 1 and done.stderr.startswith("error: ") and "Traceback" not in done.stderr


VISITS = """
import sys
from starlette.testclient import TestClient
from fairtrial.plugins import web_app

with web_app() as app:
    client = TestClient(app)
    for path in sys.argv[1:]:
        reply = client.get(path)
        print(reply.status_code, reply.text, end="\\0")
"""


@pytest.mark.slow
def test_its_pages_are_shown_and_hostile_answers_are_only_text_there(fairtrial, installed, tmp_path):
    (tmp_path / "suite.yaml").write_text(HOSTILE)
    fairtrial("run", "suite.yaml")
    run = json.loads(fairtrial("show", "latest", "--json"))["run_id"]
    paths = ["/runs", "/readability", f"/runs/{run}", f"/readability/{run}", f"/runs/{run}/cases/1/1/1"]
    visited = start(installed, "-c", VISITS, *paths)
    pages = dict(zip(paths, visited.stdout.split("\0")[:-1], strict=True))
    for page in pages.values():
        assert page.startswith("200 ") and '<a href="/readability"' in page
        assert "<script>alert" not in page and "<b>responsibilities" not in page
    assert f'<a class="btn" href="/readability/{run}">Readability</a>' in pages[f"/runs/{run}"]
    assert "&lt;b&gt;responsibilities&lt;/b&gt;" in pages[f"/readability/{run}"]
    part = pages[paths[-1]].partition('<section aria-label="Readability">')[2].partition("</section>")[0]
    assert "Hardest sentence: Administrative &lt;b&gt;responsibilities&lt;/b&gt;." in part


@pytest.mark.slow
def test_its_own_tests_pass_with_the_command_that_it_names(installed, tmp_path):
    assert re.search(r"^pytest +#", (PLUGIN / "README.md").read_text("utf-8"), re.MULTILINE)
    folder = shutil.copytree(PLUGIN, tmp_path / "plugin")
    shutil.rmtree(folder / "src")  # what is installed is tested
    done = start(installed, "-m", "pytest", folder=folder)
    assert done.returncode == 0, done.stdout
    assert re.search(r"^\d+ passed", done.stdout.splitlines()[-1].strip("= "))
