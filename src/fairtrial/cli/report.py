"""`fairtrial report`."""

from __future__ import annotations

import click

from fairtrial.analyse.run import Run, as_run
from fairtrial.analyse.score_table import find_sources
from fairtrial.cli.finish import check_outputs
from fairtrial.cli.start import open_store
from fairtrial.core.errors import FairtrialError
from fairtrial.reports.export import export
from fairtrial.reports.site import check_address, runs_of_suite, write_site


def write_report(
    runs: tuple[str, ...], output: str | None, site: str | None, suite: str | None, base_url: str, store: str | None
) -> None:
    """Write a run as a page, or runs as a site."""
    if site is None and (suite or base_url):
        raise FairtrialError("--suite and --base-url go with --site, which names the folder of the site")
    if site is not None:
        _write_site(runs, site, suite, base_url, store)
    if output is not None or site is None:
        _write_page(runs, output or "report.html", store)


def _write_page(runs: tuple[str, ...], output: str, store: str | None) -> None:
    if len(runs) > 1:
        raise FairtrialError("a report is about one run: --site DIR writes several")
    if not output.lower().endswith(".html"):
        other = "`fairtrial export RUN -o FILE` writes other formats"
        raise FairtrialError(f"{output}: a report must be an .html file; {other}")
    check_outputs([output])
    run = Run.find(runs[0] if runs else "latest", open_store(store))
    click.echo(f"written: {export(run, output)}", err=True)


def _write_site(names: tuple[str, ...], folder: str, suite: str | None, base_url: str, store: str | None) -> None:
    check_address(base_url)
    opened = open_store(store)
    runs = runs_of_suite(opened, suite) if suite else []
    if names or not suite:
        runs += [as_run(run) for source in find_sources(names, opened) for run in source.runs]
    written = write_site(runs, folder, base_url=base_url)
    click.echo(
        f"written: {written.folder}/index.html ({written.pages} {'page' if written.pages == 1 else 'pages'})", err=True
    )
    for note in written.notes:
        click.echo(f"note: {note}", err=True)
