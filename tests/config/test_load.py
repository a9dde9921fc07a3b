"""Suites: everything that can be known is checked before anything is asked, and all of it is reported."""

import hashlib
import json
from pathlib import Path

import jsonschema_rs
import pytest
import yaml

from fairtrial import pipeline
from fairtrial.config import RunOptions, load_suite, parse_suite
from fairtrial.config.schema import suite_schema
from fairtrial.core.errors import FairtrialError, ProblemsError
from fairtrial.suites import suite_path

EVERYTHING_WRONG = """\
name: bad
targts: [x]
targets:
  - openai:gpt-5-mini
  - opnai:gpt-5
  - {target: mock:echo, options: {latncy_ms: 3}}
  - {id: a, target: mock:x}
params: {temperature: hot, max_tokens: 0}
repeats: 0
scorer: exat
budget_usd: ${BUDGET}
system: x
system_file: y.md
cases:
  - {id: a, input: q, expected: "(", scorer: regex}
  - {id: a, input: q, expected: forty, scorer: numeric}
  - {input: q, expcted: 3}
  - {expected: 3}
  - {input: q, scorer: {type: numeric, tolernce: 1}}
  - {input: q, weight: -1}
dataset: {path: nope.csv}
"""


def problems_of(text: str, environment: dict | None = None, folder: Path = Path()) -> list[tuple[int, str, str]]:
    with pytest.raises(ProblemsError) as caught:
        parse_suite(text, file="s.yaml", folder=folder, environment=environment or {})
    return [(p.line, p.key, p.message) for p in caught.value.problems]


@pytest.mark.slow
def test_all_problems_are_reported_together_with_line_and_nearest_key():
    found = problems_of(EVERYTHING_WRONG)
    expected = [
        (2, "targts", "did you mean `targets`?"),
        (4, "targets.0.target", "needs OPENAI_API_KEY"),
        (5, "targets.1.target", "did you mean `openai`?"),
        (6, "targets.2.options.latncy_ms", "did you mean `latency_ms`?"),
        (7, "targets.3.target", "needs `answer` or `answers`"),
        (8, "params.temperature", "must be a number"),
        (8, "params.max_tokens", "must be >= 1"),
        (9, "repeats", "must be >= 1"),
        (10, "scorer.type", "did you mean `exact`?"),
        (11, "budget_usd", "the variable BUDGET is not set"),
        (13, "system_file", "not both"),
        (15, "cases.0", "is not valid"),
        (16, "cases.1", "duplicate case id"),
        (16, "cases.1", "needs a number as `expected`"),
        (17, "cases.2.expcted", "did you mean `expected`?"),
        (18, "cases.3", "`input` is missing"),
        (19, "cases.4.scorer.tolernce", "did you mean `tolerance`?"),
        (20, "cases.5.weight", "must be >= 0"),
        (21, "dataset.path", "there is no file nope.csv"),
    ]
    for line, key, words in expected:
        place = key.split(".scorer")[0]
        assert any(at == line and k.startswith(place) and words in m for at, k, m in found), (
            line,
            words,
            found,
        )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{ [", "invalid YAML"),
        ("a: b: c", "invalid YAML"),
        ("- 1", "a suite must be a mapping"),
        ("", "a suite must be a mapping"),
        ("name: x\ntargets: [mock:echo]", "the suite has no cases"),
        ("name: x\ntargets: [mock:echo]\ncases: &a [*a]", "refers to itself"),
        ("name: x\ntargets: [mock:echo]\ncases: [{input: q, weight: .inf}]", "must be a finite number"),
        ("name: x\ntargets: [mock:echo]\ntimeout: .nan\ncases: [{input: q}]", "must be"),
        ("name: x\ntargets: []\ncases: [{input: q}]", "must not be empty"),
        ("name: x\ntargets: mock:echo\ncases: [{input: q}]", "must be a list"),
        ("name: x\nname: y\ntargets: [mock:echo]\ncases: [{input: q}]", "duplicate key"),
        ("name: x\ntargets: [mock:echo, mock:echo]\ncases: [{input: q}]", "duplicate arm"),
        ("name: x\ntargets: [mock:echo]\ncases: [{input: q}]\ndataset: {path: d.xlsx}", "there is no file"),
        ("name: x\ntargets: [local:gpt-9]\ncases: [{input: q}]", "no embedded model"),
        ("name: x\ntargets: [python:nosuch:f]\ncases: [{input: q}]", "cannot be imported"),
        (
            "name: x\ntargets: [{target: command, options: {command: [no-such-program]}}]\ncases: [{input: q}]",
            "there is no program",
        ),
        ("name: x\ntargets: [command]\ncases: [{input: q}]", "`command` is missing"),
        ("name: x\ntargets: [mock:echo]\ncases: [{input: q, scorer: {pattern: x}}]", "a mapping with `type`"),
    ],
)
def test_bad_suites(text, words):
    assert any(words in message for _, _, message in problems_of(text)), problems_of(text)


def test_yaml_errors_have_a_line():
    assert problems_of("name: x\ntargets: [\ncases: {")[0][0] >= 2


def test_spelling_of_texts_is_kept():
    suite = parse_suite(
        "name: x\ntargets: [mock:echo]\ncases:\n"
        "  - {id: 007, input: 1e3, expected: yes}\n"
        "  - {input: q, expected: 2026-11-15}\n"
        "  - {input: q, expected: {a: 1}}\n"
    )
    cases = list(suite.cases())
    assert [(c.id, c.input, c.expected) for c in cases] == [
        ("007", "1e3", "yes"),
        ("case-2", "q", "2026-11-15"),
        ("case-3", "q", '{"a":1}'),
    ]


def test_several_right_answers(tmp_path):
    (tmp_path / "d.jsonl").write_text(
        '{"input": "q", "expected": ["B", 2, {"a": 1}]}\n{"input": "q", "expected": {"a": 1}}\n'
    )
    (tmp_path / "d.csv").write_text('id,input,expected\nt,q,"[1, 2]"\n')
    text = "name: x\ntargets: [mock:echo]\ndataset: {}\ncases:\n"
    text += "  - {{input: q, expected: [B, 007, yes, {{a: 1}}]}}\n  - {{input: q, expected: [B]}}\n"
    cases = [case.expected for case in parse_suite(text.format("d.jsonl"), folder=tmp_path).cases()]
    assert cases == [("B", "007", "yes", '{"a":1}'), "B", ("B", "2", '{"a":1}'), '{"a":1}']
    assert list(parse_suite(text.format("d.csv"), folder=tmp_path).cases())[-1].expected == "[1, 2]"


@pytest.mark.parametrize("expected", ["", "''", "'  '", "[]", "null"])
@pytest.mark.parametrize("scorer", ["match", "exact", "boolean", "contains", "numeric", "regex"])
def test_a_blank_expected_text_is_a_problem(scorer, expected):
    text = f"name: x\ntargets: [mock:echo]\nscorer: {scorer}\ncases:\n  - {{input: p, expected: '1'}}\n  - {{input: q, expected: {expected}}}"
    ((line, key, message),) = problems_of(text)
    assert (line, key) == (6, "cases.1") and "`expected` is blank or missing" in message and f"`{scorer}`" in message


def test_a_blank_expected_text_in_a_table_is_a_problem(tmp_path):
    (tmp_path / "d.csv").write_text("input,expected\nA?,a\nB?,\n")
    ((line, _, message),) = problems_of("name: x\ntargets: [mock:echo]\ndataset: d.csv", folder=tmp_path)
    assert line == 3 and "`expected` is blank or missing" in message


def test_the_one_suite_that_needs_no_expected_text(write_suite):
    scorer = {"type": "boolean", "pass_if_blank": True}
    assert load_suite(write_suite(scorer=scorer, cases=[{"input": "q"}])).case_count == 1


def test_the_default_scorer_is_right_or_wrong(write_suite):
    assert load_suite(write_suite()).arms[0].scorer == {"type": "match"}


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"system": "Use {{context}}."}, "the system prompt: this case has no `context`; known: "),
        ({"conditions": {"c": {"prompt": "{{context}}: {{input}}"}}}, "this case has no `context`"),
        (
            {"conditions": {"c": {"prompt": ["{{input}}", "{{ inputs | upper }} {{input}}"]}}},
            "this case has no `inputs`; did you mean `input`?",
        ),
        ({"conditions": {"c": {"prompt_file": "p.md"}}}, "prompt `c`: this case has no `topic`"),
        ({"conditions": {"c": {"system_file": "s.md"}, "d": {}}}, "the system prompt: this case has no `role`"),
    ],
)
def test_places_that_nobody_fills_in_are_a_problem(tmp_path, write_suite, keys, words):
    (tmp_path / "p.md").write_text("{{topic}} {{problem}}")
    (tmp_path / "s.md").write_text("You are {{role}}.")
    with pytest.raises(ProblemsError) as caught:
        load_suite(write_suite(**keys))
    (problem,) = caught.value.problems
    assert problem.key == "cases.0" and words in problem.message and problem.line


def test_braces_in_cases_are_text(write_suite):
    cases = [{"input": "What is {{name}} in Jinja?", "expected": "{{name}}"}]
    (case,) = load_suite(write_suite(cases=cases)).cases()
    assert case.input == "What is {{name}} in Jinja?"


def test_columns_that_mean_nothing_stay_with_the_case(tmp_path, write_suite):
    (tmp_path / "d.csv").write_text("id,question,expected,source,year\nx,Q?,a,book,1999\n")
    (case,) = load_suite(write_suite(dataset={"path": "d.csv", "input": "question"})).cases()
    assert case.columns == {"source": "book", "year": "1999"}


def test_the_nearest_setting_wins():
    suite = parse_suite(
        """
name: x
params: {temperature: 0.1, top_p: 0.5}
scorer: exact
repeats: 2
targets:
  - mock:echo
  - {id: own, target: mock:echo, params: {temperature: 0.2}, scorer: boolean, repeats: 3}
conditions:
  plain: {}
  special: {system: Hi, params: {temperature: 0.3}, scorer: {type: regex, pattern: x}, repeats: 4}
cases:
  - {id: a, input: q, expected: "1"}
  - {id: b, input: q, expected: "1", params: {temperature: 0.4}, scorer: numeric, repeats: 5}
"""
    )
    a, b = suite.cases()
    table = {
        arm.name: (arm.params_of(a)["temperature"], arm.scorer_of(a)["type"], arm.repeats_of(a)) for arm in suite.arms
    }
    assert table == {
        "mock:echo/plain": (0.1, "exact", 2),
        "mock:echo/special": (0.3, "regex", 4),
        "own/plain": (0.2, "boolean", 3),
        "own/special": (0.3, "regex", 4),
    }
    arm = suite.arms[3]
    assert (arm.params_of(b)["temperature"], arm.scorer_of(b)["type"], arm.repeats_of(b)) == (0.4, "numeric", 5)
    assert arm.params_of(b)["top_p"] == 0.5


def test_default_parameters(write_suite):
    (arm,) = load_suite(write_suite()).arms
    assert arm.params == {
        "temperature": 0.7,
        "top_p": 1,
        "max_tokens": 2048,
        "frequency_penalty": 0,
        "presence_penalty": 0,
    }
    assert arm.name == "mock:echo" and arm.condition.name == "default"


def test_benchmark_mode_locks_sampling_everywhere(write_suite):
    path = write_suite(
        benchmark_mode=True,
        params={"temperature": 0.9, "frequency_penalty": 1},
        cases=[{"input": "q", "expected": "a", "params": {"temperature": 0.8, "max_tokens": 5}}],
    )
    suite = load_suite(path)
    (case,) = suite.cases()
    params = suite.arms[0].params_of(case, benchmark_mode=True)
    assert (params["temperature"], params["frequency_penalty"], params["presence_penalty"]) == (0, 0, 0)
    assert params["max_tokens"] == 5


def test_a_parameter_set_to_nothing_is_not_sent(write_suite):
    (arm,) = load_suite(write_suite(params={"temperature": None})).arms
    assert "temperature" not in arm.params


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("d.csv", 'question,answer,w,t\nWhat?,Paris,2,geo;easy\n"a, ""b""",c,,\n'),
        ("d.tsv", 'question\tanswer\tw\tt\nWhat?\tParis\t2\tgeo;easy\n"a, ""b"""\tc\t\t\n'),
        (
            "d.jsonl",
            '{"question":"What?","answer":"Paris","w":2,"t":["geo","easy"]}\n\n{"question":"a, \\"b\\"","answer":"c","w":null,"t":null}\n',
        ),
        (
            "d.json",
            '[{"question":"What?","answer":"Paris","w":2,"t":["geo","easy"]},{"question":"a, \\"b\\"","answer":"c","w":null,"t":null}]',
        ),
    ],
)
def test_datasets(tmp_path, write_suite, name, text):
    (tmp_path / name).write_text(text, "utf-8")
    path = write_suite(dataset={"path": name, "input": "question", "expected": "answer", "weight": "w", "tags": "t"})
    suite = load_suite(path)
    one, two = suite.cases()
    assert (one.id, one.input, one.expected, one.weight, one.tags) == ("row-1", "What?", "Paris", 2.0, ("geo", "easy"))
    assert (two.input, two.expected, two.weight, two.tags) == ('a, "b"', "c", 1.0, ())
    assert suite.dataset_sha256 == hashlib.sha256((tmp_path / name).read_bytes()).hexdigest()
    assert suite.case_count == 2


def test_cases_and_dataset_together(tmp_path, write_suite):
    (tmp_path / "d.csv").write_text("id,input,expected\nx,What?,That\n")
    suite = load_suite(write_suite(cases=[{"id": "y", "input": "q", "expected": "a"}], dataset="d.csv"))
    assert [(c.id, c.position) for c in suite.cases()] == [("y", 0), ("x", 1)]


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ('{"question": "q"}\nnot json\n', 2, "invalid JSON"),
        ('{"question": "q"}\n[1]\n', 2, "must be a JSON object"),
        ('{"q": 1}\n', 1, "no column `question` (columns: q)"),
        ('{"question": "q", "w": "heavy"}\n', 1, "weight must be a number >= 0"),
        ('{"question": "q", "w": 1, "id": "a"}\n{"question": "q", "w": 1, "id": "a"}\n', 2, "duplicate case id"),
    ],
)
def test_bad_rows_have_a_line(tmp_path, text, line, words):
    (tmp_path / "d.jsonl").write_text(text)
    dataset = "{path: d.jsonl, input: question, weight: w}" if '"w"' in text else "{path: d.jsonl, input: question}"
    found = problems_of(f"name: x\ntargets: [mock:echo]\ndataset: {dataset}", folder=tmp_path)
    assert any(at == line and words in m for at, _, m in found), found


@pytest.mark.parametrize("name", ["d.csv", "d.jsonl", "d.json"])
def test_datasets_that_are_no_text(tmp_path, name):
    (tmp_path / name).write_bytes(b"input,expected\n\xff\xfe,x\n")
    found = problems_of(f"name: x\ntargets: [mock:echo]\ndataset: {name}", folder=tmp_path)
    assert any("not a UTF-8 text file" in message or "invalid JSON" in message for _, _, message in found)


def test_many_problems_are_cut_short(tmp_path):
    (tmp_path / "d.jsonl").write_text("nope\n" * 1000)
    found = problems_of("name: x\ntargets: [mock:echo]\ndataset: d.jsonl", folder=tmp_path)
    assert 50 <= len(found) <= 52 and "there may be more" in found[-1][2] + found[0][2]


def test_selection(write_suite):
    path = write_suite(
        targets=["mock:echo", {"id": "b", "target": "mock:echo"}],
        conditions={"c1": {}, "c2": {}},
        cases=[{"id": n, "input": "q", "expected": "a"} for n in "xyz"],
    )
    suite = load_suite(path, RunOptions(targets=("b",), conditions=("c2",), cases=("y", "z"), limit=1, repeats=4))
    assert [arm.name for arm in suite.arms] == ["b/c2"]
    assert [(c.id, c.position) for c in suite.cases()] == [("y", 0)]
    assert suite.arms[0].repeats == 4


@pytest.mark.parametrize("options", [{"targets": ("q",)}, {"conditions": ("q",)}, {"cases": ("q",)}])
def test_a_selection_of_nothing_is_a_problem(write_suite, options):
    with pytest.raises(ProblemsError, match="there is no such"):
        load_suite(write_suite(), RunOptions(**options))


def test_a_target_that_is_not_chosen_needs_no_key(write_suite):
    path = write_suite(targets=["mock:echo", "openai:gpt-5"])
    assert len(load_suite(path, RunOptions(targets=("mock:echo",)), {}).arms) == 1
    with pytest.raises(ProblemsError, match="OPENAI_API_KEY"):
        load_suite(path, environment={})


@pytest.mark.parametrize("name", ["groq:llama", "groq/llama"])
def test_any_server_by_environment(write_suite, name):
    environment = {"GROQ_BASE_URL": "https://example.test/v1", "GROQ_API_KEY": "k" * 10}
    (arm,) = load_suite(write_suite(targets=[name]), environment=environment).arms
    assert (arm.target.kind, arm.target.model, arm.target.base_url) == (
        "openai_api",
        "llama",
        "https://example.test/v1",
    )


def test_own_providers(write_suite):
    providers = {"lab": {"base_url": "http://lab.test:8000/v1", "api_key": "${LAB}", "headers": {"X-Team": "${LAB}"}}}
    (arm,) = load_suite(write_suite(targets=["lab:a/b:c"], providers=providers), environment={"LAB": "secret-1"}).arms
    assert (arm.target.model, arm.target.api_key, arm.target.headers) == ("a/b:c", "secret-1", {"X-Team": "secret-1"})


def test_system_prompts_from_files(tmp_path, write_suite):
    (tmp_path / "p.md").write_text("Use ${SYNTAX} freely.")
    (arm,) = load_suite(write_suite(system_file="p.md")).arms
    assert arm.condition.system == "Use ${SYNTAX} freely."


def test_a_scorer_that_needs_a_judge_needs_a_judge(write_suite, monkeypatch):
    from fairtrial.scorers.boolean import Boolean

    monkeypatch.setattr(Boolean, "judged", True)
    with pytest.raises(ProblemsError, match="needs a judge"):
        load_suite(write_suite(scorer="boolean"))
    (judge,) = load_suite(write_suite(scorer="boolean", judge="mock:echo")).settings.judges
    assert judge.name == "mock:echo" and judge.target.kind == "mock"


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"judge": "mock:echo", "judges": ["mock:echo"]}, "not both"),
        ({"judges": ["mock:echo", "mock:echo"]}, "duplicate judge"),
        ({"judge": "openai:gpt-5"}, "needs OPENAI_API_KEY"),
        ({"judge": "mock:echo", "panel": {"combine": "best"}}, "must be one of mean, median, majority"),
        (
            {"scorer": "golden_judge", "judge": "mock:echo", "cases": [{"input": "q"}]},
            "`golden_judge` compares answers",
        ),
        ({"scorer": {"type": "llm_judge", "scale": 7}, "judge": "mock:echo"}, "must be one of 10, 100"),
    ],
)
def test_judges_are_checked(write_suite, keys, words):
    with pytest.raises(ProblemsError, match=words):
        load_suite(write_suite(**keys), environment={})


def test_a_budget_needs_prices(write_suite):
    path = write_suite(
        targets=["lab:m"], providers={"lab": {"base_url": "http://127.0.0.1:1/v1"}}, budget_usd=1, name="budget"
    )
    with pytest.raises(FairtrialError, match="the price of lab:m"):
        pipeline.load(path)


def test_files_that_cannot_be_read(tmp_path):
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00x")
    for name, words in (
        ("none.yaml", "there is no file"),
        (".", "is a folder"),
        ("binary.yaml", "not a UTF-8 text file"),
    ):
        with pytest.raises(FairtrialError, match=words):
            load_suite(tmp_path / name)


@pytest.mark.parametrize("name", ["demo", "template"])
def test_built_in_suites_fit_the_schema(name):
    validator = jsonschema_rs.validator_for(suite_schema())
    validator.validate(yaml.load(suite_path(name).read_text("utf-8"), yaml.CSafeLoader))


@pytest.mark.parametrize(
    "change",
    [
        {"nme": 1},
        {"repeats": 0},
        {"scorer": "exat"},
        {"cases": [{"expected": 1}]},
        {"targets": [3]},
        {"extract": "numbr"},
        {"extract": {"regexx": "a"}},
        {"scorer": {"type": "match", "extract": {"missing": "zero"}}},
    ],
)
def test_the_schema_refuses_what_the_reader_refuses(change):
    suite = {"name": "x", "targets": ["mock:echo"], "cases": [{"input": "q", "expected": 42}], "scorer": "exact"}
    validator = jsonschema_rs.validator_for(suite_schema())
    validator.validate(suite)
    validator.validate({**suite, "extract": "number", "scorer": {"type": "match", "extract": {"after": "A:"}}})
    assert not validator.is_valid({**suite, **change})
    with pytest.raises(ProblemsError):
        parse_suite(json.dumps({**suite, **change}))


def test_the_plan_depends_on_what_is_asked_and_on_nothing_else(write_suite):
    plan = load_suite(write_suite()).plan_id
    assert load_suite(write_suite()).plan_id == plan
    assert load_suite(write_suite(), RunOptions(concurrency=9, budget_usd=3)).plan_id == plan
    assert load_suite(write_suite(), RunOptions(repeats=2)).plan_id != plan
    assert load_suite(write_suite(system="Be brief")).plan_id != plan


@pytest.mark.parametrize(
    ("name", "full"), [("gpt-4o", "openai:gpt-4o"), ("claude-3-haiku-9", "anthropic:"), ("o3", "openai:o3")]
)
def test_a_model_without_its_provider(name, full):
    ((_, key, message),) = problems_of(f"name: x\ntargets: [{name}]\ncases: [{{input: q, expected: a}}]")
    assert key == "targets.0.target" and f"did you mean `{full}" in message


@pytest.mark.parametrize(
    ("parameters", "right"),
    [
        ("user_query, system_prompt, mcp_servers", True),
        ("*args", True),
        ("a, b, c, steps", True),
        ("a, b=None, c=None, d=None", True),
        ("question", True),
        ("input, system", True),
        ("a, b, c, steps, temperature=1", True),
        ("a, b, c, d", False),
        ("a, b, c, *, key", False),
    ],
)
def test_functions_that_cannot_be_called_are_found(tmp_path, parameters, right):
    (tmp_path / "own.py").write_text(f"def ask({parameters}):\n    return ''\n")
    text = "name: x\ntargets: [python:own.py:ask]\ncases: [{input: q, expected: a}]"
    if right:
        assert parse_suite(text, folder=tmp_path).arms
    else:
        ((_, _, message),) = problems_of(text, folder=tmp_path)
        assert "is called as query(user_query, system_prompt, mcp_servers)" in message
