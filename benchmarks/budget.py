"""Is the hard budget hard? Runs with random faults, kills, interrupts and resumes against a server that keeps its own books.

    python -m benchmarks.budget --runs 200

Every run ends by itself or is ended at a random moment, and is resumed until it is complete, the budget is reached or
patience ends. What the server would put on the bill must never be more than the budget.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.request import urlopen

from benchmarks.billing import PRICE

_PATIENCE = 60.0
_SESSIONS = 5
_JUDGED = '{"reasoning": "fine", "score": 7}'


class Ending(NamedTuple):
    """How one run with its resumes went."""

    budget: float
    usd: float
    shown: dict[str, Any]
    sessions: int
    kills: int
    faults: dict[str, int]

    @property
    def kept(self) -> bool:
        return self.usd <= self.budget + 1e-9

    @property
    def charged(self) -> bool:
        """Whether all that is on the bill is in our books."""
        return self.usd <= (self.shown.get("charged_usd") or 0) + 1e-9


def start(module: str, *arguments: str, folder: Path, environment: Mapping[str, str]) -> Any:
    """Start a module of Python as a process."""
    command = [sys.executable, "-m", module, *arguments]
    return subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)


def torture(seed: int, folder: Path, start: Callable[..., Any] = start) -> Ending:
    """One run, with whatever befalls it."""
    luck = random.Random(seed)
    share = luck.choice((0.0, 0.2, 0.5, 0.8))
    options = ["--seed", str(seed), "--share", str(share), "--answer", _JUDGED]
    server = start("benchmarks.billing", *options, folder=Path(__file__).parents[1], environment=os.environ)
    try:
        return _sessions(luck, folder, server.stdout.readline().decode().strip(), start)
    finally:
        server.kill()
        server.communicate()


def _sessions(luck: random.Random, folder: Path, address: str, start: Callable[..., Any]) -> Ending:
    budget = round(luck.uniform(0.5, 8.0), 2)
    (folder / "suite.yaml").write_text(json.dumps(_suite(luck, budget)), "utf-8")
    environment = {**os.environ, "OPENAI_BASE_URL": f"{address}/v1", "OPENAI_API_KEY": "sk-torture-0001"}
    kills = 0
    sessions = 0
    for sessions in range(1, _SESSIONS + 1):
        what = ["run", "suite.yaml"] if sessions == 1 else ["resume", "latest"]
        process = start("fairtrial", *what, "--quiet", folder=folder, environment=environment)
        kills += _disturb(luck, process, address, last=sessions == _SESSIONS)
        if process.returncode == 0:
            break
    ledger = _settled_ledger(address)
    showing = start("fairtrial", "show", "--json", folder=folder, environment=environment)
    shown, _ = showing.communicate()
    spent = json.loads(shown)["spent"] if showing.returncode == 0 else {}
    return Ending(budget, ledger["usd"], spent, sessions, kills, ledger["faults"])


def _suite(luck: random.Random, budget: float) -> dict[str, Any]:
    judged = luck.random() < 0.4
    return {
        "name": "torture",
        "targets": ["openai:m"],
        "params": {"max_tokens": luck.choice((10, 40))},
        "stream": luck.random() < 0.5,
        "concurrency": luck.choice((1, 5, 20)),
        "timeout": 1.0,
        "retry": {"wait": 0.01, "max_wait": 0.1, "empty_wait": 0.01, "attempts": 3},
        "budget_usd": budget,
        "prices": {"openai:m": {"input": PRICE * 1e6, "output": PRICE * 1e6}},
        "cases": [{"id": f"q{n}", "input": f"Question {n}?", "expected": "42"} for n in range(60)],
        **(
            {"scorer": "llm_judge", "judge": {"target": "openai:m", "params": {"max_tokens": 60}}}
            if judged
            else {"scorer": "exact"}
        ),
    }


def _disturb(luck: random.Random, process: Any, address: str, *, last: bool) -> int:
    """Let a session end, or end it after some more calls, in one of the ways in which processes end."""
    how = None if last else luck.choice((None, signal.SIGKILL, signal.SIGKILL, signal.SIGINT, signal.SIGTERM))
    wanted = _ledger(address)["calls"] + luck.randint(1, 8)
    ends = time.monotonic() + _PATIENCE
    while process.poll() is None and time.monotonic() < ends:
        if how is not None and _ledger(address)["calls"] >= wanted:
            process.send_signal(how)
            break
        time.sleep(0.02)
    try:
        process.wait(_PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    return int(how is signal.SIGKILL and process.returncode == -signal.SIGKILL)


def _ledger(address: str) -> dict[str, Any]:
    with urlopen(f"{address}/ledger") as reply:  # an address of our own
        return json.loads(reply.read())


def _settled_ledger(address: str) -> dict[str, Any]:
    """The books, once nothing is added to them any more."""
    before = _ledger(address)
    while True:
        time.sleep(0.1)
        now = _ledger(address)
        if now["usd"] == before["usd"]:
            return now
        before = now


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    options = parser.parse_args()
    endings = []
    for seed in range(options.first, options.first + options.runs):
        with tempfile.TemporaryDirectory() as folder:
            endings.append(torture(seed, Path(folder)))
        ending = endings[-1]
        if not (ending.kept and ending.charged):
            print(f"seed {seed}: {ending}", flush=True)
    exceeded = [ending for ending in endings if not ending.kept]
    under = [ending for ending in endings if not ending.charged]
    faults = sum(sum(ending.faults.values()) for ending in endings)
    used = sum(ending.usd for ending in endings) / sum(ending.budget for ending in endings)
    print(
        f"{len(endings)} runs, {sum(e.sessions for e in endings)} sessions, {sum(e.kills for e in endings)} kills, "
        f"{faults} faults: {len(exceeded)} above the budget, {len(under)} charged less than the bill; "
        f"{100 * used:.0f} % of the budgets used"
    )
    sys.exit(bool(exceeded or under))


if __name__ == "__main__":
    main()
