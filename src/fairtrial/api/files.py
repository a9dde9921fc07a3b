"""Into and out of files: exports, reports, results and traces of other tools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from fairtrial.analyse import Run
from fairtrial.api.given import AnyRun, AnyRuns, open_given, sources_given
from fairtrial.api.waiting import twin, waiting
from fairtrial.core.errors import FairtrialError
from fairtrial.store import Store

if TYPE_CHECKING:
    from fairtrial.tracks.interchange.import_traces import TracesRead


def export(run: AnyRun, file: str | Path, *, format: str | None = None, store: str | None = None) -> Path:
    """Write a run to a file by its ending: json, jsonl, csv, parquet, junit.xml, md, html; `format` says another."""
    from fairtrial.reports.export import export as write
    from fairtrial.reports.formats import format_named

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

    `site` names a folder instead: static pages of one or more runs, for any web space. `base_url` says where they will
    be, so that links to them have a picture.
    """
    if site is not None:
        from fairtrial.reports.site import check_address, write_site

        check_address(base_url)
        return write_site(
            [one for source in sources_given(run, store) for one in source.runs], site, base_url=base_url
        ).folder
    if base_url:
        raise FairtrialError("`base_url` goes with `site`, which names the folder of a site")
    if not isinstance(run, Run | str):
        raise FairtrialError("a report is about one run: `site` writes several")
    if not str(file).lower().endswith(".html"):
        raise FairtrialError(f"{file}: a report must be an .html file; `ft.export` writes other formats")
    return export(run, file, store=store)


async def aimport_results(
    data: Any,
    *,
    format: str | None = None,
    case: str | None = None,
    arm: str | None = None,
    score: str | None = None,
    repeat: str | None = None,
    category: str | None = None,
    difficulty: str | None = None,
    cluster: str | None = None,
    cost: str | None = None,
    latency: str | None = None,
    input: str | None = None,
    expected: str | None = None,
    answer: str | None = None,
    scale: tuple[float, float] | dict[str, tuple[float, float]] | None = None,
    store: str | None = None,
) -> Run | list[Run]:
    """Import results of another tool as runs: one run, or a list if there are several.

    `data` is a file, a folder, a list of them, or a data frame. In a table, `case`, `arm`, `score` and so on name its
    columns; in a log, `score` names the metric that becomes the score. `scale` is the worst and best value of the
    score, or of several metrics by name. Importing the same data again returns the same run.
    """
    from fairtrial.tracks.interchange.import_results import aimport_results as import_all
    from fairtrial.tracks.interchange.results import Columns

    columns = Columns(
        case=case,
        arm=arm,
        score=score,
        repeat=repeat,
        category=category,
        difficulty=difficulty,
        cluster=cluster,
        cost=cost,
        latency=latency,
        input=input,
        expected=expected,
        answer=answer,
    )
    scales = scale if isinstance(scale, dict) else {} if scale is None else {"": scale}
    done = await import_all(data, store=Store(store), format=format, columns=columns, scales=scales)
    runs = list({one.run.id: one.run for one in done}.values())  # attempts at the same task are one
    return runs[0] if len(runs) == 1 else runs


import_results = waiting(aimport_results, "import_results")


def import_traces(
    files: Sequence[str | Path] | str | Path,
    output: str | Path = "suite.yaml",
    *,
    where: Mapping[str, Any] | None = None,
    by: Literal["call", "trace", "session"] = "call",
    sample: int | None = None,
    seed: int = 0,
    expected: str | None = None,
    redact: Sequence[str] = (),
    form: str | None = None,
    target: str | None = None,
) -> TracesRead:
    """Turn recorded calls (OTLP, Langfuse, Logfire) into a suite or a dataset; returns what was read and left out.

    The options are those of `fairtrial import traces`.
    """
    from fairtrial.tracks.interchange.import_traces import TraceOptions
    from fairtrial.tracks.interchange.import_traces import import_traces as write_cases

    options = TraceOptions(
        where={**(where or {})},
        by=by,
        sample=sample,
        seed=seed,
        expected=expected,
        redact=tuple(redact),
        form=form,
        target=target,
    )
    try:
        msgspec.convert(msgspec.to_builtins(options), TraceOptions)
    except msgspec.ValidationError as error:
        raise FairtrialError(f"import_traces: {error}") from None
    paths = [files] if isinstance(files, str | Path) else list(files)
    return write_cases(paths, output, options)


aexport = twin(export, "aexport")
areport = twin(report, "areport")
aimport_traces = twin(import_traces, "aimport_traces")
