"""From rows to the numbers that people read."""

from fairtrial.analyse.run import Run, TrialRecord
from fairtrial.analyse.summary import ArmSummary, RunSummary

__all__ = ["ArmSummary", "Run", "RunSummary", "TrialRecord"]
