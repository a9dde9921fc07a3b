"""Token prices: the suite's own first, then those of the model sheet, then those of `genai-prices`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from fairtrial.core.answer import Usage
from fairtrial.core.experiment import TargetSpec
from fairtrial.core.providers import known_providers, provider_at
from fairtrial.core.settings import PriceSpec
from fairtrial.core.target import Target
from fairtrial.providers.sheet import sheet_of

_MILLION = 1_000_000
_UNLISTED = frozenset(
    {"python", "command", "http", "https"}
)  # the user's own programs: the list, slow to load, has none of them


class Rate(msgspec.Struct, frozen=True, kw_only=True):
    """USD per token, for prompts of more than `above` tokens."""

    above: int = 0
    prompt: float = 0.0
    completion: float = 0.0
    cache_read: float = 0.0
    cache_write: float = 0.0
    cache_write_1h: float | None = None  # if it has a price of its own

    def times(self, part: float) -> Rate:
        """Return a part of these rates."""
        prices = {
            name: usd for name, usd in msgspec.structs.asdict(self).items() if name != "above" and usd is not None
        }
        return msgspec.structs.replace(self, **{name: part * usd for name, usd in prices.items()})


class Price(msgspec.Struct, frozen=True):
    """A target's rates by prompt length."""

    rates: tuple[Rate, ...]

    def cost(self, usage: Usage, calls: int = 1) -> float:
        """Return the cost of a call, or of several together: long prompts may cost more, and each call has its own."""
        longest = usage.prompt / max(1, calls)
        rate = next((r for r in reversed(self.rates) if longest > r.above), self.rates[0])
        plain = usage.prompt - usage.cache_read - usage.cache_write
        for_an_hour = usage.cache_write_1h if rate.cache_write_1h is not None else 0
        return (
            plain * rate.prompt
            + usage.cache_read * rate.cache_read
            + (usage.cache_write - for_an_hour) * rate.cache_write
            + for_an_hour * (rate.cache_write_1h or 0.0)
            + usage.completion * rate.completion
        )

    def times(self, part: float) -> Price:
        """Return a part of this price, as for a batch."""
        if self is FREE:
            return self
        return Price(tuple(rate.times(part) for rate in self.rates))

    def most(self, prompt_tokens: int, completion_tokens: int) -> float:
        """Return the maximum cost of a call of this size."""
        prompt = max(max(rate.prompt, rate.cache_write, rate.cache_write_1h or 0.0) for rate in self.rates)
        completion = max(rate.completion for rate in self.rates)
        return prompt_tokens * prompt + completion_tokens * completion


FREE = Price((Rate(),))


def price_of_target(target: Target | type[Target], spec: TargetSpec, own: Mapping[str, PriceSpec]) -> Price | None:
    """Return the price of what a target is asked, or None if it is unknown; what costs nothing may have a price too."""
    return find_price(spec, own) if target.priced else stated_price(spec, own) or FREE


def find_price(spec: TargetSpec, own: Mapping[str, PriceSpec]) -> Price | None:
    """Return the price of a target's tokens, or None if it is unknown."""
    stated = stated_price(spec, own)
    if stated is not None or _is_local(spec.provider):
        return stated or FREE
    sheet = sheet_of(spec.provider, spec.model)
    if sheet.prices is not None:
        return _price_of(sheet.prices)
    listed = _listed_price(spec)
    return _price_of(sheet.other_prices) if listed is None and sheet.other_prices is not None else listed


def _is_local(provider: str) -> bool:
    """Return whether there is no bill: Ollama, vLLM and the like run on the user's own machines."""
    known = known_providers().get(provider)
    return known is not None and known.local


def stated_price(spec: TargetSpec, own: Mapping[str, PriceSpec]) -> Price | None:
    """Return the price that the suite states for a target, or None."""
    for name in (spec.id, f"{spec.provider}:{spec.model}", f"{spec.provider}/{spec.model}", spec.model):
        if name in own:
            return _price_of(own[name])
    return None


def _price_of(price: PriceSpec) -> Price:
    if not price.input and not price.output:
        return FREE  # it costs nothing, whether or not it reports token counts
    rate = Rate(
        prompt=price.input / _MILLION,
        completion=price.output / _MILLION,
        cache_read=(price.input if price.cache_read is None else price.cache_read) / _MILLION,
        cache_write=(price.input if price.cache_write is None else price.cache_write) / _MILLION,
    )
    return Price((rate,))


def _listed_price(spec: TargetSpec) -> Price | None:
    if spec.provider in _UNLISTED:
        return None
    from datetime import UTC, datetime

    from fairtrial.providers.price_list import price_list  # a list of 5,000 models: only what the sheet lacks needs it

    # A server of the suite at a provider's own address, with headers or another key, has that provider's prices.
    provider = spec.provider if spec.provider in known_providers() else provider_at(spec.base_url) or spec.provider
    try:
        _, model = price_list().find_provider_model(*listed_name(provider, spec.model), None)
        listed = model.get_prices(datetime.now(UTC))
    except LookupError:
        return None
    rates = tuple(_rate(listed, above) for above in _thresholds(listed))
    return Price(rates) if any(rate.prompt or rate.completion for rate in rates) else None


def listed_name(provider: str, model: str) -> tuple[str, None, str]:
    """Return a model's name and provider as the price list has them."""
    if provider == "huggingface" and ":" in model:  # `model:provider`, at that provider's price
        model, _, served_by = model.rpartition(":")
        return model, None, f"huggingface_{served_by}"
    known = known_providers().get(provider)
    return model, None, (known.prices if known else "") or provider


def _thresholds(listed: Any) -> list[int]:
    tiers = [getattr(value, "tiers", ()) for value in (listed.input_mtok, listed.output_mtok)]
    return sorted({0, *(tier.start for group in tiers for tier in group)})


def _rate(listed: Any, above: int) -> Rate:
    prompt = _per_token(listed.input_mtok, above)
    long = getattr(listed, "cache_write_1h_mtok", None)
    return Rate(
        above=above,
        prompt=prompt,
        completion=_per_token(listed.output_mtok, above),
        cache_read=_per_token(listed.cache_read_mtok, above) if listed.cache_read_mtok is not None else prompt,
        cache_write=_per_token(listed.cache_write_mtok, above) if listed.cache_write_mtok is not None else prompt,
        cache_write_1h=_per_token(long, above) if long is not None else None,
    )


def _per_token(price: Any, above: int) -> float:
    """Convert a price per million tokens, flat or tiered, to USD per token."""
    if price is None:
        return 0.0
    value = getattr(price, "base", price)
    for tier in getattr(price, "tiers", ()):
        if above >= tier.start:
            value = tier.price
    return float(value) / _MILLION
