"""The model sheet: what is known about each model, as data.

One file per vendor in `sheets/`. A file's rows go from the general to the particular: each has a pattern for names, and
all that match are laid over one another, so that a family says once what its members have in common; what differs at
an endpoint is under `at`. On top comes what `fairtrial models --refresh` found, and over that the user's own file.
A model that no particular row names is treated like the newest of its family; one whose family is unknown gets what the
user wrote.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from datetime import date
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Literal

import msgspec

from fairtrial.core.errors import FairtrialError
from fairtrial.core.folders import cache_folder, settings_folder
from fairtrial.core.settings import PriceSpec
from fairtrial.core.types_in_threads import look_into
from fairtrial.providers.reasoning import Thinking

_SHIPPED = Path(__file__).with_name("sheets")
# Before a model's name: `models/`, a router's vendor, a region and the vendor on Bedrock, a fine-tune.
_VENDOR = re.compile(r"^(?:(?:us|us-gov|eu|apac|jp|au|global)\.)?(?:anthropic|openai|mistral|amazon|deepseek|qwen)\.")
_BY_ABILITY = "vision"  # a file about models of all makers
_OF_ROW = frozenset({"model", "name", "providers", "family", "at"})
_DATES = frozenset({"ends", "successor"})  # the facts of public tables that come before what is shipped


class Sheet(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is known about a model, at one endpoint."""

    reasoning: Thinking | None = None  # how it can be told how much to reason
    thinks: bool | None = None  # whether it reasons if nothing is said; None: as `reasoning` says
    # temperature and top_p: whether they are accepted, accepted while it does not reason, refused, or have no effect
    sampling: Literal["taken", "at_rest", "refused", "ignored"] = "taken"
    one_of_sampling: bool = False  # temperature or top_p, not both
    refuses: frozenset[str] = frozenset()  # other parameters
    tools: Literal["taken", "at_rest", "refused"] = "taken"  # functions: in the same words
    forced_tool: bool = True  # whether it can be told which tool to call
    tools_with_schema: bool = True  # whether it accepts tools and a schema for its reply together
    schemas: bool = True  # whether it accepts a JSON schema for its reply
    prefill: bool = True  # whether the last message can be the model's own
    endpoints: tuple[str, ...] = ()  # where it is offered, of `chat` and `responses`; empty: everywhere
    limit_name: str = ""  # the name of `max_tokens`, if it accepts only another one
    least_tokens: int = 1  # that `max_tokens` can be
    context: int | None = None  # tokens
    output: int | None = None  # tokens, at most
    files: tuple[str, ...] = ()  # what it can be given in addition to text
    prices: PriceSpec | None = None  # USD per million tokens, where the price list is wrong or has none
    other_prices: PriceSpec | None = None  # of a public table, used only where no one else has a price
    preamble: int = 0  # tokens, at most, of what its provider or its template puts before every prompt
    ends: date | None = None
    not_before: date | None = None  # it ends on this day at the earliest
    successor: str = ""
    served_by: str = ""  # the model that answers in its place
    note: str = ""
    like: str = ""  # the model that it is taken for, as the sheet does not name it
    known: bool = False  # whether the sheet has a row about it

    @property
    def reasons_untold(self) -> bool:
        """Whether it reasons by default."""
        if self.thinks is not None:
            return self.thinks
        return self.reasoning is not None and self.reasoning.default != "none"


class SheetRows(msgspec.Struct, frozen=True, kw_only=True):
    """A file of the sheet: whose names it knows, and the rows about them.

    A row has a pattern `model`, or in files that were fetched the very `name` of a model and its `providers`.
    """

    models: tuple[dict[str, Any], ...]
    names: str = ""  # a pattern; empty: any model of the provider that the file is named after
    checked: str = ""  # the day
    source: str = ""  # an address
    cheapest: str = ""  # the model to try whether anything answers
    sha256: str = ""  # of what was read there
    public: bool = False  # someone else's table of many providers: it adds what is not known, and dates

    def about(self, model: str, provider: str = "") -> Iterator[dict[str, Any]]:
        """Yield the rows about a model, from the general to the particular."""
        if re.match(self.names, model):
            yield from (row for row in self.models if _is_about(row, model, provider))


def _is_about(row: Mapping[str, Any], model: str, provider: str) -> bool:
    if "name" in row:
        return bool(row["name"] == model) and provider in row.get("providers", (provider,))
    return re.match(row["model"], model) is not None


class Layer(msgspec.Struct, frozen=True):
    """Rows with where they come from: `shipped`, `refreshed` or `yours`."""

    origin: str
    file: str
    rows: SheetRows


look_into(Sheet, SheetRows)  # prices of several targets are found at the same time


class Fact(msgspec.Struct, frozen=True):
    """One thing that the sheet says about a model, and which layer says so."""

    value: Any
    layer: Layer


def sheet_of(provider: str, model: str, endpoint: str = "chat") -> Sheet:
    """Return what is known about a provider's model; names of routers and fine-tunes contain the model's name."""
    return _sheet(provider, plain_model(model), endpoint)


def plain_model(name: str) -> str:
    """Return a model's own name, without what routers, clouds and fine-tunes put before it."""
    return _VENDOR.sub("", name.rsplit("/", 1)[-1].lower().removeprefix("ft:"))


@lru_cache(maxsize=1024)
def maker_of(model: str) -> str:
    """Return who has made a model, as its name says; empty if that is unknown."""
    plain = plain_model(model)
    makers = ((name, rows.names) for name, rows in _files(_SHIPPED).items() if rows.names and name != _BY_ABILITY)
    return next((name for name, names in makers if re.match(names, plain)), "")


def cheapest_of(provider: str) -> str:
    """Return the cheapest model that a new account at a provider can use; empty if none is known."""
    rows = _files(_SHIPPED).get(provider)
    return rows.cheapest if rows else ""


@lru_cache(maxsize=1024)
def _sheet(provider: str, model: str, endpoint: str) -> Sheet:
    known = any(
        row.get("model") and not row.get("family")
        for layer in _layers(provider)
        for row in layer.rows.about(model, provider)
    )
    merged = {name: fact.value for name, fact in _merged(provider, model, endpoint).items()}
    if known:
        merged.pop("like", None)
    return msgspec.convert({**merged, "known": known}, Sheet)


def facts_about(provider: str, model: str, endpoint: str = "chat") -> dict[str, Fact]:
    """Return everything that the sheet says about a model, with the layer that says it."""
    return _merged(provider, plain_model(model), endpoint)


def _merged(provider: str, model: str, endpoint: str) -> dict[str, Fact]:
    merged: dict[str, Fact] = {}
    for layer in _layers(provider):
        at_endpoint: dict[str, Any] = {}
        for row in layer.rows.about(model, provider):
            said = {name: value for name, value in _facts(row).items() if _counts(name, layer, merged)}
            merged |= {name: Fact(_whole(name, value, layer, merged), layer) for name, value in said.items()}
            at_endpoint |= row.get("at", {}).get(endpoint, {})
        merged |= {name: Fact(value, layer) for name, value in at_endpoint.items()}
    return merged


def _counts(name: str, layer: Layer, known: Mapping[str, Fact]) -> bool:
    """Return whether a layer's word on something counts: that of a public table only if no one else has said it."""
    return not layer.rows.public or name in _DATES or name not in known or known[name].layer.rows.public


def _whole(name: str, value: Any, layer: Layer, known: Mapping[str, Fact]) -> Any:
    """Return a fact; lists of providers do not say how much a model reasons untold, which stays as it is known."""
    before = known[name].value if name in known else None
    if name != "reasoning" or layer.origin != "refreshed" or not isinstance(value, dict) or not before:
        return value
    return {"default": before.get("default", "none"), **value}


def _facts(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in _OF_ROW}


@cache
def _layers(provider: str) -> tuple[Layer, ...]:
    """Return the files of the sheet for a provider: shipped, refreshed and the user's, vendors before providers."""
    refreshed = (layer for layer in refreshed_layers() if _speaks_for(layer, provider))
    own = _user_rows()
    return (*_shipped(provider), *refreshed, *((Layer("yours", str(user_file()), own),) if own else ()))


def _speaks_for(layer: Layer, provider: str) -> bool:
    """Return whether a file is about a provider: it says so itself, or it is named after it."""
    return bool(layer.rows.names) or layer.file == provider or any("providers" in row for row in layer.rows.models)


def _shipped(provider: str) -> Iterator[Layer]:
    """Yield the files that say which names they know, then the one about all models of this provider."""
    files = _files(_SHIPPED)
    yield from (Layer("shipped", name, rows) for name, rows in files.items() if rows.names)
    if provider in files and not files[provider].names:
        yield Layer("shipped", provider, files[provider])


def refreshed_layers() -> tuple[Layer, ...]:
    """Return what was fetched: public tables, then the lists of the providers themselves."""
    try:
        folder = refreshed_folder()
    except RuntimeError:  # there is no home folder
        return ()
    files = sorted(_files(folder).items(), key=lambda item: (not item[1].public, item[0]))
    return tuple(Layer("refreshed", name, rows) for name, rows in files)


def shipped_on() -> str:
    """Return the day on which the shipped sheet was last compared with its sources."""
    return min(rows.checked for rows in _files(_SHIPPED).values())


@cache
def sheet_hash() -> str:
    """Return a hash of everything that the sheet consists of at the moment."""
    digest = hashlib.sha256()
    for path in _all_files():
        digest.update(f"{path.name}\0".encode() + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def _all_files() -> Iterator[Path]:
    yield from sorted(_SHIPPED.glob("*.json"))
    if refreshed_layers():
        yield from sorted(refreshed_folder().glob("*.json"))
    if has_user_file():
        yield user_file()


@cache
def _files(folder: Path) -> dict[str, SheetRows]:
    paths = sorted(folder.glob("*.json")) if folder.is_dir() else ()
    return {path.stem: read_rows(path, whole=folder != _SHIPPED) for path in paths}


def read_rows(path: Path, *, whole: bool = True) -> SheetRows:
    """Read a file of the sheet; unless `whole`, its rows are checked when they are used."""
    try:
        rows = msgspec.json.decode(path.read_bytes(), type=SheetRows)
        return checked(rows) if whole else rows
    except (msgspec.MsgspecError, re.error, OSError) as error:
        raise FairtrialError(f"{path} is not a sheet of models: {error}; remove it, or correct it") from None


def checked(rows: SheetRows) -> SheetRows:
    """Return rows of which every pattern and every value can be used."""
    re.compile(rows.names)
    for row in rows.models:
        if not isinstance(row.get("name", row.get("model")), str):
            raise msgspec.ValidationError("each row needs a pattern `model`")
        re.compile(row.get("model", ""))
        for values in (row, *row.get("at", {}).values()):
            msgspec.convert(_facts(values), Sheet)
    return rows


def user_file() -> Path:
    """Return where the user's own rows are: the file in FAIRTRIAL_MODELS, or `models.yaml` in the usual place."""
    named = os.environ.get("FAIRTRIAL_MODELS")
    return Path(named) if named else settings_folder() / "models.yaml"


def has_user_file() -> bool:
    """Return whether there are rows of the user's own."""
    try:
        return user_file().is_file()
    except RuntimeError:  # there is no home folder
        return False


def refreshed_folder() -> Path:
    """Return where the rows are kept that `fairtrial models --refresh` found."""
    return cache_folder() / "models"


def _user_rows() -> SheetRows | None:
    """Return the user's rows: a mapping of patterns for names to what is known about these models."""
    if not has_user_file():
        return None
    path = user_file()
    import yaml

    from fairtrial.text.yaml_text import read_yaml  # yaml: only a user's own file needs it

    try:
        written = read_yaml(path.read_text("utf-8")) or {}
        if not isinstance(written, Mapping) or not all(isinstance(row, Mapping) for row in written.values()):
            raise msgspec.ValidationError("expected `PATTERN: {…}` for each model")
        return checked(SheetRows(models=tuple({"model": str(name), **row} for name, row in written.items())))
    except (yaml.YAMLError, UnicodeDecodeError, msgspec.MsgspecError, re.error, OSError) as error:
        reason = " ".join(str(error).split())
        raise FairtrialError(f"{path} is not a sheet of models: {reason}; correct it, or remove it") from None


def forget() -> None:
    """Read the sheet anew: its files have changed."""
    _sheet.cache_clear()
    maker_of.cache_clear()
    _layers.cache_clear()
    sheet_hash.cache_clear()
    _files.cache_clear()
