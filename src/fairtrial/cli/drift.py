"""`fairtrial drift`."""

from __future__ import annotations

from rich.text import Text

from fairtrial.analyse.drift import Drift, drift
from fairtrial.analyse.score_table import find_sources
from fairtrial.analyse.units import in_points
from fairtrial.cli.console import Console
from fairtrial.cli.documents import print_json
from fairtrial.cli.start import open_store
from fairtrial.cli.tables import table
from fairtrial.present.words.drift import chart_cells, drift_line, rate_line
from fairtrial.store import Store
from fairtrial.text.printable import printable
from fairtrial.workflows.baselines import facts_of


def show_drift(runs: tuple[str, ...], branch: str | None, store: str | None, as_json: bool) -> int:
    """Print the control chart of every arm."""
    opened = open_store(store)
    names = runs or _names(opened, branch)
    found = drift(find_sources(names, opened)) if names else drift([])
    if as_json:
        print_json(in_points(found))
    else:
        _print(found)
    return 100 if any(arm.alarm is not None and arm.alarm.smoothed < 0 for arm in found.arms) else 0


def _names(store: Store, branch: str | None) -> list[str]:
    """Return the tags, or the ids of a branch's runs, of the suite that was run last, the oldest first."""
    latest = store.find_run("latest")
    own = store.runs_of(latest.suite_name)[::-1]
    if branch is not None:
        return [run.id for run in own if facts_of(run)["branch"] == branch and run.status == "completed"]
    tags = {run_id: name for name, run_id in sorted(store.tags().items(), reverse=True)}
    return list(dict.fromkeys(tags[key] for run in own for key in (run.series_id or run.id, run.id) if key in tags))


def _print(found: Drift) -> None:
    console = Console()
    columns = ("run", "difference", "smoothed", "chance up to", "")
    for arm in found.arms:
        console.print(Text(printable(drift_line(arm)), style="bold"))
        console.print(table(columns, [chart_cells(point) for point in arm.points], names=columns[:1]))
    console.print(Text(rate_line(found), style="dim"))
