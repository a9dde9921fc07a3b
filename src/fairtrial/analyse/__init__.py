"""Turn stored rows into results: summaries, comparisons, rankings and gates."""

from fairtrial.analyse.run import Run
from fairtrial.analyse.stored_run import TrialRecord

__all__ = ["Run", "TrialRecord"]
