"""JSON: every number of the report."""

from __future__ import annotations

from typing import Any

import msgspec

from fairtrial.analyse.units import as_document
from fairtrial.reports import SCHEMA_VERSION
from fairtrial.tracks.optimisation.analysis import MEASURES, OptimisationReport
from fairtrial.tracks.optimisation.methods import citation, methods
from fairtrial.tracks.optimisation.words import headline


def render(report: OptimisationReport) -> str:
    """Return the report as one JSON document."""
    return msgspec.json.format(msgspec.json.encode(document(report)), indent=2).decode() + "\n"


def document(report: OptimisationReport) -> dict[str, object]:
    """Return the report with its headline, methods paragraph and citation; single answers are in the run."""
    numbers = as_document(report)
    del numbers["answers"]
    for arm in numbers["arms"]:
        for part in (arm["overall"], *(part for kinds in arm["by"].values() for part in kinds.values())):
            _add_means(part)
    words = {"headline": headline(report.shown()), "methods": methods(report), "citation": citation(report)}
    return {"schema_version": SCHEMA_VERSION, **words, **numbers}


def _add_means(part: dict[str, Any]) -> None:
    """Add the mean of every measure and of the steps of the format to the cells with deviations and intervals."""
    part["format_steps"] = sum(part["steps"]) if part["steps"] else None
    for measure in MEASURES:
        part[measure.replace(" ", "_")] = part["cells"].get(measure, {}).get("mean")
    for measure in ("normalised_gap", "relative_gap", "absolute_gap"):
        part[f"median_{measure}"] = part["cells"].get(measure, {}).get("median")
