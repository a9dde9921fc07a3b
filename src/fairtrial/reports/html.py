"""HTML: a run as one self-contained file: who leads and how sure that is, figures, every answer, then details."""

from __future__ import annotations

from typing import IO

from fairtrial.analyse.run import Run
from fairtrial.reports.html_answers import check_size, pack
from fairtrial.reports.html_pages import pages
from fairtrial.reports.html_render import render
from fairtrial.reports.html_result import own_parts, result_of


def write(run: Run, file: IO[str]) -> None:
    """Write the whole page."""
    check_size(run)
    result = result_of(run)
    packed = pack(run, result.order)
    file.write(
        render(
            "report.html.j2",
            **result.values,
            title=f"{result.summary.suite}: {result.headline}",
            **own_parts(pages(run)),
            index=packed.cases,
            pieces=packed.pieces,
            piece_files=[],
            cut=packed.cut,
        )
    )
