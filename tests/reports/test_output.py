"""What others wrote, in terminals, logs, files and pictures: it is seen, and does nothing."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import fairtrial
from fairtrial.analyse.run import Run
from fairtrial.cli.main import _run, cli
from fairtrial.reports import SCHEMA_VERSION
from fairtrial.reports.export import export
from fairtrial.reports.json import document
from fairtrial.store import Store
from fairtrial.text.printable import name_problem, printable, without_commands

ESC = "\x1b[31m\x1b]0;owned\x07\x9b2J"
RAW = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


@pytest.fixture
async def nasty(run_suite, store):
    """A run that was stored before names were checked, with a program that swears at terminals and CI servers."""
    code = f"import sys; sys.stderr.write('gone wrong\\n::error::pwned\\n##[error]x {ESC}'); sys.exit(1)"
    targets = [
        {"id": "says", "target": "mock:x", "options": {"answer": f"::set-output name=x::y {ESC}\n::error::z"}},
        {"id": "fails", "target": "command:x", "options": {"command": [sys.executable, "-c", code]}},
    ]
    run = await run_suite(targets=targets, conditions={"cond": {"system": "x"}}, retry={"attempts": 1})
    import sqlite3

    with sqlite3.connect(store.address) as database:
        arms = json.loads(database.execute("select arms from plans").fetchone()[0])
        for arm in arms:
            arm["name"] = arm["name"].replace("cond", f"c{ESC}")
            arm["condition"]["name"] = f"c{ESC}"
        database.execute("update plans set arms = ?", [json.dumps(arms).encode()])
        database.execute("update plans set suite_name = ?", [f"suite {ESC}"])
    return Run.find(run.id, Store(f"sqlite:///{store.address}"))


class TestTerminal:
    @pytest.mark.slow
    @pytest.mark.parametrize("ci", [True, False])
    async def test_no_command_prints_what_moves_the_cursor(self, nasty, ci, capsys, monkeypatch):
        import anyio.to_thread

        monkeypatch.setenv("FAIRTRIAL_STORE", f"sqlite:///{nasty.store.address}")
        if ci:
            monkeypatch.setenv("GITHUB_ACTIONS", "true")
        trials = [trial.trial_id for trial in nasty.trials()]
        commands = [["show"], ["show", "--trials"], ["show", "--failures"], ["show", "--cases"], ["list"], ["compare"]]
        commands += [
            *(["show", "--trial", trial] for trial in trials),
            ["show", "--json"],
            ["rank"],
            ["show", "nothing\x1b[1m"],
        ]
        for command in commands:
            await anyio.to_thread.run_sync(_run, command)
            said = capsys.readouterr()
            for text in (said.out, said.err):
                assert not RAW.search(text), (command, text)
                if ci:
                    assert not re.search(r"^\s*::|##\[", text, re.MULTILINE), (command, text)
        assert "::error::pwned" in str([trial.failure_message for trial in nasty.trials()])

    def test_a_failure_is_one_line(self):
        from fairtrial.present.words.runs import failure_line

        assert (
            failure_line(("crashed", "ended with 1: x\n::error::y\x1b[0m", 2))
            == "2 × crashed: ended with 1: x ::error::y�[0m"
        )

    def test_json_stays_the_same_json(self, capsys):
        from fairtrial.cli.documents import print_plain_json
        from fairtrial.cli.output import clean_streams

        value = {"a": "x\x1b \x9b2J ##[error]x \n::error::"}
        with clean_streams():
            print_plain_json(value)
        said = capsys.readouterr().out
        assert json.loads(said) == value and not RAW.search(said) and "##[" not in said

    def test_commands_of_ci_servers(self):
        assert without_commands("::error::x\n  ::y\na ::z\n##[group]q") == ": :error::x\n  : :y\na ::z\n## [group]q"
        assert printable("a\x1bb\x9bc\x7fd\te\n") == "a�b�c�d\te\n"

    def test_every_console_of_the_command_line_is_the_clean_one(self):
        folder = Path(fairtrial.__file__).parent / "cli"
        for file in folder.glob("*.py"):
            if file.name != "console.py":
                assert "rich.console" not in file.read_text(), f"{file.name}: take Console from fairtrial.cli.console"

    def test_colours_of_our_own_stay(self, capsys):
        from rich.text import Text

        from fairtrial.cli.console import Console
        from fairtrial.cli.output import clean_streams

        with clean_streams():
            Console(force_terminal=True, color_system="standard").print(Text("bad \x1b[2J", style="red"))
        assert capsys.readouterr().out == "\x1b[31mbad �[2J\x1b[0m\n"


class TestFiles:
    @pytest.mark.slow
    @pytest.mark.parametrize("ending", ["md", "junit.xml", "html"])
    async def test_exports_have_no_control_characters(self, nasty, ending, tmp_path):
        export(nasty, str(tmp_path / f"x.{ending}"))
        text = (tmp_path / f"x.{ending}").read_text()
        assert not RAW.search(text) and (ending == "html" or "\n::" not in text)


class TestTables:
    @pytest.mark.parametrize(
        "text",
        ["=1+1", "+1+1", "-1+1", "@SUM(A1)", "\t=1+1", "\r=1+1", "a;=1+1", "a; =1+1", 'a;"=1+1', "a\t=1+1", "a\n=1+1",
         "a\n-1+1", "=1;=2", "'=1", "a;'=1"],
    )  # fmt: skip
    def test_no_cell_is_a_formula_however_it_is_split(self, text):
        """Excel takes `;` for the end of a cell in much of Europe, and then quotes do not hold."""
        import csv
        import io

        from fairtrial.reports.csv import cell, uncell

        out = io.StringIO()
        csv.writer(out, quoting=csv.QUOTE_NONNUMERIC).writerow(["first", cell(text)])
        for separator in ",;\t":
            for row in csv.reader(io.StringIO(out.getvalue(), newline=""), delimiter=separator):
                assert not [found for found in row if re.match(r"[\s\"]*[=+@\-]", found)], row
        assert uncell(cell(text)) == text

    @settings(deadline=None)
    @given(st.text(alphabet="'=+-@\t\r\n;\" a1"))
    def test_a_text_comes_back_as_it_was(self, text):
        from fairtrial.reports.csv import cell, uncell

        assert uncell(cell(text)) == text

    def test_other_texts_stay_as_they_are(self):
        from fairtrial.reports.csv import cell

        for text in ("-1.5", "+3", "1e-5", "a - b", "- one\n- two"[2:], "x = 1; y = 2", "it's", 5, None):
            assert cell(text) == text


class TestStore:
    def test_it_is_for_its_owner_alone(self, tmp_path):
        import os

        before = os.umask(0)
        try:
            store = Store(f"sqlite:///{tmp_path}/new/runs.db")
            with store.engine.begin() as connection:
                connection.exec_driver_sql("insert into meta values ('x', 'y')")
        finally:
            os.umask(before)
        assert (tmp_path / "new").stat().st_mode & 0o777 == 0o700
        files = [path for path in (tmp_path / "new").iterdir() if path.is_file()]
        assert files and all(path.stat().st_mode & 0o077 == 0 for path in files), files


class TestNames:
    @pytest.mark.parametrize(
        "keys",
        [
            {"name": "a\x1bb"},
            {"targets": [{"id": "a\x1bb", "target": "mock:echo"}]},
            {"targets": ["mock:a\x9bb"]},
            {"conditions": {"a\x1bb": {"system": "x"}}},
            {"judges": [{"id": "a\nb", "target": "mock:x"}]},
            {"cases": [{"id": "a\x1bb", "input": "x"}]},
            {"cases": [{"id": "a", "input": "x", "tags": ["a\x7fb"]}]},
            {"cases": [{"id": "a", "input": "x", "category": "a\u202eb"}]},
        ],
    )
    def test_control_characters_are_refused(self, write_suite, keys, capsys):
        path = write_suite(**keys)
        path.write_text(yaml.safe_dump({**yaml.safe_load(path.read_text()), **keys}, allow_unicode=False))
        assert _run(["validate", str(path)]) == 1
        said = capsys.readouterr().err
        assert "must not contain control characters" in said and not RAW.search(said)

    def test_other_letters_are_welcome(self):
        assert not any(map(name_problem, ["naïve", "模型", "a b/c:d", "🙂", "x-1.5"]))


@pytest.mark.slow
async def test_every_document_says_its_version(run_suite, store, tmp_path):
    from tests.analyse.test_compare import arm, cases

    run = await run_suite(targets=[arm("a", 30), arm("b", 20)], cases=cases(), repeats=2)
    for words in ("show", "list", "compare", "rank", "variance", "cases", "power", "gate --min-score 50"):
        found = CliRunner().invoke(cli, [*words.split(), "--json", "--store", store.address], standalone_mode=False)
        assert json.loads(found.stdout)["schema_version"] == SCHEMA_VERSION, words
    assert json.loads(export(run, tmp_path / "run.json").read_text())["schema_version"] == SCHEMA_VERSION


async def test_an_arm_says_once_where_its_interval_comes_from(run_suite):
    run = await run_suite(targets=["mock:echo"], cases=[{"input": text, "expected": "a"} for text in "abc"])
    (arm,) = document(run.summary())["arms"]
    assert arm["interval_method"] in ("t", "bounded") and "method" not in arm
