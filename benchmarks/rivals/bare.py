"""The floor: a loop of nothing but aiohttp. It records nothing."""

from __future__ import annotations

import sys
from importlib.metadata import version
from pathlib import Path

from benchmarks.measure import REPO
from benchmarks.rivals.tool import Command, Job, Tool


class Bare(Tool):
    name = "bare aiohttp loop"
    address = "benchmarks/bare.py"
    note = "the floor: no store, no scoring, no retries"

    def install(self) -> str:
        return version("aiohttp")

    def command(self, job: Job) -> Command:
        arguments = [job.url, str(job.count), str(job.concurrency), "whole"]
        return Command([sys.executable, "-m", "benchmarks.bare", *arguments], {"PYTHONPATH": str(REPO)})

    def log_files(self, folder: Path) -> list[Path]:
        return []
