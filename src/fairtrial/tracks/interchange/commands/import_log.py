"""`fairtrial import log`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fairtrial.cli.documents import print_json
from fairtrial.cli.options import in_store
from fairtrial.cli.start import tune_garbage_collector
from fairtrial.reports import SCHEMA_VERSION
from fairtrial.store import Store
from fairtrial.text.printable import counted
from fairtrial.tracks.interchange.commands.import_results import next_steps, read_scales, show_imports
from fairtrial.tracks.interchange.import_sessions import import_logs
from fairtrial.tracks.interchange.session_cases import write_session_cases

if TYPE_CHECKING:
    from fairtrial.tracks.interchange.import_results import Import
    from fairtrial.tracks.interchange.options import GroupBy
    from fairtrial.tracks.interchange.session_cases import Expecting


def import_sessions(
    files: tuple[Path, ...],
    form: str | None,
    group_by: GroupBy | None,
    score: str | None,
    scales: tuple[str, ...],
    as_cases: Path | None,
    expected: Expecting | None,
    redact: tuple[str, ...],
    force: bool,
    store: str | None,
    as_json: bool,
) -> None:
    """Import logs of sessions as runs, or write what users asked as the cases of a suite."""
    tune_garbage_collector()
    if as_cases is not None:
        _write_cases(files, as_cases, form, expected, redact, force=force, as_json=as_json)
        return
    given = [name for name, value in (("--expected", expected), ("--redact", redact), ("--force", force)) if value]
    if given:
        raise click.UsageError(f"{', '.join(given)} goes with --as-cases FILE: it is for cases, not for a run")
    done = import_logs(files, store=Store(store), form=form, group_by=group_by, score=score, scales=read_scales(scales))
    show_imports(done, [in_store(line) for line in _next_steps(done)], as_json=as_json)


def _next_steps(done: Sequence[Import]) -> list[str]:
    """Return the commands that come next: without scores there is nothing to compare yet."""
    bare = [one.run.id for one in done if not one.origin.get("metric")]
    scored = [one for one in done if one.run.id not in bare]
    return [*(f"fairtrial show {name} --trials" for name in dict.fromkeys(bare)), *next_steps(scored)]


def _write_cases(
    files: tuple[Path, ...],
    output: Path,
    form: str | None,
    expected: Expecting | None,
    redact: tuple[str, ...],
    *,
    force: bool,
    as_json: bool,
) -> None:
    written = write_session_cases(files, output, form=form, expected=expected, redact=redact, force=force)
    if as_json:
        document = {"suite": str(written.path), "cases": written.cases, "notes": written.lines}
        print_json({"schema_version": SCHEMA_VERSION, **document})
        return
    click.echo(f"written: {written.path} ({counted(written.cases, 'case')})", err=True)
    for line in written.lines:
        click.echo(f"  {line}", err=True)
