"""`make bench-rivals`: installs the tools on request, measures them in turns, and writes docs/rivals.md.

python -m benchmarks.rivals [--tools NAME…] [--prompts N] [--rounds N] [--viewer N] [--skip speed|faults|kill|viewer]
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from benchmarks.rivals import experiments, page
from benchmarks.rivals.bare import Bare
from benchmarks.rivals.deepeval import DeepEval
from benchmarks.rivals.experiments import Size
from benchmarks.rivals.inspect_ai import InspectAi
from benchmarks.rivals.lm_eval import LmEval
from benchmarks.rivals.ours import Fairtrial
from benchmarks.rivals.page import Measured, Numbers
from benchmarks.rivals.promptfoo import Promptfoo
from benchmarks.rivals.pydantic_evals import PydanticEvals
from benchmarks.rivals.tool import Tool

TOOLS: tuple[type[Tool], ...] = (Bare, Fairtrial, LmEval, PydanticEvals, DeepEval, Promptfoo, InspectAi)
PARTS = ("speed", "faults", "kill", "viewer")
PAGE = Path(__file__).parent.parent.parent / "docs" / "rivals.md"
Result = TypeVar("Result")
_RESULTS = "results.json"


class Recorded(msgspec.Struct, kw_only=True):
    """Everything that was measured so far, kept in the cache: parts that are skipped show what they showed before."""

    prompts: int
    concurrency: int
    rounds: int
    viewer: int
    load: tuple[float, float] = (math.inf, 0.0)  # the lowest and the highest meanwhile
    tools: dict[str, Numbers] = {}

    def note_load(self) -> None:
        """Keep the load of the machine in mind."""
        now = os.getloadavg()[0]
        self.load = min(now, self.load[0]), max(now, self.load[1])


def main() -> None:
    """Read the command line, measure, write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    names = [tool.name for tool in TOOLS[1:]]
    parser.add_argument("--tools", nargs="+", choices=names, default=names, metavar="NAME", help=", ".join(names))
    parser.add_argument("--prompts", type=int, default=1000)
    parser.add_argument("--concurrency", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--viewer", type=int, default=10_000, help="results in the viewer")
    parser.add_argument("--skip", nargs="+", choices=PARTS, default=[], help="what was measured before is shown again")
    parser.add_argument("--cache", type=Path, default=_cache(), help="where the tools are installed")
    parser.add_argument("--page", type=Path, default=PAGE, help="what is written")
    options = parser.parse_args()
    options.cache.mkdir(parents=True, exist_ok=True)
    tools = [tool(options.cache) for tool in TOOLS if tool is Bare or tool.name in options.tools]
    recorded = _before(options)
    for tool in tools:
        print(f"installing {tool.name}", file=sys.stderr, flush=True)
        version = tool.install()
        recorded.tools.setdefault(tool.name, Numbers(version=version)).version = version
    _measure(recorded, tools, options)
    measured = [Measured(tool, recorded.tools[tool.name]) for tool in tools]
    size = Size(recorded.prompts, recorded.concurrency)
    text = page.text(measured, size, recorded.rounds, recorded.viewer, recorded.load)
    options.page.write_text(text, "utf-8")
    print(text)


def _before(options: argparse.Namespace) -> Recorded:
    """Return what was measured before, as far as it is not measured again."""
    file: Path = options.cache / _RESULTS
    fresh = Recorded(
        prompts=options.prompts, concurrency=options.concurrency, rounds=options.rounds, viewer=options.viewer
    )
    if not options.skip or not file.exists():
        return fresh
    before = msgspec.json.decode(file.read_bytes(), type=Recorded)
    if set(options.skip) >= {"speed", "faults", "kill"}:
        return msgspec.structs.replace(before, viewer=options.viewer)
    for numbers in before.tools.values():
        numbers.speeds = {number: speed for number, speed in numbers.speeds.items() if number < options.rounds}
    return msgspec.structs.replace(fresh, tools=before.tools, load=before.load)


def _measure(recorded: Recorded, tools: Sequence[Tool], options: argparse.Namespace) -> None:
    """Measure every part that is not skipped: speed in rounds, in which the tools take turns, then the rest."""
    size, large = Size(options.prompts, options.concurrency), Size(options.viewer, options.concurrency)
    for number in range(0 if "speed" in options.skip else options.rounds):
        for tool in tools:
            found = _attempt(f"speed {number + 1}", tool, lambda one: experiments.speed(one, size))
            if found is not None:
                recorded.tools[tool.name].speeds[number] = found
            _keep(recorded, options.cache)
    for tool in tools[1:]:  # the bare loop stores nothing that could be read, resumed or viewed
        numbers = recorded.tools[tool.name]
        if "faults" not in options.skip:
            numbers.faults = _attempt("faults", tool, lambda one: experiments.faults(one, size))
        if "kill" not in options.skip:
            numbers.killed = _attempt("kill", tool, lambda one: experiments.killed(one, size))
        if "viewer" not in options.skip:
            numbers.view = _attempt("viewer", tool, lambda one: experiments.view(one, large))
        _keep(recorded, options.cache)


def _keep(recorded: Recorded, cache: Path) -> None:
    recorded.note_load()
    (cache / _RESULTS).write_bytes(msgspec.json.encode(recorded))


def _attempt(what: str, tool: Tool, experiment: Callable[[Tool], Result]) -> Result | None:
    """Measure one tool; what goes wrong is said and leaves a gap in the table, not a crash of the others."""
    try:
        result = experiment(tool)
    except Exception:
        print(f"{what}: {tool.name} failed", traceback.format_exc(), sep="\n", file=sys.stderr, flush=True)
        return None
    print(f"{what}: {tool.name}: {result}", file=sys.stderr, flush=True)
    return result


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "fairtrial" / "rivals"


if __name__ == "__main__":
    main()
