"""Stores that are damaged: bytes, pages, rows, lengths. What differs is found, what is whole is saved, nothing crashes."""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from fairtrial.cli.main import _run
from fairtrial.store import Store
from fairtrial.store.row_hashes import HASHED
from tests.conftest import numbered
from tests.torture.campaign import Campaign

ARMS = [{"id": name, "target": "mock:x", "options": {"answer": f"{name} 42"}} for name in ("good", "poor")]
JUDGE = {"target": "mock:judge", "options": {"verdict": {"marks": {"good": 5}, "otherwise": 1}}}
COMMANDS = (
    ["list"],
    ["show", "latest", "--json"],
    ["show", "latest", "--trials"],
    ["compare", "latest", "--json"],
    ["export", "latest", "-o", "out.html"],
    ["export", "latest", "-o", "out.csv"],
    ["report", "latest", "-o", "out.md"],
    ["rescore", "latest", "--scorer", "regex", "--quiet"],
    ["resume", "latest", "--quiet"],
)
VERSIONS = ("abc", "-1", "0", "", "1.5", "99", "08", "\0", "1" * 5000, b"\xff\xfe", None)
_PAGE = 4096
LOST = b"(this case was damaged and is lost)"
Rows = dict[str, dict[int, tuple[Any, ...]]]  # by table and row id


@pytest.fixture
def original(tmp_path: Path, write_suite: Any, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store with something in nearly every table, in one file."""
    monkeypatch.chdir(tmp_path)
    suite = write_suite(targets=ARMS, judge=JUDGE, scorer="contains", concurrency=2, cases=numbered(12, "good"))
    assert _run(["run", str(suite), "--quiet"]) == 0
    store = Store(".fairtrial/fairtrial.db")
    (run,) = store.runs()
    trials = [row["trial_id"] for row in store.trial_rows(run.id, 0)]
    store.close()
    Path("marks.csv").write_text("trial,label\n" + "".join(f"{trial},80\n" for trial in trials), "utf-8")
    for command in (
        ["rescore", "latest", "--scorer", "llm_judge", "--quiet"],
        ["pairwise", "latest", "--quiet"],
        ["label", "latest", "--import", "marks.csv"],
        ["tag", "latest", "mine"],
    ):
        assert _run(command) == 0
    return tmp_path / ".fairtrial" / "fairtrial.db"


def opened(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path)
    connection.text_factory = bytes  # as they are, whatever they are
    return connection


def rows_of(path: Path, like: Rows | None = None) -> Rows:
    """The rows of the tables with hashes; with `like`, each by itself, as far as it can be read and is the same."""
    found: Rows = {}
    with closing(opened(path)) as connection:
        for table in HASHED:
            names = ", ".join(f'"{column.name}"' for column in table.c)
            query = f"SELECT rowid, {names} FROM {table.name}"
            if like is None:
                found[table.name] = {rowid: tuple(row) for rowid, *row in connection.execute(query)}
                continue
            found[table.name] = {}
            for rowid, row in like[table.name].items():
                try:
                    one = connection.execute(f"{query} WHERE rowid = ?", (rowid,)).fetchone()
                except sqlite3.Error:
                    continue
                if one is not None and tuple(one[1:]) == row:
                    found[table.name][rowid] = row
    return found


# -- what befalls a store ---------------------------------------------------------------------------


def damage(path: Path, chance: random.Random) -> str:
    kind = chance.choice(
        [change_row, change_row, flip_bytes, flip_bytes, flip_in_page, cut, blank_page, change_version]
    )
    return f"{kind.__name__}: {kind(path, chance)}"


def change_row(path: Path, chance: random.Random) -> str:
    """Change one value, as no program of ours would."""
    with closing(sqlite3.connect(path)) as connection:
        table = chance.choice(
            [table for table in HASHED if connection.execute(f"SELECT 1 FROM {table.name}").fetchone()]
        )
        rowid = chance.choice([row[0] for row in connection.execute(f"SELECT rowid FROM {table.name}")])
        column = chance.choice([column for column in table.c if column.name != "row_hash" and not column.foreign_keys])
        (value,) = connection.execute(f"SELECT {column.name} FROM {table.name} WHERE rowid = ?", (rowid,)).fetchone()
        other: Any = value + chance.choice([1, 64, -3]) if isinstance(value, int | float) else value
        if isinstance(value, str | bytes):
            other = value[:-1] if len(value) > 1 and chance.random() < 0.5 else value + value[:1]
        if other in (None, value):
            other = chance.choice([b"{}", 5, "x"])
        connection.execute(f"UPDATE OR IGNORE {table.name} SET {column.name} = ? WHERE rowid = ?", (other, rowid))
        connection.commit()
        return f"{table.name}.{column.name} of {rowid}"


def flip_bytes(path: Path, chance: random.Random) -> str:
    content = bytearray(path.read_bytes())
    places = [chance.randrange(len(content)) for _ in range(chance.choice([1, 1, 2, 8, 64]))]
    for place in places:
        content[place] ^= 1 << chance.randrange(8)
    path.write_bytes(content)
    return str(places)


def flip_in_page(path: Path, chance: random.Random) -> str:
    """In a page's header or its table of cells, where damage is worst."""
    content = bytearray(path.read_bytes())
    page = chance.randrange(len(content) // _PAGE) * _PAGE
    place = page + (100 if page == 0 else 0) + chance.randrange(40)
    content[place] = chance.randrange(256)
    path.write_bytes(content)
    return str(place)


def cut(path: Path, chance: random.Random) -> str:
    content = path.read_bytes()
    end = chance.randrange(len(content))
    path.write_bytes(content[:end])
    return str(end)


def blank_page(path: Path, chance: random.Random) -> str:
    content = bytearray(path.read_bytes())
    page = chance.randrange(len(content) // _PAGE) * _PAGE
    content[page : page + _PAGE] = chance.choice([b"\0", b"\xff", b"\r"]) * _PAGE
    path.write_bytes(content)
    return str(page)


def change_version(path: Path, chance: random.Random) -> str:
    value = chance.choice(VERSIONS)
    with closing(sqlite3.connect(path)) as connection:
        if value is None:
            connection.execute(chance.choice(["DELETE FROM meta", "DROP TABLE meta"]))
        else:
            connection.execute("UPDATE meta SET value = ?", (value,))
        connection.commit()
    return repr(value)[:20]


# -- what is done with it ---------------------------------------------------------------------------


def said_by(command: list[str], capsys: pytest.CaptureFixture[str], context: str) -> tuple[int, str]:
    """Run a command: it succeeds, or says in one sentence what is wrong."""
    capsys.readouterr()
    code = _run(command)
    out, err = capsys.readouterr()
    assert code in (0, 1, 2, 100, 101), (context, command, code)
    assert "internal error" not in out + err and "Traceback" not in out + err, (context, command, err)
    errors = [line for line in err.splitlines() if line.startswith("error: ")]
    assert len(errors) <= 1 and (code in (0, 2, 100, 101) or errors or command[:2] == ["store", "check"]), (
        context,
        command,
        err,
    )
    return code, out + err


def test_no_damage_goes_unnoticed_and_all_that_is_whole_is_saved(
    campaign: Campaign, original: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = rows_of(original)
    for chance in campaign.rounds(short=14):
        folder = tmp_path / "round"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        path, saved = folder / "a.db", folder / "saved.db"
        shutil.copy(original, path)
        what = f"{campaign.current} {damage(path, chance)}"
        damaged = path.read_bytes()
        code, said = said_by(["store", "check", "--store", str(path), "--json"], capsys, what)
        if code == 0:
            assert rows_of(path) == before, f"called intact: {what}"
        elif said.startswith("{"):
            assert not json.loads(said)["whole"], what
        assert path.read_bytes() == damaged
        if said.startswith("{"):
            save_what_is_whole(path, saved, before, capsys, what)
        for command in chance.sample(COMMANDS, 9 if campaign.long else 3):
            path.write_bytes(damaged)
            said_by([*command, "--store", str(path)], capsys, what)
        campaign.count(inputs=1, tracebacks=0, called_intact=0, lost=0)


@pytest.mark.parametrize("command", [["store", "check"], *COMMANDS], ids=" ".join)
def test_a_list_of_tables_that_no_message_can_quote(
    command: list[str], original: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What SQLite says of it has the damaged bytes in it, which are no text."""
    content = original.read_bytes()
    assert b"tablelabelslabels" in content
    content = content.replace(b"tablelabelslabels", b"tablel\xd5belslabels").replace(b"TABLE labels", b"TAXLE labels")
    original.write_bytes(content)
    code, said = said_by([*command, "--store", str(original)], capsys, "bytes that are no text")
    assert code in (1, 2) and "Traceback" not in said


def save_what_is_whole(path: Path, saved: Path, before: Rows, capsys: pytest.CaptureFixture[str], what: str) -> None:
    """`--save` makes a store that opens, with every row that is as it was, and no other."""
    code, said = said_by(["store", "check", "--store", str(path), "--save", str(saved)], capsys, what)
    assert code == 0, (what, said)
    assert said_by(["list", "--store", str(saved)], capsys, what)[0] == 0, what
    assert said_by(["store", "check", "--store", str(saved)], capsys, what)[0] == 0, what
    kept, whole = rows_of(saved), rows_of(path, before)
    trials = {row[:4] for row in kept["trials"].values()}
    for table in HASHED:
        there = {row for row in kept[table.name].values() if LOST not in row}
        assert there <= set(before[table.name].values()), f"{table.name}: saved what was never there: {what}"
        for row in set(whole[table.name].values()) - there:
            columns = dict(zip((str(column.name) for column in table.c), row, strict=True))
            place = tuple(columns.get(name) for name in ("run_id", "case_position", "arm_position", "repeat"))
            orphan = table.name in ("scores", "judgements", "labels") and place not in trials
            assert orphan, f"{table.name}: not saved: {place}: {what}"
