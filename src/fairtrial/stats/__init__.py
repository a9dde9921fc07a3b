"""Statistics on arrays, with frozen structs as results. Nothing here depends on runs or the store."""

from fairtrial.stats.agreement import Agreement, cohen_kappa, effective_judges, krippendorff_alpha
from fairtrial.stats.betting import Bets, BettingSequence, betting_sequence
from fairtrial.stats.bootstrap import Bootstrap, bootstrap_ci
from fairtrial.stats.control import ControlledMean
from fairtrial.stats.correction import Corrected, LabelledMean, corrected_mean, corrected_share, lang_reiczigel
from fairtrial.stats.crossed import Between, CrossedMean, between_columns
from fairtrial.stats.interaction import Interaction, interaction
from fairtrial.stats.many import holm, holm_levels
from fairtrial.stats.mean import Mean
from fairtrial.stats.one_arm import Aggregate, aggregate
from fairtrial.stats.paired import (
    Equivalence,
    McNemar,
    Paired,
    equivalence,
    mcnemar,
    mean_difference,
    paired,
    sign_flip,
    superiority,
    wilcoxon,
)
from fairtrial.stats.pairs import Orders, both_orders
from fairtrial.stats.passes import pass_at_k, pass_hat_k
from fairtrial.stats.planning import cases_for_equivalence, cases_for_gate, chance_to_see, detectable, power
from fairtrial.stats.ratings import Gap, Ratings, bradley_terry, elo
from fairtrial.stats.runs import (
    AnswersTest,
    MultiRunStats,
    PairedRunsTest,
    RunMeansTest,
    answers_test,
    effect_words,
    multi_run,
    paired_runs_test,
    run_means_test,
)
from fairtrial.stats.sequence import Sequence, confidence_sequence
from fairtrial.stats.variance import Components, variance_components, variance_of_repeats

__all__ = [
    "Aggregate",
    "Agreement",
    "AnswersTest",
    "Bets",
    "BettingSequence",
    "Between",
    "Bootstrap",
    "Components",
    "ControlledMean",
    "Corrected",
    "CrossedMean",
    "Equivalence",
    "Gap",
    "Interaction",
    "LabelledMean",
    "McNemar",
    "Mean",
    "MultiRunStats",
    "Orders",
    "Paired",
    "PairedRunsTest",
    "Ratings",
    "RunMeansTest",
    "Sequence",
    "aggregate",
    "answers_test",
    "betting_sequence",
    "between_columns",
    "bootstrap_ci",
    "both_orders",
    "bradley_terry",
    "cases_for_equivalence",
    "cases_for_gate",
    "chance_to_see",
    "cohen_kappa",
    "confidence_sequence",
    "corrected_mean",
    "corrected_share",
    "detectable",
    "effect_words",
    "effective_judges",
    "elo",
    "equivalence",
    "holm",
    "holm_levels",
    "interaction",
    "krippendorff_alpha",
    "lang_reiczigel",
    "mcnemar",
    "mean_difference",
    "multi_run",
    "paired",
    "paired_runs_test",
    "pass_at_k",
    "pass_hat_k",
    "power",
    "run_means_test",
    "sign_flip",
    "superiority",
    "variance_components",
    "variance_of_repeats",
    "wilcoxon",
]
