"""Mathematics only: arrays in, frozen results out. Nothing here knows what a run is."""

from fairtrial.stats.agreement import Agreement, cohen_kappa, effective_judges, krippendorff_alpha
from fairtrial.stats.correction import Corrected, ppi_mean, rogan_gladen
from fairtrial.stats.one_arm import Aggregate, aggregate

__all__ = [
    "Aggregate",
    "Agreement",
    "Corrected",
    "aggregate",
    "cohen_kappa",
    "effective_judges",
    "krippendorff_alpha",
    "ppi_mean",
    "rogan_gladen",
]
