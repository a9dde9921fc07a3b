"""Turn stored rows into results: summaries, comparisons, rankings and gates."""

from fairtrial.analyse.run import Run, TrialRecord

__all__ = ["Run", "TrialRecord"]
