"""The files of inspect-ai: what is read of a log, from a zip file (`.eval`) or from JSON."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from fairtrial.core.errors import FairtrialError
from fairtrial.foreign.misfit import reason_of
from fairtrial.foreign.source import MAX_DOCUMENT, Source, decode
from fairtrial.tracks.interchange.results._zip import Zip, ZipError

_HEADER, _START, _SAMPLES = "header.json", "_journal/start.json", "samples/"


class ScoreEntry(msgspec.Struct):
    value: Any = None
    explanation: str | None = None


class OutputMessage(msgspec.Struct):
    content: Any = None


class OutputChoice(msgspec.Struct):
    stop_reason: str | None = None
    message: OutputMessage | None = None


class Output(msgspec.Struct):
    model: str | None = None
    completion: str | None = None
    choices: list[OutputChoice] | None = None
    error: str | None = None


class Tokens(msgspec.Struct):
    input_tokens: int = 0
    output_tokens: int = 0
    input_tokens_cache_read: int | None = None
    input_tokens_cache_write: int | None = None
    reasoning_tokens: int | None = None
    total_cost: float | None = None


class ErrorEntry(msgspec.Struct):
    message: str = ""


class SampleEntry(msgspec.Struct):
    """The parts of a sample that are read; `events`, nearly nine tenths of it, are passed over."""

    id: int | str
    epoch: int = 1
    input: Any = None
    target: Any = None
    choices: list[Any] | None = None
    messages: msgspec.Raw = msgspec.Raw(b"null")
    output: Output | None = None
    scores: dict[str, ScoreEntry] | None = None
    score: ScoreEntry | None = None  # of the first versions
    metadata: dict[str, Any] | None = None
    model_usage: dict[str, Tokens] | None = None
    started_at: str | None = None
    total_time: float | None = None
    working_time: float | None = None
    error: ErrorEntry | None = None
    error_retries: list[ErrorEntry] | None = None
    attachments: msgspec.Raw = msgspec.Raw(b"null")


class LogDocument(msgspec.Struct):
    """A `.json` log, or the header of an `.eval` log."""

    eval: dict[str, Any]
    version: int | None = None
    status: str | None = None
    plan: dict[str, Any] | None = None
    results: dict[str, Any] | None = None
    stats: dict[str, Any] | None = None
    error: ErrorEntry | None = None
    samples: list[SampleEntry] | None = None


_decode_sample = msgspec.json.Decoder(SampleEntry).decode
_decode_document = msgspec.json.Decoder(LogDocument).decode


@contextmanager
def damage(source: Source) -> Iterator[None]:
    """Turn what is wrong with a file into one sentence."""
    try:
        yield
    except ZipError as error:
        raise FairtrialError(f"{source.name} is damaged: {error}; copy it again from where it was made") from None
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise FairtrialError(
            f"{source.name} does not have the structure of an inspect log: {reason_of(error)}"
        ) from None


def zipped_header(source: Source) -> tuple[LogDocument, bool]:
    """Return the header, and whether it is the one that is written at the end."""
    with source.open() as file:
        archive = Zip(file)
        heads = {member.name: member for member in archive.members() if member.name in (_HEADER, _START)}
        member = heads.get(_HEADER) or heads.get(_START)
        if member is None:
            raise ZipError("it has neither a header nor a journal")
        return _typed(archive.read(member)), _HEADER in heads


def whole_document(source: Source) -> tuple[LogDocument, bool]:
    with source.open() as file:
        content = file.read(MAX_DOCUMENT + 1)
    if len(content) > MAX_DOCUMENT:
        raise FairtrialError(
            f"{source.name} is larger than {MAX_DOCUMENT // 2**20} MB: convert it with `inspect log convert --to eval`"
        )
    return _typed(content), True


def _typed(content: bytes) -> LogDocument:
    try:
        return _decode_document(content)
    except msgspec.DecodeError:
        return msgspec.convert(_raw_texts(decode(content)), LogDocument)


def zipped_samples(source: Source) -> Iterator[SampleEntry]:
    """Yield the samples of an `.eval` log one by one."""
    with source.open() as file, source.open() as directory:
        archive = Zip(file)
        for member in Zip(directory).members():
            if member.name.startswith(_SAMPLES) and member.name.endswith(".json"):
                content = archive.read(member)
                try:
                    yield _decode_sample(content)
                except msgspec.DecodeError:
                    yield msgspec.convert(_raw_texts(decode(content)), SampleEntry)


def _raw_texts(document: Any) -> Any:
    """Return a decoded log with the parts that stay undecoded as `SampleEntry` has them."""
    if not isinstance(document, dict):
        return document
    for sample in document.get("samples") or [document]:
        if isinstance(sample, dict):
            for name in ("messages", "attachments"):
                sample[name] = msgspec.Raw(msgspec.json.encode(sample.get(name)))
    return document
