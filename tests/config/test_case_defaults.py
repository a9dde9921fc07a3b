"""`case_defaults`: what every case and row says unless it says otherwise; wrong defaults are reported once."""

import json

import pytest

from fairtrial import pipeline
from fairtrial.config.schema import suite_schema
from fairtrial.core.errors import ProblemsError

DEFAULTS = {
    "scorer": "contains",
    "expected": "Paris",
    "tags": ["smoke"],
    "weight": 2,
    "category": "geo",
    "difficulty": "easy",
    "cluster": "one",
    "params": {"max_tokens": 50, "temperature": 0},
    "repeats": 2,
    "vars": {"language": "French", "tone": "kind"},
    "metadata": {"source": "book", "page": 1},
    "extract": {"after": "Answer:"},
    "choices": ["Paris", "Rome"],
}


def cases(write_suite, **keys):
    return list(pipeline.load(write_suite(**keys)).cases())


def problems(write_suite, **keys):
    with pytest.raises(ProblemsError) as caught:
        pipeline.load(write_suite(**keys))
    return [f"{problem.key}: {problem.message}" for problem in caught.value.problems]


def is_default(case):
    return (
        case.scorer == {"type": "contains"}
        and (case.expected, case.tags, case.weight) == ("Paris", ("smoke",), 2)
        and (case.category, case.difficulty, case.cluster) == ("geo", "easy", "one")
        and (case.params, case.repeats) == ({"max_tokens": 50, "temperature": 0}, 2)
        and case.vars == {"language": "French", "tone": "kind"}
        and case.extract["after"] == "Answer:"
        and case.metadata["source"] == "book"
        and case.choices == ("Paris", "Rome")
    )


def test_cases_and_rows_take_the_defaults(write_suite, tmp_path):
    (tmp_path / "q.csv").write_text("question\nWhere?\n")
    inline, row = cases(
        write_suite,
        case_defaults=DEFAULTS,
        cases=[{"input": "Who?"}],
        dataset={"path": "q.csv", "input": "question"},
    )
    assert is_default(inline) and is_default(row)


def test_what_a_case_says_itself_counts(write_suite):
    own = {
        "scorer": "match",
        "expected": "Rome",
        "tags": ["own", "smoke"],
        "weight": 1,
        "category": None,
        "difficulty": "hard",
        "params": {"temperature": 1},
        "repeats": 1,
        "vars": {"language": "German"},
        "metadata": {"page": 2},
        "choices": ["Rome", "Oslo"],
    }
    (case,) = cases(write_suite, case_defaults=DEFAULTS, cases=[{"input": "Who?", **own}])
    assert (case.scorer, case.expected, case.weight) == ({"type": "match"}, "Rome", 1)
    assert case.tags == ("smoke", "own")
    assert (case.category, case.difficulty, case.cluster) == (None, "hard", "one")
    assert (case.params, case.repeats) == ({"max_tokens": 50, "temperature": 1}, 1)
    assert case.vars == {"language": "German", "tone": "kind"}
    assert case.metadata == {"source": "book", "page": 2, "choices": ["Rome", "Oslo"]}


def test_what_a_row_says_itself_counts(write_suite, tmp_path):
    columns = {"weight": "w", "tags": "t", "category": "c", "scorer": "s", "expected": "e"}
    (tmp_path / "q.jsonl").write_text(
        json.dumps(
            {
                "input": "a",
                "w": 1,
                "t": "own",
                "c": "x",
                "s": "match",
                "e": "Rome",
                "tone": "dry",
                "choices": ["Rome", "Oslo"],
            }
        )
        + "\n"
        + json.dumps({"input": "b", "w": "", "t": "", "c": "", "s": "", "e": ""})
        + "\n"
    )
    full, empty = cases(write_suite, case_defaults=DEFAULTS, dataset={"path": "q.jsonl", **columns})
    assert (full.weight, full.tags, full.category, full.expected) == (1, ("smoke", "own"), "x", "Rome")
    assert full.scorer == {"type": "match"} and full.choices == ("Rome", "Oslo")
    assert full.vars == {"language": "French"} and full.columns["tone"] == "dry"  # a column is nearer than a default
    assert is_default(empty)


def test_files_for_every_case(write_suite, tmp_path):
    (tmp_path / "q.csv").write_text("input,expected\nWhere?,x\n")
    (tmp_path / "notes.md").write_text("Some notes.")
    (tmp_path / "cat.png").write_bytes(b"\x89PNG\r\n\x1a\n-")
    keys = {"case_defaults": {"attach": ["notes.md", "cat.png"]}, "dataset": "q.csv"}
    suite = pipeline.load(write_suite(**keys, cases=[{"input": "Who?", "expected": "x"}]))
    assert [(case.input, case.attach[0].name) for case in suite.cases()] == [
        ("notes.md:\nSome notes.\n\nWho?", "cat.png"),
        ("notes.md:\nSome notes.\n\nWhere?", "cat.png"),
    ]
    assert [file.name for file in suite.files()] == ["cat.png"]


def test_other_defaults_are_another_plan(write_suite, tmp_path):
    (tmp_path / "q.csv").write_text("input,expected\nWhere?,x\n")
    (tmp_path / "notes.md").write_text("Some notes.")
    seen = set()
    for defaults in ({"weight": 2}, {"weight": 3}, {"attach": "notes.md"}):
        suite = pipeline.load(write_suite(dataset="q.csv", case_defaults=defaults))
        seen |= {suite.plan_id, suite.dataset_sha256}
    assert len(seen) == 6


def test_spelling_is_kept(write_suite, tmp_path):
    path = write_suite(cases=[{"input": "Who?"}])
    path.write_text(path.read_text() + "case_defaults: {expected: 007, category: yes}\n")
    (case,) = pipeline.load(path).cases()
    assert (case.expected, case.category) == ("007", "yes")


@pytest.mark.parametrize(
    ("defaults", "problem"),
    [
        ({"scorer": "contians"}, "case_defaults.scorer: unknown scorer `contians`"),
        ({"scorer": {"type": "numeric", "tolernace": 1}}, "case_defaults.scorer: "),
        ({"attach": "none.png"}, "case_defaults.attach: there is no file"),
        ({"tags": ["a\x07"]}, "case_defaults.tags: a name must not contain control characters"),
        ({"wieght": 2}, "case_defaults.wieght: unknown key; did you mean `weight`?"),
        ({"weight": -1}, "case_defaults.weight: "),
        ({"input": "Who?"}, "case_defaults.input: unknown key"),
        ({"id": "x"}, "case_defaults.id: unknown key"),
        (["x"], "case_defaults: must be a mapping"),
    ],
)
def test_what_is_wrong_is_reported_once_and_where_it_stands(write_suite, defaults, problem):
    many = [{"input": f"{n}", "expected": "x"} for n in range(5)]
    found = problems(write_suite, case_defaults=defaults, cases=many)
    assert len(found) == 1 and found[0].startswith(problem), found


def test_cases_that_come_with_fairtrial_have_no_defaults(write_suite):
    found = problems(write_suite, case_defaults={"weight": 2}, suite={"kind": "code_arena", "count": 1})
    assert found == ["case_defaults: `case_defaults` are for `cases` and `dataset`, not for the cases of `suite`"]


def test_the_schema_knows_them():
    parts = suite_schema()["$defs"]
    assert "case_defaults" in parts["SuiteDocument"]["properties"] and "weight" in parts["CaseSettings"]["properties"]


async def test_a_run_uses_them(run_suite):
    run = await run_suite(case_defaults={"scorer": {"type": "regex", "pattern": "French"}, "vars": {"l": "French"}}, prompts={"p": "{{ l }} {{ input }}"}, cases=[{"input": "x"}, {"input": "y", "vars": {"l": "German"}}])  # fmt: skip
    assert [trial.score for trial in run.trials()] == [1.0, 0.0]
