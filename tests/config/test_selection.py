"""Which rows become cases: filters, slices and samples; all of it streamed, repeatable, and part of the identity."""

import csv
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairtrial.config import load_suite, parse_suite
from fairtrial.config.document import DatasetEntry
from fairtrial.config.selection import Numbered, RowSelection
from fairtrial.core.errors import ProblemsError
from fairtrial.tables import Row

ROWS = [
    {"id": "a", "input": "1", "category": "math", "level": "easy", "year": 2019, "hard": True, "day": "2026-01-01"},
    {"id": "b", "input": "2", "category": "math", "level": "hard", "year": 2020, "hard": False, "day": "2026-02-01"},
    {
        "id": "c",
        "input": "3",
        "category": "art",
        "level": "easy",
        "year": 2021,
        "hard": None,
        "day": "2026-03-01T10:00",
    },
    {"id": "d", "input": "4", "category": "math", "level": "easy", "year": None, "hard": True, "day": ""},
]


def write(folder, form: str, rows=ROWS) -> str:
    if form == "jsonl":
        (folder / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        with (folder / "d.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, rows[0])
            writer.writeheader()
            writer.writerows(rows)
    return f"d.{form}"


def suite_of(folder, **dataset):
    suite = {"name": "x", "targets": ["mock:echo"], "dataset": dataset}
    suite["scorer"] = {"type": "regex", "pattern": "."}
    return parse_suite(json.dumps(suite), file="s.yaml", folder=folder, environment={})


def ids(folder, **dataset) -> str:
    return "".join(case.id for case in suite_of(folder, **dataset).cases())


@pytest.mark.parametrize("form", ["jsonl", "csv"])
@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ({"category": "math"}, "abd"),
        ({"category": "math", "level": ["easy", "medium"]}, "ad"),
        ({"year": 2020}, "b"),
        ({"year": [2019, 2021]}, "ac"),
        ({"year": {"min": 2020}}, "bc"),
        ({"year": {"min": 2020, "max": 2020}}, "b"),
        ({"year": {"max": 2020.5}}, "ab"),
        ({"category": {"not": "math"}}, "c"),
        ({"level": {"not": ["easy"]}}, "b"),
        ({"year": None}, "d"),
        ({"year": {"not": None}}, "abc"),
        ({"hard": True}, "ad"),
        ({"day": {"min": "2026-02-01"}}, "bc"),
        ({"day": {"max": "2026-03-01"}}, "abc"),
    ],
)
def test_where(tmp_path, form, where, expected):
    assert ids(tmp_path, path=write(tmp_path, form), where=where) == expected


def test_words_that_yaml_takes_for_booleans(tmp_path):
    write(tmp_path, "csv", [{"input": "a", "said": "yes"}, {"input": "b", "said": "no"}])
    text = (
        "name: x\ntargets: [mock:echo]\nscorer: {type: regex, pattern: .}\ndataset: {path: d.csv, where: {said: yes}}"
    )
    assert [case.input for case in parse_suite(text, folder=tmp_path).cases()] == ["a"]


def test_ids_do_not_depend_on_the_selection(tmp_path):
    rows = [{"input": str(number), "kind": number % 2} for number in range(6)]
    suite = suite_of(tmp_path, path=write(tmp_path, "jsonl", rows), where={"kind": 1}, offset=1)
    assert [(case.id, case.position) for case in suite.cases()] == [("row-4", 0), ("row-6", 1)]


@pytest.mark.parametrize(
    ("dataset", "expected"),
    [({"limit": 2}, "ab"), ({"offset": 1, "limit": 2}, "bc"), ({"offset": 3}, "d"), ({"sample": 9}, "abcd")],
)
def test_slices(tmp_path, dataset, expected):
    assert ids(tmp_path, path=write(tmp_path, "jsonl"), **dataset) == expected


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ({"categry": "math"}, "`where`: no column `categry` (columns: id, input, category"),
        ({"category": "music"}, "`where` selects none of the 4 rows"),
        ({"category": {"min": 3}}, "`where`: column `category` is not a number: 'math'"),
        ({"category": {"min": "2026-01-01"}}, "is not a date"),
    ],
)
def test_filters_that_cannot_be_meant(tmp_path, where, words):
    with pytest.raises(ProblemsError, match="where") as caught:
        suite_of(tmp_path, path=write(tmp_path, "csv"), where=where)
    assert any(words in problem.message for problem in caught.value.problems), caught.value


def test_unreadable_rows_are_never_left_out(tmp_path):
    (tmp_path / "d.jsonl").write_text('{"input": "a", "kind": 1}\nnonsense\n{"input": "b", "kind": 2}\n')
    for dataset in ({"where": {"kind": 1}}, {"sample": 1}):
        with pytest.raises(ProblemsError, match=r"d\.jsonl:2: invalid JSON"):
            suite_of(tmp_path, path="d.jsonl", **dataset)


def test_the_selection_is_part_of_the_identity(tmp_path):
    path = write(tmp_path, "jsonl")
    choices = [{}, {"limit": 2}, {"offset": 1}, {"sample": 2}, {"sample": 2, "seed": 1}, {"where": {"level": "easy"}}]
    suites = [suite_of(tmp_path, path=path, **choice) for choice in choices]
    assert len({suite.plan_id for suite in suites}) == len({suite.dataset_sha256 for suite in suites}) == len(choices)
    assert suites[0].dataset_origin == {"files": [path]}
    assert suites[4].dataset_origin == {"files": [path], "sample": 2, "seed": 1}


def draw(rows: list[dict], **entry) -> list[int]:
    numbered = [Numbered(number, "d", Row(number + 1, fields)) for number, fields in enumerate(rows)]
    selection = RowSelection(DatasetEntry(path="d", **entry))
    once, again = ([item.number for item in selection.rows(lambda: iter(numbered))] for _ in range(2))
    assert once == again
    return once


@given(st.lists(st.integers(0, 50), max_size=60), st.integers(1, 20), st.integers(0, 5))
def test_a_sample_has_its_size_and_keeps_the_order(values, size, seed):
    drawn = draw([{"input": value} for value in values], sample=size, seed=seed)
    assert len(drawn) == min(size, len(values)) and drawn == sorted(set(drawn))


@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 20))
def test_rows_that_are_added_only_replace(before, added, size):
    """What was in the sample leaves it only for a row that is new."""
    rows = [{"id": str(number), "input": "q"} for number in range(before + added)]
    old, new = set(draw(rows[:before], sample=size)), set(draw(rows, sample=size))
    assert new - old <= set(range(before, before + added))


def test_corrected_rows_stay_in_the_sample():
    rows = [{"id": str(number), "input": "q"} for number in range(100)]
    corrected = [{**row, "input": "Q"} for row in rows]
    assert draw(rows, sample=10) == draw(corrected, sample=10)
    assert draw(rows, sample=10) != draw(rows, sample=10, seed=1)


def test_every_row_is_as_likely():
    rows = [{"input": str(number)} for number in range(20)]
    counts = [0] * 20
    for seed in range(400):
        for number in draw(rows, sample=5, seed=seed):
            counts[number] += 1
    assert all(60 <= count <= 140 for count in counts)  # 100 each, sd 8.7; the draws are the same on every machine


def test_a_selection_is_run(tmp_path, write_suite):
    path = write(tmp_path, "csv")
    file = write_suite(dataset={"path": path, "where": {"category": "math"}, "sample": 2, "expected": "input"})
    assert load_suite(file).case_count == 2
