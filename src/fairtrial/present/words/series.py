"""Series as table rows."""

from __future__ import annotations

from fairtrial.analyse.series import MultiRun
from fairtrial.core.formatting import number

SERIES_COLUMNS = ("arm", "runs", "mean", "sd", "95 % CI", "min", "max")


def _bounds(multi: MultiRun) -> str:
    if multi.ci95 is None:
        return "n = 1"
    if multi.std_dev is not None and multi.std_dev < 1e-12:
        return "no run differed"
    return f"{number(multi.ci95[0])} to {number(multi.ci95[1])}"


def series_cells(arm: str, multi: MultiRun) -> list[str]:
    """Return one arm as a table row, in the order of SERIES_COLUMNS."""
    bounds = _bounds(multi)
    spread = number(multi.std_dev)
    return [arm, str(len(multi.scores)), number(multi.mean), spread, bounds, number(multi.min), number(multi.max)]
