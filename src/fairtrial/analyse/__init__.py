"""From rows to the numbers that people read."""

from fairtrial.analyse.run import Run, TrialRecord

__all__ = ["Run", "TrialRecord"]
