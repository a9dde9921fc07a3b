"""How many looks a run plans, as its suite and its options say."""

from __future__ import annotations

from fairtrial.config.document import SuiteDocument
from fairtrial.config.run_options import RunOptions
from fairtrial.core.looks import LOOKS


def planned_looks(document: SuiteDocument, options: RunOptions) -> tuple[int, bool]:
    """Return how many looks are planned, 0 for none, and whether arms that lost leave; options come before the suite.

    A race or a gap to look for is a plan with the usual number of looks.
    """
    race = document.race if options.race is None else options.race
    looks = document.looks if options.looks is None else options.looks
    if looks is None:
        wanted = race or options.gap is not None or (document.gap is not None and not options.stop_when)
        looks = LOOKS if wanted else 0
    return looks, race and bool(looks)
