"""Mathematics only: arrays in, frozen results out. Nothing here knows what a run is."""

from fairtrial.stats.agreement import Agreement, cohen_kappa, effective_judges, krippendorff_alpha
from fairtrial.stats.betting import Bets, BettingSequence, betting_sequence
from fairtrial.stats.bootstrap import Bootstrap, bootstrap_ci
from fairtrial.stats.correction import Corrected, ppi_mean, rogan_gladen
from fairtrial.stats.interaction import Interaction, interaction
from fairtrial.stats.many import holm
from fairtrial.stats.one_arm import Aggregate, aggregate
from fairtrial.stats.paired import (
    Equivalence,
    McNemar,
    Paired,
    equivalence,
    mcnemar,
    paired,
    sign_flip,
    superiority,
    wilcoxon,
)
from fairtrial.stats.pairs import Orders, both_orders
from fairtrial.stats.planning import detectable, power
from fairtrial.stats.ratings import Ratings, bradley_terry, elo
from fairtrial.stats.runs import MultiRunStats, RunMeansTest, effect_words, multi_run, run_means_test
from fairtrial.stats.sequence import Sequence, confidence_sequence
from fairtrial.stats.variance import Components, variance_components

__all__ = [
    "Aggregate",
    "Agreement",
    "Bets",
    "BettingSequence",
    "Bootstrap",
    "Components",
    "Corrected",
    "Equivalence",
    "Interaction",
    "McNemar",
    "MultiRunStats",
    "Orders",
    "Paired",
    "Ratings",
    "RunMeansTest",
    "Sequence",
    "aggregate",
    "betting_sequence",
    "bootstrap_ci",
    "both_orders",
    "bradley_terry",
    "cohen_kappa",
    "confidence_sequence",
    "detectable",
    "effect_words",
    "effective_judges",
    "elo",
    "equivalence",
    "holm",
    "interaction",
    "krippendorff_alpha",
    "mcnemar",
    "multi_run",
    "paired",
    "power",
    "ppi_mean",
    "rogan_gladen",
    "run_means_test",
    "sign_flip",
    "superiority",
    "variance_components",
    "wilcoxon",
]
