"""Prompt styles on optimisation problems: problems as data, solved to certified baselines, answers verified."""

from fairtrial.core.registry import Part

PARTS = {
    "scorers": {"optimisation": "scorer:Optimisation"},
    "importers": "importers",
    "suite_kinds": {"optimisation": "suite_kind"},
    "validators": {"problem": "commands.validator"},
    "commands": {
        "optim": Part("commands.optim:command", "Compare prompt styles on optimisation problems."),
        "baseline": Part("commands.baseline:command", "Solve an optimisation problem and certify the solution."),
    },
    "pages": {"optimisation": "pages.styles:OptimisationPages", "solving": "pages.solving:Solving"},
}
