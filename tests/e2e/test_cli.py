"""The command line as a person or a program meets it."""

import asyncio
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from contextlib import closing
from pathlib import Path

import pytest

from fairtrial import pipeline
from fairtrial.cli.main import commands
from fairtrial.suites import suite_path
from tests import forks
from tests.conftest import numbered
from tests.e2e.conftest import no_browser


@pytest.fixture
def finished(cli, write_suite):
    """A run of two arms in the default store."""
    path = write_suite(
        targets=[{"id": "good", "target": "mock:x", "options": {"answer": "Paris"}}, "mock:echo"],
        cases=[
            {"id": "fr", "input": "Capital of France?", "expected": "Paris"},
            {"id": "it", "input": "Paris", "expected": "Paris"},
        ],
    )
    assert cli("run", path, "--quiet")[0] == 0
    return path


def test_help_lists_every_command(cli):
    code, out, _ = cli("--help")
    assert code == 0
    for name in commands():
        assert re.search(rf"^  {name} ", out, re.MULTILINE)
    assert cli()[0] == 0


@pytest.mark.parametrize("name", commands())
def test_every_command_has_help(cli, name):
    code, out, _ = cli(name, "--help")
    assert code == 0 and "Usage: fairtrial" in out
    assert all(len(line) <= 80 for line in out.splitlines()), [line for line in out.splitlines() if len(line) > 80]


def test_help_is_quick_and_imports_nothing_heavy():
    code = "import sys; from fairtrial.cli.main import _run; _run(['--help']); print(sorted(sys.modules))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    heavy = ("aiohttp", "sqlalchemy", "numpy", "rich", "yaml", "msgspec", "genai_prices", "asyncio", "xllamacpp")
    loaded = out.rsplit("[", 1)[-1]
    assert not [name for name in heavy if f"'{name}'" in loaded]


def test_run_prints_a_table_that_fits(cli, write_suite):
    targets = [{"id": f"a-rather-long-name-of-a-model-{n}", "target": "mock:echo"} for n in range(2)]
    code, out, _ = cli("run", write_suite(targets=targets, cases=numbered(3), conditions={"with-everything": {}}))
    assert code == 0
    assert "95 % CI" in out and "Few cases (3)" in out
    assert max(map(len, out.splitlines())) <= 80
    # A name that is too long for its column stands whole on a line of its own, above its numbers.
    assert re.search(r"a-rather-long-name-of-a-model-0/with-everything\n +[·━ ]*●.* \d+\.\d +\d+\.\d to \d+\.\d", out)


def test_run_json_is_the_published_document(cli, finished):
    code, out, err = cli("run", finished, "--json")
    document = json.loads(out)
    assert code == 0 and err == ""
    assert {"run_id", "series_id", "suite", "status", "dataset_sha256", "arms"} <= set(document)
    good, echo = document["arms"]
    assert (good["arm"], good["target"], good["condition"]) == ("good", "good", "default")
    assert (good["mean"], good["count"], good["total_weight"], good["trials"], good["scored"], good["failed"]) == (
        100.0,
        2,
        2.0,
        2,
        2,
        0,
    )
    assert good["cost_usd"] == 0 and good["metrics"] == {} and set(good["latency_ms"]) == {"p50", "p95"}
    assert echo["min"] < 50 and echo["max"] == 100.0 and 0 <= echo["ci95"][0] < echo["ci95"][1] <= 100
    assert echo["std_dev"] > 0 and good["prompt_tokens"] > 0


@pytest.mark.slow
def test_progress_of_a_terminal(tmp_path, write_suite):
    """In a real terminal of 80 columns the progress is shown, then gives way to the table."""
    import pty

    path = write_suite(
        targets=[{"id": "slow", "target": "mock:x", "options": {"answer": "42", "latency_ms": 100}}],
        cases=numbered(40),
        concurrency=5,
    )
    main, side = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "fairtrial", "run", str(path)],
        stdin=side,
        stdout=side,
        stderr=side,
        cwd=tmp_path,
        env={**os.environ, "COLUMNS": "80", "TERM": "xterm"},
    )
    os.close(side)
    screen = b""
    while True:
        try:
            block = os.read(main, 65536)
        except OSError:
            break
        if not block:
            break
        screen += block
    assert process.wait() == 0
    text = screen.decode()
    assert re.search(r"\d+ of 40", text) and " a second" in text and " left" in text and "Ctrl-C stops" in text
    cleared, _, result = text.rpartition("\x1b[1A\x1b[2K")  # the display is gone before the result is printed
    assert "of 40" in cleared and re.search(r"slow.* scores 100\.0 \(95 % CI ", result)
    assert "\N{REPLACEMENT CHARACTER}" not in text


@pytest.mark.slow
async def test_ctrl_c_saves_everything(tmp_path, write_suite, model_server):
    state = await model_server(answer="42")
    state.hold(after=50)
    path = write_suite(targets=["openai:m"], cases=numbered(100), concurrency=4)
    process = _start("run", path, cwd=tmp_path)
    await asyncio.to_thread(_wait_for_rows, tmp_path, 20)
    process.send_signal(signal.SIGINT)
    _, err = await asyncio.to_thread(process.communicate)
    assert process.returncode == 130
    assert re.search(r"fairtrial resume +the \d+ trials not finished; everything is saved", err)
    assert 20 <= _stored(tmp_path) <= 50
    state.release()
    process = forks.start("resume", "latest", "--concurrency", "100", "--json")
    out, _ = await asyncio.to_thread(process.communicate)
    assert process.returncode == 0 and json.loads(out)["arms"][0]["scored"] == 100


def _start(*args, cwd: Path) -> subprocess.Popen:
    command = [sys.executable, "-m", "fairtrial", *map(str, args)]
    return subprocess.Popen(command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _stored(folder: Path) -> int:
    import sqlite3

    try:
        with closing(sqlite3.connect(f"file:{folder}/.fairtrial/fairtrial.db?mode=ro", uri=True)) as connection:
            return connection.execute("select count(*) from trials").fetchone()[0]
    except sqlite3.OperationalError:
        return 0


def _wait_for_rows(folder: Path, count: int, seconds: float = 240) -> None:
    end = time.monotonic() + seconds
    while _stored(folder) < count:
        assert time.monotonic() < end, "the run did not get going"
        time.sleep(0.02)


@pytest.mark.slow
def test_a_full_disk_is_one_sentence(tmp_path, write_suite, cli):
    path = write_suite(
        targets=[{"id": "long", "target": "mock:x", "options": {"answer": "y" * 8000}}],
        cases=numbered(250, "x"),
        scorer="boolean",
    )
    limit = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))\n"
    done = forks.run("run", path, "--quiet", program=limit + forks.PROGRAM)
    err = done.stderr
    assert done.returncode == 1
    assert err.count("\n") == 1 and "cannot be read or written: check whether it is full" in err
    stored = _stored(tmp_path)
    assert 0 < stored < 250
    assert json.loads(cli("resume", "--json")[1])["arms"][0]["scored"] == 250


@pytest.mark.slow
def test_series(cli, finished):
    code, out, err = cli("run", finished, "--runs", "3", "--json")
    assert code == 0 and "run 3 of 3" in err
    series = json.loads(out)["series_id"]
    runs = json.loads(cli("list", "--json")[1])["runs"]
    assert [run["series_id"] for run in runs] == [series] * 3 + [None]
    assert len({run["dataset_sha256"] for run in runs}) == 1


@pytest.mark.slow
def test_list_and_show(cli, finished):
    out = cli("list")[1]
    assert re.search(r"^ \S+ +1  \? good, mock:echo .* 4/4  ", out, re.MULTILINE)
    assert max(map(len, out.splitlines())) <= 80
    code, out, _ = cli("show", "latest", "--trials")
    assert code == 0 and "good" in out and "Capital of France?" in out
    assert max(map(len, out.splitlines())) <= 80
    trial = re.search(r"^ ([0-9a-f]{8}) ", out, re.MULTILINE)[1]
    code, out, _ = cli("show", "latest", "--trial", trial)
    assert "matches" in out and " asked " in out and " answered " in out
    assert json.loads(cli("show", "--trial", trial, "--json")[1])["score"] == 100.0
    other = finished.parent / "other.yaml"
    other.write_text(
        "name: other\ntargets: [mock:echo]\nscorer: match\ncases: [{input: Capital of Peru?, expected: Lima}]\n"
    )
    assert cli("run", other, "-q")[0] == 0
    code, out, err = cli("show", "--trial", trial)  # it is in the run before
    assert (code, "matches" in out) == (0, True) and "in run 1 of test; the latest run has no such trial" in err
    assert cli("show", "2", "--trial", trial)[0] == 1 and cli("show", "--trial", "ffffffff")[0] == 1
    cli("delete", "2", "--yes")
    assert "temperature 0.7" in cli("show", "--context")[1]
    context = json.loads(cli("show", "--context", "--json")[1])
    assert context["suite_text"] == finished.read_text() and context["context"]["packages"]["fairtrial"]


def test_exports(cli, finished, tmp_path):
    names = ["r.json", "r.jsonl", "r.csv", "r.md", "r.junit.xml"]
    code, _, err = cli("export", "latest", *[arg for name in names for arg in ("-o", tmp_path / name)])
    assert code == 0 and err.count("written:") == 5
    document = json.loads((tmp_path / "r.json").read_text())
    assert len(document["trials"]) == 4 and document["trials"][0]["score"] == 100.0
    lines = [json.loads(line) for line in (tmp_path / "r.jsonl").read_text().splitlines()]
    assert [line["trial_id"] for line in lines] == [trial["trial_id"] for trial in document["trials"]]
    assert (tmp_path / "r.csv").read_text().count("\n") == 5
    assert "| good | 100.0 |" in (tmp_path / "r.md").read_text()
    suite = ET.parse(tmp_path / "r.junit.xml").getroot()
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("4", "1", "0")
    assert cli("export", "latest", "-o", "r.doc")[0] == 1


def test_what_a_model_wrote_stays_data(cli, write_suite, tmp_path):
    evil = "=c()[bold]x[/bold]\x07\x00\x1b[31m\x9b1m<script>alert(1)</script> ]]>"
    path = write_suite(targets=[{"id": "evil", "target": "mock:x", "options": {"answer": evil}}], name="evil")
    cli("run", path, "--quiet", "-o", "r.csv", "-o", "r.junit.xml", "-o", "r.md", "-o", "r.json")
    ET.parse(tmp_path / "r.junit.xml")
    assert "'=c()" in (tmp_path / "r.csv").read_text()
    assert json.loads((tmp_path / "r.json").read_text())["trials"][0]["answer"] == evil
    trial = json.loads((tmp_path / "r.json").read_text())["trials"][0]["trial_id"]
    for out in (cli("show", "--trials")[1], cli("show", "--trial", trial)[1]):
        assert "[bold]x[/bold]" in out
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f]", out)


def test_delete(cli, finished, monkeypatch):
    assert cli("delete", "latest", "--yes")[0] == 0
    code, _, err = cli("show")
    assert code == 1 and "there is no run in this store yet" in err


def test_rescore(cli, finished):
    code, out, _ = cli("rescore", "latest", "--scorer", '{"type": "boolean", "negate": true}', "--json")
    assert code == 0 and [arm["mean"] for arm in json.loads(out)["arms"]] == [0.0, 50.0]
    assert cli("rescore", "latest", "--scorer", "{bad")[0] == 1
    assert "did you mean `exact`" in cli("rescore", "latest", "--scorer", "exakt")[2]


@pytest.mark.slow
def test_retry_and_exit_code_2(cli, write_suite, tmp_path):
    target = {"id": "m", "target": "mock:x", "options": {"answer": "42", "faults": {"500": 0.4}}}
    path = write_suite(targets=[target], cases=numbered(30), retry={"attempts": 1})
    code, out, err = cli("run", path)
    assert code == 2
    assert "× server: HTTP 500" in out and "not counted as 0" in out
    assert re.search(r"fairtrial retry +the \d+ trials without a score", err)
    assert cli("show", "--failures")[1].count("failed") >= 3


@pytest.mark.slow
def test_init_runs_as_it_is(cli, tmp_path):
    assert cli("init", tmp_path / "new")[0] == 0
    suite = tmp_path / "new" / "suite.yaml"
    assert "$schema=suite.schema.json" in suite.read_text()
    assert json.loads((tmp_path / "new" / "suite.schema.json").read_text())["title"] == "fairtrial suite"
    assert cli("validate", suite)[0] == 0
    assert cli("run", suite, "--quiet")[0] == 0
    code, _, err = cli("init", tmp_path / "new")
    assert code == 1 and "--force" in err


@pytest.mark.slow
def test_validate(cli, write_suite, finished):
    code, out, _ = cli("validate", finished)
    assert code == 0 and "2 cases × 2 arms, 4 trials" in out
    bad = write_suite("bad.yaml", repeets=3)
    code, out, err = cli("validate", bad)
    assert code == 1 and "did you mean `repeats`?" in err and "bad.yaml:" in err
    code, out, _ = cli("validate", bad, "--json")
    document = json.loads(out)
    assert code == 1 and not document["valid"] and document["problems"][0]["key"] == "repeets"
    assert json.loads(cli("validate", finished, "--json")[1])["trials"] == 4
    assert json.loads(cli("validate", "--schema")[1])["$defs"]["SuiteDocument"]
    assert cli("validate")[0] == 1


def test_dry_run_asks_nothing(cli, write_suite, monkeypatch, tmp_path):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-x-12345678")
    path = write_suite(targets=["openai:gpt-5-mini"], cases=numbered(3), repeats=2)
    code, out, _ = cli("run", path, "--dry-run")
    assert code == 0 and "6 trials; nothing was run" in out and "$" in out
    assert json.loads(cli("run", path, "--dry-run", "--json")[1])["trials"] == 6
    assert not (tmp_path / ".fairtrial").exists()


@pytest.mark.slow
def test_options_from_the_environment(cli, finished, monkeypatch):
    monkeypatch.setenv("FAIRTRIAL_REPEATS", "3")
    monkeypatch.setenv("FAIRTRIAL_TARGET", "good")
    monkeypatch.setenv("FAIRTRIAL_JSON", "1")
    (arm,) = json.loads(cli("run", finished)[1])["arms"]
    assert (arm["arm"], arm["trials"]) == ("good", 6)


def test_dotenv_is_read_and_does_not_override(cli, write_suite, tmp_path, monkeypatch):
    (tmp_path / ".env").write_text("GREETING=from-file\nOTHER=from-file-too\n")
    monkeypatch.setenv("GREETING", "from-environment")
    monkeypatch.delenv("OTHER", raising=False)
    cases = [{"input": "${GREETING} ${OTHER}", "expected": "from-environment from-file-too"}]
    assert json.loads(cli("run", write_suite(cases=cases), "--json")[1])["arms"][0]["mean"] == 100.0
    os.environ.pop("OTHER", None)


def test_an_imported_suite_is_checked_without_keys(cli, tmp_path, monkeypatch):
    monkeypatch.delenv("GROQ_API_KEY", raising=False)
    (tmp_path / "c.yaml").write_text(
        "prompts: ['{{q}}']\nproviders: [groq:llama-x]\n"
        "tests: [{vars: {q: hi}, assert: [{type: python, value: len(output) > 1}]}]\n"
    )
    suite = tmp_path / "deep" / "s.yaml"
    suite.parent.mkdir()
    code, _, err = cli("import", "promptfoo", tmp_path / "c.yaml", "-o", suite)
    assert code == 0 and "to run it, set GROQ_API_KEY" in err and "s_code.py (code of the original)" in err
    assert "to do" not in err and "not converted" not in err
    code, out, _ = cli("validate", "--no-keys", suite)
    assert code == 0 and "is valid: 1 case" in out and "to run it, set GROQ_API_KEY" in out
    assert json.loads(cli("validate", "--no-keys", "--json", suite)[1])["valid"]
    code, _, err = cli("validate", suite)
    assert code == 1 and "groq:llama-x needs GROQ_API_KEY" in err
    suite.unlink()
    code, _, err = cli("import", "promptfoo", tmp_path / "c.yaml", "-o", suite)
    assert code == 1 and "s_code.py already exists: write the suite elsewhere with -o, or use --force" in err


def test_suites_of_promptfoo_stand_side_by_side(cli, tmp_path):
    """Each brings code of its own; a picture that both have is one file."""
    picture = "data:image/png;base64,iVBORw0KGgo="
    for name, limit in (("promptfooconfig", 1), ("long", 1000)):
        (tmp_path / f"{name}.yaml").write_text(
            f"prompts: ['{{{{q}}}} {{{{image}}}}']\nproviders: [echo]\ntests:\n"
            f"  - {{vars: {{q: hi, image: '{picture}'}}, assert: [{{type: python, value: len(output) > {limit}}}]}}\n"
        )
    assert cli("import", "promptfoo", "promptfooconfig.yaml")[0] == 0
    code, _, err = cli("import", "promptfoo", "long.yaml")
    assert code == 1 and "suite.yaml already exists: choose another file with -o" in err
    code, _, err = cli("import", "promptfoo", "long.yaml", "-o", "long-suite.yaml")
    assert code == 0 and "written: long-suite_code.py" in err
    for name, score in (("suite.yaml", 100.0), ("long-suite.yaml", 0.0)):
        code, out, err = cli("run", name, "--json", "--quiet")
        assert code == 0 and json.loads(out)["arms"][0]["mean"] == score, out + err


def test_import(cli, tmp_path):
    (tmp_path / "cases.json").write_text('[{"prompt": "q", "expectedOutput": "a", "scoringMethod": "odd-one"}]')
    code, _, err = cli("import", "benchmaker", tmp_path / "cases.json", "-o", tmp_path / "s.yaml")
    assert code == 0 and "(1 case)" in err and "not converted: scoring method `odd-one`" in err
    assert cli("run", tmp_path / "s.yaml", "--quiet")[0] == 0
    assert cli("import", "benchmaker", tmp_path / "cases.json", "-o", tmp_path / "s.yaml")[0] == 1
    assert "did you mean `promptfoo`" in cli("import", "promptfo", tmp_path / "cases.json", "-o", "t.yaml")[2]


@pytest.mark.slow
def test_scorers_and_doctor(cli, finished, monkeypatch):
    out = cli("scorers")[1]
    for name in ("exact", "numeric", "json_schema", "weighted"):
        assert name in out
    assert json.loads(cli("scorers", "--json")[1])["numeric"]["reproducibility"] == "deterministic"
    code, out, _ = cli("doctor")
    assert code == 0 and "fairtrial" in out and ", 1 run" in out and "set OPENAI_API_KEY" in out
    assert re.search(r"browser +.*Chromium \d+", out)
    monkeypatch.setattr("fairtrial.cli.doctor._browser", no_browser)  # once is enough
    assert json.loads(cli("doctor", "--json")[1])["findings"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["rnu"], "did you mean `run`"),
        (["run"], "Missing argument"),
        (["run", "none.yaml"], "there is no file none.yaml"),
        (["run", "suite.yaml", "--bogus"], "No such option"),
        (["run", "suite.yaml", "--repeats", "x"], "not a valid integer"),
        (["run", "suite.yaml", "-o", "x.doc"], "must end in one of"),
        (["run", "suite.yaml", "--store", "/proc/none/x.db"], "cannot be created"),
        (["show", "zzz"], "there is no run `zzz`"),
        (["show", "--trial", "zzz"], "has no trial `zzz`"),
        (["list", "--store", "none.db"], "there is no store at none.db"),
        (["fetch", "gpt-9"], "no embedded model"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_1(cli, finished, args, words):
    code, out, err = cli(*args)
    assert (code, out) == (1, "")
    assert words in err and err.startswith("error: ") and err.count("\n") == 1, err


@pytest.mark.slow
def test_our_own_mistakes_are_one_sentence_too(cli, finished, monkeypatch):
    import fairtrial.analyse.summary as summary

    def broken(*_):
        raise ZeroDivisionError("oops")

    monkeypatch.setattr(summary, "_aggregate", broken)
    code, _, err = cli("show")
    assert code == 1 and "ZeroDivisionError: oops" in err and err.count("\n") == 1


@pytest.mark.slow
def test_output_into_a_closed_pipe(tmp_path, finished):
    command = f"{shlex.quote(sys.executable)} -m fairtrial show --trials | head -n 1"
    done = subprocess.run(command, shell=True, check=False, cwd=tmp_path, capture_output=True, text=True)
    assert done.stderr == "" and done.stdout.startswith("run ")


DEMO = """
from fairtrial import pipeline
from fairtrial.cli.main import main
from fairtrial.config import RunOptions

load = pipeline.load
pipeline.load = lambda path: load(path, RunOptions(limit=2))
main(["demo", "--json"])
"""


@pytest.mark.model
@pytest.mark.slow
def test_demo(tmp_path):
    """Two of its twelve questions: an answer of the model takes a second."""
    from fairtrial.providers.weights import fetch

    assert len(list(pipeline.load(suite_path("demo")).cases())) == 12
    fetch("smollm2")
    done = subprocess.run([sys.executable, "-c", DEMO], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    arms = json.loads(done.stdout)["arms"]
    assert [arm["arm"] for arm in arms] == ["smollm2/plain", "smollm2/one-word"]
    assert all(arm["scored"] == 2 for arm in arms) and arms[0]["mean"] > 30


def test_a_margin_of_nothing_is_explained(cli):
    for command in (["compare", "latest"], ["power", "latest"], ["run", "suite.yaml", "--stop-when", "equivalent"]):
        code, _, err = cli(*command, "--margin", "0")
        assert code == 1 and "a number of points above 0" in err
