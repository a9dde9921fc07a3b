"""From a suite to trials: lazily, purely."""

from fairtrial.plan.trials import trials_of

__all__ = ["trials_of"]
