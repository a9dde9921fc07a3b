"""Cancelling a run in Python: what has arrived is stored, and nothing new is asked."""

import asyncio
from threading import Event

import pytest

import fairtrial as ft
from fairtrial.engine import ladder
from tests.conftest import numbered


@pytest.mark.slow
async def test_answers_that_wait_for_their_price_are_stored(monkeypatch):
    """The price list is read beside the first calls: their answers are there before it is, and have been paid for."""
    listed, calls = Event(), []

    def slow_list(*_):
        listed.wait(60)

    monkeypatch.setattr(ladder, "price_of_target", slow_list)

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
