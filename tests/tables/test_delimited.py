"""CSV and TSV as people have them: delimiters, quotes, encodings, line ends, what Excel writes."""

import csv
import gzip
import io
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from fairtrial.tables import Row, TableOptions, rows_of


def read(path: Path, data: bytes | str, **options) -> list[Row]:
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return list(rows_of(path, TableOptions(**options)))


def fields(rows: list[Row]) -> list[dict]:
    assert not [row.problem for row in rows if row.problem]
    return [row.fields for row in rows]


def problem(rows: list[Row]) -> str:
    (row,) = [row for row in rows if row.problem]
    return row.problem


@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
@pytest.mark.parametrize("name", ["d.csv", "d.CSV"])
def test_delimiters_are_found_out(tmp_path, mark, name):
    text = f'question{mark}answer\r\n"Zürich{mark} or Bern?"{mark}Bern\r\nWhat is 1.5 + 2,5?{mark}4\r\n'
    if mark == ",":
        text = text.replace("2,5", "2.5")
    assert fields(read(tmp_path / name, text)) == [
        {"question": f"Zürich{mark} or Bern?", "answer": "Bern"},
        {"question": f"What is 1.5 + {'2.5' if mark == ',' else '2,5'}?", "answer": "4"},
    ]


def test_what_a_german_excel_writes(tmp_path, write_suite):
    """A semicolon, a decimal comma, a mark in front, commas in the text."""
    from fairtrial.config import load_suite

    (tmp_path / "d.csv").write_bytes(
        "\ufeffFrage;Antwort;Gewicht\r\nWas ist größer, 1,5 oder 2,5?;2,5;0,5\r\nNenne eins, zwei.;ja;2\r\n".encode()
    )
    dataset = {"path": "d.csv", "input": "Frage", "expected": "Antwort", "weight": "Gewicht"}
    one, two = load_suite(write_suite(dataset=dataset)).cases()
    assert (one.input, one.expected, one.weight) == ("Was ist größer, 1,5 oder 2,5?", "2,5", 0.5)
    assert two.weight == 2.0


def test_a_declared_separator(tmp_path):
    (row,) = read(tmp_path / "d.csv", "sep=|\r\na|b\r\n1|2\r\n")
    assert row == Row(3, {"a": "1", "b": "2"})


def test_two_delimiters_that_fit_are_named(tmp_path):
    text = "a,b;c\n1,2;3\n4,5;6\n"
    assert "a comma or a semicolon: set `delimiter`" in problem(read(tmp_path / "d.csv", text))
    assert fields(read(tmp_path / "d.csv", text, delimiter=";"))[0] == {"a,b": "1,2", "c": "3"}
    assert fields(read(tmp_path / "d.csv", text, columns=("a,b",)))[1] == {"a,b": "4,5", "c": "6"}


def test_one_column_has_no_delimiter(tmp_path):
    assert fields(read(tmp_path / "d.csv", "input\nHello; world\n")) == [{"input": "Hello; world"}]


def test_a_ragged_row_is_a_problem_of_its_line(tmp_path):
    rows = read(tmp_path / "d.csv", "a,b\n1,2\n3\n\n4,5,6\n7,8\n")
    assert [(row.line, row.problem[:4]) for row in rows] == [(2, ""), (3, "fewe"), (5, "more"), (6, "")]


def test_quotes(tmp_path):
    assert fields(read(tmp_path / "d.csv", "a,b\n'x, y',2\n", quote="'")) == [{"a": "x, y", "b": "2"}]
    assert fields(read(tmp_path / "d.csv", 'a,b\n6" pipe,"2\n', quote="")) == [{"a": '6" pipe', "b": '"2'}]
    assert "a quote is not closed" in problem(read(tmp_path / "d.csv", 'a,b\n1,"2\n3,4\n'))


def test_columns_without_a_name(tmp_path):
    assert fields(read(tmp_path / "d.csv", ",a,\n0,x,\n")) == [{"column 1": "0", "a": "x", "column 3": ""}]
    assert "duplicate columns in the header: a" in problem(read(tmp_path / "d.csv", "a,a\n1,2\n"))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_encodings_that_are_marked(tmp_path, encoding):
    assert fields(read(tmp_path / "d.csv", "naïve;b\nœuf;€\n".encode(encoding))) == [{"naïve": "œuf", "b": "€"}]


@pytest.mark.parametrize(
    ("encoding", "guess"), [("cp1252", "cp1252"), ("utf-16-le", "utf-16-le"), ("latin-1", "latin-1")]
)
def test_encodings_that_have_to_be_set(tmp_path, encoding, guess):
    text = "a,b\nœuf,naïve\n" if encoding != "latin-1" else "a,b\nœuf\x81,naïve\n".replace("œ", "ö")
    data = text.encode(encoding)
    message = problem(read(tmp_path / "d.csv", data))
    assert "set `encoding" in message and guess in message
    assert fields(read(tmp_path / "d.csv", data, encoding=encoding))[0]["b"] == "naïve"


def test_encodings_that_do_not_exist(tmp_path):
    for name in ("klingon", "hex", "zip", ""):
        assert "unknown encoding" in problem(read(tmp_path / "d.csv", "a,b\n1,2\n", encoding=name)) or not name


@pytest.mark.parametrize("name", ["d.csv.gz", "d.jsonl.gz", "d.json.gz"])
def test_packed_files(tmp_path, name):
    text = {"d.csv.gz": "a;b\n1;2\n", "d.jsonl.gz": '{"a":"1","b":"2"}\n', "d.json.gz": '[{"a":"1","b":"2"}]'}[name]
    assert fields(read(tmp_path / name, gzip.compress(text.encode()))) == [{"a": "1", "b": "2"}]
    assert "the gzip file is damaged" in problem(read(tmp_path / name, gzip.compress(text.encode())[:-6]))


_CELLS = st.text(st.characters(codec="utf-8", exclude_characters="\0", exclude_categories=["Cs"]), max_size=12)


@pytest.mark.slow
@given(
    table=st.lists(st.lists(_CELLS, min_size=3, max_size=3), min_size=1, max_size=6),
    mark=st.sampled_from(",;\t|"),
    end=st.sampled_from(["\n", "\r\n"]),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]),
)
def test_what_is_written_is_read(tmp_path_factory, table, mark, end, encoding):
    """Whatever the cells hold, a table whose columns are known is read as it was written."""
    header = ["question", "answer", "topic"]
    out = io.StringIO()
    writer = csv.writer(out, delimiter=mark, lineterminator=end, quoting=csv.QUOTE_ALL)
    writer.writerows([header, *table])
    path = tmp_path_factory.mktemp("t") / "d.csv"
    rows = read(path, out.getvalue().encode(encoding), columns=("question", "answer"))
    assert [list(row.fields.values()) for row in rows] == table
    assert all(list(row.fields) == header for row in rows)


@pytest.mark.slow
@given(st.binary(max_size=300))
def test_any_bytes_are_rows_or_one_sentence(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("b")
    for name in ("d.csv", "d.tsv", "d.jsonl", "d.json", "d.csv.gz", "d.parquet", "d.xlsx"):
        for row in read(folder / name, data):
            assert isinstance(row.fields, dict) and "\n" not in row.problem


@given(st.text(alphabet='ab,;|\t"\n', max_size=60))
def test_no_row_is_lost_in_silence(tmp_path_factory, text):
    """With a delimiter of its own choice, a table gives as many rows as with the same delimiter set."""
    assume(text.strip())
    path = tmp_path_factory.mktemp("s") / "d.csv"
    rows = read(path, text)
    if not any(row.problem for row in rows):
        same = [read(path, text, delimiter=mark) for mark in ",;\t|"]
        assert rows in same
