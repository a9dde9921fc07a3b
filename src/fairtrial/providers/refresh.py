"""Fetching what is known about models anew: the providers' own lists, public tables, and the list of prices.

Nothing is fetched unless someone asks for it. What was read is kept with its day, address and hash; a list that cannot
be read, or that has lost more than half of its models, is refused, and the one from before stays.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import msgspec

from fairtrial.core.errors import FairtrialError
from fairtrial.core.providers import api_providers
from fairtrial.core.time_limit import time_limit
from fairtrial.core.variables import Variables
from fairtrial.providers import models, price_list, sheet
from fairtrial.providers.model_lists import PROVIDERS, TABLES, ModelList, Row
from fairtrial.providers.retirement import today
from fairtrial.providers.sheet import SheetRows, plain_model, read_rows, refreshed_folder
from fairtrial.providers.streams import AnswerTooLargeError, read_body
from fairtrial.providers.transport import endpoint, open_download

_SECONDS = 60.0  # for one list
_MOST_PAGES = 50
PRICES = "genai-prices"


class Refreshed(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one list: how many models it has and what has changed, or why it was not read."""

    name: str
    problem: str = ""
    source: str = ""
    models: int = 0
    new: list[str] = []
    gone: list[str] = []
    ends: dict[str, str] = {}  # new dates, by model
    kept: str = ""
    skipped: bool = False  # it was not asked for: its key is not set


class _NotReadError(Exception):
    """Why a list was not read."""


async def refresh(environment: Mapping[str, str]) -> list[Refreshed]:
    """Fetch every list that can be read with these variables, and keep what was found."""
    lists = [(_module(name).LIST, _module(name).read) for name in (*PROVIDERS, *TABLES)]
    work = [_refreshed(_origin_of(known, environment), known, read) for known, read in lists]
    try:
        return [*await asyncio.gather(*work, _prices(environment)), *_not_readable(environment)]
    finally:
        sheet.forget()
        models.forget()


def _module(name: str) -> Any:
    return import_module(f"fairtrial.providers.model_lists.{name}")


def _not_readable(environment: Mapping[str, str]) -> list[Refreshed]:
    """Return the providers with dates of their own whose lists are not read, if they are used."""
    if not api_providers()["bedrock"].ready(environment):
        return []
    problem = "its list is not read: `aws bedrock list-foundation-models` has its dates"
    return [Refreshed(name="bedrock", problem=problem, skipped=True)]


class _Origin(msgspec.Struct, frozen=True, kw_only=True):
    """Where a list is fetched from; without an address, `missing` says what is not set."""

    url: str = ""
    headers: dict[str, str] = {}
    missing: str = ""
    variable: str = ""


def _origin_of(known: ModelList, environment: Mapping[str, str]) -> _Origin:
    if known.public:
        return _Origin(url=environment.get(known.variable) or known.address, variable=known.variable)
    provider = api_providers()[known.name].resolved(environment)
    variables = Variables(environment)
    url, key = variables.fill(provider.base_url), variables.fill(provider.api_key)
    if known.headers is None:
        return _Origin(url=endpoint(url, known.path))
    if variables.missing or not key:
        return _Origin(missing=f"{' and '.join(sorted(variables.missing)) or 'its key'} is not set")
    path, _, query = known.path.partition("?")
    return _Origin(url=_asking(endpoint(url, path), query), headers=known.headers(key))


def _asking(url: str, more: str) -> str:
    parts = urlsplit(url)
    return urlunsplit(parts._replace(query="&".join(filter(None, (parts.query, more)))))


async def _refreshed(origin: _Origin, known: ModelList, read: Any) -> Refreshed:
    if origin.missing:
        return Refreshed(name=known.name, problem=origin.missing, skipped=True)
    source = _shown(origin.url)
    try:
        bodies = await _pages(origin, known)
        rows = _rows(bodies, read)
        path = refreshed_folder() / f"{known.name}.json"
        before = _before(path)
        _refuse_shrunken(len(rows), len(before), path)
        content = SheetRows(
            models=tuple(rows),
            checked=today().isoformat(),
            source=source,
            sha256=_sha256(bodies),
            public=known.public,
        )
        _keep(path, msgspec.json.encode(content))
    except _NotReadError as error:
        return Refreshed(name=known.name, problem=str(error), source=source)
    return _changes(known.name, rows, before, source=source, kept=str(path))


def _sha256(bodies: Sequence[bytes]) -> str:
    return hashlib.sha256(b"".join(bodies)).hexdigest()


def _changes(name: str, rows: Sequence[Row], before: Sequence[Row], *, source: str, kept: str) -> Refreshed:
    old, new = ({row["name"]: row for row in some} for some in (before, rows))
    ends = {model: row["ends"] for model, row in new.items() if row.get("ends")}
    return Refreshed(
        name=name,
        source=source,
        models=len(new),
        new=sorted(set(new) - set(old)) if old else [],
        gone=sorted(set(old) - set(new)),
        ends={model: day for model, day in ends.items() if old.get(model, {}).get("ends") != day},
        kept=kept,
    )


def _before(path: Path) -> Sequence[Row]:
    """Return the rows that are kept; none if they cannot be read, for they are about to be replaced."""
    try:
        return read_rows(path).models if path.is_file() else ()
    except FairtrialError:
        return ()


def _refuse_shrunken(count: int, before: int, path: Path) -> None:
    if not count:
        raise _NotReadError("there is no model in it")
    if 2 * count < before:
        raise _NotReadError(f"it has {count} models and had {before}: refused; to accept it, remove {path} first")


def _rows(bodies: Sequence[bytes], read: Any) -> list[Row]:
    """Return the rows of all pages, each model once."""
    rows: dict[tuple[str, ...], Row] = {}
    try:
        for body in bodies:
            for row in read(msgspec.json.decode(body)):
                named = {**row, "name": plain_model(row["name"])}
                rows.setdefault((named["name"], *named["providers"]), named)
        sheet.checked(SheetRows(models=tuple(rows.values())))
    except (msgspec.MsgspecError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        reason = f"`{error.args[0]}` is missing" if isinstance(error, KeyError) else " ".join(str(error).split())
        raise _NotReadError(f"what is there is not a list of models ({reason[:120]})") from None
    return list(rows.values())


async def _pages(origin: _Origin, known: ModelList) -> list[bytes]:
    bodies, more = [], ""
    for _ in range(_MOST_PAGES):
        bodies.append(await _fetch(origin, _asking(origin.url, more)))
        try:
            page = msgspec.json.decode(bodies[-1])
        except (msgspec.MsgspecError, RecursionError):  # reading it says so
            return bodies
        more = known.following(page) if isinstance(page, dict) else ""
        if not more:
            return bodies
    raise _NotReadError(f"it has more than {_MOST_PAGES} pages")


async def _fetch(origin: _Origin, url: str) -> bytes:
    """Fetch one page; what servers say about errors is not repeated, for it may have a key in it."""
    import aiohttp

    try:
        async with time_limit(_SECONDS), open_download(url, origin.headers) as response:
            if response.status == 200:
                return await read_body(response)
            raise _NotReadError(_status(response.status, origin))
    except TimeoutError:
        raise _NotReadError(f"no answer within {_SECONDS:g} s") from None
    except AnswerTooLargeError as error:
        raise _NotReadError(f"{error}") from None
    except (aiohttp.ClientError, OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise _NotReadError(f"cannot connect to {urlsplit(url).hostname or 'it'} ({reason})") from None


def _status(status: int, origin: _Origin) -> str:
    if status in (401, 403):
        return f"the key was rejected (HTTP {status})"
    if 300 <= status < 400:
        how = f"set {origin.variable} to" if origin.variable else "set the base URL to"
        return f"the server redirects (HTTP {status}), which is not followed: {how} where it leads"
    return f"the server says HTTP {status}"


def _shown(url: str) -> str:
    """Return an address without what may be a secret in it."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment=""))


def _keep(path: Path, content: bytes) -> None:
    """Write a file in one step."""
    partial = path.with_suffix(f".{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_bytes(content)
        partial.replace(path)
    except OSError as error:
        raise _NotReadError(f"{path} cannot be written ({error.strerror or error})") from None


async def _prices(environment: Mapping[str, str]) -> Refreshed:
    """Fetch the list of prices; what has changed are the models whose prices it lists."""
    origin = _Origin(url=environment.get(price_list.VARIABLE) or price_list.ADDRESS, variable=price_list.VARIABLE)
    source, path = _shown(origin.url), price_list.kept_prices()
    try:
        if path is None:
            raise _NotReadError("there is no home folder to keep it in")
        body = await _fetch(origin, origin.url)
        names = _priced(body)
        before = _priced_before(path)
        _refuse_shrunken(len(names), len(before or _installed()), path)
        kept = price_list.Fetched(
            checked=today().isoformat(),
            source=source,
            sha256=_sha256([body]),
            package=price_list.package(),
            providers=msgspec.json.decode(body),
        )
        _keep(path, msgspec.json.encode(kept))
    except _NotReadError as error:
        return Refreshed(name=PRICES, problem=str(error), source=source)
    rows, old = ([{"name": name} for name in some] for some in (names, before))
    return _changes(PRICES, rows, old, source=source, kept=str(path))


def _priced(body: bytes) -> list[str]:
    """Return the names of the models with prices; they must be what the package can read."""
    try:
        return [
            f"{provider.id}:{model.id}"
            for provider in price_list.parsed(msgspec.json.decode(body))
            for model in provider.models
        ]
    except (msgspec.MsgspecError, ValueError, TypeError, RecursionError) as error:
        reason = " ".join(str(error).split())[:120]
        raise _NotReadError(f"what is there is not a list of prices ({reason})") from None


def _installed() -> list[str]:
    from genai_prices.data_snapshot import get_snapshot

    return [model.id for provider in get_snapshot().providers for model in provider.models]


def _priced_before(path: Path) -> list[str]:
    try:
        kept = msgspec.json.decode(path.read_bytes(), type=price_list.Fetched) if path.is_file() else None
        return _priced(msgspec.json.encode(kept.providers)) if kept else []
    except (msgspec.MsgspecError, OSError, _NotReadError):
        return []
