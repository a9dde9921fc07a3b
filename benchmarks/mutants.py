"""Whether the tests would notice: small changes to the code, each tried against the tests that run the changed line.

`python -m benchmarks.mutants [COUNT] [--seed N]` makes COUNT mutants (200 unless told), the same ones every time, spread
over the folders by their size, and says which of them lived. It needs `coverage` and `pytest-cov`, and an hour or less.
A mutant that lives is either a test that is missing or a change that changes nothing: `MUTANTS.md` has those that were
looked at and stay.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate, islice
from pathlib import Path
from queue import Queue
from typing import Any, NamedTuple

REPO = Path(__file__).parents[1]
PACKAGE = Path("src/fairtrial")
WHERE = ("stats", "analyse", "engine", "store", "judging", "core", "web/access.py", "webpage/seal.py")
_MOST_SECONDS = 60.0  # of tests that run a line, the quickest first
_TIME_LIMIT = 300
_TESTS = "not browser and not model and not simulation"
_COMPARE = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
_ARITHMETIC = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult}

Change = Callable[[Any], object]


class Mutant(NamedTuple):
    """One change in one line."""

    file: str
    line: int
    number: int  # of the change among those of its file
    what: str


def changes(tree: ast.Module) -> Iterator[tuple[int, str, Change, ast.AST]]:
    """Every small change of a module: its line, what it is, and how to make it to which node."""
    for node in ast.walk(tree):
        for what, change in _ways(node):
            yield node.lineno, what, change, node


def mutated(source: str, number: int) -> str:
    """A module's text with one of its changes."""
    tree = ast.parse(source)
    _, _, change, node = next(islice(changes(tree), number, None))
    change(node)
    return ast.unparse(ast.fix_missing_locations(tree))


def _ways(node: Any) -> Iterator[tuple[str, Change]]:
    if isinstance(node, ast.Compare) and type(node.ops[0]) in _COMPARE:
        new = _COMPARE[type(node.ops[0])]
        yield f"{type(node.ops[0]).__name__} → {new.__name__}", lambda twin: twin.ops.__setitem__(0, new())
    elif isinstance(node, ast.BoolOp):
        other = ast.Or if isinstance(node.op, ast.And) else ast.And
        yield f"{type(node.op).__name__} → {other.__name__}", lambda twin: setattr(twin, "op", other())
    elif (
        isinstance(node, ast.BinOp)
        and type(node.op) in _ARITHMETIC
        and not isinstance(node.left, ast.Constant | ast.JoinedStr)
    ):
        new = _ARITHMETIC[type(node.op)]
        yield f"{type(node.op).__name__} → {new.__name__}", lambda twin: setattr(twin, "op", new())
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield (
            "not dropped",
            lambda twin: (
                setattr(twin, "op", ast.Not()),
                setattr(twin, "operand", ast.UnaryOp(ast.Not(), twin.operand)),
            ),
        )
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield f"{node.value} → {not node.value}", lambda twin: setattr(twin, "value", not twin.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        yield f"{node.value} → {node.value + 1}", lambda twin: setattr(twin, "value", twin.value + 1)
    elif isinstance(node, ast.If | ast.IfExp):
        yield "condition → its contrary", lambda twin: setattr(twin, "test", ast.UnaryOp(ast.Not(), twin.test))
    elif isinstance(node, ast.Return) and node.value is not None and not _is_none(node.value):
        yield "return → None", lambda twin: setattr(twin, "value", ast.Constant(None))
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call | ast.Await):
        yield "call dropped", lambda twin: setattr(twin, "value", ast.Constant(None))


def _is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def candidates(lines: dict[str, set[int]]) -> dict[str, list[Mutant]]:
    """Every change of a line that tests run, by folder."""
    found: dict[str, list[Mutant]] = {}
    for where in WHERE:
        place = REPO / PACKAGE / where
        for path in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            file = str(path.relative_to(REPO))
            tree = ast.parse(path.read_text("utf-8"))
            own = [Mutant(file, line, number, what) for number, (line, what, _, _) in enumerate(changes(tree))]
            found.setdefault(where, []).extend(mutant for mutant in own if mutant.line in lines.get(file, ()))
    return found


def chosen(found: dict[str, list[Mutant]], count: int, seed: int) -> list[Mutant]:
    """So many of them, by the size of each folder, at least two of each."""
    rng = random.Random(seed)
    total = sum(map(len, found.values()))
    picked: list[Mutant] = []
    for own in found.values():
        share = min(len(own), max(2, round(count * len(own) / total)))
        picked += rng.sample(own, share)
    rng.shuffle(picked)
    return picked[:count]


class Coverage(NamedTuple):
    """Which tests run a line, and how long each takes."""

    tests: dict[str, dict[int, list[str]]]
    seconds: dict[str, float]


def measure(folder: Path) -> Coverage:
    """Run the tests once, and note what each of them runs."""
    import coverage

    report, data = folder / "tests.xml", folder / "coverage"
    settings = folder / "coveragerc"
    settings.write_text("[run]\nconcurrency = thread\nsource = fairtrial\n")
    command = [sys.executable, "-m", "pytest", "-q", "-n", "auto", "-m", _TESTS, f"--junitxml={report}"]
    command += ["--cov=fairtrial", "--cov-context=test", f"--cov-config={settings}", "--cov-report="]
    subprocess.run(
        command, cwd=REPO, env={**os.environ, "COVERAGE_FILE": str(data)}, check=False, stdout=subprocess.DEVNULL
    )
    read = coverage.CoverageData(str(data))
    read.read()
    tests: dict[str, dict[int, list[str]]] = {}
    for file in read.measured_files():
        if "fairtrial" not in file:
            continue
        name = str(PACKAGE / file.split("/fairtrial/", 1)[1])
        by_line = read.contexts_by_lineno(file)
        tests[name] = {
            line: [context.split("|")[0] for context in contexts if context] for line, contexts in by_line.items()
        }
    seconds = {}
    for case in ET.parse(report).iter("testcase"):
        seconds[f"{case.get('classname')}.{case.get('name')}"] = float(case.get("time") or 0)
    return Coverage(tests, seconds)


def _key(test: str) -> str:
    """A test's id as the report names it."""
    path, _, name = test.partition("::")
    return f"{path.removesuffix('.py').replace('/', '.')}.{name.replace('::', '.')}"


def quickest(mutant: Mutant, coverage: Coverage) -> list[str]:
    """The tests that run the changed line, the quickest first, as many as fit into a minute."""
    taken = {test: coverage.seconds.get(_key(test), 9.0) for test in coverage.tests[mutant.file].get(mutant.line, [])}
    order = sorted(taken, key=lambda test: (taken[test], test))
    until = list(accumulate(taken[test] for test in order))
    return [test for test, seconds in zip(order, until, strict=True) if seconds <= _MOST_SECONDS or test == order[0]]


def try_out(mutant: Mutant, coverage: Coverage, tree: Path) -> bool:
    """Whether the tests of the changed line notice the change."""
    file = tree / Path(mutant.file).relative_to("src")
    before = file.read_text("utf-8")
    file.write_text(mutated(before, mutant.number), "utf-8")
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-n0", "-p", "no:cacheprovider", *quickest(mutant, coverage)]
    environment = {**os.environ, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(command, cwd=REPO, env=environment, capture_output=True, timeout=_TIME_LIMIT, check=False)
    except subprocess.TimeoutExpired:
        return True
    finally:
        file.write_text(before, "utf-8")
    return done.returncode != 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("count", nargs="?", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--coverage", type=Path, help="keep what was measured here, or take it from here")
    parser.add_argument("--only", help="mutants of files whose path has this in it")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="fairtrial-mutants-") as name:
        folder = Path(name)
        coverage = _coverage(args.coverage, folder)
        lines = {file: {line for line, tests in own.items() if tests} for file, own in coverage.tests.items()}
        mutants = chosen(candidates(lines), args.count, args.seed)
        mutants = [mutant for mutant in mutants if not args.only or args.only in mutant.file]
        workers = os.cpu_count() or 1
        trees: Queue[Path] = Queue()
        for number in range(workers):
            tree = folder / f"tree-{number}"
            shutil.copytree(REPO / "src", tree, ignore=shutil.ignore_patterns("__pycache__"))
            trees.put(tree)

        def one(mutant: Mutant) -> bool:
            tree = trees.get()
            try:
                killed = try_out(mutant, coverage, tree)
            finally:
                trees.put(tree)
            if not killed:
                source = (REPO / mutant.file).read_text("utf-8").splitlines()[mutant.line - 1].strip()
                print(f"lived: {mutant.file}:{mutant.line} {mutant.what}: {source}", flush=True)
            return killed

        started = time.monotonic()
        with ThreadPoolExecutor(workers) as pool:
            killed = sum(pool.map(one, mutants))
    print(
        f"{killed} of {len(mutants)} mutants killed ({100 * killed / len(mutants):.0f} %) in {(time.monotonic() - started) / 60:.0f} min"
    )
    return 0 if killed >= 0.9 * len(mutants) else 1


def _coverage(kept: Path | None, folder: Path) -> Coverage:
    if kept is not None and kept.exists():
        raw = json.loads(kept.read_text("utf-8"))
        tests = {file: {int(line): found for line, found in own.items()} for file, own in raw["tests"].items()}
        return Coverage(tests, raw["seconds"])
    found = measure(folder)
    if kept is not None:
        kept.write_text(json.dumps(found._asdict()), "utf-8")
    return found


if __name__ == "__main__":
    sys.exit(main())
