"""Inputs that nobody would write: real ones that were changed, fed to a reader until it says something new.

A reader takes a `Document` and either accepts it or raises a `FairtrialError`, one sentence that people can read.
Whatever else it does is a finding. Inputs that found one are in `corpus/FILE/TEST/KIND--NAME` and come first; others that
led to something new are changed further, in this session of the campaign.
"""

from __future__ import annotations

import base64
import gzip
import json
import random
import re
import signal
import tempfile
import traceback
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from fairtrial.core.errors import FairtrialError, ProblemsError
from fairtrial.text.yaml_text import read_yaml
from tests.torture.campaign import Campaign
from tests.torture.test_servers import garbled, twisted

CORPUS = Path(__file__).parent / "corpus"
PER_ROUND = 50
_LONGEST = 2**18  # bytes of an input that is changed further
_LONGEST_LINE = 1100  # characters of a sentence
_SECONDS = 30  # of processor time, and four times as many of any time, for one input
_KEPT = 500
_CUTS = 40  # of one input in a round
_INTERNAL = re.compile(
    r"<[\w.]+ object at|Traceback|NoneType|<class '|\bobject has no attribute|unhashable|\w+ object is not|"
    r"\b(?:Key|Type|Value|Index|Attribute|Assertion|Recursion|Overflow|UnicodeDecode|UnicodeEncode|Validation|Decode|Lookup)"
    r"Error\b|StopIteration|embedded null|codec can't|msgspec"
)


class Document(NamedTuple):
    """An input: what kind of file it is, and its bytes."""

    kind: str
    body: bytes


Reader = Callable[[Document], Any]
Change = Callable[[Document, random.Random, Sequence[Document]], bytes]


class Hung(BaseException):
    """An input took too long."""


@contextmanager
def limited() -> Iterator[None]:
    """Raise `Hung` after too much processor time, and after four times as long a wait."""

    def hang(*_: object) -> None:
        raise Hung

    before = [signal.signal(number, hang) for number in (signal.SIGVTALRM, signal.SIGALRM)]
    signal.setitimer(signal.ITIMER_VIRTUAL, _SECONDS)
    signal.setitimer(signal.ITIMER_REAL, 4 * _SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in zip((signal.SIGVTALRM, signal.SIGALRM), before, strict=True):
            signal.signal(number, handler)


def check_sentence(text: str) -> None:
    """Check what people read: one line of a length that can be read, in words of their own."""
    assert text.strip(), "nothing is said"
    assert "\n" not in text and "\r" not in text, f"several lines: {text!r}"
    assert len(text) <= _LONGEST_LINE, f"{len(text)} characters: {text[:200]!r}"
    internal = _INTERNAL.search(text)
    assert internal is None, f"internals ({internal[0] if internal else ''}): {text!r}"
    text.encode("utf-8", "surrogateescape")  # a name that is not Unicode


def outcome(reader: Reader, document: Document) -> str:
    """Have an input read; return in which way it was accepted or refused, without what differs from one to the next."""
    try:
        accepted = reader(document)
    except ProblemsError as error:
        for problem in error.problems:
            check_sentence(str(FairtrialError(str(problem))))
        return _shape(error.problems[0].message)
    except FairtrialError as error:
        check_sentence(str(error))
        return _shape(str(error))
    return f"accepted {accepted if isinstance(accepted, str) else ''}"


def _shape(message: str) -> str:
    return re.sub(r"[`'\"][^`'\"]*[`'\"]|\d+|\S*/\S*", "·", message)[:80]


def fuzz(
    campaign: Campaign, seeds: Sequence[Document], reader: Reader, change: Change | None = None, *, short: int = 4
) -> None:
    """Feed inputs to a reader, first those of the corpus, and collect what it must not do."""
    name = place_of(campaign.name)
    findings: dict[str, str] = {}
    pool, seen = list(seeds), set[str]()
    for document in corpus(name):
        _feed(campaign, reader, document, findings)
    for document in seeds:
        said = _feed(campaign, reader, document, findings)
        seen.add(said)
    for chance in campaign.rounds(short):
        for _ in range(PER_ROUND):
            seed = chance.choice(pool)
            document = Document(seed.kind, (change or changed)(seed, chance, pool))
            said = _feed(campaign, reader, document, findings)
            if said not in seen and len(document.body) < _LONGEST:
                seen.add(said)
                pool.append(document)
                if len(pool) > len(seeds) + _KEPT:
                    del pool[len(seeds)]
    assert not findings, "\n\n".join(findings.values())


def cut_everywhere(campaign: Campaign, seeds: Sequence[Document], reader: Reader) -> None:
    """Feed what is left of inputs that were cut, in the end at every byte."""
    findings: dict[str, str] = {}
    for chance in campaign.rounds(short=2):
        seed = chance.choice(seeds)
        stride = max(1, len(seed.body) // _CUTS)
        for end in range(chance.randrange(stride), len(seed.body), stride):
            _feed(campaign, reader, Document(seed.kind, seed.body[:end]), findings)
    assert not findings, "\n\n".join(findings.values())


def _feed(campaign: Campaign, reader: Reader, document: Document, findings: dict[str, str]) -> str:
    campaign.count(inputs=1, tracebacks=0, hung=0)
    try:
        with limited():
            return outcome(reader, document)
    except (Exception, Hung) as error:
        hung = isinstance(error, Hung)
        campaign.count(**{"hung" if hung else "tracebacks": 1})
        where = [f"{Path(frame.filename).name}:{frame.lineno}" for frame in traceback.extract_tb(error.__traceback__)]
        shape = type(error).__name__ + " ".join(where[-2:]) + (_shape(str(error))[:50] if "fuzz" in where[-1] else "")
        if shape not in findings:
            shown = " < ".join(reversed(where[-6:])) + f"\n{type(error).__name__}: {error}"[:600]
            findings[shape] = f"{_kept(document)} ({campaign.current})\n{shown}"
        return f"finding {shape}"


def _kept(document: Document) -> str:
    folder = Path(tempfile.gettempdir()) / "fairtrial-findings"
    folder.mkdir(exist_ok=True)
    path = folder / f"{Path(document.kind).name}--{abs(hash(document.body)):x}"
    path.write_bytes(document.body)
    return str(path)


def place_of(campaign: str) -> str:
    """Return the folder of a campaign's corpus: `suites/datasets` is that of `test_datasets` in `test_fuzz_suites.py`."""
    file, _, test = campaign.rpartition("test_fuzz_")[2].partition(".py::test_")
    return f"{file}/{test.replace('[', '-').rstrip(']')}"


def corpus(name: str) -> list[Document]:
    """Return the inputs that found something before."""
    files = sorted((CORPUS / name).glob("*--*"))
    return [Document(file.name.partition("--")[0], file.read_bytes()) for file in files]


# -- how an input is changed ------------------------------------------------------------------------

ODD = [
    b"\0", b"\xef\xbb\xbf", b"\xff\xfe", b"\xff", b"\r\n", b"\r", b"\t", b"\xc2\x85", b"\xe2\x80\xa8", b"\xe2\x80\xae",
    b"\xed\xa0\xbd", b"\\ud83d", b"9" * 400, b"-1e999", b"NaN", b"Infinity", b".inf", b".nan", b"1_000", b"0x1F", b"0o7",
    b"1:30", b"2026-11-18", b"~", b"null", b"yes", b"&a ", b"*a", b"<<: ", b"!!binary ", b"!!python/object:os.system ",
    b"!!set ", b"!!omap ", b"? ", b"- ", b": ", b"|", b">-", b"---\n", b"...\n", b"%YAML 9\n", b"{", b"}", b"[", b"]",
    b'"', b"'", b"`", b"${", b"${HOME}", b"${X:-", b"{{", b"{{ x }}", b"{% raw %}", b"file://", b"../" * 9, b"x" * 3000,
    "\u0661\U0001f600\u200b".encode(),
]  # fmt: skip


def changed(document: Document, chance: random.Random, pool: Sequence[Document]) -> bytes:
    """Return a text that was changed as a tree, as lines or as bytes."""
    how = chance.random()
    if how < 0.55:
        return changed_tree(document, chance, pool)
    if how < 0.7:
        return changed_lines(document.body, chance)
    if how < 0.8:
        return document.body[: chance.randrange(len(document.body) + 1)]
    if how < 0.9:
        return with_odd_bytes(document.body, chance)
    return garbled(document.body, chance) if document.body else b"x"


def changed_tree(document: Document, chance: random.Random, pool: Sequence[Document]) -> bytes:
    """Return a document of which parts are others: of another kind, missing, doubled, huge, deep, or of another seed."""
    packed = document.body.startswith(b"\x1f\x8b")
    body = _unpacked(document.body) if packed else document.body
    rows = _rows(body)
    if rows is not None:
        at = chance.randrange(len(rows))
        rows[at] = twisted(rows[at], chance) if rows[at] else {"": None}
        if chance.random() < 0.3:
            rows.insert(chance.randrange(len(rows)), rows[chance.randrange(len(rows))])
        return b"\n".join(map(_dumped, rows))
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        try:
            value = read_yaml(body.decode("utf-8", "replace"))
        except (yaml.YAMLError, ValueError, RecursionError, TypeError, LookupError):
            return with_odd_bytes(document.body, chance)
    if not isinstance(value, dict | list) or not value:
        return with_odd_bytes(document.body, chance)
    value = twisted(json.loads(json.dumps(value, default=str, skipkeys=True)), chance)
    if chance.random() < 0.3:
        value = spliced(value, chance, pool)
    new = _dumped(value)
    return gzip.compress(new, 1) if packed and chance.random() < 0.1 else new


def spliced(value: Any, chance: random.Random, pool: Sequence[Document]) -> Any:
    """Return a value with a part of another document in it."""
    other = chance.choice(pool).body
    try:
        part = json.loads(other)
    except (ValueError, RecursionError):
        return value
    for _ in range(chance.randrange(4)):
        if isinstance(part, dict) and part:
            part = part[chance.choice(list(part))]
        elif isinstance(part, list) and part:
            part = chance.choice(part)
    if isinstance(value, dict) and value:
        value[chance.choice(list(value))] = part
    elif isinstance(value, list):
        value.append(part)
    return value


def changed_lines(body: bytes, chance: random.Random) -> bytes:
    """Return a text whose lines are missing, doubled, in another order or indented otherwise."""
    lines = body.split(b"\n")
    for _ in range(chance.randint(1, 3)):
        at = chance.randrange(len(lines))
        how = chance.randrange(6)
        if how == 0 and len(lines) > 1:
            del lines[at]
        elif how == 1:
            lines.insert(chance.randrange(len(lines) + 1), lines[at])
        elif how == 2:
            lines[at] = b"  " + lines[at]
        elif how == 3:
            lines[at] = lines[at].lstrip()
        elif how == 4:
            name, mark, _ = lines[at].partition(chance.choice([b":", b",", b"="]))
            lines[at] = name + mark + b" " + chance.choice(ODD)
        else:
            other = chance.randrange(len(lines))
            lines[at], lines[other] = lines[other], lines[at]
    return chance.choice([b"\n", b"\n", b"\n", b"\r\n", b"\r"]).join(lines)


def with_odd_bytes(body: bytes, chance: random.Random) -> bytes:
    """Return a text with something odd in it, or deep nesting."""
    at = chance.randrange(len(body) + 1)
    if chance.random() < 0.02:
        depth = chance.choice([150, 2000, 30_000])
        return body[:at] + chance.choice([b"[", b"(", b"{a: ", b'{"a":', b"- "]) * depth + body[at:]
    end = at + chance.choice([0, 0, 1, 5])
    return body[:at] + chance.choice(ODD) + body[end:]


def _unpacked(body: bytes) -> bytes:
    try:
        return gzip.decompress(body)
    except (OSError, EOFError, zlib.error):
        return body


def _rows(body: bytes) -> list[Any] | None:
    """Return the rows of JSON Lines; None if it is something else."""
    lines = body.strip().split(b"\n")
    if len(lines) < 2 or not all(line.startswith(b"{") for line in lines):
        return None
    try:
        return [json.loads(line) for line in lines]
    except (ValueError, RecursionError):
        return None


def _dumped(value: Any) -> bytes:
    return json.dumps(value).encode("utf-8", "replace")


def as_text(body: bytes) -> str:
    """Return bytes as a text that JSON can hold, for a corpus."""
    return base64.b64encode(body).decode()
