"""Mathematics only: arrays in, frozen results out. Nothing here knows what a run is."""

from fairtrial.stats.one_arm import Aggregate, aggregate

__all__ = ["Aggregate", "aggregate"]
