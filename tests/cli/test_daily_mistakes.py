"""What people get wrong every day: one sentence, exit 1, and never an internal error."""

from __future__ import annotations

import gzip
import json
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from fairtrial.cli.main import _run
from fairtrial.store import Store
from tests import forks

RESULTS = Path(__file__).parents[1] / "data" / "results"
HEAD = "name: s\ntargets: [mock:echo]\n"
Case = Callable[[Path], list[str]]


def suite(folder: Path, text: str) -> list[str]:
    (folder / "s.yaml").write_text(text, "utf-8")
    return ["validate", "s.yaml"]


def empty_scorer(folder: Path) -> list[str]:
    return suite(folder, HEAD + "scorer:\ncases: [{input: q, expected: a}]\n")


def empty_scorer_of_a_target(folder: Path) -> list[str]:
    return suite(folder, "name: s\ntargets: [{target: mock:echo, scorer: }]\nscorer:\ncases: [{input: q}]\n")


def check_without_steps(folder: Path) -> list[str]:
    check = "{name: c, steps: }"
    return suite(folder, HEAD + f"scorer: browser\ncases: [{{input: q, checks: [{check}]}}]\n")


def check_with_empty_steps(folder: Path) -> list[str]:
    return suite(folder, HEAD + "scorer: browser\ncases: [{input: q, checks: [{name: c, steps: []}]}]\n")


def check_with_an_empty_step(folder: Path) -> list[str]:
    return suite(folder, HEAD + "scorer: browser\ncases: [{input: q, checks: [{name: c, steps: [null]}]}]\n")


def text_beside_defaults(folder: Path) -> list[str]:
    return suite(folder, HEAD + "case_defaults: {tags: [t]}\ncases: [a text]\n")


def text_that_is_the_cases_beside_defaults(folder: Path) -> list[str]:
    return suite(folder, HEAD + "case_defaults: {tags: [t]}\ncases: a text\n")


def long_name_of_a_file(_: Path) -> list[str]:
    return ["validate", "s" * 5000 + ".yaml"]


def long_name_of_a_dataset(folder: Path) -> list[str]:
    return suite(folder, HEAD + f"dataset: {{path: {'d' * 5000}.csv}}\n")


def long_name_of_a_store(_: Path) -> list[str]:
    return ["list", "--store", "s" * 5000 + ".db"]


def long_name_of_a_problem(_: Path) -> list[str]:
    return ["validate", "p" * 5000 + ".lp"]


def long_name_of_results(_: Path) -> list[str]:
    return ["import", "results", "r" * 5000]


def long_name_of_an_output(folder: Path) -> list[str]:
    suite(folder, HEAD + "cases: [{input: q, expected: a}]\n")
    return ["run", "s.yaml", "-q", "-o", "o" * 5000 + ".html"]


def nul_in_a_suite(_: Path) -> list[str]:
    return ["validate", "a\0b.yaml"]


def nul_in_a_dataset(folder: Path) -> list[str]:
    return suite(folder, HEAD + 'dataset: {path: "a\\0b.csv"}\n')


def nul_in_a_store(_: Path) -> list[str]:
    return ["list", "--store", "a\0b.db"]


def nul_in_results(_: Path) -> list[str]:
    return ["import", "results", "a\0b"]


def nul_in_an_import(_: Path) -> list[str]:
    return ["import", "promptfoo", "a\0b"]


def nul_in_a_problem(_: Path) -> list[str]:
    return ["validate", "a\0b.lp"]


def nul_in_an_output(folder: Path) -> list[str]:
    suite(folder, HEAD + "cases: [{input: q, expected: a}]\n")
    return ["run", "s.yaml", "-q", "-o", "a\0b.html"]


def foreign_bytes(suffix: str) -> Case:
    def made(folder: Path) -> list[str]:
        (folder / f"p{suffix}").write_bytes(b"\xff\xfe\x00K\xe4se\n")
        return ["validate", f"p{suffix}"]

    made.__name__ = f"foreign_bytes_in{suffix}"
    return made


def packed(folder: Path, change: Callable[[bytearray], bytes | bytearray]) -> list[str]:
    body = bytearray((RESULTS / "promptfoo" / "promptfoo.db.gz").read_bytes())
    (folder / "promptfoo.db.gz").write_bytes(change(body))
    return ["import", "results", "promptfoo.db.gz"]


def cut_database(folder: Path) -> list[str]:
    return packed(folder, lambda body: body[: len(body) // 2])


def damaged_database(folder: Path) -> list[str]:
    def damage(body: bytearray) -> bytes:
        for place in range(2000, len(body), 97):
            body[place] ^= 0x55
        return bytes(body)

    return packed(folder, damage)


def database_with_damaged_pages(folder: Path) -> list[str]:
    def damage(body: bytearray) -> bytes:
        whole = bytearray(gzip.decompress(body))
        for place in range(4096, len(whole), 61):
            whole[place] ^= 0x55
        return gzip.compress(bytes(whole))

    return packed(folder, damage)


def cut_pages(folder: Path) -> list[str]:
    return packed(folder, lambda body: gzip.compress(gzip.decompress(body)[:20000]))


def tables_that_no_line_can_quote(folder: Path) -> list[str]:
    """What SQLite says of such a table has several lines."""
    with sqlite3.connect(folder / "s.db") as database:
        database.execute("CREATE TABLE runs (a)")
        database.execute("PRAGMA writable_schema = ON")
        database.execute("UPDATE sqlite_master SET sql = ?", ("CREATE TABLE runs (a) `b\n\tc`",))
    database.close()
    return ["store", "check", "--store", "s.db"]


def no_boolean(value: object) -> Case:
    def made(folder: Path) -> list[str]:
        here = folder / "eee"
        shutil.copytree(RESULTS / "every-eval-ever" / "a" / "arith_add", here)
        [file] = [file for file in here.iterdir() if file.suffix == ".json"]
        document = json.loads(file.read_text("utf-8"))
        for one in document["evaluation_results"]:
            one["metric_config"]["lower_is_better"] = value
        file.write_text(json.dumps(document), "utf-8")
        return ["import", "results", "eee"]

    made.__name__ = f"lower_is_better_{type(value).__name__}"
    return made


def schema(version: str) -> Case:
    def made(folder: Path) -> list[str]:
        Store(str(folder / "s.db")).close()
        with sqlite3.connect(folder / "s.db") as database:
            database.execute("UPDATE meta SET value = ? WHERE key = 'schema'", (version,))
        database.close()
        return ["list", "--store", "s.db"]

    made.__name__ = f"schema_{version[:9]}"
    return made


def binary_suite(folder: Path) -> list[str]:
    (folder / "s.yaml").write_bytes(b"name: K\xe4se\n")
    return ["validate", "s.yaml"]


def folder_for_a_suite(folder: Path) -> list[str]:
    (folder / "s.yaml").mkdir()
    return ["validate", "s.yaml"]


def run_that_is_no_text(folder: Path) -> list[str]:
    """As it arrives from a terminal with another encoding."""
    typed = suite(folder, HEAD + "scorer: exact\ncases: [{input: q, expected: q}]\n")
    assert _run(["run", *typed[1:], "--store", "s.db", "--quiet"]) == 0
    return ["show", "K\udce4se", "--store", "s.db"]


MISTAKES: list[Case] = [
    empty_scorer, empty_scorer_of_a_target, check_without_steps, check_with_empty_steps, check_with_an_empty_step,
    text_beside_defaults, text_that_is_the_cases_beside_defaults, long_name_of_a_file,
    long_name_of_a_dataset, long_name_of_a_store, long_name_of_a_problem, long_name_of_results, long_name_of_an_output,
    nul_in_a_suite, nul_in_a_dataset, nul_in_a_store, nul_in_results, nul_in_an_import, nul_in_a_problem,
    nul_in_an_output, *map(foreign_bytes, (".lp", ".mps", ".yaml", ".mps.gz")), cut_database, damaged_database,
    database_with_damaged_pages, cut_pages, *map(no_boolean, ("maybe", {}, [1], 7)), *map(schema, ("abc", "-1", "", "1" * 5000)),
    binary_suite, folder_for_a_suite, run_that_is_no_text,
]  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.__name__)
def test_a_mistake_is_one_sentence(tmp_path, monkeypatch, capsys, mistake):
    monkeypatch.chdir(tmp_path)
    typed = mistake(tmp_path)
    capsys.readouterr()
    code = _run(typed)
    out, said = capsys.readouterr()
    assert code == 1, (code, out, said)
    assert said.startswith("error: "), said
    for word in ("internal error", "Traceback", "Error:", "codec can't"):
        assert word not in said, said
    assert len(said) < 1100, len(said)


def test_what_sqlite_says_in_several_lines_is_one(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert _run(tables_that_no_line_can_quote(tmp_path)) == 1
    said = capsys.readouterr().err
    assert said.startswith("error: ") and said.count("\n") == 1, said


@pytest.mark.parametrize("command", ["list", "show --json", "--help", "scorers"])
def test_a_full_disk_is_said(tmp_path, write_suite, command):
    assert forks.run("run", write_suite(), "-q", "--store", tmp_path / "s.db").returncode == 0
    store = ["--store", tmp_path / "s.db"] if command.startswith(("list", "show")) else []
    with open("/dev/full", "w") as full:  # a device
        typed = [sys.executable, "-m", "fairtrial", *command.split(), *map(str, store)]
        done = subprocess.run(typed, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == "error: what this command prints or stores cannot be written: No space left on device\n"


@pytest.mark.parametrize("command", ["run s.yaml", "validate s.yaml", "list", "doctor --json"])
def test_a_folder_that_was_deleted_is_said(tmp_path, command):
    program = "import os, sys; os.rmdir(os.getcwd()); from fairtrial.cli.main import main; main(sys.argv[1:])"
    gone = tmp_path / "gone"
    gone.mkdir()
    typed = [sys.executable, "-c", program, *command.split()]
    done = subprocess.run(typed, cwd=gone, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1) and "internal error" not in done.stderr and "Traceback" not in done.stderr
    assert done.returncode == 0 or done.stderr.startswith("error: ") or command.startswith("doctor")
