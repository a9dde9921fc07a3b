"""The models that are named as examples, one table for documentation, templates, pages, messages and `doctor`."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import msgspec

TABLE = Path(__file__).parent / "models.yaml"


class NamedModel(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A model that is named as an example."""

    target: str  # PROVIDER:MODEL
    before: tuple[str, ...] = ()  # names that stood in its place, and are replaced by it wherever they still stand
    ping: tuple[str, ...] = ()  # the providers that `doctor` greets with it

    @property
    def provider(self) -> str:
        """The provider in its name."""
        return self.target.partition(":")[0]

    @property
    def model(self) -> str:
        """Its name without the provider."""
        return self.target.partition(":")[2]


@cache
def named_models() -> dict[str, NamedModel]:
    """Return the models that are named as examples, by what they are an example of."""
    import yaml

    return msgspec.convert(yaml.safe_load(TABLE.read_text("utf-8")), dict[str, NamedModel])


def model_to_ping(provider: str) -> str:
    """Return the model with which to try a provider; empty if the table has none."""
    return next((one.model for one in named_models().values() if provider in one.ping), "")
