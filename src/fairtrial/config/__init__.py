"""Loading of suite files into a Suite: the same description of a run for YAML, command line and Python."""

from fairtrial.config.judges import embedders_named, judge_named, suite_vars
from fairtrial.config.keys import variables_of
from fairtrial.config.run_options import RunOptions
from fairtrial.config.suite import Suite, load_suite, parse_suite

__all__ = [
    "RunOptions",
    "Suite",
    "embedders_named",
    "judge_named",
    "load_suite",
    "parse_suite",
    "suite_vars",
    "variables_of",
]
