"""`suite: {kind: optimisation}`: problems as cases, and what such suites set unless a file does."""

from __future__ import annotations

from pathlib import Path

import msgspec

from fairtrial.config.document import SuiteDocument, SuiteEntry
from fairtrial.config.source import SuiteSource
from fairtrial.core.experiment import Case

_REPEATS = 5  # randomness and wording are part of what is measured


def cases(entry: SuiteEntry, first: int, folder: Path) -> list[Case]:
    """Return the selected problems as cases; the first one has this position."""
    from fairtrial.tracks.optimisation.cases import problem_cases  # numpy: `validate` of a broken suite does without

    return problem_cases(entry, first, folder)


def with_defaults(source: SuiteSource, document: SuiteDocument) -> SuiteDocument:
    """Ask several times, unless the file says how often."""
    return document if "repeats" in source.value else msgspec.structs.replace(document, repeats=_REPEATS)
