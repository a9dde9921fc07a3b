"""A run, and several runs of one plan, as users hold them in Python: what the store has, and what follows from it."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal, overload

import msgspec

from fairtrial.analyse.stored_run import StoredRun, TrialRecord
from fairtrial.core.errors import FairtrialError, NotInstalledError
from fairtrial.core.showing import Shown

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

    from fairtrial.analyse.kind_means import KindMeans
    from fairtrial.analyse.summary import ArmSummary, RunSummary


def as_run(run: StoredRun) -> Run:
    """Return a stored run with all that follows from it."""
    return run if isinstance(run, Run) else Run(run.store, run.record)


class Run(Shown, StoredRun):
    """A stored run; it can be read while it is running and at any time later."""

    def by(self, kind: str | None = None) -> KindMeans:
        """Return means by kind of case: `run.by("category")`, or `difficulty`, `tag`, or a column of the dataset.

        Without a name, by every category, difficulty and tag. Scores are 0–1.
        """
        from fairtrial.analyse.kind_means import by_kind  # numpy: not needed to make a run, only to read it

        return by_kind(self, kind)

    def summary(self, baseline: str | None = None) -> RunSummary:
        """Summarise the run as it is now; lifts are over the condition `baseline`, or over the first one."""
        from fairtrial.analyse.summary import summarise  # likewise

        return summarise(self, baseline)

    @property
    def arms(self) -> list[ArmSummary]:
        """Return the summary of every arm."""
        return self.summary().arms

    @overload
    def frame(self, library: Literal["pandas"] | None = None) -> pd.DataFrame: ...
    @overload
    def frame(self, library: Literal["polars"]) -> pl.DataFrame: ...
    def frame(self, library: Literal["pandas", "polars"] | None = None) -> pd.DataFrame | pl.DataFrame:
        """Return every trial as a row of a data frame: scores are 0–1, repeats count from 1, times are UTC.

        Of pandas, or of polars if that is asked for or alone is installed. Polars has mappings as JSON text.
        """
        installed = [one for one in ("pandas", "polars") if find_spec(one)]
        name: str = library or next(iter(installed), "pandas")
        if name not in installed and library is not None:
            raise FairtrialError(f"{library} is not installed: pip install {library}")
        if name not in installed:
            raise NotInstalledError("run.frame()", "frame")
        rows = [msgspec.structs.asdict(trial) for trial in self.trials()]
        return self._polars(rows) if name == "polars" else self._pandas(rows)

    def _pandas(self, rows: list[dict[str, Any]]) -> pd.DataFrame:
        import pandas as pd

        frame = pd.DataFrame(rows, columns=list(TrialRecord.__struct_fields__))
        frame["started_at"] = pd.to_datetime(frame["started_at"].astype(float), unit="s", utc=True)
        return frame

    def _polars(self, rows: list[dict[str, Any]]) -> pl.DataFrame:
        import polars as pl

        def cell(value: Any) -> Any:
            return msgspec.json.encode(value).decode() if isinstance(value, dict | tuple) else value

        plain = [{name: cell(value) for name, value in row.items()} for row in rows]
        frame = pl.DataFrame(plain, infer_schema_length=None)
        if not rows:
            return pl.DataFrame({name: [] for name in TrialRecord.__struct_fields__})
        started = pl.from_epoch((pl.col("started_at") * 1e6).cast(pl.Int64), time_unit="us")
        return frame.with_columns(started.dt.replace_time_zone("UTC").alias("started_at"))


class RunSeries(Shown, list[Run]):
    """Several runs of one plan; everything that takes runs takes a series."""

    @property
    def id(self) -> str:
        """The id of the series."""
        return self[0].record.series_id or self[0].id
