"""Families of problems from practice, one per file, told as stories: `NAME.py` draws the numbers, `NAME.yaml` has the
stories."""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from pathlib import Path

import msgspec

from fairtrial.core.errors import FairtrialError
from fairtrial.tracks.optimisation.domains.model import Model
from fairtrial.tracks.optimisation.domains.story import Story
from fairtrial.tracks.optimisation.draws import Draws

# What `--n` counts.
DOMAINS = {
    "knapsack": "things to choose from",
    "bin_packing": "things to pack into boxes that are hired",
    "scheduling": "jobs, on two or three machines that differ in speed",
    "staffing": "days of a rota that repeats",
    "routing": "places on a round trip",
    "assignment": "people, and as many tasks",
    "transport": "customers, and about half as many warehouses",
    "blending": "ingredients of a mix",
    "portfolio": "assets to invest in",
}
GROUPS = {"packing": ("knapsack", "bin_packing")}
_SMALLEST, _LARGEST = 3, 60


def draw_model(domain: str, n: int, seed: int, number: int) -> Model:
    """Return the mathematics of one instance."""
    if not _SMALLEST <= n <= _LARGEST:
        raise FairtrialError(f"{domain} comes in sizes from {_SMALLEST} to {_LARGEST} ({DOMAINS[domain]}), not {n}")
    model: Model = import_module(f"fairtrial.tracks.optimisation.domains.{domain}").draw(
        n, Draws(domain, n, seed, number)
    )
    return model


@lru_cache
def stories(domain: str) -> tuple[Story, ...]:
    """Return the stories of a family."""
    path = Path(__file__).parent / f"{domain}.yaml"
    return tuple(msgspec.yaml.decode(path.read_bytes(), type=list[Story]))
