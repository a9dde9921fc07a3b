"""The verbs `import_results`, `import_log` and `import_traces`, with their async twins."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from fairtrial.analyse.run import Run
from fairtrial.api.twins import async_twin, sync_twin
from fairtrial.core.errors import FairtrialError
from fairtrial.foreign.results import Columns
from fairtrial.store import Store
from fairtrial.tracks.interchange.import_results import import_all
from fairtrial.tracks.interchange.import_sessions import import_logs
from fairtrial.tracks.interchange.import_traces import TraceOptions, TracesRead
from fairtrial.tracks.interchange.import_traces import import_traces as write_cases


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
    done = await asyncio.to_thread(import_all, data, store=Store(store), format=format, columns=columns, scales=scales)
    runs = list({one.run.id: one.run for one in done}.values())  # attempts at the same task are one
    return runs[0] if len(runs) == 1 else runs


import_results = sync_twin(aimport_results)


async def aimport_log(
    files: Sequence[str | Path] | str | Path,
    *,
    format: str | None = None,
    group_by: Literal["cwd", "branch", "model", "agent", "day"] | None = None,
    score: str | None = None,
    scale: tuple[float, float] | dict[str, tuple[float, float]] | None = None,
    store: str | None = None,
) -> Run | list[Run]:
    """Import logs of agents' sessions as runs: one run, or a list with one for each group.

    `files` are logs or folders with logs. Every session is a trial; its case is its user's first message, its arm the
    agent with its model. `score` names the reward that becomes the score, where logs have several, and `scale` is its
    worst and best value. Importing the same logs again returns the same run.
    """
    scales = scale if isinstance(scale, dict) else {} if scale is None else {"": scale}
    done = await asyncio.to_thread(
        import_logs, files, store=Store(store), form=format, group_by=group_by, score=score, scales=scales
    )
    return done[0].run if len(done) == 1 else [one.run for one in done]


import_log = sync_twin(aimport_log)


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


aimport_traces = async_twin(import_traces)
