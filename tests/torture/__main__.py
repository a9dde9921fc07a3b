"""`python -m tests.torture [MINUTES] [--seed N] [PATH …]`: every campaign in its long form, and a table of what it did.

The time is divided among the campaigns. The short form of each is a test like any other, part of `make test`.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.torture.campaign import SECONDS, SEED, TALLY

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]
_WORKERS = 2


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("minutes", nargs="?", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--only", nargs="*", default=[str(FOLDER.relative_to(ROOT))], help="files or tests")
    args = parser.parse_args()
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="fairtrial-torture-") as folder:
        tally = Path(folder, "tally.jsonl")
        tally.touch()
        campaigns = _count(args.only)
        seconds = 60 * args.minutes * _WORKERS / max(1, campaigns)
        print(f"{campaigns} campaigns of {seconds:.0f} s each, seed {args.seed}", flush=True)
        environment = {SECONDS: f"{seconds:.0f}", SEED: str(args.seed), TALLY: str(tally)}
        command = [sys.executable, "-m", "pytest", "-q", "-n", str(_WORKERS), "--dist", "load"]
        command += ["-p", "tests.torture.at_once", "-o", "faulthandler_timeout=0", *args.only]
        done = subprocess.run(command, cwd=ROOT, env={**os.environ, **environment}, check=False)
        rows = [json.loads(line) for line in tally.read_text("utf-8").splitlines()]
    _show(rows, (time.monotonic() - started) / 60)
    return done.returncode


def _count(places: list[str]) -> int:
    command = [sys.executable, "-m", "pytest", "--collect-only", *places]  # quiet by default: one test to a line
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout
    return sum("::" in line for line in listed.splitlines())


def _show(rows: list[dict[str, object]], minutes: float) -> None:
    total: Counter[str] = Counter()
    for row in sorted(rows, key=lambda row: str(row["name"])):
        name = str(row.pop("name")).rpartition("/")[2]
        total.update({key: int(str(value)) for key, value in row.items()})
        print(f"{name}: " + ", ".join(f"{key} {value}" for key, value in row.items()))
    print(f"in {minutes:.0f} min: " + ", ".join(f"{key} {value}" for key, value in total.items()))


if __name__ == "__main__":
    sys.exit(main())
