"""Recordings of MCP servers: a folder with what a server offers and what its calls returned, for people to read.

    offers.json     its name, version and instructions; its tools, resources and prompts
    calls.jsonl     one line per call with other arguments: `results` are those of the first, second … such call of a
                    trial, `cases` those in which it was made; in other cases it may have returned other things
    parts/          what trials recorded that a session has not put together yet, one file per trial

Every trial writes a file of its own, so any number of processes can record. When a session of work ends, its files are
put together in an order that does not depend on who was first. After a kill the parts are read as they are.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from filelock import FileLock

from fairtrial.agents.doubles.matching import key_of
from fairtrial.core.ids import content_hash
from fairtrial.core.private import replacing, write_private

OFFERS, CALLS, PARTS = "offers.json", "calls.jsonl", "parts"
_MOST = 2**20  # bytes of one result
_FORMAT = 1


_T = TypeVar("_T")


class _PartHead(msgspec.Struct):
    case: str


class _Tool(msgspec.Struct):
    name: str
    description: str = ""
    inputSchema: dict[str, Any] = {}  # noqa: N815  # as the protocol has it
    annotations: dict[str, Any] = {}


class _Resource(msgspec.Struct):
    uri: str


class _Template(msgspec.Struct):
    uriTemplate: str  # noqa: N815


class _Prompt(msgspec.Struct):
    name: str


class _Offers(msgspec.Struct):
    """What is read of the offers of a server; the rest is passed on as it is."""

    name: str = ""
    version: str = ""
    capabilities: dict[str, Any] = {}
    tools: list[_Tool] = []
    resources: list[_Resource] = []
    resourceTemplates: list[_Template] = []  # noqa: N815
    prompts: list[_Prompt] = []


class CassetteError(Exception):
    """A recording cannot be read or written; the message is one sentence without an end."""


class RecordedCall(msgspec.Struct, frozen=True, kw_only=True):
    """What calls with the same arguments returned: the first in a trial, the second, and so on."""

    kind: str  # tool, resource or prompt
    name: str  # or the address of a resource
    arguments: Any = {}
    results: list[dict[str, Any]]  # each has a `result`, or an `error` of the protocol
    cases: list[str]

    def key(self, offers: dict[str, Any], ignore: Sequence[str] = ()) -> str:
        """Return what is equal for calls that mean the same."""
        return key_of(self.kind, self.name, self.arguments, schema_in(offers, self.kind, self.name), ignore)


class Cassette(msgspec.Struct, frozen=True, kw_only=True):
    """A recording as a whole."""

    offers: dict[str, Any]
    calls: list[RecordedCall]

    @property
    def sha256(self) -> str:
        """What tells it from every other recording."""
        return content_hash([self.offers, self.calls])


class Exchange(msgspec.Struct, frozen=True, kw_only=True):
    """One call of one trial, and what it returned."""

    kind: str
    name: str
    arguments: Any
    reply: dict[str, Any]


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """What one trial recorded."""

    case: str
    calls: list[Exchange]


def schema_in(offers: dict[str, Any], kind: str, name: str) -> dict[str, Any] | None:
    """Return the schema of a tool's arguments, if it is offered."""
    tools = offers.get("tools", ()) if kind == "tool" else ()
    return next((tool.get("inputSchema") for tool in tools if tool.get("name") == name), None)


def is_recording(folder: Path) -> bool:
    """Return whether a folder has a recording."""
    return (folder / OFFERS).is_file()


def read_cassette(folder: Path) -> Cassette:
    """Return a recording, with parts that a killed session has left; raise CassetteError if it cannot be read."""
    if not is_recording(folder):
        raise CassetteError(f"there is no recording in it (no {OFFERS})")
    offers = _read_offers(folder)
    calls = _calls_of(folder)
    return Cassette(offers=offers, calls=_joined(calls, list(_parts(folder, "")), offers))


def write_offers(folder: Path, offers: dict[str, Any]) -> None:
    """Write what a server offers; raise CassetteError if that is not possible."""
    document = {"format": _FORMAT, **offers}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _write(folder / OFFERS, json.dumps(document, indent=1, ensure_ascii=False).encode("utf-8", "replace"))
    except OSError as error:
        raise CassetteError(f"it cannot be written: {error.strerror}") from None


def write_part(folder: Path, name: str, part: Part) -> None:
    """Write what one trial has recorded so far."""
    lines = [{"case": part.case}, *map(_exchange_data, part.calls)]
    write_private(folder / PARTS / f"{name}.jsonl", b"".join(map(_line, lines)))


def put_together(folder: Path, session: str) -> None:
    """Move what the trials of a session recorded to the others; the last session's word counts, call by call."""
    if not (folder / PARTS).is_dir() or not is_recording(folder):
        return
    with _locked(folder):
        parts = list(_parts(folder, session))
        if parts:
            found = _joined(_calls_of(folder), parts, _read_offers(folder))
            _write(folder / CALLS, b"".join(_line(msgspec.to_builtins(call)) for call in found))
        for file in (folder / PARTS).glob(f"{session}*.jsonl"):
            file.unlink()
        with suppress(OSError):  # other sessions may have parts in it
            (folder / PARTS).rmdir()


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold a lock of a folder, which leaves no file in it."""
    if sys.platform == "win32":
        with FileLock(folder / ".lock"):
            yield
        return
    import fcntl  # there is none on Windows

    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _write(path: Path, body: bytes) -> None:
    with replacing(path, private=False) as file:
        file.write(body)


def _line(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace") + b"\n"  # half a character is none


def _exchange_data(call: Exchange) -> dict[str, Any]:
    """Return a call as it is written; of a result that is too large, only how large it was."""
    data: dict[str, Any] = msgspec.to_builtins(call)
    size = len(json.dumps(call.reply).encode())
    return data if size <= _MOST else {**data, "reply": {"too_large": size}}


def _decoded(body: bytes, kind: type[_T]) -> _T:
    """Return what JSON says; raise ValueError with the reason if it does not say that."""
    try:
        return msgspec.json.decode(body, type=kind)
    except UnicodeDecodeError:
        raise ValueError("it contains other things than text") from None
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValueError(str(error)) from None


def _read_offers(folder: Path) -> dict[str, Any]:
    try:
        found = _decoded((folder / OFFERS).read_bytes(), dict[str, Any])
    except OSError as error:
        raise CassetteError(f"{OFFERS} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise CassetteError(f"{OFFERS} cannot be read: {error}") from None
    if found.pop("format", None) != _FORMAT:
        raise CassetteError(f"{OFFERS} is not of a format that this version reads")
    try:
        msgspec.convert(found, _Offers)
    except msgspec.ValidationError as error:
        raise CassetteError(f"{OFFERS} cannot be read: {error}") from None
    return found


def _calls_of(folder: Path) -> list[RecordedCall]:
    path = folder / CALLS
    if not path.exists():
        return []
    found: list[RecordedCall] = []
    try:
        for line in path.read_bytes().splitlines():
            found.append(_decoded(line, RecordedCall))
    except OSError as error:
        raise CassetteError(f"{CALLS} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise CassetteError(f"line {len(found) + 1} of {CALLS} cannot be read: {error}") from None
    if empty := next((call for call in found if not call.results), None):
        raise CassetteError(f"{CALLS} has no results of a call of {empty.name}")
    return found


def _parts(folder: Path, session: str) -> Iterator[Part]:
    """Yield what trials recorded, in the order of their names."""
    for file in sorted((folder / PARTS).glob(f"{session}*.jsonl")):
        try:
            first, *rest = file.read_bytes().splitlines() or [b""]
            case = _decoded(first, _PartHead).case
            calls = [_decoded(line, Exchange) for line in rest]
        except FileNotFoundError:  # another session has just put it together
            continue
        except OSError as error:
            raise CassetteError(f"{PARTS}/{file.name} cannot be read: {error.strerror}") from None
        except ValueError as error:
            raise CassetteError(f"{PARTS}/{file.name} cannot be read: {error}") from None
        yield Part(case=case, calls=calls)


# -- putting together ----------------------------------------------------------------------------

_Results = list[dict[str, Any]]


class _Group:
    """The calls that mean the same: the results of every case."""

    def __init__(self, first: Exchange | RecordedCall) -> None:
        self.first = first
        self.old: list[tuple[_Results, list[str]]] = []
        self.new: dict[str, _Results] = {}

    def variants(self) -> Iterator[tuple[_Results, list[str]]]:
        """Yield the different results, with the cases in which they came; the beginning of a longer row is in that."""
        by_case = {case: results for results, cases in self.old for case in cases} | self.new
        rows: list[tuple[_Results, list[str]]] = []
        order = sorted(by_case.items(), key=lambda item: (-len(item[1]), item[0]))
        for case, results in order:
            row = next((row for row in rows if row[0][: len(results)] == results), None)
            if row is None:
                rows.append((results, [case]))
            else:
                row[1].append(case)
        for results, cases in sorted(rows, key=lambda row: (-len(row[1]), json.dumps(row[0], sort_keys=True))):
            yield results, sorted(cases)


def _joined(old: Iterable[RecordedCall], parts: Iterable[Part], offers: dict[str, Any]) -> list[RecordedCall]:
    groups: dict[str, _Group] = {}
    for call in old:
        group = groups.setdefault(call.key(offers), _Group(call))
        group.old.append((call.results, call.cases))
    for part in parts:
        rows: dict[str, _Results] = {}
        for exchange in part.calls:
            schema = schema_in(offers, exchange.kind, exchange.name)
            key = key_of(exchange.kind, exchange.name, exchange.arguments, schema)
            groups.setdefault(key, _Group(exchange))
            rows.setdefault(key, []).append(exchange.reply)
        for key, results in rows.items():
            known = groups[key].new.get(part.case, [])
            groups[key].new[part.case] = max(known, results, key=len)  # of several trials the one that asked most
    return [
        RecordedCall(
            kind=group.first.kind, name=group.first.name, arguments=group.first.arguments, results=results, cases=cases
        )
        for _, group in sorted(groups.items())
        for results, cases in group.variants()
    ]
