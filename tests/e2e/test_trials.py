"""Trials from the shell: found by filters, printed for people, written to pipes."""

from __future__ import annotations

import csv
import io
import json
import re
import shlex
from datetime import datetime

import pytest

from fairtrial.analyse.run import Run
from fairtrial.reports.formats import NAMES
from tests import forks
from tests.conftest import numbered

PLACES = {"fr": "Paris", "es": "Madrid", "it": "Rome", "de": "Berlin"}


def case(name, n):
    return {
        "id": name,
        "input": f"Capital of {name}?",
        "expected": PLACES[name],
        "category": "south" if n in (1, 2) else "north",
        "difficulty": "easy" if n else "hard",
        "tags": ["latin", 'a"quoted', ","][: 3 - n] if n < 3 else [],
        "scorer": "exact",
    }


@pytest.fixture
def run(cli, write_suite):
    """Three arms with repeats: one good, one poor, one whose calls fail."""
    good = {f"of {name}?": [place, "Rome, which has been the capital " * 9] for name, place in PLACES.items()}
    path = write_suite(
        targets=[
            {"id": "poor", "target": "mock:x", "options": {"answer": "Lyon"}},
            {"id": "good", "target": "mock:x", "options": {"answers": good}},
            {"id": "down", "target": "mock:x", "options": {"answer": "x", "faults": {"500": 1.0}}},
        ],
        cases=[case(name, n) for n, name in enumerate(PLACES)],
        repeats=2,
        retry={"attempts": 1},
    )
    assert cli("run", path, "--quiet")[0] == 2
    return Run.find()


FILTERS = {
    "--trials": lambda t: True,
    "--arm good": lambda t: t.arm == "good",
    "--arm good --arm poor": lambda t: t.arm in ("good", "poor"),
    "--case it": lambda t: t.case_id == "it",
    "--category south": lambda t: t.category == "south",
    "--difficulty hard": lambda t: t.difficulty == "hard",
    "--tag latin": lambda t: "latin" in t.tags,
    "--tag ,": lambda t: "," in t.tags,
    '--tag a"quoted --arm good': lambda t: 'a"quoted' in t.tags and t.arm == "good",
    "--below 50": lambda t: t.score is not None and t.score < 0.5,
    "--above 99.9": lambda t: t.score == 1,
    "--above 100": lambda t: False,
    "--below 0": lambda t: False,
    "--failed": lambda t: t.status == "failed",
    "--unscored": lambda t: t.status == "unscored",
    "--failures": lambda t: t.status != "scored",
    "--failed --category south --case es": lambda t: t.status == "failed" and t.case_id == "es",
}


@pytest.mark.parametrize("words", FILTERS)
def test_every_filter_finds_its_trials(cli, run, words):
    wanted = [trial.trial_id for trial in run.trials() if FILTERS[words](trial)]
    code, out, err = cli("show", *words.split(), "--json")
    document = json.loads(out)
    assert code == 0 and err == "" and document["schema_version"] == 2 and document["run_id"] == run.id
    assert [trial["trial_id"] for trial in document["trials"]] == wanted
    assert document["matching_trials"] == len(wanted)
    text = cli("show", *words.split())[1]
    assert re.findall(r"^ ([0-9a-f]{8}) ", text, re.MULTILINE) == [name[:8] for name in wanted]
    assert bool(wanted) != ("no trial matches" in text)
    assert max(map(len, text.splitlines())) <= 80


def test_where_the_best_arm_has_no_wrong_answer_those_of_another_are_named(cli, write_suite):
    targets = [
        {"id": "per fect", "target": "mock:x", "options": {"answer": "42"}},
        {"id": "so-so", "target": "mock:x", "options": {"answers": {"1?": "42"}, "answer": "no"}},
    ]
    assert cli("run", write_suite(targets=targets, cases=numbered(3)), "--quiet")[0] == 0
    code, out, _ = cli("show", "--wrong")
    (command,) = re.findall("`fairtrial (.*)`", out)
    assert code == 0 and "no answer of per fect lost points; of so-so:" in out
    assert cli(*shlex.split(command))[1].endswith("2 trials; --trial ID shows one in full\n")


def test_a_perfect_arm_alone_is_not_searched_for_wrong_answers(cli, write_suite):
    target = {"id": "perfect", "target": "mock:x", "options": {"answer": "42"}}
    err = cli("run", write_suite(targets=[target], cases=numbered(3)))[2]
    assert "--wrong" not in err and "fairtrial show --trials " in err
    assert cli("show", "--wrong")[1].endswith("no answer of perfect lost points\n")


def test_without_a_score_no_answer_is_wrong(cli, write_suite):
    target = {"id": "down", "target": "mock:x", "options": {"answer": "x", "faults": {"500": 1.0}}}
    cli("run", write_suite(targets=[target], cases=numbered(3), retry={"attempts": 1}), "--quiet")
    assert cli("show", "--wrong")[1].endswith("no answer of down has a score\n")


@pytest.mark.slow
def test_the_wrong_answers_of_the_best_arm(cli, run):
    out = cli("show", "--wrong", "--json")[1]
    trials = json.loads(out)["trials"]
    assert {trial["arm"] for trial in trials} == {"good"} and 0 < len(trials) < 8
    scores = [trial["score"] for trial in trials]
    assert scores == sorted(scores) and max(scores) < 100
    text = cli("show", "--wrong")[1]
    assert "wrong answers of good (the best arm), worst first" in " ".join(text.split())
    assert re.search(r"expected  Paris\n +answer  Rome, which has", text)
    assert text.count("…") == len(trials) and cli("show", "--wrong", "--full")[1].count("…") == 0
    other = json.loads(cli("show", "--wrong", "--arm", "poor", "--json")[1])["trials"]
    assert {trial["arm"] for trial in other} == {"poor"} and len(other) == 8


def test_wide_characters_fit_too(cli, write_suite):
    from rich.cells import cell_len

    target = {"id": "模型" * 30, "target": "mock:x", "options": {"answer": "回答" * 90}}
    assert (
        cli(
            "run",
            write_suite(targets=[target], cases=[{"id": "问" * 60, "input": "问题 " * 70, "expected": "x"}]),
            "-q",
        )[0]
        == 0
    )
    for out in (cli("show", "--trials")[1], cli("show", "--cases", "--trials")[1]):
        assert "模型" in out and max(map(cell_len, out.splitlines())) <= 80


def test_a_limit_says_what_is_left(cli, run):
    out = cli("show", "--trials", "--limit", "3")[1]
    assert len(re.findall(r"^ [0-9a-f]{8} ", out, re.MULTILINE)) == 3 and "3 of 24 trials" in out
    assert len(json.loads(cli("show", "--trials", "--limit", "3", "--json")[1])["trials"]) == 3


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--arm goood", "has no arm `goood`; did you mean `good`?"),
        ("--category souht", "has no category `souht`; did you mean `south`?"),
        ("--tag nothing", "has no tag `nothing`; known:"),
        ("--case xx", "has no case `xx`"),
        ("--wrong --failed", "leave one out"),
        ("--by nothing", "has a `nothing`; known: category, difficulty, tag"),
    ],
)
def test_a_name_that_the_run_does_not_have(cli, run, words, message):
    code, _, err = cli("show", *words.split())
    assert code == 1 and message in err and err.count("\n") == 1


@pytest.mark.slow
def test_repeats_times_and_scores_are_the_same_everywhere(cli, run, tmp_path):
    documents = json.loads(cli("show", "--trials", "--json")[1])["trials"]
    lines = [json.loads(line) for line in cli("export", "-o", "-", "--format", "jsonl")[1].splitlines()]
    table = list(csv.DictReader(io.StringIO(cli("export", "-o", "-", "--format", "csv")[1])))
    frame = run.frame()
    for document, line, row, (_, record) in zip(documents, lines, table, frame.iterrows(), strict=True):
        assert document["repeat"] == line["repeat"] == int(row["repeat"]) == record["repeat"] in (1, 2)
        assert document["started_at"] == line["started_at"] == row["started_at"]
        moment = datetime.fromisoformat(document["started_at"])
        assert moment.tzinfo and abs(moment.timestamp() - record["started_at"].timestamp()) < 0.001
        assert document["score"] == line["score"] == (float(row["score"]) if row["score"] else None)
        if document["score"] is not None:
            assert document["score"] == pytest.approx(100 * record["score"])
    summary = json.loads(cli("show", "--json")[1])
    assert datetime.fromisoformat(summary["created_at"]) < datetime.fromisoformat(summary["ended_at"])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["md", "json", "jsonl", "csv", "junit.xml"])
def test_standard_output_has_what_the_file_has(cli, run, name, tmp_path):
    path = tmp_path / f"r.{name}"
    assert cli("export", "-o", path)[0] == 0
    assert cli("export", "-o", "-", "--format", name) == (0, path.read_bytes().decode(), "")


@pytest.mark.slow
def test_a_binary_format_goes_through_a_pipe(run, tmp_path):
    import pyarrow.parquet as pq

    out, _ = forks.start("export", "-o", "-", "--format", "parquet").communicate()
    table = pq.read_table(io.BytesIO(out))
    assert table.num_rows == 24 and str(table.schema.field("started_at").type) == "timestamp[ms, tz=UTC]"
    assert set(table["repeat"].to_pylist()) == {1, 2} and max(filter(None, table["score"].to_pylist())) == 100


def test_a_format_is_needed_and_known(cli, run):
    assert "-o - needs --format" in cli("export", "-o", "-")[2]
    code, _, err = cli("export", "-o", "-", "--format", "docx")
    assert code == 1 and all(name in err for name in NAMES)
    assert "fairtrial export" in cli("run", "suite.yaml", "-o", "-")[2]


@pytest.mark.slow
@pytest.mark.parametrize("command", ["export -o - --format jsonl", "export -o - --format csv", "show --trials --json"])
def test_a_closed_pipe_is_no_error(cli, write_suite, tmp_path, command):
    long = {"id": "m", "target": "mock:x", "options": {"answer": "long " * 500}}
    assert cli("run", write_suite(targets=[long], cases=numbered(200)), "--quiet")[0] == 0
    process = forks.start(*command.split())
    assert len(process.stdout.read(100)) == 100
    process.stdout.close()
    assert (process.wait(), process.stderr.read()) == (0, b"")


def test_ci_servers_obey_nothing_of_an_export(cli, write_suite, monkeypatch):
    evil = {"id": "m", "target": "mock:x", "options": {"answer": "x\n::error::pwned ##[error]y \x9b2J"}}
    assert cli("run", write_suite(targets=[evil]), "--quiet")[0] == 0
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    for name in ("csv", "md", "jsonl", "json", "junit.xml"):
        out = cli("export", "-o", "-", "--format", name)[1]
        assert out and not re.search(r"^\s*::|##\[|[\x7f-\x9f]", out, re.MULTILINE), name
    answer = json.loads(cli("export", "-o", "-", "--format", "jsonl")[1])["answer"]
    assert answer == "x\n::error::pwned ##[error]y \x9b2J"


def test_retry_with_nothing_failed_says_so(cli, write_suite):
    assert cli("run", write_suite(cases=numbered(2)), "--quiet")[0] == 0
    code, out, err = cli("retry")
    assert code == 0 and err.startswith("nothing to retry") and "mock:echo" in out


def test_a_folder_that_cannot_be_written_is_found_before_anything_is_asked(cli, write_suite, tmp_path):
    (tmp_path / "r.md").mkdir()
    for output in ("/proc/r.csv", "r.md"):
        code, _, err = cli("run", write_suite(), "-o", output)
        assert code == 1 and "cannot be written" in err and err.count("\n") == 1
    assert not (tmp_path / ".fairtrial").exists()


def test_a_file_that_cannot_be_written_later_does_not_hide_the_result(cli, write_suite):
    two = ["mock:echo", {"id": "b", "target": "mock:x", "options": {"answer": "Paris"}}]
    code, out, err = cli("run", write_suite(targets=two), "-o", "r.eee.json", "-o", "r.csv")
    assert code == 1 and "95 % CI" in out and "written: r.csv" in err
    assert "error: " in err and "the run is saved" in err and "Traceback" not in err


def test_means_are_printed_once(cli, run):
    """In the picture and nowhere else: what stands below it has other numbers."""
    out = cli("show")[1].partition("\n\n")[2]  # below the headline
    mean = f"{100 * next(arm.aggregate.mean for arm in run.arms if arm.arm == 'good'):.1f}"
    (row,) = re.findall(r"^ 1\S* +good .*$", out, re.MULTILINE)
    assert mean in row and "●" in row and len(re.findall(rf"good.* {mean}", out)) == 1


def test_progress_leaves_room_for_what_ctrl_c_writes():
    """At the end of a full line a terminal's `^C` begins another, and the first line of the display is left behind."""
    from fairtrial.cli.console import Console
    from fairtrial.cli.watch import live_lines
    from fairtrial.engine.progress import Progress

    progress = Progress(["an-arm-with-a-long-name/and-a-condition"], [40])
    console = Console(width=80, file=io.StringIO())
    console.print(*live_lines(progress, 80), sep="\n")
    assert max(map(len, console.file.getvalue().splitlines())) <= 77
