"""Whether the tests would notice: small changes to the code, each tried against the tests that run the changed line.

`python -m benchmarks.mutants [COUNT] [--seed N]` makes COUNT mutants (200 unless told), the same ones as long as their
lines stay, spread over the folders by their size, and says which of them lived. It needs `coverage` and `pytest-cov`, and
an hour or less. A mutant that lives is either a test that is missing or a change that changes nothing: `MUTANTS.md` has
those that were looked at and stay. A test that fails without the mutant as well notices nothing.

To look at one of them: `--coverage FILE` keeps what was measured, `--only stats/mean.py:151` picks it, and `--tests PATH`
runs other tests than those that were measured.
"""

from __future__ import annotations

import argparse
import ast
import functools
import gc
import hashlib
import importlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import accumulate, islice
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, NamedTuple, NoReturn

import pytest
from _pytest.main import pytest_runtestloop as session_loop

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
    text: str  # of the line

    def __str__(self) -> str:
        return f"{self.file}:{self.line} {self.what}: {self.text}"


def changes(tree: ast.Module) -> Iterator[tuple[int, str, Change, ast.AST]]:
    """Every small change of a module's functions: its line, what it is, and how to make it to which node."""
    bodies = (node.body for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    inside = {node for body in bodies for statement in body for node in ast.walk(statement)}
    for node in ast.walk(tree):
        for what, change in _ways(node) if node in inside else ():
            yield node.lineno, what, change, node


def mutated(source: str, number: int) -> ast.Module:
    """A module with one of its changes."""
    tree = ast.parse(source)
    _, _, change, node = next(islice(changes(tree), number, None))
    change(node)
    return ast.fix_missing_locations(tree)


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
            file, source = str(path.relative_to(REPO)), path.read_text("utf-8")
            texts = source.splitlines()
            found.setdefault(where, []).extend(
                Mutant(file, line, number, what, texts[line - 1].strip())
                for number, (line, what, _, _) in enumerate(changes(ast.parse(source)))
                if line in lines.get(file, ())
            )
    return found


def chosen(found: dict[str, list[Mutant]], count: int, seed: int) -> list[Mutant]:
    """So many of them, by the size of each folder, at least two of each."""
    total = sum(map(len, found.values()))
    picked = [
        (place, mutant)
        for own in found.values()
        for place, mutant in _drawn(own, seed)[: max(2, round(count * len(own) / total))]
    ]
    return [mutant for _, mutant in sorted(picked)[:count]]


def _drawn(mutants: list[Mutant], seed: int) -> list[tuple[str, Mutant]]:
    """In an order that depends on the changed line only: a change elsewhere draws no others."""
    seen: Counter[str] = Counter()
    order = []
    for mutant in mutants:
        name = f"{seed} {mutant.file} {mutant.what} {mutant.text}"
        seen[name] += 1
        order.append((hashlib.sha256(f"{name} {seen[name]}".encode()).hexdigest(), mutant))
    return sorted(order)


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
    command += [
        "-p",
        "pytest_cov",
        "--cov=fairtrial",
        "--cov-context=test",
        f"--cov-config={settings}",
        "--cov-report=",
    ]
    subprocess.run(
        command, cwd=REPO, env={**os.environ, "COVERAGE_FILE": str(data)}, check=False, stdout=subprocess.DEVNULL
    )
    read = coverage.CoverageData(str(data))
    read.read()
    tests: dict[str, dict[int, list[str]]] = {}
    for file in read.measured_files():
        _, ours, inside = file.rpartition(f"/{PACKAGE}/")  # the last: clones are called `fairtrial`, too
        if not ours:
            continue
        name = str(PACKAGE / inside)
        by_line = read.contexts_by_lineno(file)
        tests[name] = {
            line: sorted({context.rpartition("|")[0] for context in contexts if context})
            for line, contexts in by_line.items()
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


class Trial:
    """A plug-in of pytest that collects the tests once; then every mutant is a fork that runs its own ones."""

    def __init__(self, folder: Path, coverage: Coverage, mutants: Sequence[Mutant], tests: Sequence[str]) -> None:
        self.lived: list[Mutant] = []
        self._folder, self._coverage, self._mutants, self._tests = folder, coverage, list(mutants), tests
        self._failed: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._failed.append(report.nodeid)

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        for where in WHERE:  # what is imported later would be imported as it was
            for path in sorted((REPO / PACKAGE).glob(where if where.endswith(".py") else f"{where}/**/*.py")):
                importlib.import_module(".".join(path.relative_to(REPO / "src").with_suffix("").parts))
        self._session, self._items = session, {item.nodeid: item for item in session.items}
        gc.unfreeze()  # what tests have frozen would not be found
        self._functions = [one for one in gc.get_objects() if isinstance(one, FunctionType)]
        self._caches = [one for one in gc.get_objects() if isinstance(one, functools._lru_cache_wrapper)]
        gc.freeze()
        self._try_out(self._mutants)
        return True

    def _try_out(self, mutants: list[Mutant]) -> None:
        """Note the mutants that no test notices which passes without them."""
        unreliable: set[str] = set()
        while mutants:
            found = self._forked([(mutant, self._of(mutant, unreliable)) for mutant in mutants])
            self.lived += [mutant for mutant, tests in zip(mutants, found, strict=True) if not tests]
            noticing = sorted({test for tests in found for test in tests} & self._items.keys())
            (wrong,) = self._forked([(None, noticing)])
            _say(f"{len(wrong)} of {len(noticing)} tests fail without a mutant as well:", *wrong)
            mutants = [mutant for mutant, tests in zip(mutants, found, strict=True) if set(tests) & set(wrong)]
            unreliable |= set(wrong)

    def _of(self, mutant: Mutant, without: set[str]) -> list[str]:
        tests = [test for test in self._items if test.startswith(tuple(self._tests))] if self._tests else []
        tests = tests or [test for test in quickest(mutant, self._coverage) if test in self._items]
        return [test for test in tests if test not in without]

    def _forked(self, work: Sequence[tuple[Mutant | None, list[str]]]) -> list[list[str]]:
        """Which tests failed, for every mutant and the tests to run with it; two at a time on each core, as tests wait."""
        found: list[list[str]] = [[] for _ in work]
        running: dict[int, int] = {}
        for number, (mutant, tests) in enumerate(work):
            if len(running) == 2 * (os.cpu_count() or 1):
                self._wait(running, work, found)
            if (child := os.fork()) == 0:
                self._run(number, mutant, tests)
            running[child] = number
        while running:
            self._wait(running, work, found)
        return found

    def _wait(self, running: dict[int, int], work: Sequence[tuple[Mutant | None, list[str]]], found: Any) -> None:
        child, status = os.wait()
        number = running.pop(child)
        report, mutant = self._folder / f"{number}.json", work[number][0]
        found[number] = json.loads(report.read_text("utf-8")) if report.exists() else [f"ended with {status}"]
        report.unlink(missing_ok=True)
        shutil.rmtree(self._own(number), ignore_errors=True)
        if os.waitstatus_to_exitcode(status) > 0:
            raise RuntimeError(f"{mutant} could not be tried: {found[number]}")
        if mutant is not None:
            _say(f"{'killed' if found[number] else 'lived'}: {mutant}", *found[number])

    def _own(self, number: int) -> Path:
        """A mutant's folder, where its tests have theirs."""
        return Path(self._session.config.option.basetemp or self._folder) / f"mutant-{number}"

    def _run(self, number: int, mutant: Mutant | None, tests: list[str]) -> NoReturn:
        """In a process of its own: make the change, run the tests up to the first that fails, and say which do."""
        code, report = 1, self._folder / f"{number}.json"
        try:
            signal.alarm(_TIME_LIMIT if mutant else 0)
            for descriptor in (1, 2):
                os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)
            self._run_tests(self._own(number), mutant, tests)
            report.write_text(json.dumps(list(dict.fromkeys(self._failed))), "utf-8")
            self._session._setupstate.teardown_exact(None)
            code = 0
        except BaseException:
            report.write_text(json.dumps([traceback.format_exc()[-1000:]]), "utf-8")
        finally:
            os._exit(code)  # not a line further: what comes after the loop of the tests is for the first process

    def _run_tests(self, own: Path, mutant: Mutant | None, tests: list[str]) -> None:
        session = self._session
        (own / "tests").mkdir(parents=True)
        session.config._tmp_path_factory._basetemp = own / "tests"  # type: ignore[attr-defined]  # not the others'
        session.config.option.maxfail = 1 if mutant else 0
        session.items = [self._items[test] for test in tests]
        if mutant is not None:
            self._make(mutant, own / "src")
        with suppress(pytest.Session.Failed, pytest.Session.Interrupted):
            session_loop(session)

    def _make(self, mutant: Mutant, tree: Path) -> None:
        """Make the change to the functions of this process, and to a copy of the package for those that tests start."""
        path = REPO / mutant.file
        changed = mutated(path.read_text("utf-8"), mutant.number)
        new = {(code.co_qualname, code.co_firstlineno): code for code in _codes(compile(changed, str(path), "exec"))}
        functions = [function for function in self._functions if function.__code__.co_filename == str(path)]
        if not functions:
            raise RuntimeError(f"no function of {path} was found, so that no test could notice a change")
        for function in functions:
            function.__code__ = new[function.__code__.co_qualname, function.__code__.co_firstlineno]
        for cache in self._caches:
            cache.cache_clear()
        shutil.copytree(REPO / "src", tree)
        file = tree / path.relative_to(REPO / "src")
        file.write_text(ast.unparse(changed), "utf-8")
        os.environ["PYTHONPATH"] = str(tree)


def _say(*words: str) -> None:
    print(*words, file=sys.__stdout__, flush=True)  # past pytest, which keeps what is printed


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _codes(inner)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("count", nargs="?", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--coverage", type=Path, help="keep what was measured here, or take it from here")
    parser.add_argument("--only", default="", help="mutants whose line in the report has this in it")
    parser.add_argument("--tests", nargs="*", default=[], help="tests to try instead of those that run the line")
    args = parser.parse_args()
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="fairtrial-mutants-") as name:
        coverage = _coverage(args.coverage, Path(name))
        lines = {file: {line for line, tests in own.items() if tests} for file, own in coverage.tests.items()}
        drawn = chosen(candidates(lines), args.count, args.seed)
        mutants = [mutant for mutant in drawn if args.only in str(mutant)]
        trial = Trial(Path(name), coverage, mutants, args.tests)
        options = ["-x", "-n0", "-p", "no:cacheprovider", "--timeout=900", "--capture=sys", "-m", _TESTS, *args.tests]
        if pytest.main(options, plugins=[trial]) != pytest.ExitCode.OK:
            return 2
    killed, minutes = len(mutants) - len(trial.lived), (time.monotonic() - started) / 60
    print(*sorted(trial.lived), sep="\n")
    print(f"{killed} of {len(mutants)} mutants killed ({100 * killed / len(mutants):.0f} %) in {minutes:.0f} min")
    return 0 if killed >= 0.9 * len(mutants) else 1


def _coverage(kept: Path | None, folder: Path) -> Coverage:
    if kept is None or not kept.exists():
        found = measure(folder)
        if kept is not None:
            kept.write_text(json.dumps(found._asdict()), "utf-8")
    else:
        raw = json.loads(kept.read_text("utf-8"))
        found = Coverage(
            {file: {int(line): own[line] for line in own} for file, own in raw["tests"].items()}, raw["seconds"]
        )
    return found


if __name__ == "__main__":
    sys.exit(main())
