"""Everything that works for a run is hit at any moment: killed, asked to end, frozen, left without its helpers.

Whatever was hit is then done again, as a person would. By the ledger of the model server nothing that was stored is asked for
again, what was bought twice is bounded by what was in flight, no budget is exceeded, and in the end everything is as if nothing had
happened.
"""

from __future__ import annotations

import asyncio
import gzip
import random
import shutil
import time
from contextlib import chdir, suppress
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
import yaml
from sqlalchemy import select

from fairtrial.cli.main import _run
from fairtrial.store import Store, schema
from fairtrial.store.ledger import charged, spent
from tests import forks
from tests.conftest import numbered
from tests.ports import free_port
from tests.store.test_moments import OLD as OLD_STORES
from tests.store.test_moments import content
from tests.torture.blows import KINDS, end_of, strike, until, whole_store, without_complaint

STORE = Path(".fairtrial", "fairtrial.db")
OLD = OLD_STORES[0]
PRICE = 0.0001  # USD per token
PRICES = {"openai:m": {"input": PRICE * 1e6, "output": PRICE * 1e6}}
QUICK = {"wait": 0.0, "max_wait": 0.0, "empty_wait": 0.0, "attempts": 8}
JUDGED = '{"reasoning": "as it says: 42", "score": 9}'  # an answer that is a verdict, too


class Shape(NamedTuple):
    """What a run is like."""

    cases: int
    concurrency: int
    budget: float | None
    judged: bool
    workers: int
    faults: dict[str, float]

    @property
    def in_flight(self) -> int:
        """Calls that one process can have made or had answered without having stored the answer."""
        return (1 + self.judged) * (2 * self.concurrency + 16 + 4 * self.workers)


def drawn(chance: random.Random, *, long: bool) -> Shape:
    bad = chance.random() < 0.7
    return Shape(
        cases=chance.randrange(20, 200 if long else 60),
        concurrency=chance.randrange(1, 12),
        budget=chance.choice((None, 50.0)),
        judged=chance.random() < 0.4,
        workers=chance.choice((0, 0, 2)) if long else 0,
        faults={"429": 0.05, "500": 0.05, "reset": 0.03, "cut": 0.03, "blank": 0.02} if bad else {},
    )


def suite_of(shape: Shape) -> dict[str, Any]:
    judge = {"judge": "openai:m", "scorer": "llm_judge"} if shape.judged else {"scorer": "boolean"}
    budget = {"budget_usd": shape.budget} if shape.budget else {}
    more = {"prices": PRICES, "params": {"max_tokens": 40}, "retry": QUICK, "concurrency": shape.concurrency}
    return {"targets": ["openai:m"], "cases": numbered(shape.cases), **more, **judge, **budget}


def stored(store: Path) -> dict[int, str]:
    """Every case that has an answer, with the answer."""
    if not store.exists():
        return {}
    opened = Store(str(store))
    rows = opened.fetch(select(schema.trials.c.case_position, schema.trials.c.answer))
    opened.close()
    return {position: answer for position, answer in rows if answer is not None}


def runs_of(store: Path) -> list[Any]:
    if not store.exists():
        return []
    opened = Store(str(store))
    runs = opened.runs()
    opened.close()
    return runs


def usd_of(state: Any, answer: str) -> float:
    """What the server would write on the bill."""
    texts = ((prompt, answer.replace("{prompt}", prompt), times) for prompt, times in state.answered.items())
    return sum(PRICE * times * (len(prompt) // 4 + len(text) // 4 + 2) for prompt, text, times in texts)


async def test_a_run_that_is_hit_at_any_moment(campaign, write_suite, model_server, tmp_path):
    for number, chance in enumerate(campaign.rounds(short=2)):
        shape = drawn(chance, long=campaign.long)
        answer = JUDGED if shape.judged else "42: {prompt}"
        state = await model_server(
            latency=0.004, jitter=1.0, answer=answer, faults=shape.faults, seed=number, first_only=True
        )
        suite, store = write_suite(**suite_of(shape)), tmp_path / f"{number}.db"
        hits = await hit_until_completed(campaign, chance, shape, state, suite, store)
        check(campaign, shape, state, store, answer, hits)


async def hit_until_completed(
    campaign: Any, chance: random.Random, shape: Shape, state: Any, suite: Path, store: Path
) -> int:
    """Begin the run and resume it, and hit every process that does, until one of them completes it; return the hits."""
    hits, most = 0, chance.randrange(2, 9 if campaign.long else 5)
    while True:
        before, runs = stored(store), runs_of(store)
        asked = {position: state.calls[f"Question {position}?"] for position in before}
        go_on = ("resume", "latest") if runs else ("run", suite)
        workers = ("--workers", shape.workers) if shape.workers else ()
        process = forks.start(*go_on, "--quiet", "--store", store, *workers, folder=suite.parent)
        kind = chance.choice(KINDS if shape.workers else KINDS[:-1])
        untouched = hits >= most
        if not untouched:
            goal = state.calls.total() + chance.randrange(0, 1 + shape.cases)
            await until(lambda goal=goal: state.calls.total() >= goal, process)
            if await strike(process, kind, chance):
                hits += 1
                campaign.count(**{kind: 1})
        ended = without_complaint(await end_of(process))
        after = stored(store)
        assert before.items() <= after.items(), "a stored answer was lost or changed"
        again = [position for position in before if state.calls[f"Question {position}?"] != asked[position]]
        assert not again, "a stored answer was asked for again"
        if store.exists():
            whole_store(store)
        if ended.code in (0, 100) and runs_of(store) and runs_of(store)[0].status == "completed":
            return hits
        assert not untouched, ended


def check(campaign: Any, shape: Shape, state: Any, store: Path, answer: str, hits: int) -> None:
    """Hold the store against the server's ledger, and against a run to which nothing happened."""
    opened = Store(str(store))
    (run,) = opened.runs()
    rows = opened.fetch_dicts(select(schema.trials))
    assert {row["case_position"]: row["answer"] for row in rows} == {
        n: answer.replace("{prompt}", f"Question {n}?") for n in range(shape.cases)
    }
    marks = opened.fetch(select(schema.scores.c.value).where(schema.scores.c.run_id == run.id))
    assert {value for (value,) in marks} == {0.9 if shape.judged else 1.0} and len(marks) == shape.cases
    doubled = sum(times - 1 for times in state.answered.values())
    assert doubled <= hits * shape.in_flight
    costs, billed = spent(opened, run.id), usd_of(state, answer)
    if shape.budget:
        assert billed <= charged(opened, run.id) + 1e-9 <= shape.budget + 1e-6
    elif not hits:
        assert costs.known == billed
    assert not opened.fetch(select(schema.late))
    opened.close()
    campaign.count(lost=0, changed=0, overspent=0, hung=0, tracebacks=0, in_flight_twice=doubled)


# -- what is done with a store ------------------------------------------------------------------------

ARMS = [{"id": name, "target": "mock:x", "options": {"answer": f"{name} 42"}} for name in ("good", "poor")]
MOCK_JUDGE = {"target": "mock:judge", "options": {"verdict": {"marks": {"good": 5}, "otherwise": 1}}}
COMMANDS: dict[str, tuple[str, ...]] = {
    "rescore": ("rescore", "latest", "--scorer", "exact", "--quiet"),
    "judge": ("rescore", "latest", "--scorer", "llm_judge", "--quiet"),
    "retry": ("retry", "latest", "--quiet"),
    "pairwise": ("pairwise", "latest", "--quiet"),
    "calibrate": ("calibrate", "--suite", "suite.yaml"),
    "label": ("label", "latest", "--import", "labels.csv"),
    "import": ("import", "results", "results.csv"),
    "copy": ("store", "copy", str(STORE), "other.db"),
    "migration": ("list", "--store", "old.db"),
    "delete": ("delete", "latest", "--yes"),
    "report": ("report", "latest", "--output", "report.html"),
}
ONCE = {"rescore", "judge", "calibrate"}  # done again, they add another one


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A folder with everything that the commands work on."""
    folder = tmp_path_factory.mktemp("kept")
    with chdir(folder):
        keys = {"name": "kept", "targets": ARMS, "judge": MOCK_JUDGE, "scorer": "contains", "cases": numbered(40)}
        Path("suite.yaml").write_text(yaml.safe_dump(keys))
        assert _run(["run", "suite.yaml", "--quiet"]) == 0
        store = Store(str(STORE))
        trials = [row["trial_id"] for row in store.trial_rows(store.runs()[0].id, 0)]
        store.close()
        Path("labels.csv").write_text("trial,label\n" + "".join(f"{trial},80\n" for trial in trials))
        rows = "".join(f"q{n // 3},arm{n % 3},{n % 2},answer {n}\n" for n in range(3000))
        Path("results.csv").write_text(f"case,arm,score,answer\n{rows}")
        Path("old.db").write_bytes(gzip.decompress(OLD.read_bytes()))
    return folder


def contents(folder: Path) -> dict[str, Any]:
    """What is in the stores of a folder, as far as it is the same every time."""
    stores = [folder / name for name in (STORE, "other.db", "old.db") if (folder / name).exists()]
    rows = {path.name: content(path, ids=False) for path in stores}
    return {
        name: {**row, "ledgers": [], "calibrations": len(row.get("calibrations", ()))} for name, row in rows.items()
    }


async def test_a_command_that_is_hit_at_any_moment(campaign, kept, tmp_path):
    """Done again, it leaves what it leaves otherwise; until then every run is one that can be looked at."""
    known: dict[str, Any] = {}
    for number, chance in enumerate(campaign.rounds(short=3)):
        name = chance.choice(sorted(COMMANDS))
        if name not in known:
            known[name] = await untouched(name, kept, tmp_path / name)
        whole, seconds = known[name]
        folder = Path(shutil.copytree(kept, tmp_path / f"{number}"))
        kind = chance.choice(KINDS[:-1])
        process = forks.start(*COMMANDS[name], folder=folder)
        await asyncio.sleep(seconds * chance.random())
        campaign.count(**{kind: await strike(process, kind, chance)})
        ended = without_complaint(await end_of(process))
        for store in (STORE, "other.db"):
            whole_store(folder / store)
        await say_what_is_there(folder)
        if ended.code != 0 and not (name in ONCE and contents(folder) == whole):
            again = without_complaint(await end_of(forks.start(*COMMANDS[name], folder=folder)), 1)
            assert again.code == 0 or (name == "delete" and not runs_of(folder / STORE)), (ended, again)
        assert contents(folder) == whole, (name, kind, ended)
        assert (folder / "report.html").exists() == (name == "report")
        campaign.count(lost=0, changed=0, hung=0, tracebacks=0)
        shutil.rmtree(folder)


async def untouched(name: str, kept: Path, folder: Path) -> tuple[dict[str, Any], float]:
    """Do what a command does to its end; return what it leaves, and about how long it takes."""
    shutil.copytree(kept, folder)
    started = time.monotonic()
    ended = await end_of(forks.start(*COMMANDS[name], folder=folder))
    assert ended.code == 0, ended
    return contents(folder), time.monotonic() - started


async def say_what_is_there(folder: Path) -> None:
    for command in (("list",), ("show", "latest")):
        said = without_complaint(await end_of(forks.start(*command, folder=folder)), 1)
        assert said.code in (0, 1), said


# -- what works for people, and for a run ---------------------------------------------------------------

TOKEN = "a-token-that-nobody-guesses"


async def test_a_page_that_is_hit_while_it_works_on_a_run(campaign, write_suite, model_server, tmp_path):
    """`serve` is killed or stopped with a run of its own; the run is then resumed, and is whole."""
    for number, chance in enumerate(campaign.rounds(short=1)):
        state = await model_server(latency=0.004, answer="42: {prompt}")
        shape = Shape(cases=60, concurrency=4, budget=50.0, judged=False, workers=0, faults={})
        suite, store = write_suite(**suite_of(shape)), tmp_path / f"{number}.db"
        port = free_port()
        served = ("serve", "--port", port, "--token", TOKEN, "--folder", suite.parent, "--store", store)
        process = forks.start(*served, folder=suite.parent)
        address = f"http://127.0.0.1:{port}"
        form = {"file": suite.name, "target": "openai:m", "condition": "default", "budget_usd": "50"}
        await asyncio.to_thread(begin_a_run, process, address, form)
        goal = chance.randrange(0, 50)
        await until(lambda state=state, goal=goal: state.calls.total() >= goal, process)
        kind = chance.choice(("kill", "term", "interrupt"))
        campaign.count(**{kind: await strike(process, kind, chance)})
        without_complaint(await end_of(process))
        before = stored(store)
        whole_store(store)
        again = await end_of(forks.start("resume", "latest", "--quiet", "--store", store, folder=suite.parent))
        assert again.code == 0 or (again.code == 1 and "nothing" in again.err), again
        assert before.items() <= stored(store).items()
        check(campaign, shape, state, store, "42: {prompt}", 1)


def begin_a_run(process: Any, address: str, form: dict[str, str]) -> None:
    """Begin a run by the page's form, as soon as the page is there."""
    headers = {"authorization": f"Bearer {TOKEN}", "origin": address}
    while process.poll() is None:
        with suppress(httpx.TransportError):
            reply = httpx.post(f"{address}/new/run", data=form, headers=headers, timeout=120)
            assert reply.status_code in (302, 303), reply.text
            return
        time.sleep(0.05)
    raise AssertionError(process.communicate())
