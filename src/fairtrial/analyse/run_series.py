"""Several runs of one plan, as users hold them in Python."""

from __future__ import annotations

from fairtrial.analyse.run import Run
from fairtrial.core.showing import Shown


class RunSeries(Shown, list[Run]):
    """Several runs of one plan; everything that takes runs takes a series."""

    @property
    def id(self) -> str:
        """The id of the series."""
        return self[0].record.series_id or self[0].id
