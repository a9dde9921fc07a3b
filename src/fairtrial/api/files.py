"""Runs in files: exports and reports."""

from __future__ import annotations

from pathlib import Path

from fairtrial.analyse.run import Run, as_run
from fairtrial.api.given import AnyRun, AnyRuns, open_given, sources_given
from fairtrial.api.twins import async_twin
from fairtrial.core.errors import FairtrialError
from fairtrial.reports.export import export as write
from fairtrial.reports.formats import format_named
from fairtrial.reports.site import check_address, write_site


def export(run: AnyRun, file: str | Path, *, format: str | None = None, store: str | None = None) -> Path:
    """Write a run to a file by its ending: json, jsonl, csv, parquet, junit.xml, md, html; `format` overrides it."""
    return Path(write(open_given(run, store), str(file), format_named(format) if format else None))


def report(
    run: AnyRuns = "latest",
    file: str | Path = "report.html",
    *,
    site: str | Path | None = None,
    base_url: str = "",
    store: str | None = None,
) -> Path:
    """Write a run as one self-contained HTML page that opens from disk, without a network.

    `site` names a folder instead: static pages of one or more runs, for any static host. `base_url` is their
    future address, for link previews.
    """
    if site is not None:
        check_address(base_url)
        return write_site(
            [as_run(one) for source in sources_given(run, store) for one in source.runs], site, base_url=base_url
        ).folder
    if base_url:
        raise FairtrialError("`base_url` goes with `site`, which names the folder of a site")
    if not isinstance(run, Run | str):
        raise FairtrialError("a report is about one run: `site` writes several")
    if not str(file).lower().endswith(".html"):
        raise FairtrialError(f"{file}: a report must be an .html file; `ft.export` writes other formats")
    return export(run, file, store=store)


aexport = async_twin(export)
areport = async_twin(report)
