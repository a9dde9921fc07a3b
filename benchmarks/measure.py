"""Measuring whole processes: wall, CPU and peak memory, with a model server in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

REPO = Path(__file__).parent.parent


class Cost(NamedTuple):
    wall: float
    cpu: float
    peak_mb: float


@contextmanager
def model_server(latency: float, *options: str) -> Iterator[str]:
    command = [sys.executable, "-m", "benchmarks.mock_server", "--latency", str(latency), *options]
    process = subprocess.Popen(command, cwd=REPO, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.kill()
        process.wait()


def measure(command: list[str], cwd: Path, environment: dict[str, str] | None = None) -> Cost:
    """Run a command to its end; fail if it fails."""
    started = time.monotonic()
    process = subprocess.Popen(command, cwd=cwd, env={**os.environ, **(environment or {})})
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{command} ended with {process.returncode}")
    return Cost(time.monotonic() - started, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def stolen() -> tuple[int, int]:
    """Ticks in which the host gave our cores to others, and all ticks; both 0 where the system does not tell."""
    try:
        fields = [int(field) for field in Path("/proc/stat").read_text("ascii").split("\n", 1)[0].split()[1:9]]
    except (OSError, ValueError):
        return 0, 0
    return fields[7], sum(fields)


def run_bare(server: str, count: int, concurrency: int, stream: bool) -> Cost:
    arguments = [server, str(count), str(concurrency), "stream" if stream else "whole"]
    return measure([sys.executable, "-m", "benchmarks.bare", *arguments], REPO)


def run_fairtrial(server: str, count: int, concurrency: int, stream: bool) -> Cost:
    """The command line as a user runs it: load, check, ask, store durably, score, aggregate."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with (folder / "questions.jsonl").open("w") as file:
            for number in range(count):
                question = f"Question {number}: what is the answer?"
                file.write(json.dumps({"question": question, "answer": "42"}) + "\n")
        (folder / "suite.yaml").write_text(
            f"name: bench\ntargets: [openai:m]\nscorer: boolean\nconcurrency: {concurrency}\n"
            f"stream: {str(stream).lower()}\ndataset: {{path: questions.jsonl, input: question, expected: answer}}\n"
        )
        environment = {"OPENAI_BASE_URL": f"{server}/v1", "OPENAI_API_KEY": "sk-bench-12345678"}
        command = [sys.executable, "-m", "fairtrial", "run", "suite.yaml", "--quiet"]
        return measure(command, folder, environment)


def run_help() -> Cost:
    best = [measure([sys.executable, "-m", "fairtrial", "--help"], REPO) for _ in range(5)]
    return min(best)
