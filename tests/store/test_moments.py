"""What is done with a store, killed at every moment: the store opens, says what happened, and doing it again completes it."""

import csv
import gzip
import shutil
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

import pytest
from sqlalchemy import Engine, event, select

from fairtrial.cli.main import _run
from fairtrial.core.errors import StoreError
from fairtrial.core.variables import Variables
from fairtrial.foreign.results import Columns, Log, Question, Sample
from fairtrial.foreign.source import Source
from fairtrial.store import Store, copying, schema
from fairtrial.store.arriving import is_arriving
from fairtrial.store.checking import check_file
from fairtrial.store.imports import ImportedRun
from fairtrial.store.migrations import CURRENT
from fairtrial.store.scorings import add_scoring, finish_scoring
from fairtrial.tracks.interchange import import_log, import_results
from fairtrial.tracks.interchange.import_log import ImportChoice
from fairtrial.tracks.interchange.import_results import import_all
from tests.compat import old_store
from tests.conftest import numbered
from tests.lazily import Library
from tests.moments import Killed, copied_moments, killed_at_commit

# What differs from one time to the next.
_FREE = {
    "epoch",
    "created_at",
    "ended_at",
    "started_at",
    "scored_at",
    "judged_at",
    "labelled_at",
    "tagged_at",
    "waited_ms",
    "row_hash",
}
_FREE |= {"latency_ms", "first_token_ms", "folder", "verdicts"}
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
    """Do something, and return the folders that kill -9 would have left, no two of them alike."""
    with copied_moments(place, tmp_path) as moments:
        for command in commands:
            assert _run(command) in (0, 2, 100, 101)
    return list({state(moment): moment for moment in moments}.values())


def state(folder):
    stores = [path for path in folder.rglob("*.db") if path.is_file()]
    return repr([sorted(path.name for path in folder.rglob("*")), *map(content, stores)])


def look(capsys, store=".fairtrial/fairtrial.db"):
    """Open a store as people would: it is intact, and every command says something. Return what was said of each run."""
    assert _run(["list", "--store", store]) == 0
    checked = check_file(Path(store))
    assert checked.whole and not any(table.unproven for table in checked.tables)  # every row has its hash
    said = {}
    for run in Store(store).runs():
        capsys.readouterr()
        for command in (["show", run.id], ["compare", run.id, "--json"]):
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
        import_results.import_one(log_of("log", attempt), ImportChoice(Columns(), {}), store, Variables({}))

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


# -- runs -------------------------------------------------------------------------------------------

ARMS = [{"id": name, "target": "mock:x", "options": {"answer": f"{name} 42"}} for name in ("good", "poor")]
JUDGE = {"target": "mock:judge", "options": {"verdict": {"marks": {"good": 5}, "otherwise": 1}}}
STORE = ".fairtrial/fairtrial.db"


@pytest.fixture
def suite(place, write_suite):
    """A suite of two arms and a judge."""
    return str(write_suite(targets=ARMS, judge=JUDGE, scorer="contains", concurrency=2, cases=numbered(3)))


@pytest.fixture
def ran(suite):
    """A run of it in the store."""
    assert _run(["run", suite, "--quiet"]) == 0


def each(moments, monkeypatch):
    """Go to every moment at which there was a store."""
    for moment in moments:
        monkeypatch.chdir(moment)
        if Path(STORE).exists():
            yield Store(STORE)


def test_a_run_is_completed_whenever_it_is_killed(suite, place, tmp_path, monkeypatch, capsys):
    moments = moments_of(place, tmp_path, ["run", suite, "--quiet"])
    whole = content(STORE, ids=False)
    for store in each(moments, monkeypatch):
        look(capsys)
        assert {run.status for run in store.runs()} <= {"interrupted", "completed"}
        assert _run(["resume", "latest", "--quiet"] if store.runs() else ["run", suite, "--quiet"]) == 0
        again = content(STORE, ids=False)
        assert {**again, "ledgers": []} == {**whole, "ledgers": []}


def test_a_series_is_completed_whenever_it_is_killed(suite, place, tmp_path, monkeypatch):
    moments = moments_of(place, tmp_path, ["run", suite, "--runs", "2", "--quiet"])
    whole = content(STORE, ids=False)
    for store in each(moments, monkeypatch):
        assert _run(["resume", "latest", "--quiet"] if store.runs() else ["run", suite, "--runs", "2", "--quiet"]) == 0
        assert {**content(STORE, ids=False), "ledgers": []} == {**whole, "ledgers": []}


def test_a_rescoring_counts_as_a_whole_or_not_at_all(ran, place, tmp_path, monkeypatch, capsys):
    command = ["rescore", "latest", "--scorer", "exact", "--quiet"]
    moments = moments_of(place, tmp_path, command)
    whole = content(STORE)
    for store in each(moments, monkeypatch):
        (record,) = store.runs()
        assert record.scoring in (0, 1) and record.status == "completed"
        look(capsys)
        if record.scoring == 0:
            assert _run(command) == 0
        assert {**content(STORE), "ledgers": []} == {**whole, "ledgers": []}


def test_an_earlier_scoring_is_chosen_with_its_status(suite, place, tmp_path, monkeypatch):
    """By another scoring a run may be incomplete: the two are never seen apart."""
    assert _run(["run", suite, "--quiet"]) == 0
    store = Store(STORE)
    (record,) = store.runs()
    with store.lease(record.id) as lease:
        finish_scoring(lease, add_scoring(lease, None), "incomplete")
    store.close()
    moments = moments_of(place, tmp_path, ["rescore", "latest", "--scoring", "0"])
    for store in each([*moments, place], monkeypatch):
        (left,) = store.runs()
        assert (left.scoring, left.status) in ((1, "incomplete"), (0, "completed"))


@pytest.mark.parametrize(
    "command",
    [
        ["pairwise", "latest", "--quiet"],
        ["label", "latest", "--import", "marks.csv"],
        ["tag", "latest", "mine"],
        ["retry", "latest", "--quiet"],
    ],
    ids=lambda command: command[0],
)
def test_what_is_added_to_a_run_is_added_once(ran, command, place, tmp_path, monkeypatch, capsys):
    trials = [row["trial_id"] for row in Store(STORE).trial_rows(Store(STORE).runs()[0].id, 0)]
    (place / "marks.csv").write_text("trial,label\n" + "".join(f"{trial},80\n" for trial in trials))
    moments = moments_of(place, tmp_path, command)
    whole = content(STORE)
    for _ in each(moments, monkeypatch):
        look(capsys)
        assert _run(command) == 0
        assert {**content(STORE), "ledgers": []} == {**whole, "ledgers": []}


def test_a_run_is_deleted_with_everything_that_is_its(ran, place, tmp_path, monkeypatch):
    run_id = Store(STORE).runs()[0].id
    (place / ".fairtrial" / "journals" / run_id).mkdir(parents=True)
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", watched := Watched(place, tmp_path))
        moments = moments_of(place, tmp_path, ["delete", run_id, "--yes"]) + watched.moments
    for store in each([*moments, place], monkeypatch):
        if store.runs():
            assert _run(["delete", run_id, "--yes"]) == 0
        assert not any(content(STORE).values()) and not Path(f".fairtrial/journals/{run_id}").exists()


class Watched:
    """`rmtree`, with copies of a folder before and after."""

    def __init__(self, place, keep):
        self.place, self.keep, self.moments, self.remove = place, keep, [], shutil.rmtree

    def __call__(self, *args, **options):
        for number in range(2):
            self.moments.append(shutil.copytree(self.place, self.keep / f"removing-{len(self.moments)}"))
            if not number:
                self.remove(*args, **options)


def test_a_copy_goes_on_whenever_it_is_killed(ran, place, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(copying, "_BATCH", 5)
    command = ["store", "copy", STORE, ".fairtrial/other.db"]
    moments = moments_of(place, tmp_path, command)
    whole = content(".fairtrial/other.db")
    halves = 0
    for moment in moments:
        monkeypatch.chdir(moment)
        if not Path(".fairtrial/other.db").exists():
            continue
        for run, said in look(capsys, ".fairtrial/other.db").items():
            if Store(".fairtrial/other.db").run_of_id(run).status == "completed":
                continue
            assert "store copy" in said
            halves += 1
            for other in (["resume", run], ["rescore", run, "--scorer", "exact"], ["pairwise", run], ["retry", run]):
                assert _run([*other, "--store", ".fairtrial/other.db"]) == 1
                assert "store copy" in capsys.readouterr().err
        assert _run(command) == 0
        assert content(".fairtrial/other.db") == whole
    assert halves > 3


def test_a_calibration_is_there_or_not(ran, suite, place, tmp_path, monkeypatch):
    moments = moments_of(place, tmp_path, ["calibrate", "--suite", suite])
    for _ in each([*moments, place], monkeypatch):
        assert _run(["list"]) == 0
        assert len(content(STORE)["calibrations"]) <= 1


# -- stores of earlier versions ----------------------------------------------------------------------

OLD = (Path(__file__).parents[1] / "data" / "stores" / "version-8.db.gz", old_store.FILE)


@pytest.mark.parametrize("packed", OLD, ids=lambda path: path.name.partition(".")[0])
def test_a_store_is_upgraded_as_a_whole_or_not_at_all(packed, tmp_path):
    """Stopped before every statement of the migration, and with kill -9 there: the next opening upgrades it."""
    path, killed = tmp_path / "old" / "a.db", []
    path.parent.mkdir()
    path.write_bytes(gzip.decompress(packed.read_bytes()))
    before = content(path)

    def keep(*_):
        killed.append(shutil.copytree(path.parent, tmp_path / f"killed-{len(killed)}"))

    event.listen(Engine, "before_cursor_execute", keep)
    event.listen(Engine, "commit", keep)
    try:
        Store(str(path)).close()
    finally:
        event.remove(Engine, "before_cursor_execute", keep)
        event.remove(Engine, "commit", keep)
    whole = content(path)
    assert killed
    for folder in killed[:: max(1, len(killed) // 8)]:
        with closing(sqlite3.connect(folder / "a.db")) as connection:
            (version,) = connection.execute("SELECT value FROM meta WHERE key = 'schema'").fetchone()
        assert content(folder / "a.db") == (whole if version == str(CURRENT) else before)
        Store(str(folder / "a.db")).close()
        assert content(folder / "a.db") == whole and check_file(folder / "a.db").whole


def test_a_migration_in_postgresql_is_done_by_the_next(postgres_url):
    """A server drops the connection at any statement: nothing of the upgrade is there, and the next does all of it."""
    store = Store(postgres_url)
    with store.writing() as connection:
        connection.exec_driver_sql("DROP TABLE batch_requests")
        connection.exec_driver_sql("ALTER TABLE cases DROP COLUMN targets")
        connection.exec_driver_sql("UPDATE meta SET value = '15' WHERE key = 'schema'")
    store.close()
    statements, wanted = [0], [0]

    def stop(connection, cursor, statement, *_):
        statements[0] += statement.lstrip().startswith(("ALTER", "CREATE", "UPDATE", "DELETE", "INSERT"))
        if statements == wanted:
            cursor.connection.close()

    event.listen(Engine, "before_cursor_execute", stop)
    try:
        for wanted[0] in range(1, 4):
            statements[0] = 0
            with pytest.raises(StoreError):
                Store(postgres_url)
            with Library("psycopg").connect(postgres_url) as connection:
                assert connection.execute("SELECT value FROM meta WHERE key = 'schema'").fetchone() == ("15",)
                assert connection.execute("SELECT to_regclass('batch_requests')").fetchone() == (None,)
    finally:
        event.remove(Engine, "before_cursor_execute", stop)
    after = Store(postgres_url)
    assert after.fetch_value(select(schema.meta.c.value)) == str(CURRENT)
    assert after.fetch(select(schema.cases.c.targets)) == after.fetch(select(schema.batch_requests.c.key)) == []
    after.close()
