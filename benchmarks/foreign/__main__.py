"""Makes result files with the real tools, and checks that `fairtrial import results` gives every number they report.

    python -m benchmarks.foreign --out /tmp/files --tools /tmp/tools [lm-eval deepeval …] [--check]

Every tool gets an environment of its own below `--tools`, made with uv or npm where it is missing; `--check` makes
nothing and checks the files that are there.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

from benchmarks.foreign.check import CHECKS, differing
from benchmarks.foreign.make import TOOLS
from benchmarks.foreign.shared import ANSWERS, LETTERS, MARKS, Place
from benchmarks.mock_server import Behaviour, start
from fairtrial.store import Store


async def make(names: list[str], out: Path, tools: Path) -> None:
    """Make the files of these tools."""
    for name in names:
        models, _, address = await start(Behaviour(strict=False, answers=LETTERS if name == "helm" else ANSWERS))
        judges, _, other = await start(Behaviour(strict=False, answers=MARKS))
        await asyncio.to_thread(TOOLS[name], Place(out, tools, f"{address}/v1", f"{other}/v1"))
        models.close()
        judges.close()


def check(names: list[str], out: Path) -> int:
    """Say for every tool how many numbers were compared, and which of them differ."""
    failed = 0
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            count, wrong = differing(CHECKS[name](out / name, Store(f"{folder}/s.db")))
        print(f"{name}: {count} reported numbers, {len(wrong)} differ")
        print("".join(f"  {line}\n" for line in wrong), end="")
        failed += len(wrong) + (count == 0)
    return failed


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--tools", type=Path)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("names", nargs="*", default=list(TOOLS))
    chosen = parser.parse_args()
    if not chosen.check:
        folders = [chosen.out.resolve(), (chosen.tools or chosen.out / "tools").resolve()]
        for folder in folders:
            folder.mkdir(parents=True, exist_ok=True)
        asyncio.run(make(chosen.names, *folders))
    sys.exit(1 if check(chosen.names, chosen.out) else 0)


if __name__ == "__main__":
    main()
