"""Parquet, Excel, nested JSON: cells keep their types, and what does not fit is said."""

import datetime
import importlib
import json
from decimal import Decimal

import pytest

from fairtrial.config import load_suite, parse_suite
from fairtrial.core.errors import ProblemsError
from fairtrial.tables import TableOptions, rows_of
from tests.tables.workbook import row_xml, write_workbook


def problems_of(dataset: dict, folder) -> list[str]:
    suite = {"name": "x", "targets": ["mock:echo"], "scorer": "exact", "dataset": dataset}
    with pytest.raises(ProblemsError) as caught:
        parse_suite(json.dumps(suite), file="s.yaml", folder=folder, environment={})
    return [problem.message for problem in caught.value.problems]


@pytest.mark.slow
def test_parquet(tmp_path, write_suite):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = pa.table(
        {
            "question": ["A?", "B?"],
            "answer": [["a", "α"], ["b"]],
            "choices": [["x", "y"], []],
            "about": [{"year": 2020, "by": None}, {"year": 2021, "by": "Ann"}],
            "day": [datetime.date(2026, 1, 31), None],
            "price": [Decimal("1.10"), None],
            "share": [0.5, float("nan")],
            "picture": [b"\x00\x01", None],
        }
    )
    pq.write_table(table, tmp_path / "d.parquet", row_group_size=1)
    one, two = load_suite(write_suite(dataset={"path": "d.parquet", "input": "question", "expected": "answer"})).cases()
    assert (one.input, one.expected, two.expected) == ("A?", ("a", "α"), "b")
    assert one.columns == {
        "choices": ["x", "y"],
        "about": {"year": 2020, "by": None},
        "day": "2026-01-31",
        "price": "1.10",
        "share": 0.5,
        "picture": "<binary, 2 bytes>",
    }
    assert two.columns["share"] is None and two.columns["choices"] == []


@pytest.mark.parametrize("kind", ["csv", "xlsx"])
def test_wide_tables_take_as_many_readings_as_narrow_ones(tmp_path, monkeypatch, write_suite, kind):
    module = importlib.import_module(f"fairtrial.tables.{kind}")
    yielded: list[int] = []
    real = module.Row
    monkeypatch.setattr(
        module, "Row", lambda line, cells, *more: yielded.append(len(cells)) or real(line, cells, *more)
    )
    work = []
    for columns in (500, 2000):
        header = ["question", "answer", *(f"c{n}" for n in range(columns - 2))]
        table = [header, *([f"{n}?", "42", *(f"{n}-{c}" for c in range(columns - 2))] for n in range(3))]
        file = tmp_path / f"d{columns}.{kind}"
        if kind == "csv":
            file.write_text("\n".join(map(",".join, table)) + "\n")
        else:
            write_workbook(file, S=table)
        yielded.clear()
        dataset = {"path": file.name, "input": "question", "expected": "answer"}
        cases = list(load_suite(write_suite(dataset=dataset)).cases())
        assert len(cases) == 3 and len(cases[0].columns) == columns - 2
        work.append(sum(yielded) / columns)
    assert work[0] == work[1], work


def test_excel(tmp_path, write_suite):
    write_workbook(
        tmp_path / "d.xlsx",
        Notes=[["nothing here"]],
        Questions=row_xml(2, ["question", "answer", "year", "share"])
        + row_xml(3, ["What is 6 × 7?", 42, 2020, 1.5])
        + row_xml(6, ["And?", "so, so", None, 0.1]),
    )
    dataset = {"path": "d.xlsx", "sheet": "Questions", "input": "question", "expected": "answer"}
    one, two = load_suite(write_suite(dataset=dataset)).cases()
    assert (one.input, one.expected, one.columns) == ("What is 6 × 7?", "42", {"year": 2020, "share": 1.5})
    assert (two.expected, two.columns) == ("so, so", {"year": "", "share": 0.1})
    assert [row.line for row in rows_of(tmp_path / "d.xlsx", TableOptions(sheet="Questions"))] == [3, 6]


def test_excel_sheets_are_named(tmp_path):
    write_workbook(tmp_path / "d.xlsx", One=[["input"], ["a"]], Two=[["input"], ["b"]])
    (message,) = problems_of({"path": "d.xlsx"}, tmp_path)
    assert "set `sheet` to one of One, Two" in message
    (message,) = problems_of({"path": "d.xlsx", "sheet": "Three"}, tmp_path)
    assert "no sheet `Three`" in message


def test_rows_below_a_key(tmp_path, write_suite):
    rows = [{"input": "q", "expected": "a", "choices": ["x", {"y": 1}]}]
    (tmp_path / "d.json").write_text(json.dumps({"version": 1, "data": {"items": rows, "count": 1}}))
    (case,) = load_suite(write_suite(dataset={"path": "d.json", "records": "data.items"})).cases()
    assert case.input == "q" and case.columns == {"choices": ["x", {"y": 1}]}
    assert "set `records: data.items`" in problems_of({"path": "d.json"}, tmp_path)[0]
    assert (
        "`data` has no key `rows` (keys: items, count)"
        in problems_of({"path": "d.json", "records": "data.rows"}, tmp_path)[0]
    )
    assert "is not a list" in problems_of({"path": "d.json", "records": "data"}, tmp_path)[0]


def test_json_lines_in_other_encodings(tmp_path):
    text = '{"input": "naïve"}\n{"input": "œuf"}\n'
    for encoding, option in (("utf-16", None), ("cp1252", "cp1252"), ("utf-8-sig", None)):
        (tmp_path / "d.jsonl").write_bytes(text.encode(encoding))
        rows = list(rows_of(tmp_path / "d.jsonl", TableOptions(encoding=option)))
        assert [row.fields for row in rows] == [{"input": "naïve"}, {"input": "œuf"}]
    (tmp_path / "d.jsonl").write_bytes(text.encode("cp1252"))
    assert "set `encoding`, perhaps to `cp1252`" in next(rows_of(tmp_path / "d.jsonl")).problem


@pytest.mark.parametrize(
    ("dataset", "words"),
    [
        ({"path": "d.json", "delimiter": ";"}, "`delimiter` applies to .csv, .tsv files, not to `d.json`"),
        ({"path": "d.csv", "sheet": "S"}, "`sheet` applies to .xlsx, .xlsm files"),
        ({"path": "d.csv", "split": "test"}, "`split` is for datasets of the Hub"),
        ({"path": "d.csv", "delimiter": "ab"}, "`delimiter` must be one character, not 'ab'"),
        ({"path": "d.csv", "delimiter": ""}, "`delimiter` must be one character"),
        ({"path": "d.csv", "delimiter": '"'}, "must differ"),
        ({"path": "d.csv", "quote": "\n"}, "`quote` must be one character"),
        ({"path": "hf://a/b", "sheet": "S"}, "`sheet` is for files"),
        ({"path": "d.txt"}, "a dataset must be one of .csv, .tsv"),
        ({"path": "d.xlsx.gz"}, "a dataset must be one of"),
        ({"path": "none/*.csv"}, "no file matches"),
        ({"path": "d.csv", "seed": 3}, "set both, or neither"),
        ({"path": "d.csv", "where": {"year": {"above": 3}}}, "a mapping with min, max, not"),
        ({"path": "d.csv", "where": {"year": {"min": "soon"}}}, "must be a number or a date"),
        ({"path": "d.csv", "wher": {}}, "did you mean `where`?"),
    ],
)
def test_keys_that_do_not_fit(tmp_path, dataset, words):
    for name in ("d.csv", "d.json", "d.txt", "d.xlsx.gz"):
        (tmp_path / name).write_text("input,expected\nq,a\n" if name == "d.csv" else "[]")
    assert any(words in message for message in problems_of(dataset, tmp_path)), problems_of(dataset, tmp_path)


def test_patterns(tmp_path, write_suite):
    (tmp_path / "data").mkdir()
    for number, text in ((10, "id,input,expected\n,c,1\n"), (2, "input;expected\na;1\nb;1\n")):
        (tmp_path / f"data/part-{number}.csv").write_text(text)
    (tmp_path / "data/part-11.jsonl").write_text('{"input":"d","expected":1}\n')
    suite = load_suite(write_suite(dataset="data/part-*"))
    assert [(case.id, case.input, case.position) for case in suite.cases()] == [
        ("data/part-2.csv:2", "a", 0),
        ("data/part-2.csv:3", "b", 1),
        ("data/part-10.csv:2", "c", 2),
        ("data/part-11.jsonl:1", "d", 3),
    ]
    before = suite.dataset_sha256
    (tmp_path / "data/part-11.jsonl").write_text('{"input":"e","expected":1}\n')
    assert load_suite(write_suite(dataset="data/part-*")).dataset_sha256 != before


def test_rows_of_a_pattern_have_the_same_names_however_the_suite_is_named(tmp_path, write_suite):
    """As people type it, a suite's path is relative: no id holds the folder of one machine."""
    for number in (1, 2):
        (tmp_path / f"part-{number}.csv").write_text(f"input,expected\nquestion {number},1\n")
    path = write_suite(dataset="part-*.csv")
    by_name, by_path = load_suite(path.name), load_suite(path)
    assert [case.id for case in by_name.cases()] == ["part-1.csv:2", "part-2.csv:2"]
    assert by_name.dataset_sha256 == by_path.dataset_sha256


def test_problems_of_patterns_name_their_file(tmp_path):
    (tmp_path / "a.csv").write_text("input,expected\nq,a\n")
    (tmp_path / "b.csv").write_text("input,expected\nq,a\nq\n")
    with pytest.raises(ProblemsError) as caught:
        parse_suite("name: x\ntargets: [mock:echo]\ndataset: '*.csv'", folder=tmp_path, environment={})
    assert [str(problem)[:9] for problem in caught.value.problems] == ["b.csv:3: "]


@pytest.mark.parametrize(("module", "extra"), [("python_calamine", "xlsx"), ("pyarrow", "parquet")])
def test_a_missing_library_names_its_extra(tmp_path, monkeypatch, module, extra):
    monkeypatch.setitem(__import__("sys").modules, module, None)
    (tmp_path / f"d.{extra}").write_bytes(b"")
    (message,) = problems_of({"path": f"d.{extra}"}, tmp_path)
    assert f"pip install 'fairtrial[{extra}]'" in message
