"""How a store begins: whole or not at all, whenever its process is killed."""

import shutil
import sqlite3
from contextlib import closing

import pytest
from sqlalchemy import Engine, event

from fairtrial.cli.main import _run
from fairtrial.core.errors import StoreError
from fairtrial.store import Store, schema
from fairtrial.store.checking import check_file
from fairtrial.store.migrations import CURRENT


def version(path):
    with sqlite3.connect(path) as connection:
        return connection.execute("SELECT value FROM meta WHERE key = 'schema'").fetchone()[0]


def tables(path):
    with sqlite3.connect(path) as connection:
        return {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


def test_a_store_that_is_killed_while_it_is_made_is_made_by_the_next(tmp_path):
    """What is on disk before each statement is what kill -9 would leave there."""
    making, killed = tmp_path / "making", []

    def keep(*_):
        killed.append(shutil.copytree(making, tmp_path / f"killed-{len(killed)}"))

    event.listen(Engine, "before_cursor_execute", keep)
    try:
        Store(str(making / "a.db")).close()
    finally:
        event.remove(Engine, "before_cursor_execute", keep)
    assert len(killed) > len(schema.metadata.tables)
    for folder in killed:
        assert tables(folder / "a.db") in (set(), set(schema.metadata.tables))
        store = Store(str(folder / "a.db"))
        assert store.runs() == [] and version(folder / "a.db") == str(CURRENT)
        store.close()
        assert check_file(folder / "a.db").whole


def half_made(path, *names):
    """Make a store as an earlier version left it when it was killed: tables, and no version yet."""
    Store(str(path)).close()
    with sqlite3.connect(path) as connection:
        connection.execute("DELETE FROM meta")
        for name in set(schema.metadata.tables) - set(names):
            connection.execute(f"DROP TABLE {name}")
    return path


@pytest.mark.parametrize("names", [("meta",), ("meta", "plans", "cases"), tuple(schema.metadata.tables)])
def test_what_an_earlier_version_left_unfinished_is_finished(tmp_path, names):
    path = half_made(tmp_path / "a.db", *names)
    assert _run(["list", "--store", str(path)]) == 0
    assert version(path) == str(CURRENT) and check_file(path).whole


def test_tables_with_rows_and_without_a_version_are_left_alone(tmp_path, capsys):
    path = half_made(tmp_path / "a.db", "meta", "tags")
    with sqlite3.connect(path) as connection:
        connection.execute("INSERT INTO tags (name, run_id, tagged_at) VALUES ('mine', 'r', 1)")
    assert _run(["list", "--store", str(path)]) == 1
    assert "store check" in capsys.readouterr().err
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT name FROM tags").fetchall() == [("mine",)]


def test_a_table_of_another_program_is_never_dropped(tmp_path):
    path = half_made(tmp_path / "a.db", "meta", "tags")
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE albums (title TEXT)")
    with pytest.raises(StoreError, match="no version"):
        Store(str(path))
    with sqlite3.connect(path) as connection:
        assert {"albums", "tags"} <= {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}


@pytest.mark.parametrize("written", ["abc", "-1", "0", "", "1.5", "1" * 5000])
def test_a_version_that_nothing_has_written_is_said_and_rows_can_be_saved(tmp_path, capsys, written):
    path, saved = tmp_path / "a.db", tmp_path / "saved.db"
    Store(str(path)).close()
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE meta SET value = ?", (written,))
    assert _run(["list", "--store", str(path)]) == 1
    said = capsys.readouterr().err
    assert f"`{written[:20]}" in said and "store check" in said and "internal" not in said
    assert check_file(path, saved).saved and Store(str(saved)).runs() == []


def test_two_stores_in_one_folder_have_locks_of_their_own(tmp_path):
    one, other = Store(str(tmp_path / "a.db")), Store(str(tmp_path / "b.db"))
    with one.lease("run-1"):
        assert one.dialect.is_locked("run-1") and not other.dialect.is_locked("run-1")
        with other.lease("run-1"):
            assert other.dialect.is_locked("run-1")
    folders = [path for path in (tmp_path / "locks").rglob("*") if path.is_dir()]
    assert {path.name for path in folders} == {"a.db", "b.db"}
    assert all(path.stat().st_mode & 0o077 == 0 for path in (tmp_path / "locks", *folders))


def test_a_link_to_a_store_has_the_locks_of_the_store(tmp_path):
    store = Store(str(tmp_path / "a.db"))
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "link.db").symlink_to(tmp_path / "a.db")
    with store.lease("run-1"):
        assert Store(str(tmp_path / "elsewhere" / "link.db")).dialect.is_locked("run-1")


async def test_a_run_is_copied_to_a_store_in_the_same_folder(run_suite, store, tmp_path):
    one, other = str(tmp_path / "one.db"), str(tmp_path / "other.db")
    await run_suite()
    for source, target in ((store.address, one), (one, other)):
        assert _run(["store", "copy", source, target]) == 0
    assert len(Store(other).runs()) == 1


def test_a_store_in_which_nothing_is_yet_is_not_called_damaged(tmp_path, capsys):
    place = tmp_path / "s.db"
    with closing(sqlite3.connect(place)) as connection:  # what a kill leaves before the first commit
        connection.execute("PRAGMA journal_mode = WAL")
    assert _run(["store", "check", "--store", str(place)]) == 1
    assert "the next command that writes makes it" in " ".join(capsys.readouterr().err.split())
    Store(str(place)).close()
    assert _run(["store", "check", "--store", str(place)]) == 0
