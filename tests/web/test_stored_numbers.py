"""Numbers that are kept in the store: shown only if the code that would compute them is the code that did."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from sqlalchemy import select, update

from fairtrial.analyse.summary import RunSummary
from fairtrial.core.errors import FairtrialError
from fairtrial.store import Store, schema
from fairtrial.store.cache import keep
from fairtrial.web import cache, compute, numbers, sources
from fairtrial.web.cache import NumberCache
from tests.postgres import on_both

CASES = [{"id": str(n), "input": f"Say {n}", "expected": str(n)} for n in range(4)]


def _summary(store: Store, run: Any) -> RunSummary | None:
    """What a server that is started now shows."""
    opened = NumberCache(store)
    try:
        return opened.get(f"summary/{run.id}", [run], RunSummary, numbers.summary, wait=60)
    finally:
        opened.close()


def _stored(store: Store) -> dict[str, str]:
    with store.reading() as connection:
        rows = connection.execute(select(schema.digests.c.name, schema.digests.c.stamp))
        return {row.name: row.stamp for row in rows}


def _falsify(store: Store, name: str, known: RunSummary) -> None:
    """Have the store say of a run what only other code would say."""
    other = msgspec.structs.replace(known, suite="said by other code")
    table = schema.digests
    with store.writing() as connection:
        body = msgspec.msgpack.encode(other)
        connection.execute(update(table).where(table.c.name == name).values(body=body))


@on_both
async def test_numbers_of_other_code_are_never_shown(run_suite: Any, store: Store, monkeypatch: Any) -> None:
    run = await run_suite(cases=CASES)
    known = _summary(store, run)
    assert known is not None
    _falsify(store, f"summary/{run.id}", known)
    shown = _summary(store, run)
    assert shown is not None and shown.suite == "said by other code"  # the same code: it is believed
    monkeypatch.setattr(cache, "code_key", lambda module: "another")
    shown = _summary(store, run)
    assert shown is not None and shown.suite == known.suite


@on_both
async def test_numbers_of_other_code_are_removed(run_suite: Any, store: Store) -> None:
    runs = [await run_suite(cases=CASES), await run_suite(cases=CASES)]
    keep(store, f"run/{runs[1].id}", runs[1].id, "0.1.0/8|completed/0", b"of a version raised by hand")
    keep(store, f"plan/{runs[1].id}", runs[1].id, "0123456789abcdef|completed/0", b"of other sources")
    _summary(store, runs[0])
    key = sources.code_key(numbers.__name__)
    assert list(_stored(store)) == [f"summary/{runs[0].id}"] and _stored(store).popitem()[1].startswith(f"{key}|")
    _summary(store, runs[1])
    assert len(_stored(store)) == 2  # those of the same code stay


async def test_what_can_be_asked_about_a_run_without_end_is_not_kept_without_end(run_suite: Any, store: Store) -> None:
    run, other = await run_suite(cases=CASES), await run_suite(cases=CASES)
    keep(store, "of another run", other.id, "key|", b"")
    for number in range(105):
        keep(store, f"plan/{number}", run.id, "key|", b"")
    names = set(_stored(store))
    assert len(names) == 101 and {"of another run", "plan/104"} <= names and "plan/0" not in names


async def test_a_server_whose_code_was_replaced_says_so(run_suite: Any, store: Store) -> None:
    """The process for large runs is started when first needed, perhaps after an update: its numbers are not mixed in."""
    run = await run_suite(cases=CASES)
    process = compute.ComputeProcess(store.address)
    try:
        assert process.compute(numbers.summary, sources.code_key(numbers.__name__), [run.id], ())
        with pytest.raises(FairtrialError, match="restart `fairtrial serve`"):
            process.compute(numbers.summary, "of before", [run.id], ())
    finally:
        process.close()
