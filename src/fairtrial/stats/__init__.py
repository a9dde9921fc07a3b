"""Mathematics only: arrays in, frozen results out. Nothing here knows what a run is."""

from fairtrial.stats.agreement import Agreement, cohen_kappa, effective_judges, krippendorff_alpha
from fairtrial.stats.correction import Corrected, ppi_mean, rogan_gladen
from fairtrial.stats.one_arm import Aggregate, aggregate
from fairtrial.stats.paired import Paired, paired
from fairtrial.stats.pairs import Orders, both_orders

__all__ = [
    "Aggregate",
    "Agreement",
    "Corrected",
    "Orders",
    "Paired",
    "aggregate",
    "both_orders",
    "cohen_kappa",
    "effective_judges",
    "krippendorff_alpha",
    "paired",
    "ppi_mean",
    "rogan_gladen",
]
