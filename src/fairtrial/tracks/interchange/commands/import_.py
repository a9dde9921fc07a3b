"""`fairtrial import`: suites of other tools, and their results."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections import Counter
from pathlib import Path
from typing import Any

import click
import msgspec

from fairtrial import pipeline
from fairtrial.core import registry
from fairtrial.core.errors import FairtrialError, Problem, ProblemsError
from fairtrial.core.providers import CHOOSE_A_MODEL
from fairtrial.core.trust import looking_into, running_code
from fairtrial.foreign.suites import write_suite
from fairtrial.text.printable import counted

_MOST_FILES = 10  # that are listed one by one
_REASONS_SHOWN = 20


def convert_suite(tool: str, file: Path, output: Path, force: bool, run_code: bool, sandbox: str, answer: str) -> int:
    """Convert a suite of a tool, and say what is left to do."""
    with running_code(run_code):
        return _convert(tool, file, output, force=force, run_code=run_code, sandbox=sandbox, answer=answer)


def _convert(tool: str, file: Path, output: Path, *, force: bool, run_code: bool, sandbox: Any, answer: str) -> int:
    importer = _importer(tool, output, run_code=run_code, answer=answer)
    if output.exists() and not force:
        raise FairtrialError(f"{output} already exists: choose another file with -o, or overwrite it with --force")
    try:
        imported = importer.read(file)
    except RecursionError:
        raise FairtrialError(f"{file} is nested too deeply") from None
    if hasattr(importer, "certify"):
        imported = _certify(importer, imported, sandbox)
    written = {output.parent / name: content for name, content in imported.files.items()}
    for path, content in written.items():
        if not force and path.exists() and path.read_bytes() != content:
            raise FairtrialError(f"{path} already exists: write the suite elsewhere with -o, or use --force")
    write_suite(imported, output, source=file.name, tool=tool)
    click.echo(f"written: {output}{_size(imported)}", err=True)
    for path in list(written)[:_MOST_FILES]:
        click.echo(f"written: {path} (code of the original)", err=True)
    if len(written) > _MOST_FILES:
        click.echo(f"written: {counted(len(written) - _MOST_FILES, 'more file')} next to it", err=True)
    _list("not converted", imported.findings)
    _list("works differently", imported.differences)
    return _check(output, file if file.is_dir() else file.parent)


def _importer(tool: str, output: Path, *, run_code: bool, answer: str) -> Any:
    """Return the importer of a tool, with the options that it has."""
    importer: Any = registry.load("importers", tool)()
    if run_code and hasattr(importer, "run_code"):
        importer.run_code = True
    if answer == "code":
        if not hasattr(importer, "answer"):
            raise FairtrialError(f"--answer is for benchmarks of optimisation, which {tool} is not")
        importer.answer = answer
    if hasattr(importer, "output"):  # what stands next to the suite is named after it
        importer.output = output
    return importer


def _certify(importer: Any, imported: Any, sandbox: Any) -> Any:
    """Certify the labels of a benchmark, and say how many are right."""
    imported, labels = importer.certify(imported, sandbox)
    kinds = Counter(label.kind for label in labels)
    click.echo(
        f"labels: {kinds['certified']} certified, {kinds['wrong']} wrong, "
        f"{kinds['not-certified']} as published, not certified",
        err=True,
    )
    reasons = Counter(label.reason for label in labels if label.kind == "not-certified")
    shown = [f"{counted(number, 'label')}: {reason}" for reason, number in reasons.most_common(_REASONS_SHOWN)]
    _list("not certified", shown)
    return imported


def _list(title: str, items: list[str]) -> None:
    """Print one line for each item; in a terminal, wrapped to its width."""
    for item in items:
        text = f"  {title}: {' '.join(item.split())}"
        if sys.stderr.isatty():
            width = max(shutil.get_terminal_size().columns, 40)
            text = textwrap.fill(text, width, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)
        click.echo(text, err=True)


def _size(imported: Any) -> str:
    """Return how many cases a suite brings along; nothing if they are in a file of their own."""
    cases = imported.suite.get("cases")
    return "" if cases is None else f" ({counted(len(cases), 'case')})"


def _check(output: Path, original: Path) -> int:
    """Say what is left to do before the suite can run; return 1 unless that is only to choose a model.

    The suite may refer to files of the original's folder, which was named as well.
    """
    try:
        with looking_into(original):
            suite = pipeline.load(output, placeholders=True)
    except FairtrialError as error:
        problems = error.problems if isinstance(error, ProblemsError) else [Problem(str(error))]
        for problem in problems:
            click.echo(f"  to do: {_place(problem, output)}", err=True)
        return int(any(problem.message != CHOOSE_A_MODEL for problem in problems))
    if suite.variables.assumed:
        click.echo(f"to run it, set {', '.join(sorted(suite.variables.assumed))}", err=True)
    return 0


def _place(problem: Any, output: Path) -> str:
    """Return a problem with where it is: a line of the suite, or of another file."""
    if problem.file == str(output) and problem.line:
        return f"{problem.message} (line {problem.line})"
    return str(msgspec.structs.replace(problem, key=""))
