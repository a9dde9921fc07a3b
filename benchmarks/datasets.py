"""`python -m benchmarks.datasets [rows]`: datasets of a million rows: the first case, all checks, memory.

Each format is measured in a process of its own, and once more with a tenth of the rows: memory must not grow with
them. The page of results is benchmarks/DATASETS.md.
"""

from __future__ import annotations

import json
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from benchmarks.measure import REPO

RESULTS = Path(__file__).parent / "DATASETS.md"
FORMATS = ("csv", "jsonl", "parquet")
NOTE = (
    "Times by the clock depend on what else the machine does. pyarrow's memory pool keeps some of what it has read, and "
    "did not grow from row 100,000 to row 400,000 of a smaller file."
)
SUITE = "name: bench\ntargets: [mock:echo]\ndataset: {{path: {file}, input: question, expected: answer}}\n"


def rows(count: int) -> Iterator[dict[str, str]]:
    for n in range(count):
        yield {
            "id": f"q{n}",
            "question": f"What is {n} plus {n + 1}, and why does it matter to the reader?",
            "answer": str(2 * n + 1),
            "topic": f"t{n % 7}",
        }


def write(path: Path, count: int) -> None:
    if path.suffix == ".parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        stream = rows(count)
        first = pa.Table.from_pylist(list(islice(stream, 50_000)))
        with pq.ParquetWriter(path, first.schema) as writer:
            writer.write_table(first)
            while batch := list(islice(stream, 50_000)):
                writer.write_table(pa.Table.from_pylist(batch))
        return
    with path.open("w", encoding="utf-8") as file:
        if path.suffix == ".csv":
            file.write("id,question,answer,topic\n")
        for row in rows(count):
            line = json.dumps(row) if path.suffix == ".jsonl" else ",".join(f'"{cell}"' for cell in row.values())
            file.write(line + "\n")


def measure(folder: Path) -> None:
    """Measure the suite in a folder; prints one JSON document."""
    from fairtrial.config import load_suite
    from fairtrial.config.dataset import Dataset
    from fairtrial.config.document import DatasetEntry

    (file,) = folder.glob("d.*")
    entry = DatasetEntry(path=file.name, input="question", expected="answer")
    started = time.perf_counter()
    next(Dataset(entry, folder).cases(0))
    first = time.perf_counter() - started
    cpu = time.process_time()
    for _ in Dataset(entry, folder).cases(0):
        pass
    read = time.process_time() - cpu
    read_mb = _peak()
    started, cpu = time.perf_counter(), time.process_time()
    suite = load_suite(folder / "s.yaml")
    wall, cpu = time.perf_counter() - started, time.process_time() - cpu
    figures = {"first": first, "read": read, "check": wall, "check_cpu": cpu, "read_mb": read_mb, "check_mb": _peak()}
    print(json.dumps({**figures, "cases": suite.case_count}))


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def run(form: str, count: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"d.{form}"
        write(path, count)
        (Path(folder) / "s.yaml").write_text(SUITE.format(file=path.name), "utf-8")
        command = [sys.executable, "-m", "benchmarks.datasets", "--measure", folder]
        done = subprocess.run(command, cwd=REPO, capture_output=True, text=True, check=True)
    figures: dict[str, float] = json.loads(done.stdout)
    assert figures["cases"] == count
    return figures


def main() -> None:
    if sys.argv[1:2] == ["--measure"]:
        measure(Path(sys.argv[2]))
        return
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    lines = [
        f"# Datasets of {count:,} rows\n",
        f"Python {platform.python_version()}, {platform.machine()}. "
        "`python -m benchmarks.datasets` writes this page; bars are for a million rows.\n",
        "| format | first case (bar 5 s) | reading all rows, CPU time | all checks, per 100,000 rows (bar 3 s of CPU time) "
        "| growth of memory from a tenth of the rows: reading (bar 20 MB), checks |",
        "| --- | --- | --- | --- | --- |",
    ]
    for form in FORMATS:
        small, large = run(form, count // 10), run(form, count)
        wall, cpu = large["check"] / count * 100_000, large["check_cpu"] / count * 100_000
        lines.append(
            f"| {form} | {large['first'] * 1000:.0f} ms {mark(large['first'] <= 5)} | {large['read']:.1f} s "
            f"| {cpu:.2f} s of CPU time {mark(cpu <= 3)}, {wall:.2f} s by the clock "
            f"| {large['read_mb'] - small['read_mb']:+.0f} MB {mark(large['read_mb'] - small['read_mb'] <= 20)}, "
            f"{large['check_mb'] - small['check_mb']:+.0f} MB |"
        )
        print(lines[-1], flush=True)
    RESULTS.write_text("\n".join([*lines, "", NOTE]) + "\n", "utf-8")


def mark(good: bool) -> str:
    return "✓" if good else "✗"


if __name__ == "__main__":
    main()
