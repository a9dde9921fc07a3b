"""What an odd or hostile world does to a run: each of these once went wrong."""

import asyncio
import json
import sys
import threading
import time

import pytest

from fairtrial import pipeline
from fairtrial.analyse.run import Run
from fairtrial.cli.main import _run
from fairtrial.config import RunOptions, parse_suite
from fairtrial.core.errors import FairtrialError, ProblemsError, StoreError, TargetUnusableError
from fairtrial.store import Saver, Store
from fairtrial.store.ledger import charged
from fairtrial.text.json_text import last_json
from fairtrial.workflows.resume import arescore, aresume
from tests import forks
from tests.conftest import numbered
from tests.processes import ended, unmistakable

KEY = "sk-super-secret-123"


class TestSecrets:
    async def test_text_from_outside_cannot_name_a_variable(self, run_suite, model_server, monkeypatch, tmp_path):
        """A downloaded dataset or a prompt file with `${KEY}` in it must not send the key anywhere."""
        state = await model_server()
        monkeypatch.setenv("LAB_KEY", KEY)
        rows = ["Explain ${LAB_KEY} please", "and $${LAB_KEY}", "and ${x}"]
        (tmp_path / "d.jsonl").write_text("".join(json.dumps({"input": row, "expected": "x"}) + "\n" for row in rows))
        (tmp_path / "p.md").write_text("Never print ${LAB_KEY}.")
        run = await run_suite(
            targets=["lab:m"],
            providers={"lab": {"base_url": f"{state.address}/v1", "api_key": "${LAB_KEY}"}},
            system_file="p.md",
            dataset="d.jsonl",
            concurrency=1,
        )
        assert sorted(b["messages"][1]["content"] for b in state.bodies) == sorted(rows)
        assert [t.input for t in run.trials()] == rows
        run.store.delete_run(run.id)

        state.behaviour.faults = {"500": 1}
        run = await run_suite(
            targets=["lab:m"],
            providers={"lab": {"base_url": f"{state.address}/v1", "api_key": "${LAB_KEY}"}},
            system_file="p.md",
            dataset="d.jsonl",
            retry={"attempts": 1},
        )
        state.behaviour.faults = {}
        await aresume(run.id, store=run.store, mode="retry")
        for body in state.bodies[-3:]:
            assert body["messages"][0]["content"] == "Never print ${LAB_KEY}."
        assert KEY not in json.dumps(state.bodies)

    async def test_an_answer_that_spells_a_variable_is_scored_as_it_is(self, run_suite, monkeypatch):
        monkeypatch.setenv("MYKEY", KEY)
        run = await run_suite(
            targets=[{"id": "m", "target": "mock:x", "options": {"answer": "TOKEN=$${MYKEY}"}}],
            system="${MYKEY}",
            scorer="boolean",
            cases=[{"input": "q", "expected": "$${MYKEY}"}],
        )
        rescored = await arescore(run.id, scorer={"type": "exact"}, store=run.store)
        (trial,) = rescored.trials()
        assert trial.answer == "TOKEN=${MYKEY}" and trial.score > 0.5

    @pytest.mark.parametrize(
        "line",
        [
            "timeout: ${MYKEY}",
            "scorer: ${MYKEY}",
            "targets: ['${MYKEY}:x']",
            "scorer: {type: regex, pattern: '(${MYKEY}'}",
        ],
    )
    def test_problems_do_not_show_values(self, line):
        text = f"name: x\ncases: [{{input: q}}]\n{line}\n" + ("" if "targets" in line else "targets: [mock:echo]\n")
        with pytest.raises(ProblemsError) as caught:
            parse_suite(text, environment={"MYKEY": KEY})
        assert KEY not in str(caught.value) and "${MYKEY}" in str(caught.value)

    async def test_values_are_hidden_before_messages_are_cut(self, run_suite, monkeypatch):
        monkeypatch.setenv("MYKEY", KEY)
        code = "import os, sys; sys.stderr.write('x' * 7995 + os.environ['A'] * 300); sys.exit(1)"
        target = {
            "id": "c",
            "target": "command",
            "options": {"command": [sys.executable, "-c", code], "env": {"A": "${MYKEY}"}},
        }
        run = await run_suite(targets=[target])
        (trial,) = run.trials()
        for length in range(6, len(KEY)):
            assert KEY[:length] not in trial.failure_message and KEY[-length:] not in trial.failure_message

    def test_longer_values_are_hidden_first(self):
        from fairtrial.core.variables import Variables

        variables = Variables({"SHORT": "abcd", "LONG": "abcdefgh"})
        variables.fill("${SHORT} ${LONG}")
        assert variables.hide("abcdefgh") == "${LONG}"

    async def test_keys_do_not_follow_redirects(self, run_suite, monkeypatch):
        monkeypatch.setenv("LAB_KEY", KEY)
        seen = []

        async def serve(reader, writer):
            seen.append(await reader.read(4096))
            port = server.sockets[0].getsockname()[1]
            writer.write(
                f"HTTP/1.1 307 X\r\nLocation: http://localhost:{port}/other\r\nContent-Length: 0\r\n\r\n".encode()
            )
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        run = await run_suite(targets=["lab:m"], providers={"lab": {"base_url": url, "api_key": "${LAB_KEY}"}})
        (trial,) = run.trials()
        assert trial.failure_kind == "refused" and "redirects" in trial.failure_message
        assert sum(b"POST" in request for request in seen) == 1
        server.close()


class TestFailuresAreNoScores:
    async def test_an_error_with_status_200(self, run_suite):
        async def serve(reader, writer):
            await reader.readuntil(b"\r\n\r\n")
            body = b'{"type":"error","error":{"type":"overloaded_error","message":"busy"}}'
            writer.write(
                b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body
            )
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        providers = {"lab": {"base_url": url, "kind": "anthropic_api", "api_key": "k"}}
        run = await run_suite(targets=["lab:m"], providers=providers, stream=False, retry={"attempts": 2, "wait": 0})
        (trial,) = run.trials()
        assert (trial.failure_kind, trial.score) == ("server", None)
        server.close()

    async def test_an_error_that_is_not_utf8_is_retried(self, run_suite):
        calls = []

        async def serve(reader, writer):
            await reader.readuntil(b"\r\n\r\n")
            calls.append(1)
            writer.write(b"HTTP/1.1 500 X\r\nContent-Length: 4\r\n\r\n\xe9t\xe9!")
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        run = await run_suite(targets=["lab:m"], providers={"lab": {"base_url": url}}, retry={"attempts": 2, "wait": 0})
        (trial,) = run.trials()
        assert (trial.failure_kind, trial.attempts) == ("server", 2)
        server.close()

    @pytest.mark.parametrize("value", ["7.0", "float('nan')", "'high'", "-0.1", "None"])
    async def test_impossible_scores_are_unscored(self, run_suite, tmp_path, value):
        (tmp_path / "s.py").write_text(
            f"import fairtrial as ft\ndef f(response):\n    return ft.Score(value={value})\n"
        )
        run = await run_suite(scorer={"type": "python", "function": "s.py:f"})
        (trial,) = run.trials()
        assert (trial.status, trial.unscored_kind) == ("unscored", "range")

    @pytest.mark.parametrize(
        "result",
        [
            "'\\ud800 half a pair'",
            "{'text': 'x', 'obj': object()}",
            "{'text': 'x', 'bad': '\\ud800'}",
            "ft.Answer(text=None)",
            "3",
            "exit(3)",
        ],
    )
    async def test_odd_answers_harm_only_themselves(self, run_suite, tmp_path, result):
        (tmp_path / "t.py").write_text(
            f"import fairtrial as ft\ndef f(q, s, m):\n    return {result} if q == 'Question 3?' else 'fine'\n"
        )
        run = await run_suite(targets=["python:t.py:f"], cases=numbered(20, "fine"))
        trials = list(run.trials())
        assert len(trials) == 20 and sum(t.score == 1.0 for t in trials) == 19

    async def test_odd_details_of_a_score(self, run_suite, tmp_path):
        (tmp_path / "s.py").write_text(
            "import fairtrial as ft\ndef f(response):\n"
            "    return ft.Score(value=1.0, notes='\\ud800', details={'x': object(), 'y': '\\ud800'})\n"
        )
        assert (await run_suite(scorer={"type": "python", "function": "s.py:f"})).status == "completed"


class TestBudgets:
    PRICES = {"openai:m": {"input": 1000.0, "output": 1000.0}}

    async def test_a_server_that_does_not_say_what_it_used(self, run_suite, model_server, monkeypatch, store):
        state = await model_server()
        from fairtrial.targets.openai_api import OpenaiApi

        original = OpenaiApi.read_whole

        def without_usage(self, body, started):
            reply = json.loads(body)
            reply.pop("usage", None)
            return original(self, json.dumps(reply).encode(), started)

        monkeypatch.setattr(OpenaiApi, "read_whole", without_usage)
        run = await run_suite(
            targets=["openai:m"],
            cases=numbered(40),
            prices=self.PRICES,
            budget_usd=0.6,
            params={"max_tokens": 20},
            stream=False,
        )
        assert run.status == "incomplete" and state.calls.total() <= 7
        assert all(trial.cost_usd is None for trial in run.trials())

    async def test_targets_that_tell_their_cost_afterwards(self, run_suite):
        code = "import json; print(json.dumps(dict(text='hi', cost_usd=1.0)))"
        target = {
            "id": "c",
            "target": "command",
            "options": {"command": [sys.executable, "-c", code], "output": "json"},
        }
        run = await run_suite(targets=[target], cases=numbered(12), budget_usd=2)
        assert run.status == "incomplete" and run.arms[0].cost_usd == pytest.approx(2.0)

    async def test_a_series_shares_one_budget(self, write_suite, store, model_server):
        await model_server(answer="x" * 36)
        path = write_suite(
            targets=["openai:m"], cases=numbered(3), prices=self.PRICES, budget_usd=0.13, params={"max_tokens": 10}
        )
        suite = pipeline.load(path)
        for _ in range(4):
            await pipeline.arun(suite, store=store, series=pipeline.SeriesPlan("series", 3))
        assert charged(store, "none", "series") <= 0.13

    async def test_money_that_ends_between_two_attempts(self, run_suite, model_server, store):
        await model_server(faults={"empty": 1})
        run = await run_suite(
            targets=["openai:m"],
            cases=numbered(1),
            prices=self.PRICES,
            budget_usd=0.097,
            params={"max_tokens": 20},
            retry={"empty_wait": 0},
        )
        (trial,) = run.trials()
        assert trial.cost_usd > 0 and "budget" in run.record.reason

    def test_the_hint_says_what_to_do(self, write_suite, capsys):
        code = "import json; print(json.dumps(dict(text='hi', cost_usd=1.0)))"
        target = {
            "id": "c",
            "target": "command",
            "options": {"command": [sys.executable, "-c", code], "output": "json"},
        }
        path = write_suite(targets=[target], cases=numbered(3), budget_usd=1)
        assert _run(["run", str(path)]) == 2
        assert "--budget-usd MORE" in capsys.readouterr().err


class TestScorings:
    async def test_retry_after_rescoring_goes_on_with_that_scorer(self, run_suite, model_server, store):
        state = await model_server(faults={"500": 0.5}, answer="It is 42")
        run = await run_suite(targets=["openai:m"], cases=numbered(20), retry={"attempts": 1}, concurrency=1)
        run = await arescore(run.id, scorer={"type": "boolean"}, store=store)
        state.behaviour.faults = {}
        run = await aresume(run.id, store=store, mode="retry")
        assert run.status == "completed" and {t.scorer for t in run.trials()} == {"boolean"}

    async def test_a_scorer_that_does_not_fit_replaces_nothing(self, run_suite, store, tmp_path):
        run = await run_suite(cases=[{"id": "a", "input": "((", "expected": "(("}], scorer="exact")
        for scorer in ({"type": "regex"}, {"type": "python", "function": "none.py:f"}):
            with pytest.raises(FairtrialError, match="a: "):
                await arescore(run.id, scorer=scorer, store=store)
        (tmp_path / "b.py").write_text("def f(response):\n    raise ValueError\n")
        with pytest.raises(FairtrialError, match="the old scores stay current"):
            await arescore(run.id, scorer={"type": "python", "function": "b.py:f"}, store=store)
        assert Run.find(run.id, store).arms[0].aggregate.mean == 1.0 and Run.find(run.id, store).status == "completed"


class TestHangingFunctions:
    @pytest.mark.slow
    def test_they_starve_nobody_and_block_no_exit(self, tmp_path, write_suite):
        (tmp_path / "t.py").write_text(
            "import time\ndef f(q, s, m):\n    if q < 'Question 2':\n        time.sleep(9999)\n    return 'fine'\n"
        )
        path = write_suite(targets=["python:t.py:f"], cases=numbered(50, "fine"), timeout=5, on_limit="fail")
        done = forks.run("run", path, "--json")
        arm = json.loads(done.stdout)["arms"][0]
        assert done.returncode == 2
        assert arm["failed"] == 11 + 1 and arm["scored"] == 38

    async def test_no_call_waits_for_another(self, run_suite, tmp_path):
        """Else what a function is said to take would not be its own."""
        (tmp_path / "t.py").write_text(
            "import threading\nall_at_once = threading.Barrier(40)\n"
            "def f(q, s, m):\n    all_at_once.wait()\n    return 'fine'\n"
        )
        run = await run_suite(targets=["python:t.py:f"], cases=numbered(40), concurrency=40, timeout=600)
        assert run.status == "completed" and run.arms[0].scored == 40


class TestRaces:
    @pytest.mark.slow
    def test_many_processes_make_one_store(self, tmp_path, write_suite):
        path = write_suite(cases=numbered(5))
        processes = [forks.start("run", path, "--quiet", "--store", "shared.db") for _ in range(4)]
        errors = [process.communicate()[1] for process in processes]
        assert [process.returncode for process in processes] == [0] * 4, errors
        assert len(Store(str(tmp_path / "shared.db")).runs()) == 4

    @pytest.mark.slow
    async def test_looking_at_runs_disturbs_none(self, write_suite, store):
        suite = pipeline.load(write_suite())
        stop = asyncio.Event()

        def look():
            other = Store(store.address)
            while not stop.is_set():
                other.runs()

        watching = asyncio.create_task(asyncio.to_thread(look))
        for _ in range(15):
            run = await pipeline.arun(suite, store=store)
            assert run.status == "completed"
        stop.set()
        await watching

    async def test_a_commit_that_fails_while_stopping_is_reported(self):
        begun, closing = threading.Event(), threading.Event()

        def write(batch):
            begun.set()
            closing.wait()
            raise StoreError("no room")

        with pytest.raises(StoreError, match="no room"):
            async with Saver(write) as saver:
                saver.save("t", {})
                await asyncio.to_thread(begun.wait)
                asyncio.get_running_loop().call_later(0.01, closing.set)  # while the saver is being closed


async def test_files_beside_a_suite_are_part_of_it(tmp_path, store):
    for name in ("a", "b"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "r.py").write_text(f"def f(q, s, m):\n    return 'from {name}'\n")
        (folder / "s.yaml").write_text("name: x\ntargets: [python:r.py:f]\ncases: [{input: q, expected: from}]\n")
    await pipeline.arun(pipeline.load(tmp_path / "a" / "s.yaml"), store=store)
    run = await pipeline.arun(pipeline.load(tmp_path / "b" / "s.yaml", RunOptions(cache=True)), store=store)
    assert next(run.trials()).answer == "from b"


def test_a_series_is_not_cached(write_suite, capsys):
    assert _run(["run", str(write_suite()), "--runs", "2", "--cache"]) == 1
    assert "cannot be combined" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("d.csv", 'input,expected\n"unclosed,x\nb,y\nc,z\n', "cannot be read"),
        ("d.csv", "input,expected\na\n", "fewer fields"),
        ("d.csv", "input,expected\na,b,c\n", "more fields"),
        ("d.csv", "input,input\na,b\n", "duplicate columns in the header"),
    ],
)
def test_tables_that_would_lose_rows(tmp_path, name, text, words):
    (tmp_path / name).write_text(text)
    with pytest.raises(ProblemsError, match=words):
        parse_suite(f"name: x\ntargets: [mock:echo]\ndataset: {name}", folder=tmp_path)


def test_tables_as_other_tools_write_them(tmp_path):
    (tmp_path / "pandas.csv").write_text(",input,expected\n0,a,b\n1,c,d\n")
    (tmp_path / "bom.jsonl").write_bytes(b'\xef\xbb\xbf{"input": "a", "expected": "b"}\n')
    for name, count in (("pandas.csv", 2), ("bom.jsonl", 1)):
        assert parse_suite(f"name: x\ntargets: [mock:echo]\ndataset: {name}", folder=tmp_path).case_count == count


async def test_automatic_passes_are_said(run_suite):
    from fairtrial.present.words.runs import run_notes

    run = await run_suite(cases=[{"input": "q"}], scorer={"type": "boolean", "pass_if_blank": True})
    assert "1 answer passed automatically: its case has no expected text." in run_notes(run.summary())


def test_more_of_yaml():
    suite = parse_suite(
        "name: x\ntargets: [mock:echo]\ncases:\n  - &a {id: one, input: q, expected: a, weight: 3}\n  - {<<: *a, id: two}\n"
    )
    assert [(c.id, c.weight) for c in suite.cases()] == [("one", 3.0), ("two", 3.0)]
    for text in ("${A:-${B}}", "${E:?no}", "${not closed"):
        with pytest.raises(ProblemsError, match="a literal"):
            parse_suite(f"name: x\ntargets: [mock:echo]\ncases: [{{input: '{text}'}}]", environment={})
    with pytest.raises(ProblemsError, match="needs a number as `expected`"):  # found although no target is right
        parse_suite("name: x\ntargets: [nope:x]\nscorer: numeric\ncases: [{input: q, expected: forty}]", environment={})
    with pytest.raises(ProblemsError, match="`targets` is missing"):
        parse_suite("name: x\ncases: [{input: q, expected: '(', scorer: regex}]", environment={})


async def test_case_parameters_are_filled_and_may_be_empty(run_suite, model_server, monkeypatch):
    state = await model_server()
    monkeypatch.setenv("STOPWORD", "halt-here")
    await run_suite(
        targets=["openai:m"],
        cases=[{"input": "q", "expected": "a", "params": {"stop": ["${STOPWORD}"], "temperature": None}}],
    )
    assert state.bodies[-1]["stop"] == ["halt-here"] and "temperature" not in state.bodies[-1]


@pytest.mark.slow
async def test_one_targets_limit_is_its_own(run_suite, model_server):
    state = await model_server(latency=0.02)
    targets = [{"id": "one", "target": "openai:m", "concurrency": 1}, {"id": "many", "target": "openai:n"}]
    await run_suite(targets=targets, cases=numbered(20), concurrency=10)
    assert state.most_open >= 8


@pytest.mark.slow
async def test_a_very_long_retry_after_ends_with_a_reason(run_suite, model_server):
    await model_server(faults={"429": 1}, retry_after=3600)
    run = await run_suite(targets=["openai:m"], cases=numbered(5), retry={"attempts": 3, "max_wait": 0.2})
    assert {t.failure_kind for t in run.trials()} == {"rate_limited"}


@pytest.mark.slow
def test_brackets_that_lead_nowhere_cost_no_more_than_their_number():
    started = time.process_time()
    assert last_json("[{" * 100_000) is None
    assert time.process_time() - started < 12  # it was quadratic: half a minute and more


@pytest.mark.slow
def test_hostile_texts_keep_nobody_busy():
    started = time.process_time()
    assert last_json(("[" + "1," * 100) * 3000) is None
    import fairtrial as ft

    assert ft.score("exact", response="a" * 900_000, expected="b" * 900_000).kind == "size"
    assert time.process_time() - started < 30


async def test_commands_that_flood_and_children_that_stay(run_suite):
    flood = {"id": "flood", "target": "command", "options": {"command": ["yes", "x" * 1000]}}
    run = await run_suite(targets=[flood], timeout=250)
    assert "more than 16 MB" in next(run.trials()).failure_message
    nap = unmistakable(654)
    stay = {"id": "stay", "target": "command", "options": {"command": ["sh", "-c", f"sleep {nap} & echo hi"]}}
    await run_suite(targets=[stay], timeout=2, retry={"timeouts": 0})
    assert ended(nap)


async def test_targets_that_went_away(run_suite, store, tmp_path):
    (tmp_path / "t.py").write_text("def f(q, s, m):\n    raise ValueError\n")
    run = await run_suite(targets=["python:t.py:f"])
    (tmp_path / "t.py").unlink()
    from fairtrial.core.user_functions import _load_by_name

    _load_by_name.cache_clear()
    with pytest.raises(TargetUnusableError, match="there is no file"):
        await aresume(run.id, store=store, mode="retry")


def test_output_that_cannot_be_written_is_noticed_first(write_suite, capsys, tmp_path):
    assert _run(["run", str(write_suite()), "-o", "nope/x.json"]) == 1
    assert "the folder nope does not exist" in capsys.readouterr().err and not (tmp_path / ".fairtrial").exists()


def test_what_user_code_prints_is_not_our_json(write_suite, capsys, tmp_path):
    (tmp_path / "t.py").write_text("def f(q, s, m):\n    print('chatter')\n    return 'x'\n")
    assert _run(["run", str(write_suite(targets=["python:t.py:f"])), "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["status"] == "completed" and "chatter" in err


async def test_escape_codes_of_a_server_reach_no_terminal(write_suite, model_server, capsys):
    state = await model_server(key="another")
    state.behaviour.key = "\x1b[31mother"
    path = write_suite(targets=["openai:m"])
    code = await asyncio.to_thread(_run, ["run", str(path)])
    assert code == 1 and "\x1b" not in capsys.readouterr().err


def test_a_store_that_cannot_be_written(tmp_path, write_suite, capsys, monkeypatch):
    (tmp_path / "locks").write_text("a file where a folder should be")
    assert _run(["run", str(write_suite()), "--store", str(tmp_path / "x.db")]) == 1
    assert "cannot be written" in capsys.readouterr().err


@pytest.mark.parametrize(
    "change",
    [
        {"tests": [{"vars": "file://x"}]},
        {"tests": [{"vars": [1, 2]}]},
        {"tests": [None]},
        {"prompts": [5]},
        {"providers": [3]},
    ],
)
def test_importers_do_not_crash(tmp_path, change):
    import yaml

    from fairtrial.tracks.interchange.importers.benchmaker import Benchmaker
    from fairtrial.tracks.interchange.importers.promptfoo import Promptfoo

    config = {"prompts": ["{{q}}"], "providers": ["echo"], "tests": [{"vars": {"q": "hi"}}], **change}
    (tmp_path / "c.yaml").write_text(yaml.safe_dump(config))
    try:
        Promptfoo().read(tmp_path / "c.yaml")
    except FairtrialError as error:
        assert "does not have the structure of" in str(error)
    for case in (
        {"prompt": 5},
        {"prompt": "q", "metadata": "foo"},
        {"prompt": "q", "weight": "nan", "expectedOutput": 0},
    ):
        (tmp_path / "b.json").write_text(json.dumps([case]))
        imported = Benchmaker().read(tmp_path / "b.json")
        assert imported.suite["cases"][0]["input"]
    assert imported.suite["cases"][0]["expected"] == "0"


def test_importers_drop_nothing_in_silence(tmp_path):
    import yaml

    from fairtrial.tracks.interchange.importers.promptfoo import Promptfoo

    config = {
        "prompts": ["{{q}}"],
        "providers": [{"openai:gpt-4o": {"config": {"temperature": 0.3}}}],
        "tests": [
            "file://t.csv",
            {"vars": {"q": "x"}, "assert": [{"type": "contains", "value": "/usr/s", "metric": "m", "threshold": 1}]},
        ],
    }
    (tmp_path / "c.yaml").write_text(yaml.safe_dump(config))
    (tmp_path / "t.csv").write_text('q,__expected,__prefix\n"line1\nline2",hi,p\n')
    suite, findings, differences, *_ = Promptfoo().read(tmp_path / "c.yaml")
    assert suite["targets"] == [{"id": "openai:gpt-4o", "target": "openai:gpt-4o", "params": {"temperature": 0.3}}]
    assert suite["cases"][0]["input"] == "line1\nline2"
    assert suite["cases"][0]["vars"]["prefix"] == "p"
    assert not findings and "`metric`" in "\n".join(differences)
    import fairtrial as ft

    options = dict(suite["cases"][1]["scorer"])
    assert ft.score(options.pop("type"), response="in /usr/share", **options).value == 1
    assert ft.score("contains", response="only usr here", any=options["any"], verbatim=True).value == 0
