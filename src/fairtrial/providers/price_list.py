"""The list of prices, `genai-prices`: the one that is installed, or a newer one that was fetched."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from fairtrial.core.errors import FairtrialError
from fairtrial.core.folders import cache_folder
from fairtrial.providers.retirement import today

if TYPE_CHECKING:
    from genai_prices.data_snapshot import DataSnapshot

ADDRESS = "https://raw.githubusercontent.com/pydantic/genai-prices/refs/heads/main/prices/new_data/v2/data.json"
VARIABLE = "FAIRTRIAL_PRICES_URL"


class Fetched(msgspec.Struct, frozen=True, kw_only=True):
    """A list that was fetched; it counts as long as the package is the one that could read it."""

    checked: str
    source: str
    sha256: str
    package: str
    providers: list[dict[str, Any]]


@cache
def price_list() -> DataSnapshot:
    """Return the list that counts."""
    from genai_prices.data_snapshot import DataSnapshot, get_snapshot

    kept = fetched_list()
    return DataSnapshot(parsed(kept.providers), from_auto_update=True) if kept else get_snapshot()


@cache
def fetched_list() -> Fetched | None:
    """Return the list that was fetched; None if there is none, or one for another version of the package."""
    path = kept_prices()
    if path is None or not path.is_file():
        return None
    try:
        kept = msgspec.json.decode(path.read_bytes(), type=Fetched)
        parsed(kept.providers)
    except (msgspec.MsgspecError, ValueError, OSError) as error:
        reason = " ".join(str(error).split())[:200]
        raise FairtrialError(f"{path} is not a list of prices: {reason}; remove it, or fetch it again") from None
    return kept if kept.package == package() else None


def kept_prices() -> Path | None:
    """Return where a list that was fetched is kept; None without a home folder."""
    try:
        return cache_folder() / "prices" / "genai-prices.json"
    except RuntimeError:
        return None


def package() -> str:
    """Return the version of the package."""
    return version("genai-prices")


def parsed(providers: Any) -> list[Any]:
    """Return the providers of a list as the package has them; raise ValueError if it cannot read them."""
    from genai_prices import types

    return types._providers_from_raw(providers)  # as its own updates do; there is no public way


def newest_price() -> date | None:
    """Return the latest day, until today, from which on a price of the list holds: how old it is at most."""
    return max((day for day in _days() if day <= today()), default=None)


def _days() -> Iterator[date]:
    for provider in price_list().providers:
        for model in provider.models:
            for price in model.prices if isinstance(model.prices, list) else ():
                if isinstance(day := getattr(price.constraint, "start_date", None), date):
                    yield day


def forget() -> None:
    """Read the list anew: its file has changed."""
    price_list.cache_clear()
    fetched_list.cache_clear()
