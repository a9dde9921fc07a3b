"""Cancelling a run in Python: what has arrived is stored, and nothing new is asked."""

import asyncio
import shutil
from pathlib import Path
from threading import Event

import pytest

import fairtrial as ft
from fairtrial.engine import ladder
from fairtrial.targets.python_call import PythonCall
from tests.conftest import numbered


@pytest.mark.slow
async def test_answers_that_wait_for_their_price_are_stored(monkeypatch):
    """The price list is read beside the first calls: their answers are there before it is, and have been paid for."""
    listed, calls = Event(), []

    def slow_list(*_):
        listed.wait(60)

    monkeypatch.setattr(ladder, "price_of_target", slow_list)
    monkeypatch.setattr(PythonCall, "agent", False)  # a session, which may be dear, begins only with its price

    async def answer(input):
        calls.append(input)
        if len(calls) == 5:
            asyncio.get_running_loop().call_soon(working.cancel)
            asyncio.get_running_loop().call_later(0.05, listed.set)
        return input

    suite = ft.Suite(name="cancelled", targets=[answer], cases=numbered(5), scorer="boolean")
    working = asyncio.create_task(ft.arun(suite))
    with pytest.raises(asyncio.CancelledError):
        await working
    stopped = ft.open_run()
    assert {trial.answer for trial in stopped.trials()} == set(calls) and len(calls) == 5
    done = await ft.aresume(stopped, suite=suite)
    assert done.status == "completed" and len(calls) == 5


@pytest.mark.parametrize("works_in_a_folder", [False, True])
async def test_an_answer_that_arrives_as_the_run_is_cancelled_is_stored(works_in_a_folder):
    calls = []

    async def answer(input):
        calls.append(input)
        asyncio.get_running_loop().call_soon(working.cancel)
        return input

    async def work(input, workspace):
        Path(workspace, "left.txt").write_text("made")
        return await answer(input)

    target = work if works_in_a_folder else answer
    suite = ft.Suite(name="cancelled", targets=[target], cases=numbered(1), scorer="boolean")
    working = asyncio.create_task(ft.arun(suite))
    with pytest.raises(asyncio.CancelledError):
        await working
    assert [trial.answer for trial in ft.open_run().trials()] == calls


async def test_an_answer_is_stored_though_its_folder_is_being_removed(monkeypatch):
    removing = shutil.rmtree

    def remove(*folders, **options):
        loop.call_soon_threadsafe(working.cancel)
        removing(*folders, **options)

    def work(input, workspace):
        monkeypatch.setattr(shutil, "rmtree", remove)
        return input

    suite = ft.Suite(name="cancelled", targets=[work], cases=numbered(1), scorer="boolean")
    loop = asyncio.get_running_loop()
    working = asyncio.create_task(ft.arun(suite))
    with pytest.raises(asyncio.CancelledError):
        await working
    assert [trial.answer for trial in ft.open_run().trials()] == ["Question 0?"]
