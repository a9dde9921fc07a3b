"""What happens to runs on a Ray cluster whose workers, nodes and drivers are killed at random, and what the cluster costs.

    python -m benchmarks.cluster chaos --runs 20
    python -m benchmarks.cluster speed

Chaos: every run asks a server that keeps its own books, and a seeded mock whose results are known. It is disturbed at
random moments and resumed, on the cluster or in one process, until it ends by itself. Nothing may be lost, doubled or
changed, and what the server would bill may never be more than the budget.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.billing import PRICE
from benchmarks.budget import _ledger, _settled_ledger
from benchmarks.ray_nodes import RayNodes

CASES, SESSIONS, PATIENCE = 40, 6, 300.0
_MOCK = {"id": "seeded", "target": "mock:echo", "options": {"latency_ms": 20, "jitter_ms": 40, "seed": 3,
         "faults": {"500": 0.1, "empty": 0.1, "refused": 0.1}}}  # fmt: skip
_PLACES = "case_position, arm_position, repeat"


class Ending(NamedTuple):
    """How one run with its resumes went."""

    budget: float
    usd: float
    charged: float
    status: str
    sessions: int
    killed: dict[str, int]
    problems: list[str]


def suite(budget: float) -> dict[str, Any]:
    return {
        "name": "chaos",
        "targets": [{"id": "billed", "target": "openai:m"}, _MOCK],
        "params": {"max_tokens": 20},
        "stream": False,
        "concurrency": 6,
        "timeout": 5.0,
        "retry": {"wait": 0.01, "max_wait": 0.1, "empty_wait": 0.01, "attempts": 4},
        "budget_usd": budget,
        "prices": {"billed": {"input": PRICE * 1e6, "output": PRICE * 1e6}},
        "scorer": "contains",
        "cases": [{"id": f"q{n}", "input": f"Question {n}?", "expected": "Question"} for n in range(CASES)],
    }


def run_one(seed: int, nodes: RayNodes, folder: Path) -> Ending:
    """One run, with whatever befalls it."""
    luck = random.Random(seed)
    with _server(seed, luck.choice((0.0, 0.2))) as address:
        expected = _expected(folder / "alone", address)
        # What all calls may cost, at most and often less than once for each case; or enough for everything.
        budget = round(luck.choice((0.3, 0.6, 5.0)) * CASES * 0.08, 2)
        before = _ledger(address)["usd"]
        killed = {"worker": 0, "node": 0, "driver": 0}
        problems: list[str] = []
        place = folder / "run"
        place.mkdir()
        (place / "suite.yaml").write_text(json.dumps(suite(budget)), "utf-8")
        known: dict[Any, Any] = {}
        session = 0
        for session in range(1, SESSIONS + 1):
            engine = "local" if session > 1 and luck.random() < 0.3 else f"ray:{nodes.address}"
            what = ["run", "suite.yaml"] if not _stored(place) else ["resume", "latest"]
            driver = _start([*what, "--engine", engine, "--quiet"], place, address)
            _disturb(luck, driver, nodes, place, killed, last=session == SESSIONS)
            stored = _stored(place)
            if not known.items() <= stored.items():
                problems.append("a stored answer was lost or changed")
            known = stored
            if driver.returncode in (0, 2):
                break
        else:
            problems.append("it did not end")
        ledger = _settled_ledger(address)
        usd = ledger["usd"] - before
        shown = json.loads(subprocess.run(
            [sys.executable, "-m", "fairtrial", "show", "--json"], cwd=place, capture_output=True, check=True
        ).stdout)  # fmt: skip
        problems += _compare(place, expected, shown, budget)
        charged = float(shown["spent"]["charged_usd"])
        if usd > budget + 1e-9:
            problems.append(f"${usd:.3f} were billed, and the budget is ${budget}")
        if usd > charged + 1e-9:
            problems.append(f"${usd:.3f} were billed, and only ${charged:.3f} are accounted for")
        return Ending(budget, usd, charged, shown["status"], session, killed, problems)


@contextmanager
def _server(seed: int, share: float) -> Iterator[str]:
    command = [sys.executable, "-m", "benchmarks.billing", "--seed", str(seed), "--share", str(share)]
    command += ["--answer", "Question answered"]
    root = Path(__file__).parent.parent
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=root) as server:
        assert server.stdout is not None
        try:
            yield server.stdout.readline().strip()
        finally:
            server.kill()


def _start(arguments: list[str], folder: Path, address: str) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "OPENAI_BASE_URL": f"{address}/v1", "OPENAI_API_KEY": "sk-chaos-0001"}
    with (folder / "log.txt").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "fairtrial", *arguments], cwd=folder, env=environment, stdout=log, stderr=log
        )


def _expected(folder: Path, address: str) -> dict[Any, Any]:
    """What the seeded mock gives in one process."""
    folder.mkdir()
    (folder / "suite.yaml").write_text(json.dumps(suite(100.0)), "utf-8")
    _start(["run", "suite.yaml", "--target", "seeded", "--quiet"], folder, address).wait(PATIENCE)
    return {place[0]: row for place, row in _stored(folder).items()}


def _disturb(
    luck: random.Random,
    driver: subprocess.Popen[bytes],
    nodes: RayNodes,
    folder: Path,
    killed: dict[str, int],
    *,
    last: bool,
) -> None:
    """Kill workers, a node or the driver after some more answers, until the session ends or is left in peace."""
    ends = time.monotonic() + PATIENCE
    for _ in range(0 if last else luck.randint(1, 3)):
        wanted = len(_stored(folder)) + luck.randint(3, 15)
        while driver.poll() is None and len(_stored(folder)) < wanted and time.monotonic() < ends:
            time.sleep(0.02)
        time.sleep(luck.random() * 0.1)
        if driver.poll() is not None:
            return
        what = luck.choice(("worker", "worker", "worker", "node", "driver"))
        if what == "driver":
            driver.kill()
            killed[what] += 1
            break
        if what == "node":
            nodes.kill_node(luck)
            killed[what] += 1
        else:
            killed[what] += nodes.kill_worker(luck)
    try:
        driver.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        driver.kill()
        driver.wait()


def _stored(folder: Path) -> dict[Any, Any]:
    """Every stored answer or failure by its place, with its score."""
    file = folder / ".fairtrial" / "fairtrial.db"
    if not file.exists():
        return {}
    query = (
        "select t.case_position, t.arm_position, t.answer, t.failure_kind, s.value from trials t "
        "left join scores s using (run_id, case_position, arm_position, repeat) "
        "where t.answer is null or s.value is not null"
    )
    try:
        with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as connection:
            return {(row[0], row[1]): tuple(row[2:]) for row in connection.execute(query)}
    except sqlite3.OperationalError:
        return {}


def _compare(folder: Path, expected: dict[Any, Any], shown: dict[str, Any], budget: float) -> list[str]:
    """What is wrong with the result of a run."""
    problems = []
    stored = _stored(folder)
    seeded = {case: row for (case, arm), row in stored.items() if arm == 1}
    if not seeded.items() <= expected.items():
        problems.append("the seeded mock gave something else than in one process")
    with closing(sqlite3.connect(folder / ".fairtrial" / "fairtrial.db")) as connection:
        for table in ("trials", "scores"):
            doubled = f"select 1 from {table} group by {_PLACES} having count(*) > 1"
            if connection.execute(doubled).fetchone():
                problems.append(f"a place is twice in {table}")
    ended = sum(arm["scored"] + arm["failed"] for arm in shown["arms"])
    budget_reached = "budget" in (shown.get("reason") or "")
    if not budget_reached and (len(stored) != 2 * CASES or ended != 2 * CASES):
        problems.append(f"only {ended} of {2 * CASES} trials ended, with status {shown['status']}")
    return problems


def chaos(runs: int, first: int) -> int:
    endings = []
    with RayNodes(nodes=2, cpus=2) as nodes:
        for seed in range(first, first + runs):
            with tempfile.TemporaryDirectory() as folder:
                started = time.monotonic()
                ending = run_one(seed, nodes, Path(folder))
                endings.append(ending)
                kills = ", ".join(f"{count} {name}" for name, count in ending.killed.items() if count) or "nothing"
                print(
                    f"| {seed} | {ending.sessions} | {kills} | {ending.status} | ${ending.budget:.2f} | ${ending.usd:.2f} | "
                    f"${ending.charged:.2f} | {'; '.join(ending.problems) or 'none'} |  <!-- {time.monotonic() - started:.0f} s -->",
                    flush=True,
                )
                if ending.problems:
                    print((Path(folder) / "run" / "log.txt").read_text()[-3000:], file=sys.stderr)
    total = {name: sum(ending.killed[name] for ending in endings) for name in ("worker", "node", "driver")}
    bad = [ending for ending in endings if ending.problems]
    print(
        f"\n{len(endings)} runs, {sum(e.sessions for e in endings)} sessions; killed: {total}; with problems: {len(bad)}"
    )
    return bool(bad)


# -- speed -----------------------------------------------------------------------------------------

_BUSY = """
def score(response):
    total = 0
    for number in range(400_000):
        total += number * number
    return float(total > 0)
"""


def _throughput(engine: list[str], count: int, scorer: Any) -> float:
    """Trials a second between the first call and the last score, so that starting up does not count."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "busy.py").write_text(_BUSY, "utf-8")
        cases = [{"id": f"q{n}", "input": f"Question {n}?", "expected": "Question"} for n in range(count)]
        keys = {"name": "speed", "targets": ["mock:echo"], "scorer": scorer, "concurrency": 32, "cases": cases}
        (folder / "suite.yaml").write_text(json.dumps(keys), "utf-8")
        _start(["run", "suite.yaml", "--quiet", *engine], folder, "").wait(3 * PATIENCE)
        with closing(sqlite3.connect(folder / ".fairtrial" / "fairtrial.db")) as connection:
            (scored,) = connection.execute("select count(value) from scores").fetchone()
            assert scored == count, (folder / "log.txt").read_text()
            (first,) = connection.execute("select min(started_at) from trials").fetchone()
            (last,) = connection.execute("select max(ended_at) from runs").fetchone()
        return float(count / (last - first))


def speed(rounds: int) -> int:
    """Rounds in turns, so that what else happens on the machine hits all alike; the medians count."""
    busy = {"type": "python", "function": "busy.py:score"}
    with RayNodes(nodes=2, cpus=2) as nodes:
        ray = f"ray:{nodes.address}"
        settings = {"one process": [], "2 processes": ["--workers", "2"], "4 processes": ["--workers", "4"]}
        settings |= {f"Ray, {n} workers": ["--engine", ray, "--workers", str(n)] for n in (1, 2, 4)}
        rates: dict[tuple[str, str], list[float]] = {}
        for number in range(rounds):
            for name, engine in settings.items():
                for kind, count, scorer in (("plain", 3000, "contains"), ("busy", 200, busy)):
                    rates.setdefault((name, kind), []).append(_throughput(engine, count, scorer))
            load = os.getloadavg()[0]
            print(f"round {number + 1}: load {load:.0f} on {os.cpu_count()} processors", file=sys.stderr, flush=True)
    base = {kind: statistics.median(rates["one process", kind]) for kind in ("plain", "busy")}
    print("| where | plain calls a second | ms per trial | × one process | busy scorer a second | × one process |")
    print("|---|---|---|---|---|---|")
    for name in settings:
        plain, heavy = (statistics.median(rates[name, kind]) for kind in ("plain", "busy"))
        print(
            f"| {name} | {plain:.0f} | {1000 / plain:.2f} | {plain / base['plain']:.2f} | {heavy:.1f} | "
            f"{heavy / base['busy']:.2f} |"
        )
    return 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["chaos", "speed"])
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    options = parser.parse_args()
    sys.exit(chaos(options.runs, options.first) if options.what == "chaos" else speed(options.rounds))


if __name__ == "__main__":
    main()
