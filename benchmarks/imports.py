"""Importing results: speed and memory on a log of inspect-ai that this program makes.

    python -m benchmarks.imports [--samples 100000]

The log has what inspect writes, its events included, packed as inspect packs them.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import struct
import subprocess
import sys
import tempfile
import time
import zlib
from pathlib import Path
from typing import IO, Any

from fairtrial.tracks.interchange.results._zstd import compress

_EVENTS = 12  # of a sample, about nine tenths of its text


def write_log(path: Path, samples: int) -> None:
    """Write a log with so many samples."""
    chance = random.Random(7)
    entries: list[bytes] = []
    with path.open("wb") as file:
        start = {"version": 2, "eval": _evaluation(samples)}
        entries.append(_member(file, "_journal/start.json", start))
        for number in range(samples):
            sample = _sample(number, chance)
            entries.append(_member(file, f"samples/{sample['id']}_epoch_1.json", sample))
        header = {**start, "status": "success", "plan": {"name": "plan", "steps": [], "config": {"temperature": 0.0}}}
        header |= {"results": {"total_samples": samples, "scores": [{"name": "includes", "scorer": "includes"}]}}
        entries.append(_member(file, "header.json", header))
        at = file.tell()
        for entry in entries:
            file.write(entry)
        size, count = file.tell() - at, len(entries)
        end = file.tell()
        file.write(b"PK\x06\x06" + struct.pack("<QHHIIQQQQ", 44, 45, 45, 0, 0, count, count, size, at))
        file.write(b"PK\x06\x07" + struct.pack("<IQI", 0, end, 1))
        few = min(count, 0xFFFF)
        file.write(b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, few, few, min(size, 2**32 - 1), min(at, 2**32 - 1), 0))


def _evaluation(samples: int) -> dict[str, Any]:
    return {
        "task": "many",
        "task_id": f"benchmark-{samples}",
        "created": "2026-11-16T06:02:10+00:00",
        "model": "mock/model-a",
        "config": {"epochs": 1},
        "packages": {"inspect_ai": "0.3.285"},
        "dataset": {"name": "s", "samples": samples},
        "scorers": [{"name": "includes", "metrics": [{"name": "inspect_ai/accuracy", "options": {}}]}],
    }


def _sample(number: int, chance: random.Random) -> dict[str, Any]:
    a, b = chance.randrange(10_000), chance.randrange(100)
    right = chance.random() < 0.8
    question, answer = f"What is {a} + {b}? Reply with the number only. ({number})", str(a + b + (not right))
    messages = [{"role": "user", "content": question}, {"role": "assistant", "content": answer, "model": "model-a"}]
    event = {
        "event": "model",
        "uuid": f"{chance.getrandbits(128):032x}",
        "input": messages,
        "config": {"max_tokens": 64},
    }
    return {
        "id": f"s{number:06}",
        "epoch": 1,
        "input": question,
        "target": str(a + b),
        "messages": messages,
        "output": {
            "model": "model-a",
            "choices": [{"message": messages[1], "stop_reason": "stop"}],
            "completion": answer,
        },
        "scores": {"includes": {"value": "C" if right else "I", "answer": answer, "explanation": answer}},
        "metadata": {"category": ("add", "carry")[number % 2], "difficulty": number % 3},
        "store": {},
        "events": [event] * _EVENTS,
        "model_usage": {"mock/model-a": {"input_tokens": 16, "output_tokens": 1, "total_tokens": 17}},
        "started_at": "2026-11-16T06:02:12.747009+00:00",
        "total_time": 1.5,
        "working_time": 1.2,
        "error_retries": [],
        "attachments": {},
    }


def _member(file: IO[bytes], name: str, content: dict[str, Any]) -> bytes:
    """Write a member and return its entry in the directory."""
    body = json.dumps(content).encode()
    packed, at, named = compress(body), file.tell(), name.encode()
    sizes = struct.pack("<III", zlib.crc32(body), len(packed), len(body))
    file.write(b"PK\x03\x04" + struct.pack("<HHHHH", 45, 0, 93, 0, 0) + sizes + struct.pack("<HH", len(named), 0))
    file.write(named + packed)
    extra = struct.pack("<HHQ", 1, 8, at)
    numbers = struct.pack("<HHHHHII", len(named), len(extra), 0, 0, 0, 0, 0xFFFFFFFF)
    return b"PK\x01\x02" + struct.pack("<HHHHHH", 45, 45, 0, 93, 0, 0) + sizes + numbers + named + extra


def measure(path: Path, folder: Path) -> tuple[float, float, float]:
    """Import in a process of its own: seconds, peak memory in MB, and memory before in MB."""
    code = "from benchmarks.imports import work; import sys; work(*sys.argv[1:])"
    store = folder / f"{path.stem}.db"
    said = subprocess.run(
        [sys.executable, "-c", code, str(path), str(store)], capture_output=True, text=True, check=True
    )
    seconds, peak, before = map(float, said.stdout.split())
    store.unlink()
    return seconds, peak, before


def work(path: str, store: str) -> None:
    """Import one file and print what it took."""
    from fairtrial.cli.start import tune_garbage_collector
    from fairtrial.store import Store
    from fairtrial.tracks.interchange.import_results import import_all

    opened = Store(store)
    tune_garbage_collector()  # as the command does
    before = _memory()
    began = time.process_time()  # of this process: other programs do not count
    (done,) = import_all(path, store=opened)
    seconds = time.process_time() - began
    assert done.happened == "imported"
    print(seconds, _memory(), before)


def _memory() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**10 if os.uname().sysname == "Linux" else 2**20)


def main() -> None:
    """Print a table: size, speed, memory."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--samples", type=int, default=100_000)
    samples = parser.parse_args().samples
    print(f"{'samples':>9} {'file MB':>8} {'CPU s':>8} {'per second':>11} {'before MB':>10} {'peak MB':>8}")
    with tempfile.TemporaryDirectory() as folder:
        for count in (samples // 10, samples):
            path = Path(folder) / f"log{count}.eval"
            write_log(path, count)
            seconds, peak, before = measure(path, Path(folder))
            size = path.stat().st_size / 2**20
            print(f"{count:>9} {size:>8.1f} {seconds:>8.1f} {count / seconds:>11.0f} {before:>10.0f} {peak:>8.0f}")


if __name__ == "__main__":
    main()
