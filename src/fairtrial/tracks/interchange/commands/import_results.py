"""`fairtrial import results`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fairtrial.cli.documents import print_json
from fairtrial.cli.options import in_store
from fairtrial.cli.start import tune_garbage_collector
from fairtrial.foreign.results import Columns
from fairtrial.reports import SCHEMA_VERSION
from fairtrial.store import Store
from fairtrial.text.printable import counted
from fairtrial.tracks.interchange.import_results import import_all

if TYPE_CHECKING:
    from fairtrial.core.score import Scale
    from fairtrial.tracks.interchange.import_results import Import


def import_files(
    files: tuple[Path, ...],
    format_: str | None,
    scales: tuple[str, ...],
    store: str | None,
    as_json: bool,
    **columns: str | None,
) -> None:
    """Import results as runs, and print what became of each file."""
    tune_garbage_collector()
    chosen = Columns(**{name.removeprefix("column_"): value for name, value in columns.items()})
    done = import_all(files, store=Store(store), format=format_, columns=chosen, scales=read_scales(scales))
    show_imports(done, [in_store(line) for line in next_steps(done)], as_json=as_json)


def show_imports(done: Sequence[Import], steps: list[str], *, as_json: bool) -> None:
    """Print what became of each file, and what to do next."""
    if as_json:
        print_json(_document(done, steps))
        return
    for one in done:
        _show(one)
    for line in steps:
        click.echo(f"next: {line}")


def read_scales(texts: Sequence[str]) -> dict[str, Scale]:
    """Read scales such as 1..5 and rating=1..5."""
    scales: dict[str, Scale] = {}
    for text in texts:
        name, _, ends = text.rpartition("=")
        worst, dots, best = ends.partition("..")
        try:
            pair = (float(worst), float(best))
        except ValueError:
            raise click.UsageError(f"--scale {text} is not a scale: write WORST..BEST, such as 1..5") from None
        if not dots or pair[0] == pair[1]:
            raise click.UsageError(f"--scale {text} is not a scale: write WORST..BEST, such as 1..5")
        scales[name] = pair
    return scales


def _show(one: Import) -> None:
    origin, run = one.origin, one.run
    more = f" and {counted(len(one.files) - 2, 'more file')}" if len(one.files) > 2 else ""
    files = ", ".join(one.files[:2]) + more or run.record.suite_name
    if one.happened == "already there":
        click.echo(f"{files}: imported before as run {run.id}; nothing was added")
        return
    if one.happened == "older attempt":
        click.echo(f"{files}: run {run.id} is a newer attempt at the same task; nothing was added")
        return
    arms = ", ".join(arm.name for arm in run.plan_arms[:5])
    tool = f"{origin['tool']} {origin['version']}".strip()
    click.echo(f"run {run.id}: {run.record.suite_name} from {files} ({tool})")
    counts = [f"{counted(run.plan.case_count, 'case')}"]
    counts += [f"{counted(origin['scored'], 'score')} by {origin['metric']}"] if origin["metric"] else []
    counts += [counted(origin["failed"], "failure")] if origin["failed"] else []
    counts += [f"{origin['unscored']} without a score"] if origin["unscored"] else []
    click.echo(f"  {arms}: {', '.join(counts)}")
    if origin["unfinished"]:
        click.echo(f"  unfinished: {origin['unfinished']}; what is there was imported")
    for note in origin["notes"]:
        click.echo(f"  note: {note}")
    if origin["missing"]:
        click.echo(f"  not recorded: {', '.join(origin['missing'])}")
    for name in one.replaced:
        click.echo(f"  replaces run {name}, an earlier attempt at the same task")


def next_steps(done: Sequence[Import]) -> list[str]:
    """Return the commands that say what the results mean."""
    by_suite: dict[str, list[Import]] = {}
    for one in done:
        by_suite.setdefault(one.run.record.suite_name, []).append(one)
    groups = list(by_suite.values())
    arms = [{arm.name for arm in one.run.plan_arms} for one in done]
    if len(done) == 2 and len(groups) == 2 and not arms[0] & arms[1]:
        groups = [list(done)]  # perhaps the same questions under different names
    steps = []
    for group in groups:
        ids = list(dict.fromkeys(one.run.id for one in group))
        many = len(ids) > 1 or len(group[0].run.plan_arms) > 1
        steps.append(f"fairtrial {'compare' if many else 'show'} {' '.join(ids)}")
    return list(dict.fromkeys(steps))


def _document(done: Sequence[Import], steps: list[str]) -> dict[str, Any]:
    runs = [
        {
            "run": one.run.id,
            "suite": one.run.record.suite_name,
            "status": one.run.status,
            "happened": one.happened,
            "arms": [arm.name for arm in one.run.plan_arms],
            "cases": one.run.plan.case_count,
            "replaced": list(one.replaced),
            "origin": one.origin,
        }
        for one in done
    ]
    return {"schema_version": SCHEMA_VERSION, "runs": runs, "next": steps}
