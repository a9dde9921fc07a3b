"""`fairtrial optim` and `fairtrial baseline`, and the option that both have."""

from collections.abc import Callable
from typing import Any

import click

from fairtrial.cli.options import option


def time_limit_option(text: str) -> Callable[[Any], Any]:
    """Return the option for the seconds that there are for one problem."""
    return option("--time-limit", type=click.FloatRange(min=1), default=60.0, show_default=True, help=text)
