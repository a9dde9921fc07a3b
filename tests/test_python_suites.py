"""Suites made in Python: functions, objects and tables in place of names, with the checks of a file."""

import asyncio
import importlib
import inspect
import threading
from types import SimpleNamespace

import pytest
import yaml

import fairtrial as ft
from fairtrial.config import parse_suite
from fairtrial.config.document import SuiteDocument
from fairtrial.core.fingerprint import code_hash
from tests import forks

CASES = [ft.Case("Capital of France?", expected="Paris", id="fr"), {"input": "6 x 7?", "expected": 42, "id": "n"}]
ANSWERS = {"Capital of France?": "Paris", "6 x 7?": "41"}

OWN = {"own": {"base_url": "http://127.0.0.1:9/v1", "api_key": "${OWN_KEY}"}}


def answer(input):
    return ANSWERS[input]


def right(response, expected):
    return response == expected


def suite_of(target=answer, scorer=right, cases=CASES, **keys):
    return ft.Suite(name="s", targets=[target], scorer=scorer, cases=cases, **keys)


def scores(run):
    return {trial.case_id: trial.score for trial in run.trials()}


def test_every_key_of_a_file_is_a_keyword():
    keywords = set(inspect.signature(ft.Suite).parameters)
    assert set(SuiteDocument.__struct_fields__) - {"mcp_servers_as_desktop"} == keywords - {"folder", "options"}
    assert all(key in ft.Suite.__init__.__doc__ for key in keywords)


def test_functions_answer_and_score():
    suite = suite_of(repeats=2)
    run = ft.run(suite)
    assert run.status == "completed" and scores(run) == {"fr": 1.0, "n": 0.0}
    assert [arm.arm for arm in run.arms] == ["answer"] and len(list(run.trials())) == 4
    assert repr(suite) == "<Suite s: 1 arm, 2 cases>"


def test_python_and_yaml_make_the_same_suite():
    made = suite_of("mock:echo", "match", repeats=3, system="Be brief.", conditions={"a": {"system": "x"}, "b": {}})
    read = parse_suite(made.to_yaml(), folder=made.folder)
    assert read.arms == made.arms and list(read.cases()) == list(made.cases()) and read.settings == made.settings
    assert ft.Suite.from_dict(yaml.safe_load(made.to_yaml())).arms == made.arms


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ({"targets": ["opnai:x"]}, "targets.0.target: unknown provider `opnai`; did you mean `openai`"),
        ({"scorer": "numerik"}, "did you mean `numeric`"),
        ({"repeats": 0}, "repeats: must be >= 1, not 0"),
        ({"cases": [{"inptu": "x"}]}, "cases.0.inptu: unknown key; did you mean `input`"),
        ({"cases": [ft.Case("x")]}, "`expected` is blank or missing"),
        ({"cases": []}, "the suite has no cases"),
        ({"scorer": lambda output: 1.0}, "asks for `output`, which a scorer is not given"),
        ({"targets": [lambda *, clown: ""]}, "asks for `clown`, which a target is not given"),
        ({"targets": [lambda: ""]}, "takes neither the input nor the messages"),
        ({"targets": [answer, answer]}, "duplicate arm `answer`"),
    ],
)
def test_problems_are_those_of_a_file(keys, problem):
    with pytest.raises(ft.FairtrialError, match="suite: ") as error:
        ft.Suite(**{"name": "s", "targets": ["mock:echo"], "cases": CASES, "scorer": "match", **keys})
    assert problem in str(error.value)


def test_a_mapping_with_an_unknown_key():
    with pytest.raises(ft.FairtrialError, match="did you mean `targets`"):
        ft.run({"name": "s", "target": ["mock:echo"], "cases": CASES})
    assert ft.run({"name": "s", "targets": ["mock:echo"], "cases": CASES}).status == "completed"


async def _later(question):
    await asyncio.sleep(0)
    return ANSWERS[question]


class Chain:
    def __init__(self):
        self.got = []

    def invoke(self, input, config=None, **kwargs):
        self.got.append(input)
        text = ANSWERS[input if isinstance(input, str) else input[-1]["content"]]
        usage = {"input_tokens": 3, "output_tokens": 1}
        return SimpleNamespace(content=[{"type": "text", "text": text}], usage_metadata=usage)


class Caller:
    async def __call__(self, question: str):
        return {"messages": [{"role": "assistant", "content": ANSWERS[question]}]}


@pytest.mark.parametrize(
    "target",
    [
        _later,
        lambda question: asyncio.wait_for(_later(question), 60),
        lambda question, temperature=0.2, retries=3: ANSWERS[question] if temperature == 0.2 and retries == 3 else "",
        lambda messages: messages[-1]["content"] and ANSWERS[messages[-1]["content"]],
        lambda q, s, m: ANSWERS[q] if (s, m) == ("", {}) else "",
        lambda *, input, system, params: ANSWERS[input] if params["max_tokens"] else "",
        lambda *arguments: ANSWERS[arguments[0]],
        Chain(),
        Caller(),
        {"target": answer, "id": "mine", "params": {"temperature": 0}},
    ],
)
def test_what_can_be_a_target(target):
    run = ft.run(suite_of(target))
    assert scores(run) == {"fr": 1.0, "n": 0.0}, [trial.failure_message for trial in run.trials()]


def test_an_object_that_is_invoked_gets_the_system_prompt():
    chain = Chain()
    run = ft.run(suite_of(chain, system="Be brief.", cases=CASES[:1]))
    assert chain.got == [[{"role": "system", "content": "Be brief."}, {"role": "user", "content": CASES[0].input}]]
    assert next(run.trials()).prompt_tokens == 3


async def _async_score(response):
    return 0.5


@pytest.mark.parametrize(
    ("scorer", "value", "metrics"),
    [
        (_async_score, 0.5, {}),
        (lambda response: {"short": 1, "kind": 0.5}, 0.75, {"short": 1.0, "kind": 0.5}),
        (lambda **facts: ft.Score(value=0.25) if facts["tool_calls"] == [] else 0, 0.25, {}),
        (lambda input, expected, vars, messages, trace, latency_ms, cost_usd, tokens: len(messages) == 1, 1.0, {}),
        ({"type": "all_of", "scorers": ["match", right]}, 1.0, None),
    ],
)
def test_what_can_be_a_scorer(scorer, value, metrics):
    trial = next(ft.run(suite_of(scorer=scorer)).trials())
    assert trial.score == pytest.approx(value), trial.unscored_message
    assert metrics is None or trial.metrics == metrics


def test_metrics_without_a_score_must_be_shares():
    trial = next(ft.run(suite_of(scorer=lambda response: {"words": 7})).trials())
    assert trial.score is None and "add `score`" in trial.unscored_message


def test_what_a_function_raises_is_a_reason():
    def broken(input):
        raise ValueError("no such town")

    def bad_scorer(response):
        return 7

    run = ft.run(suite_of(broken))
    assert run.status == "incomplete"
    assert next(run.trials()).failure_message == "broken raised ValueError: no such town"
    assert "returned 7" in next(ft.run(suite_of(scorer=bad_scorer)).trials()).unscored_message


@pytest.mark.slow
def test_a_function_that_hangs_ends_with_its_time():
    release = threading.Event()
    hung = ft.run(suite_of(lambda input: str(release.wait()), timeout=0.3, on_limit="fail", retry={"attempts": 1}))
    # The threads that hang are not waited for: others answer meanwhile.
    answered = ft.run(suite_of(lambda input: "Paris", retry={"attempts": 1}))
    release.set()
    assert {trial.failure_kind for trial in hung.trials()} == {"timeout"}
    assert {trial.failure_kind for trial in answered.trials()} == {None}


def _frame(kind):
    columns = {"input": list(ANSWERS), "expected": ["Paris", None], "weight": [2.0, None], "land": ["fr", None]}
    return (
        pytest.importorskip(kind).DataFrame(columns) if kind != "pyarrow" else pytest.importorskip(kind).table(columns)
    )


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_a_table_is_a_list_of_cases(kind):
    suite = suite_of(cases=_frame(kind), scorer=lambda response: True)
    first, second = suite.cases()
    assert (first.id, first.input, first.expected, first.weight) == ("row-1", "Capital of France?", "Paris", 2.0)
    assert first.columns == {"land": "fr"} and second.expected is None and second.weight == 1.0
    assert ft.run(suite).status == "completed"
    assert suite.dataset_origin["rows"] == 2 and str(suite._made.rows.file) not in suite.text
    again = suite_of(cases=_frame(kind), scorer=lambda response: True)
    assert again.dataset_sha256 == suite.dataset_sha256


def test_columns_of_a_table_can_be_named():
    frame = _frame("pandas").rename(columns={"input": "question", "expected": "answer"})
    suite = suite_of(cases=None, dataset={"path": frame, "input": "question", "expected": "answer", "limit": 1})
    assert [case.expected for case in suite.cases()] == ["Paris"]
    with pytest.raises(ft.FairtrialError, match="row:1: no column `input`"):
        suite_of(cases=frame)


def test_cases_from_a_generator():
    suite = suite_of(cases=({"input": text, "expected": "Paris", "number": n} for n, text in enumerate(ANSWERS)))
    assert [case.columns for case in suite.cases()] == [{"number": 0}, {"number": 1}]
    assert scores(ft.run(suite)) == {"row-1": 1.0, "row-2": 0.0}
    objects = suite_of(cases=(case for case in [ft.Case("6 x 7?", expected="41", vars={"x": 1})]))
    assert scores(ft.run(objects)) == {"case-1": 1.0}


def test_text_in_cases_is_data_and_keys_are_variables(monkeypatch):
    monkeypatch.setenv("OWN_KEY", "sk-very-secret-4711")
    suite = ft.Suite(
        name="s",
        targets=["own:m", "mock:echo"],
        providers=OWN,
        cases=[ft.Case("echo ${HOME}", expected="echo ${HOME}")],
        options=ft.RunOptions(targets=("mock:echo",)),
    )
    assert next(suite.cases()).input == "echo ${HOME}" and "sk-very" not in suite.text + repr(suite) + suite.to_yaml()
    assert next(parse_suite(suite.to_yaml(), options=suite.options).cases()).input == "echo ${HOME}"
    assert scores(ft.run(suite)) == {"case-1": 1.0}
    whole = ft.Suite(name="s", targets=["own:m"], providers=OWN, cases=[ft.Case("x", expected="x")])
    assert whole.arms[0].target.api_key == "sk-very-secret-4711" and "4711" not in repr(whole.arms)
    with pytest.raises(ft.FairtrialError, match="secret key in the suite") as error:
        suite_of("own:m", providers={"own": {"base_url": "http://x/v1", "api_key": "sk-very-secret-4711"}})
    assert "4711" not in str(error.value)


def test_a_suite_of_named_things_can_be_a_file(tmp_path):
    text = suite_of(cases=_frame("pandas"), scorer={"type": "not", "scorer": right}).to_yaml()
    assert "python:tests.test_python_suites:answer" in text
    assert [case.columns for case in parse_suite(text).cases()] == [{"land": "fr"}, {"land": None}]
    with pytest.raises(ft.FairtrialError, match="`lambda` has no importable name"):
        suite_of(scorer=lambda response: 1).to_yaml()


def test_the_code_is_part_of_the_identity():
    def made(word, default="x"):
        def inner(input, style=default):
            return word + style

        return inner

    assert code_hash(made("a")) == code_hash(made("a")) != code_hash(made("b"))
    assert code_hash(made("a")) != code_hash(made("a", "y"))
    one, other = (lambda q: "a"), (lambda q: "b")
    assert code_hash(one) != code_hash(other)
    assert suite_of(made("a")).plan_id == suite_of(made("a")).plan_id != suite_of(made("b")).plan_id


def _stopped(target, **keys):
    """A run whose second case failed, so that something is left."""
    return ft.run(suite_of(target, **keys))


def test_a_run_with_a_function_goes_on_if_the_function_is_given_again():
    state = {"broken": True}

    def flaky(input):
        if state["broken"] and input == "6 x 7?":
            raise RuntimeError("down")
        return ANSWERS[input]

    run = _stopped(flaky)
    state["broken"] = False
    stored = ft.open_run(run.id)
    with pytest.raises(ft.FairtrialError, match=r"no importable name; continue it there, with ft.resume"):
        ft.retry(stored)
    assert ft.retry(stored, suite=suite_of(flaky)).status == "completed"


def test_a_changed_function_is_refused_with_or_without_source():
    def flaky(input):
        raise RuntimeError("down")

    run = _stopped(flaky)

    def flaky(input):
        return "Paris"

    with pytest.raises(ft.FairtrialError, match="the code of `flaky` has changed"):
        ft.retry(run, suite=suite_of(flaky))
    unsourced = suite_of(eval("lambda input: {}['down']"))
    run = ft.run(unsourced)
    assert run.status == "incomplete"
    assert ft.retry(run, suite=suite_of(eval("lambda input: {}['down']"))).status == "incomplete"
    with pytest.raises(ft.FairtrialError, match="the code of `lambda` has changed"):
        ft.retry(run, suite=suite_of(eval("lambda input: 'Paris'")))


def test_a_record_of_an_earlier_version_is_called_one(monkeypatch):
    def answer(input):
        raise RuntimeError("down")

    with monkeypatch.context() as earlier:
        earlier.setattr("fairtrial.config.python.code_hash", lambda function: "0123456789ab")
        run = _stopped(answer)
    with pytest.raises(ft.FairtrialError, match="started by an earlier version of fairtrial"):
        ft.retry(run, suite=suite_of(answer))


@pytest.mark.slow
def test_the_command_line_continues_functions_with_a_name(tmp_path, monkeypatch):
    code = "import os\n\ndef ask(input):\n    if os.environ.get('DOWN'):\n        raise OSError('down')\n    return 'Paris'\n"
    module = tmp_path / "own_answers.py"
    module.write_text(code)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("DOWN", "1")
    ask = importlib.import_module("own_answers").ask
    run = ft.run(suite_of(ask, "match"))
    unnamed = ft.run(suite_of(lambda input: 1 / 0, "match"))
    monkeypatch.delenv("DOWN")

    def retried(name):
        return forks.run("retry", name, "--quiet")

    module.write_text(code.replace("Paris", "Rome"))
    said = retried(run.id)
    assert said.returncode == 1 and "the code of `own_answers:ask` has changed" in said.stderr
    module.write_text(code)
    assert retried(run.id).returncode == 0 and scores(ft.open_run(run.id)) == {"fr": 1.0, "n": 0.0}
    said = retried(unnamed.id)
    assert said.returncode == 1 and "`lambda` was given in Python and has no importable name" in said.stderr
    assert "Traceback" not in said.stderr
