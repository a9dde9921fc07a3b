"""Ctrl-C while a command waits for what takes long without anybody's fault: a batch, large files, a page that is open."""

from __future__ import annotations

import asyncio
import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from fairtrial.store import Store
from tests.conftest import numbered
from tests.lazily import Library
from tests.servers.batches import START, batch_vendors
from tests.torture.blows import whole_store
from tests.torture.test_waits import BOTH, HANGS, SIGNALS, Started, count

psutil = Library("psutil")
ROWS = 100_000  # of a file that takes seconds to read


# -- batches ------------------------------------------------------------------------------------------

YEARS = 100_000  # hours


def was_looked_at(server: Any) -> bool:
    """Return whether somebody waits for a batch."""
    return bool(server.jobs) and server.now > START


@pytest.mark.slow
@BOTH
async def test_a_batch_that_takes_a_day(campaign, number, write_suite, tmp_path, monkeypatch):
    """It goes on at its provider; `resume` collects it, and buys nothing again."""
    path = write_suite(targets=[{"target": "openai:gpt-4o-mini", "batch": True}], cases=numbered(3))
    for chance in campaign.rounds(short=1):
        async with batch_vendors() as server:
            monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
            monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-0001")
            server.hours = YEARS
            store = tmp_path / f"{chance.random()}.db"
            run = Started("run", path, "--store", store, folder=tmp_path)
            await run.until(partial(was_looked_at, server))
            assert await run.interrupt(number) == 130
            assert "fairtrial resume" in run.words and "a batch goes on at the provider" in run.words, run.words
            (job,) = server.jobs.values()
            assert not job.cancelled
            job.hours = 0
            done = Started("resume", "latest", "--store", store, "--quiet", folder=tmp_path)
            assert await done.ended(HANGS) == 0, done.words
            assert len(server.asked) == 3 and len(server.jobs) == 1
        count(campaign)


# -- large files --------------------------------------------------------------------------------------


def reads(command: Started, file: Path) -> Any:
    """Return whether a command has a file open."""
    return any(opened.path == str(file) for opened in psutil.Process(command.process.pid).open_files())


async def test_a_dataset_that_is_large(campaign, write_suite, tmp_path):
    dataset = tmp_path / "large.jsonl"
    with dataset.open("w") as file:
        file.writelines(f'{{"id": "q{n}", "input": "Question {n}?", "expected": "42"}}\n' for n in range(ROWS))
    path = write_suite(dataset="large.jsonl")
    for chance in campaign.rounds(short=1):
        store = tmp_path / f"{chance.random()}.db"
        run = Started("run", path, "--store", store, folder=tmp_path)
        await run.until(partial(reads, run, dataset))
        await asyncio.sleep(chance.random())
        assert await run.interrupt(chance.choice(SIGNALS)) == 130
        assert "interrupted" in run.words or "fairtrial resume" in run.words, run.words
        whole_store(store)
        count(campaign)


async def test_results_that_are_many(campaign, tmp_path):
    """They are there as a whole, or not at all."""
    results = tmp_path / "large.csv"
    with results.open("w") as file:
        file.write("case,arm,score,answer\n")
        file.writelines(f"q{n},arm,1,answer {n}\n" for n in range(ROWS))
    for chance in campaign.rounds(short=1):
        store = tmp_path / f"{chance.random()}.db"
        command = Started("import", "results", results, "--store", store, folder=tmp_path)
        await command.until(partial(reads, command, results))
        await asyncio.sleep(chance.random())
        assert await command.interrupt(chance.choice(SIGNALS)) == 130
        assert command.said[-1] == "interrupted", command.words
        whole_store(store)
        assert not (store.exists() and store.stat().st_size and Store(str(store), create=False).runs())
        count(campaign)


# -- pages --------------------------------------------------------------------------------------------

TOKEN = "a-token-of-tests-x"


def is_held(state: Any) -> bool:
    """Return whether a run waits for its model."""
    return bool(state.calls.total() > 3)


@pytest.mark.parametrize("times", [1, 2])
async def test_pages_with_a_stream_that_is_open(campaign, times, model_server, write_suite, tmp_path):
    """Somebody looks on at a run of another process, which goes on."""
    path = write_suite(targets=["openai:m"], cases=numbered(9), concurrency=2)
    for chance in campaign.rounds(short=1):
        state = await model_server(answer="42")
        state.hold(after=3)
        store = tmp_path / f"{chance.random()}.db"
        run = Started("run", path, "--store", store, folder=tmp_path)
        await run.until(partial(is_held, state))
        pages = Started("serve", "--no-open", "--port", 0, "--token", TOKEN, "--store", store, folder=tmp_path)
        await pages.says("is running at")
        address = re.search(r"http://127\.0\.0\.1:(\d+)", pages.words)
        assert address
        port = address[1]
        reader, writer = await asyncio.open_connection("127.0.0.1", int(port))
        shown = f"/runs/{Store(str(store)).runs()[0].id}/events"
        head = f"GET {shown} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {TOKEN}\r\n\r\n"
        writer.write(head.encode())
        await asyncio.wait_for(reader.readuntil(b"data: "), HANGS)
        pages.process.send_signal(chance.choice(SIGNALS))
        await asyncio.sleep(0.3 if times == 2 else 0)
        assert await (pages.interrupt() if times == 2 else pages.ended()) in (0, 130)
        writer.close()
        state.release()
        assert await run.ended(HANGS) == 0, run.words
        count(campaign, times)
