"""Prompt styles on optimisation problems: problems as data, solved to certified baselines, answers verified."""

from fairtrial.core.registry import Part

PARTS = {
    "scorers": {"optimisation": "scorer:Optimisation"},
    "importers": {
        name: Part(f"importers.{name}:{name.capitalize()}", f"Convert the data of {name}, and certify its labels.")
        for name in ("complexor", "industryor", "mamo", "nlp4lp", "optibench")
    },
    "suite_kinds": {"optimisation": "suite_kind"},
    "validators": {"problem": "commands.validator"},
    "commands": {
        "optim": Part("commands.options:optim", "Compare prompt styles on optimisation problems."),
        "baseline": Part("commands.options:baseline", "Solve an optimisation problem and certify the solution."),
    },
    "pages": {"optimisation": "pages.styles:OptimisationPages", "solving": "pages.solving:Solving"},
}
