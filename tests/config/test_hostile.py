"""Files that are made to break their readers: one sentence each, in bounded time and memory."""

import gzip
import io
import json
import sys
import zipfile

import pytest

from fairtrial.config import parse_suite
from fairtrial.core.errors import FairtrialError, ProblemsError
from fairtrial.tables import row as row_limits
from fairtrial.tables import text as text_limits
from fairtrial.tables import xlsx as xlsx_limits
from tests import forks
from tests.tables.workbook import row_xml, write_workbook

HEAD = "name: x\ntargets: [mock:echo]\n"
LAUGHS = (
    HEAD
    + "a: &a [x,x,x,x,x,x,x,x,x]\n"
    + "".join(f"{chr(98 + n)}: &{chr(98 + n)} [{','.join(['*' + chr(97 + n)] * 9)}]\n" for n in range(12))
)
MERGES = (
    HEAD
    + "a: &a {k0: v}\n"
    + "".join(
        f"{chr(98 + n)}: &{chr(98 + n)} {{<<: [{','.join(['*' + chr(97 + n)] * 9)}], k{n + 1}: v}}\n" for n in range(12)
    )
)


def problem_of(text: str, folder) -> str:
    with pytest.raises(FairtrialError) as caught:
        parse_suite(text, file="s.yaml", folder=folder, environment={})
    message = str(caught.value)
    assert "Traceback" not in message and len(message) < 5000
    return message


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "words"),
    [
        (LAUGHS, "aliases make the suite far larger than its text"),
        (MERGES, "unknown key"),
        (HEAD + "cases: " + "[" * 100_000, "nested more than 200 levels deep"),
        (HEAD + "cases: " + "[" * 100_000 + "]" * 100_000, "nested more than 200 levels deep"),
        (HEAD + "cases: " + "{a: " * 100_000, "nested more than 200 levels deep"),
        (HEAD + "cases:\n  " + "- " * 5_000 + "x", "nested more than 200 levels deep"),
        (HEAD + "cases: &a {<<: *a}", "refers to itself"),
        (HEAD + "cases: [{<<: 3, input: q}]", "`<<` takes a mapping"),
        (HEAD + "cases: [{input: 'a\0b'}]", "invalid YAML"),
    ],
    ids=["laughs", "merges", "open", "closed", "mappings", "dashes", "self-merge", "bad merge", "nul"],
)
def test_hostile_suites(tmp_path, text, words):
    assert words in problem_of(text, tmp_path)


def test_anchors_and_merges_that_people_write(tmp_path):
    text = HEAD + (
        "cases:\n"
        "  - &one {id: a, input: q, expected: x, weight: 2}\n"
        "  - {<<: *one, id: b, input: r}\n"
        "  - {<<: [{difficulty: easy}, *one], id: c}\n"
    )
    cases = list(parse_suite(text, folder=tmp_path).cases())
    assert [(case.id, case.input, case.expected, case.weight, case.difficulty) for case in cases] == [
        ("a", "q", "x", 2.0, None),
        ("b", "r", "x", 2.0, None),
        ("c", "q", "x", 2.0, "easy"),
    ]


DEEP = 100_000


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("d.json", "[" * DEEP, "nested too deeply" if sys.version_info < (3, 14) else "JSON"),  # 3.14 reads to its end
        ("d.json", "[" * DEEP + "]" * DEEP, "nested too deeply"),
        ("d.jsonl", '{"input": "q", "x": ' + "[" * DEEP + "]" * DEEP + "}", "nested too deeply"),
        ("d.jsonl", '{"input": "q", "x": ' + "[" * 150 + "]" * 150 + "}", "nested more than 100 levels deep"),
        ("d.csv", "input,expected\nq\0,a\n", "NUL bytes"),
        ("d.jsonl", '{"input": "q\0"}\n', "NUL bytes"),
        ("d.jsonl", '{"input": "q\\u0000"}\n', "has a NUL character"),
        ("d.csv", b"\x00" * 5000, "NUL bytes"),
        ("d.xlsx", b"PK\x03\x04", "not an Excel workbook"),
        ("d.parquet", b"PAR1" + b"\x00" * 50 + b"PAR1", "the Parquet file cannot be read"),
    ],
)
def test_hostile_tables(tmp_path, name, data, words):
    (tmp_path / name).write_bytes(data.encode() if isinstance(data, str) else data)
    assert words in problem_of(f"{HEAD}dataset: {name}", tmp_path)


@pytest.mark.parametrize("name", ["d.csv", "d.jsonl"])
def test_gigantic_lines(tmp_path, monkeypatch, name):
    from fairtrial.tables import jsonl

    for module in (text_limits, jsonl, row_limits):
        monkeypatch.setattr(module, "MAX_LINE", 2**16)
    (tmp_path / name).write_text('input,expected\n{"input": "' + "x" * 2**17)
    assert "the line is longer than" in problem_of(f"{HEAD}dataset: {name}", tmp_path)


@pytest.mark.slow
def test_gzip_bombs(tmp_path, monkeypatch):
    monkeypatch.setattr(text_limits, "FREE_BYTES", 2**20)
    (tmp_path / "d.csv.gz").write_bytes(gzip.compress(b"input,expected\n" + (b"a," + b"b" * 1000 + b"\n") * 2**12))
    assert "more than 200 times its size" in problem_of(f"{HEAD}dataset: d.csv.gz", tmp_path)


def test_workbooks_that_are_bombs(tmp_path, monkeypatch):
    monkeypatch.setattr(xlsx_limits, "FREE_BYTES", 2**20)
    write_workbook(tmp_path / "d.xlsx", S=[["input"], [" " * 2**22]])
    assert "more than 200 times its size" in problem_of(f"{HEAD}dataset: d.xlsx", tmp_path)
    far = row_xml(1, ["input"]) + '<row r="1048576"><c r="XFD1048576"><v>1</v></c></row>'
    write_workbook(tmp_path / "far.xlsx", S=far)
    assert "remove stray cells" in problem_of(f"{HEAD}dataset: far.xlsx", tmp_path)


def test_a_workbook_that_lies_about_its_size(tmp_path, monkeypatch):
    """The size that an archive declares is not believed."""
    monkeypatch.setattr(xlsx_limits, "FREE_BYTES", 2**20)
    write_workbook(tmp_path / "d.xlsx", S=[["input"], [" " * 2**22]])
    data = (tmp_path / "d.xlsx").read_bytes()
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        size = archive.getinfo("xl/worksheets/sheet1.xml").file_size
    (tmp_path / "d.xlsx").write_bytes(data.replace(size.to_bytes(4, "little"), (100).to_bytes(4, "little")))
    assert "more than 200 times its size" in problem_of(f"{HEAD}dataset: d.xlsx", tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["laughs", "deep", "gzip", "json"])
def test_from_the_command_line(tmp_path, kind):
    """One sentence, exit 1, in 2 GB of memory."""
    files = {
        "laughs": LAUGHS,
        "deep": HEAD + "cases: " + "[" * 1_000_000,
        "gzip": HEAD + "dataset: d.csv.gz",
        "json": HEAD + "dataset: d.json",
    }
    (tmp_path / "s.yaml").write_text(files[kind])
    (tmp_path / "d.json").write_text(json.dumps({"a": 1})[:-1] + ', "x": ' + "[" * DEEP)
    with gzip.open(tmp_path / "d.csv.gz", "wb", compresslevel=9) as file:
        file.write(b"input,expected\n")
        for _ in range(130 if kind == "gzip" else 0):
            file.write(b"x" * 2**20)
    limit = "import resource\nresource.setrlimit(resource.RLIMIT_AS, (2 * 2**30, 2 * 2**30))\n"
    done = forks.run("validate", "s.yaml", program=limit + forks.PROGRAM)
    assert done.returncode == 1 and "Traceback" not in done.stderr, done.stderr[-2000:]
    assert len(done.stderr.strip().splitlines()) <= 15


@pytest.mark.slow
def test_problems_are_those_of_the_suite(tmp_path):
    with pytest.raises(ProblemsError) as caught:
        parse_suite(LAUGHS, file="s.yaml", folder=tmp_path, environment={})
    assert caught.value.problems[0].line > 0
