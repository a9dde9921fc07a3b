"""Journals: what agents have done in sessions that have not ended, on disk."""

import asyncio
import json
import threading

import pytest

from fairtrial.analyse.run import Run
from fairtrial.cli.main import _run
from fairtrial.core.answer import Journal, SoFar, Usage
from fairtrial.engine import journals
from fairtrial.engine.journals import Journals, open_sessions
from fairtrial.workflows.resume import aresume
from tests.targets.test_agents import CASES


@pytest.fixture(autouse=True)
def often(monkeypatch):
    """Look at sessions as often as the machine allows."""
    monkeypatch.setattr(journals, "_PAUSE", 0.0)


@pytest.fixture
def trial(write_suite):
    from fairtrial import pipeline
    from fairtrial.core.trial import Trial

    suite = pipeline.load(write_suite(cases=CASES))
    (case,) = suite.cases()
    return Trial(id="t1", case=case, arm=suite.arms[0], repeat=0, params={})


async def written(folder, condition) -> list:
    while not (states := [state for state in open_sessions(folder) if condition(state)]):
        await asyncio.sleep(0.01)
    return states


async def test_it_follows_a_session_and_stays_until_the_outcome_is_stored(trial, tmp_path):
    def hide(value):
        return json.loads(json.dumps(value).replace("sk-secret", "${KEY}"))

    kept, journal = Journals(tmp_path / "journals", hide), Journal()
    async with kept.follow(trial, journal):
        await written(tmp_path / "journals", lambda state: not state.doing)
        calls = [{"tool": "search", "arguments": "sk-secret"}]
        journal.read = lambda: SoFar(doing="it was waiting for x", usage=Usage(prompt=3), trace={"tool_calls": calls})
        (state,) = await written(tmp_path / "journals", lambda state: state.doing)
    assert (state.case_id, state.repeat, state.usage.prompt) == ("code", 1, 3)
    assert state.trace["tool_calls"][0]["arguments"] == "${KEY}" and state.updated_at >= state.started_at
    assert not list((tmp_path / "journals").glob("*.new"))
    assert await kept.interrupted(trial) == "interrupted; it was waiting for x"
    await kept.forget(trial)
    assert open_sessions(tmp_path / "journals") == [] and await kept.interrupted(trial) == ""


async def test_whatever_a_plug_in_tells_the_session_goes_on(trial, tmp_path):
    kept, journal = Journals(tmp_path / "journals", lambda value: value), Journal()
    journal.read = lambda: 1 / 0
    async with kept.follow(trial, journal):
        await written(tmp_path / "journals", lambda state: True)
    (tmp_path / "journals" / "odd.json").write_text("{")
    assert len(open_sessions(tmp_path / "journals")) == 1


async def test_nothing_is_written_after_it_has_ended(trial, tmp_path, monkeypatch):
    """A write that is under way when the session ends is waited for: it would outlive `forget`."""
    begun, go_on = threading.Event(), threading.Event()
    kept = Journals(tmp_path / "journals", lambda value: value)
    write = kept._write

    def slow(*arguments):
        begun.set()
        go_on.wait()
        write(*arguments)

    monkeypatch.setattr(kept, "_write", slow)

    async def hold() -> None:
        async with kept.follow(trial, Journal()):
            await asyncio.to_thread(begun.wait)
        await kept.forget(trial)

    session = asyncio.create_task(hold())
    await asyncio.to_thread(begun.wait)
    await asyncio.sleep(0)
    go_on.set()
    await session
    assert open_sessions(tmp_path / "journals") == []


async def test_a_journal_that_cannot_be_kept_does_not_fail_a_trial(trial, tmp_path):
    def broken(_):
        raise RuntimeError("no")

    async with Journals(tmp_path / "journals", broken).follow(trial, Journal()):
        await asyncio.sleep(0.05)


async def test_without_a_folder_nothing_is_written(trial):
    async with Journals(None, str).follow(trial, Journal()):
        pass


async def test_what_an_interrupted_function_had_done(run_suite, store, tmp_path, capsys):
    """Cancelled in mid-session, as by Ctrl-C; then shown, resumed, and remembered."""
    (tmp_path / "slow.py").write_text(
        "import asyncio, pathlib\n"
        "async def query(input, steps):\n"
        "    steps.append({'tool': 'search', 'arguments': {'q': input}, 'result': None})\n"
        "    while not pathlib.Path('go').exists():\n"
        "        await asyncio.sleep(0.01)\n"
        "    return 'the code is 4711'\n"
    )
    session = asyncio.create_task(run_suite(targets=["python:slow.py:query"], cases=CASES))
    while not any("search" in file.read_text() for file in tmp_path.rglob("journals/*/*.json")):
        assert not session.done()
        await asyncio.sleep(0.02)
    session.cancel()
    await asyncio.gather(session, return_exceptions=True)
    run = Run.find("latest", store)
    assert _run(["show", "latest", "--sessions", "--store", store.address]) == 0
    assert "its last reported step was search" in " ".join(capsys.readouterr().out.split())
    assert _run(["show", "latest", "--sessions", "--json", "--store", store.address]) == 0
    assert json.loads(capsys.readouterr().out)["sessions"][0]["trace"]["tool_calls"][0]["tool"] == "search"
    (tmp_path / "go").touch()
    run = await aresume(run.id, store=store)
    (trial,) = run.trials()
    assert trial.answer == "the code is 4711" and trial.tried == ["interrupted; its last reported step was search"]
    assert _run(["show", "latest", "--sessions", "--store", store.address]) == 0
    assert "No session of an agent is open" in " ".join(capsys.readouterr().out.split())
