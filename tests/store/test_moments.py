"""What is done with a store, killed at every moment: the store opens, says what happened, and doing it again completes it."""

import csv
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

import pytest

from fairtrial.cli.main import _run
from fairtrial.core.variables import Variables
from fairtrial.foreign.results import Columns, Log, Question, Sample
from fairtrial.foreign.source import Source
from fairtrial.store import Store
from fairtrial.store.arriving import is_arriving
from fairtrial.store.checking import check_file
from fairtrial.store.imports import ImportedRun
from fairtrial.tracks.interchange import import_log, import_results
from fairtrial.tracks.interchange.import_log import ImportChoice
from fairtrial.tracks.interchange.import_results import import_all
from tests.lazily import Library
from tests.moments import Killed, copied_moments, killed_at_commit

# What differs from one time to the next.
_FREE = {"created_at", "ended_at", "started_at", "scored_at", "judged_at", "labelled_at", "tagged_at", "waited_ms"}
_FREE |= {"latency_ms", "first_token_ms", "folder"}
_IDS = {"id", "run_id", "series_id"}


@pytest.fixture
def place(tmp_path, monkeypatch):
    """The folder in which something is done."""
    folder = tmp_path / "place"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def content(path, *, ids=True):
    """All rows of a store, without times, and without ids where they are drawn."""
    with closing(sqlite3.connect(path)) as connection:
        connection.row_factory = sqlite3.Row
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        free = _FREE | (set() if ids else _IDS)
        found = {}
        for name in sorted(set(names) - {"meta", "digests"}):
            rows = [dict(row) for row in connection.execute(f"SELECT * FROM {name}")]
            shown = [
                {key: value for key, value in row.items() if key not in free and (name, key) != ("runs", "context")}
                for row in rows
            ]
            found[name] = sorted(map(repr, shown))
        return found


def moments_of(place, tmp_path, *commands):
    """Do something, and return the folders that kill -9 would have left."""
    with copied_moments(place, tmp_path) as moments:
        for command in commands:
            assert _run(command) in (0, 2, 100, 101)
    return moments


def look(capsys, store=".fairtrial/fairtrial.db"):
    """Open a store as people would: it is intact, and every command says something. Return what was said of each run."""
    for command in (["list"], ["list", "--json"]):
        assert _run([*command, "--store", store]) == 0
    assert check_file(Path(store)).whole
    said = {}
    for run in Store(store).runs():
        capsys.readouterr()
        for command in (["show", run.id], ["show", run.id, "--json"], ["compare", run.id], ["rank", run.id]):
            assert _run([*command, "--store", store]) in (0, 1)
        out, err = capsys.readouterr()
        assert "internal error" not in out + err and "Traceback" not in out + err
        said[run.id] = " ".join(f"{out}\n{err}".split())
    return said


def results(path, rows=9):
    with open(path, "w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["case", "arm", "score", "answer"])
        table.writerows([f"q{n // 3}", f"arm{n % 3}", n % 2, f"answer {n}"] for n in range(rows))


def test_an_import_is_completed_by_the_next(place, tmp_path, monkeypatch, capsys):
    results("results.csv")
    monkeypatch.setattr(import_log, "_BATCH", 4)
    command = ["import", "results", "results.csv"]
    moments = moments_of(place, tmp_path, command)
    whole = content(".fairtrial/fairtrial.db")
    half = 0
    for moment in moments:
        monkeypatch.chdir(moment)
        if not Path(".fairtrial/fairtrial.db").exists():
            continue
        before = look(capsys)
        for run, said in before.items():
            status = Store(".fairtrial/fairtrial.db").run_of_id(run).status
            assert status == "interrupted" and "import" in said
            half += 1
            assert _run(["tag", run, "mine"]) == 0
            for other in (["resume", run], ["retry", run], ["rescore", run, "--scorer", "exact"], ["pairwise", run]):
                capsys.readouterr()
                assert _run(other) == 1
                assert "import" in capsys.readouterr().err
        assert _run(command) == 0
        assert {**content(".fairtrial/fairtrial.db"), "tags": []} == whole
        if before:
            assert list(Store(".fairtrial/fairtrial.db").tags()) == ["mine"]
    assert half >= 2


def test_an_import_that_was_cut_off_can_be_deleted(place, tmp_path, monkeypatch, capsys):
    results("results.csv")
    monkeypatch.setattr(import_log, "_BATCH", 4)
    moments = moments_of(place, tmp_path, ["import", "results", "results.csv"])
    monkeypatch.chdir(moments[-1])
    assert _run(["delete", "latest", "--yes"]) == 0
    left = content(".fairtrial/fairtrial.db")
    assert not any(left.values())


def log_of(path, attempt, samples=3):
    """A log of the newest or an older attempt at one run."""
    source = Path(path)
    source.write_text(f"attempt {attempt}")
    return Log(
        tool="inspect",
        name="exam",
        samples=lambda: (
            Sample(question=Question(id=f"q{n}", input="?"), arm="m", answer="x", scores={"score": 1.0})
            for n in range(samples)
        ),
        sources=(Source(source),),
        created=float(attempt),
        lineage="one",
    )


def test_a_newer_attempt_takes_the_place_of_the_older_at_once(place, tmp_path):
    """Cut off anywhere, one of them counts, never both; and importing again gives the newer."""

    def bring(attempt, store):
        import_results._import(log_of("log", attempt), ImportChoice(Columns(), {}), store, Variables({}))

    store = Store("a.db")
    bring(1, store)
    with copied_moments(place, tmp_path) as moments:
        bring(2, store)
    for moment in moments:
        left = Store(str(moment / "a.db"))
        assert len([run for run in left.runs() if not is_arriving(run)]) == 1
        bring(2, left)
        (run,) = left.runs()
        assert run.created_at == 2.0 and run.status == "completed"


def after_the_end_of_all_others(url):
    """Open a store on a server to which nobody else is connected any more."""
    with Library("psycopg").connect(url, autocommit=True) as connection:
        ended = "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity"
        connection.execute(f"{ended} WHERE datname = current_database() AND pid <> pg_backend_pid()")
    return Store(url)


@pytest.mark.parametrize("number", range(6))
def test_an_import_into_postgresql_is_completed_by_the_next(number, place, postgres_url, monkeypatch):
    results("results.csv")
    monkeypatch.setattr(import_log, "_BATCH", 4)
    monkeypatch.setattr(ImportedRun, "discard", lambda _: None)  # who is killed does not clean up
    store = Store(postgres_url)
    with killed_at_commit(number) as ended, suppress(Killed):
        import_all("results.csv", store=store)
    assert bool(ended) == (number < 5)
    store = after_the_end_of_all_others(postgres_url)
    for run in store.runs() if ended else ():
        assert run.status == "interrupted" and is_arriving(run)
    (done,) = import_all("results.csv", store=store)
    assert done.run.status == "completed" and len(list(done.run.trials())) == 9
    store.close()
