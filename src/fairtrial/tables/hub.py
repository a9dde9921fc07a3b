"""Datasets of the Hugging Face Hub: streamed once into a local file of JSON lines, which is read from then on.

Every check and every run reads the rows again. From the local copy they are the same each time, without the network,
and one row is in memory at a time.
"""

from __future__ import annotations

import hashlib
import re
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from fairtrial.core.errors import FairtrialError, NotInstalledError
from fairtrial.core.folders import write_at_once
from fairtrial.core.ids import content_hash
from fairtrial.core.private import replacing
from fairtrial.core.trust import may_run_code, within
from fairtrial.tables.files import sha256_of
from fairtrial.tables.row import plain

SCHEME = "hf://"
CACHE = Path(".fairtrial/datasets")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_REPOSITORY = re.compile(r"[\w.-]+(/[\w.-]+)?")


class HubSource(msgspec.Struct, frozen=True, kw_only=True):
    """A dataset of the Hub, or a folder that is laid out like one."""

    name: str
    config: str | None = None
    split: str | None = None
    revision: str | None = None
    head: int | None = None  # only this many rows are needed, from the start


class Copy(NamedTuple):
    """The local copy of a dataset, and where it came from."""

    file: Path
    origin: dict[str, Any]


def is_hub(path: str) -> bool:
    """Return whether a path names a dataset of the Hub."""
    return path.startswith(SCHEME)


def fetch(source: HubSource, folder: Path, cache: Path = CACHE) -> Copy:
    """Return the local copy of a dataset; it is made if there is none of this revision."""
    name = source.name.removeprefix(SCHEME).rstrip("/")
    place = _local_folder(name, folder)
    if place is None and not _REPOSITORY.fullmatch(name):
        raise FairtrialError(f"`{source.name}` is not a dataset of the Hub: write hf://owner/name")
    if place is None and not may_run_code():
        return _fetched_before(source, name, cache)
    commit = _folder_hash(place) if place else _commit(name, source.revision)
    identity = {"dataset": name, "config": source.config, "split": source.split, "revision": commit}
    stem = content_hash([identity, source.head])[:32]
    file, about = cache / f"{stem}.jsonl", cache / f"{stem}.json"
    if not (file.is_file() and about.is_file()):
        if not may_run_code():
            raise _untrusted(source.name)
        split = _download(source, str(place or name), None if place else commit, file)
        write_at_once(about, msgspec.json.encode({**identity, "split": split, "head": source.head}))
    return _copy(file, msgspec.json.decode(about.read_bytes()))


def _copy(file: Path, origin: dict[str, Any]) -> Copy:
    return Copy(file, {key: value for key, value in origin.items() if value is not None and key != "head"})


def _local_folder(name: str, folder: Path) -> Path | None:
    """Return the folder that a name such as `./data` or `/data` means; None for a dataset of the Hub."""
    if not name.startswith(("/", "./", "../")):
        return None
    place = within(folder, name).resolve()
    if not place.is_dir():
        raise FairtrialError(f"there is no folder {place}")
    return place


def _untrusted(name: str) -> FairtrialError:
    """Return the error where nothing may be fetched, and no library may read what a folder says about its loading."""
    return FairtrialError(f"{name} is only fetched by a run: `fairtrial validate --run-code` fetches it now")


def _fetched_before(source: HubSource, name: str, cache: Path) -> Copy:
    """Return the newest copy that there is, whatever the Hub has now; raise if there is none."""
    wanted = {"dataset": name, "config": source.config, "head": source.head}
    wanted |= {key: value for key in ("split", "revision") if (value := getattr(source, key)) is not None}
    for about in sorted(cache.glob("*.json"), key=lambda path: path.stat().st_mtime, reverse=True):
        origin: dict[str, Any] = msgspec.json.decode(about.read_bytes())
        if about.with_suffix(".jsonl").is_file() and {key: origin.get(key) for key in wanted} == wanted:
            return _copy(about.with_suffix(".jsonl"), origin)
    raise _untrusted(source.name)


def _folder_hash(folder: Path) -> str:
    digest = hashlib.sha256()
    for file in sorted(file for file in folder.rglob("*") if file.is_file()):
        digest.update(f"{file.relative_to(folder).as_posix()}\0{sha256_of(file)}\n".encode())
    return digest.hexdigest()


def _commit(name: str, revision: str | None) -> str:
    """Return the commit that a branch or tag stands for now; a commit stands for itself."""
    if revision is not None and _COMMIT.fullmatch(revision):
        return revision
    _datasets()
    from huggingface_hub import HfApi

    try:
        commit = HfApi().dataset_info(name, revision=revision).sha
    except Exception as error:  # the network, the Hub, a missing dataset or a missing right
        raise FairtrialError(
            f"cannot look up hf://{name}: {_reason(error)}; check the name, the network and HF_TOKEN, "
            "or set `revision` to a commit that was used before"
        ) from None
    return str(commit)


def _datasets() -> Any:
    try:
        import datasets
    except ImportError:
        raise NotInstalledError("a dataset of the Hugging Face Hub", "hub") from None
    datasets.disable_progress_bars()
    return datasets


def _download(source: HubSource, path: str, commit: str | None, file: Path) -> str:
    """Write the rows of a dataset into a file, and return its split."""
    datasets = _datasets()
    try:
        split = source.split or _only_split(datasets, path, source.config, commit)
        rows = datasets.load_dataset(path, source.config, split=split, revision=commit, streaming=True)
        _write(rows.decode(False), source.head, file)
    except FairtrialError:
        raise
    except Exception as error:  # whatever the library, its file formats and the network raise
        raise FairtrialError(f"cannot load {source.name}: {_reason(error)}") from None
    return str(split)


def _only_split(datasets: Any, path: str, config: str | None, commit: str | None) -> str:
    names = datasets.get_dataset_split_names(path, config, revision=commit)
    if len(names) != 1:
        raise FairtrialError(f"the dataset has several splits: set `split` to one of {', '.join(names)}")
    return str(names[0])


def _write(rows: Any, head: int | None, file: Path) -> None:
    """Write rows as JSON lines; the file appears under its name once it is complete."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with replacing(file, private=False) as out:
        for row in islice(rows, head):
            out.write(msgspec.json.encode(plain(row)) + b"\n")


def _reason(error: Exception) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= 300 else f"{text[:299]}…"
