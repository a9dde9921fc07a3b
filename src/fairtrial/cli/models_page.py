"""What `fairtrial models` prints: providers, models, one model with who says what about it, and what was fetched."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any, Literal

import msgspec
from rich.table import Table
from rich.text import Text

from fairtrial.cli.console import Console
from fairtrial.cli.layout import QUIET, print_wrapped
from fairtrial.core.providers import api_providers
from fairtrial.core.settings import PriceSpec
from fairtrial.providers import models, price_list
from fairtrial.providers.models import KnownModel
from fairtrial.providers.reasoning import Thinking
from fairtrial.providers.refresh import Refreshed
from fairtrial.providers.retirement import Retirement, in_words, retirement, today
from fairtrial.providers.sheet import (
    Fact,
    Layer,
    facts_about,
    has_user_file,
    refreshed_layers,
    sheet_of,
    shipped_on,
    user_file,
)
from fairtrial.text.printable import counted

_SHOWN = 3  # names of models in a line about a list
_NUMBERS = ("window", "in", "out", "cached", "models")


def _table(*columns: str) -> Table:
    table = Table(box=None, padding=(0, 1), header_style="bold")
    for column in columns:
        numbers = column in _NUMBERS
        justify: Literal["left", "right"] = "right" if numbers else "left"
        table.add_column(
            column, justify=justify, no_wrap=numbers or column == "model", overflow="fold", min_width=len(column)
        )
    return table


# -- providers and their models ------------------------------------------------------------------


def print_providers(rows: Sequence[tuple[str, bool, tuple[str, ...], int, bool]]) -> None:
    """Print the providers, whether they can be used, and what they need."""
    table = _table("provider", "", "models", "needs")
    for name, ready, _, count, local in rows:
        provider = api_providers()[name]
        needed = provider.needed or provider.signs_in or provider.addresses[:1]
        table.add_row(name, "local" if local else "ready" if ready else "", str(count or ""), " ".join(needed))
    console = Console()
    console.print(table)
    _print_ages(console)


def print_models(found: Sequence[KnownModel]) -> None:
    """Print the models of a provider."""
    table = _table("model", "window", "in", "out", "cached", "parameters")
    for model in sorted(found, key=lambda model: model.name):
        window = f"{model.context // 1000}k" if model.context else ""
        prices = (model.input_usd, model.output_usd, model.cache_read_usd)
        table.add_row(model.name.partition(":")[2], window, *map(_usd, prices), models.takes(model.name))
    console = Console()
    console.print(table)
    _print_ages(console)


def _usd(price: float | None) -> str:
    return "" if price is None else f"{price:g}"


# -- how old it is -------------------------------------------------------------------------------


def ages() -> dict[str, Any]:
    """Return the days of everything that is known about models, for a document."""
    newest = price_list.newest_price()
    fetched = price_list.fetched_list()
    prices = {"package": f"genai-prices {price_list.package()}", "newest_price": newest and newest.isoformat()}
    if fetched is not None:
        prices |= {"refreshed": fetched.checked, "source": fetched.source, "sha256": fetched.sha256}
    fields = ("checked", "source", "sha256")
    refreshed = [
        {"list": layer.file, **{name: getattr(layer.rows, name) for name in fields}} for layer in refreshed_layers()
    ]
    own = str(user_file()) if has_user_file() else None
    return {"sheet": {"shipped": shipped_on(), "refreshed": refreshed, "yours": own}, "price_list": prices}


def _print_ages(console: Console) -> None:
    for line in age_lines():
        print_wrapped(console, line, QUIET)


def age_lines(*, advice: bool = True) -> Iterator[str]:
    """Yield how old the sheet and the price list are, in words."""
    parts = [f"shipped, {_age(shipped_on())}"]
    by_day: dict[str, list[str]] = {}
    for layer in refreshed_layers():
        by_day.setdefault(layer.rows.checked, []).append(layer.file)
    parts += [f"refreshed, {_age(day)} ({', '.join(files)})" for day, files in sorted(by_day.items())]
    parts += [f"yours, {user_file()}"] if has_user_file() else []
    yield f"Models: {'; '.join(parts)}."
    fetched, newest = price_list.fetched_list(), price_list.newest_price()
    where = f"refreshed, {_age(fetched.checked)}" if fetched else f"genai-prices {price_list.package()}"
    yield f"Prices: {where}{f'; the newest of them, {_age(newest.isoformat())}' if newest else ''}."
    if advice and not fetched and not by_day:
        yield "`fairtrial models --refresh` fetches what is newer."


def newest_day() -> date:
    """Return the day of the newest list of models."""
    return date.fromisoformat(max(shipped_on(), *(layer.rows.checked for layer in refreshed_layers()), ""))


def _age(day: str) -> str:
    """Return a day with how long ago it is."""
    when = date.fromisoformat(day)
    days = (today() - when).days
    ago = "today" if days <= 0 else f"{counted(days, 'day')} ago"
    return f"{in_words(when)} ({ago})"


# -- what was fetched ----------------------------------------------------------------------------


def print_refreshed(found: Sequence[Refreshed]) -> None:
    """Print what came of each list, where it is kept, and how old the rest is."""
    console = Console()
    table = Table(box=None, padding=(0, 1), show_header=False)
    for one in found:
        table.add_row(one.name, _outcome(one))
    console.print(table)
    folders = sorted({str(Path(one.kept).parent) for one in found if one.kept})
    console.print()
    if folders:
        print_wrapped(console, f"Kept in {' and '.join(folders)}.")
    else:
        print_wrapped(console, "Nothing could be read: what was known before still holds.")
    for line in age_lines(advice=False):
        print_wrapped(console, line, QUIET)


def _outcome(one: Refreshed) -> str:
    if one.problem:
        return f"{'not asked' if one.skipped else 'not read'}: {one.problem}"
    changed = [
        f"{len(names)} {what} ({_some(names)})" for names, what in ((one.new, "new"), (one.gone, "gone")) if names
    ]
    if one.ends:
        dated = [f"{model} {day}" for model, day in sorted(one.ends.items(), key=lambda item: item[1], reverse=True)]
        changed.append(f"{counted(len(dated), 'new end date')} ({_some(dated)})")
    return f"{counted(one.models, 'model')}: {', '.join(changed) or 'nothing new'}"


def _some(names: Sequence[str]) -> str:
    rest = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {rest} more" if rest > 0 else "")


# -- what ends -----------------------------------------------------------------------------------


def print_retiring(found: Sequence[Retirement], days: int, suites: Sequence[str]) -> None:
    """Print the models that end: of suites in the words that `validate` and `run` use, all known ones as a table."""
    console = Console()
    if not found:
        what = "these suites" if len(suites) > 1 else suites[0] if suites else "the known models"
        print_wrapped(console, f"Nothing of {what} ends within {counted(days, 'day')}, as far as is known.")
    elif suites:
        for known in found:
            print_wrapped(console, known.line, hang=2)
    else:
        table = _table("model", "ends", "then")
        table.columns[0].no_wrap, table.columns[2].no_wrap = False, True  # long names fold, successors stay whole
        for known in found:
            table.add_row(known.model, _when(known), known.successor or known.served_by)
        console.print(table)
    _print_ages(console)


def _when(known: Retirement) -> str:
    """Return when a model ends, in a few words."""
    if known.ends is not None:
        left = (known.ends - today()).days
        return f"{known.ends}, {counted(left, 'day')}" if left >= 0 else f"{known.ends}, over"
    return f"{known.not_before} or later" if known.not_before else "served by another"


# -- one model -----------------------------------------------------------------------------------


def _yes(value: Any) -> str:
    return "yes" if value else "no"


def _tokens(value: Any) -> str:
    return f"{value:,} tokens"


def _listed(values: Any) -> str:
    return ", ".join(values) or "none"


def _reasoning(value: Any) -> str:
    if value is None:
        return "cannot be set"
    known = msgspec.convert(value, Thinking)
    return f"{known.in_words()}; untold: {known.default}"


def _price(value: Any) -> str:
    known = msgspec.convert(value, PriceSpec)
    cached = f", {known.cache_read:g} cached" if known.cache_read is not None else ""
    return f"{known.input:g} in, {known.output:g} out{cached}"


_WORDS = {"taken": "accepted", "at_rest": "accepted without reasoning", "refused": "refused", "ignored": "ignored"}
# What each field is called, in the order of the page, and how its value is written.
_FIELDS: dict[str, tuple[str, Callable[[Any], str]]] = {
    "ends": ("ends", lambda day: in_words(msgspec.convert(day, date)) if day else "no date known"),
    "not_before": ("ends at the earliest", lambda day: in_words(msgspec.convert(day, date)) if day else "unknown"),
    "successor": ("successor", str),
    "served_by": ("served by", str),
    "context": ("context", _tokens),
    "output": ("longest answer", _tokens),
    "prices": ("price", _price),
    "files": ("files", _listed),
    "reasoning": ("reasoning", _reasoning),
    "thinks": ("reasons untold", _yes),
    "sampling": ("temperature, top_p", lambda word: _WORDS[word]),
    "one_of_sampling": ("only one of them", _yes),
    "refuses": ("refuses", lambda names: _listed(sorted(names))),
    "tools": ("tools", lambda word: _WORDS[word]),
    "forced_tool": ("tool can be forced", _yes),
    "schemas": ("JSON schema", _yes),
    "tools_with_schema": ("tools with a schema", _yes),
    "prefill": ("begun answers", _yes),
    "endpoints": ("only at", _listed),
    "limit_name": ("`max_tokens` is sent as", str),
    "least_tokens": ("least `max_tokens`", str),
    "preamble": ("hidden prompt", lambda value: f"up to {_tokens(value)}"),
    "note": ("note", str),
}


def print_model(provider: str, model: str) -> None:
    """Print everything that is known about a model, and who says so."""
    console, known = Console(), sheet_of(provider, model)
    console.print(Text(f" {provider}:{model}", "bold"))
    ending = retirement(provider, model)
    if ending is not None:
        print_wrapped(console, ending.line)
    if not known.known:
        like = f"it is treated like {known.like}" if known.like else "it is sent what you write"
        print_wrapped(console, f"The sheet does not name it: {like}.")
    console.print()
    table = _table("", "", "says")
    for name, said, by in _said(provider, model):
        table.add_row(name, said, Text(by, QUIET))
    console.print(table)
    console.print()
    print_wrapped(console, f"Other values go into {user_file()}: see the page on models.", QUIET)


def _said(provider: str, model: str) -> Iterator[tuple[str, str, str]]:
    """Yield what is known about a model: the name of each fact, its value, and who says so."""
    chat, responses = (facts_about(provider, model, endpoint) for endpoint in ("chat", "responses"))
    for field, (title, words) in _FIELDS.items():
        if field == "prices":
            yield from _price_rows(provider, model, chat)
        elif field in chat:
            yield title, words(chat[field].value), _by(chat[field].layer)
        other = responses.get(field)
        if other is not None and (field not in chat or other.value != chat[field].value):
            yield f"{title} (Responses)", words(other.value), _by(other.layer)


def _price_rows(provider: str, model: str, facts: Mapping[str, Fact]) -> Iterator[tuple[str, str, str]]:
    """Yield the price that counts: the sheet's own, that of the price list, or that of a public table."""
    listed = listed_model(provider, model)
    own, elsewhere = (facts.get(name) for name in ("prices", "other_prices"))
    if own is None and listed is not None and listed.input_usd is not None:
        fetched = price_list.fetched_list()
        rates = PriceSpec(input=listed.input_usd, output=listed.output_usd or 0.0, cache_read=listed.cache_read_usd)
        by = f"price list, refreshed, {fetched.checked}" if fetched else f"price list {price_list.package()}"
        yield "price", _price(msgspec.to_builtins(rates)), by
    elif said := own or elsewhere:
        yield "price", _price(said.value), _by(said.layer)
    else:
        yield "price", "unknown", ""


def listed_model(provider: str, model: str) -> KnownModel | None:
    """Return a model as the price list has it."""
    return next((one for one in models.of_provider(provider) if one.name.partition(":")[2] == model), None)


def _by(layer: Layer) -> str:
    if layer.origin == "yours":
        return "yours"
    return f"{layer.origin}{f': {layer.file}' if layer.origin == 'refreshed' else ''}, {layer.rows.checked}"


def model_document(provider: str, model: str) -> dict[str, Any]:
    """Return everything that is known about a model, and who says so, as a document."""
    known = sheet_of(provider, model)
    facts = {
        endpoint: {name: _fact_document(fact) for name, fact in facts_about(provider, model, endpoint).items()}
        for endpoint in ("chat", "responses")
    }
    listed = listed_model(provider, model)
    price = {name: getattr(listed, name, None) for name in ("input_usd", "output_usd", "cache_read_usd")}
    ending = retirement(provider, model)
    return {
        "model": f"{provider}:{model}",
        "known": known.known,
        "like": known.like or None,
        "retiring": msgspec.to_builtins(ending),
        "facts": facts,
        "listed_price": price,
        **ages(),
    }


def _fact_document(fact: Fact) -> dict[str, Any]:
    rows = fact.layer.rows
    return {
        "value": fact.value,
        "layer": fact.layer.origin,
        "file": fact.layer.file,
        "checked": rows.checked or None,
        "source": rows.source or None,
    }
