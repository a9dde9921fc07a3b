"""`python -m benchmarks.versions REF`: what this version costs beside another one, in turns on one machine.

Processor time of whole runs, start-up included, with the model server in a process of its own. Both use the installed
packages of this environment.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.measure import REPO, model_server, run_fairtrial

LATENCY, CONCURRENCY = 0.0, 200


@contextmanager
def checkout(ref: str) -> Iterator[Path]:
    """Yield the sources of a version."""
    with tempfile.TemporaryDirectory(prefix="fairtrial-version-") as name:
        folder = Path(name, "fairtrial")
        git = ["git", "-C", str(REPO), "worktree"]
        subprocess.run([*git, "add", "--quiet", "--detach", str(folder), ref], check=True)
        try:
            yield folder / "src"
        finally:
            subprocess.run([*git, "remove", "--force", str(folder)], check=True)


def processor_time(server: str, sources: Path, count: int) -> float:
    os.environ["PYTHONPATH"] = str(sources)
    return run_fairtrial(server, count, CONCURRENCY, stream=False).cpu / count * 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ref", help="a commit, a branch or a tag")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--trials", type=int, default=5_000)
    args = parser.parse_args()
    ratios = []
    with checkout(args.ref) as other, model_server(LATENCY) as server:
        for number in range(args.rounds):
            places = [other, REPO / "src"] if number % 2 else [REPO / "src", other]
            cost = {place: processor_time(server, place, args.trials) for place in places}
            ratios.append(cost[REPO / "src"] / cost[other])
            print(f"{args.ref} {cost[other]:.3f} ms a trial, here {cost[REPO / 'src']:.3f} ms", flush=True)
    low, middle, high = min(ratios), statistics.median(ratios), max(ratios)
    print(f"processor time here / {args.ref}: {middle:.3f} ({low:.3f} to {high:.3f} in {args.rounds} rounds)")


if __name__ == "__main__":
    main()
