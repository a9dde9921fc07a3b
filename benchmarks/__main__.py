"""`make bench`: the speed and scale of this machine's fairtrial, against a bare aiohttp loop in the same run.

Ratios count: machines differ and are noisy. The page of results is benchmarks/RESULTS.md.
"""

from __future__ import annotations

import platform
import statistics
import sys
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.measure import Cost, model_server, run_bare, run_fairtrial, run_help

COUNT, LATENCY, CONCURRENCY = 10_000, 0.2, 200
ROUNDS = 5
RESULTS = Path(__file__).parent / "RESULTS.md"


def speed(stream: bool) -> list[str]:
    """Bare and fairtrial in turns; the medians and the median of the ratios."""
    bare: list[Cost] = []
    ours: list[Cost] = []
    with model_server(LATENCY) as server:
        for _ in range(ROUNDS):
            bare.append(run_bare(server, COUNT, CONCURRENCY, stream))
            ours.append(run_fairtrial(server, COUNT, CONCURRENCY, stream))
            print(f"  bare {bare[-1].wall:.1f} s, fairtrial {ours[-1].wall:.1f} s", flush=True)
    floor = statistics.median(cost.cpu for cost in bare) / COUNT * 1000
    cpu = statistics.median(cost.cpu for cost in ours) / COUNT * 1000
    ratios = [o.wall / b.wall for o, b in zip(ours, bare, strict=True)]
    ratio = statistics.median(ratios)
    name = "streamed" if stream else "not streamed"
    return [
        f"| {name}: wall, bare loop | {statistics.median(c.wall for c in bare):.2f} s | ideal 10 s |",
        f"| {name}: wall, fairtrial | {statistics.median(c.wall for c in ours):.2f} s | "
        f"{ratio:.2f} × bare, {min(ratios):.2f} to {max(ratios):.2f} (bar 1.15) {mark(ratio <= 1.15)} |",
        f"| {name}: CPU per trial, bare loop | {floor:.2f} ms | |",
        f"| {name}: CPU per trial, fairtrial | {cpu:.2f} ms | "
        f"bar {1.2 * floor + 0.5:.2f} ms (1.2 × bare + 0.5) {mark(cpu <= 1.2 * floor + 0.5)} |",
    ]


def memory() -> list[str]:
    with model_server(0.0) as server:
        small = run_fairtrial(server, 1_000, CONCURRENCY, stream=False)
        large = run_fairtrial(server, 100_000, CONCURRENCY, stream=False)
    growth = large.peak_mb - small.peak_mb
    return [
        f"| peak memory, 1,000 trials | {small.peak_mb:.0f} MB | |",
        f"| peak memory, 100,000 trials | {large.peak_mb:.0f} MB | "
        f"{growth:+.0f} MB (bar +60 MB) {mark(growth <= 60)} |",
        f"| 100,000 trials without latency | {large.wall:.0f} s | {100_000 / large.wall:.0f} trials/s |",
    ]


def mark(good: bool) -> str:
    return "✓" if good else "✗"


def main() -> None:
    print("speed, not streamed", flush=True)
    lines = speed(stream=False)
    print("speed, streamed", flush=True)
    lines += speed(stream=True)
    print("memory", flush=True)
    lines += memory()
    quick = run_help().wall
    lines.append(f"| `fairtrial --help` | {quick:.2f} s | bar 0.25 s {mark(quick <= 0.25)} |")
    page = [
        "# Speed and scale",
        "",
        f"Measured {datetime.now(UTC):%Y-%m-%d} by `make bench` on {platform.system()} {platform.machine()}, "
        f"Python {platform.python_version()}, 2 cores shared with the model server. "
        f"{COUNT:,} trials, {LATENCY * 1000:.0f} ms latency, {CONCURRENCY} at once, unless said otherwise; "
        f"medians of {ROUNDS} rounds, bare loop and fairtrial in turns.",
        "",
        "Both are whole processes, start-up included. fairtrial reads and checks the suite, asks, stores every "
        "answer and every score durably (an fsync for each group commit), and aggregates; the bare loop only asks.",
        "",
        "| what | measured | |",
        "| --- | --- | --- |",
        *lines,
        "",
    ]
    RESULTS.write_text("\n".join(page), "utf-8")
    print("\n".join(page))
    sys.exit(1 if "✗" in "".join(page) else 0)


if __name__ == "__main__":
    main()
