"""Record what must stay as it is: `python -m tests.compat.record`, with the version that is to be compared with.

Everything is run twice, in folders of their own; what differs between both is recorded by its type. `--store` also writes
the store anew; names of suites record only those.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.compat import old_store
from tests.compat.driving import RECORDED, documents_of, suites
from tests.compat.matching import common, with_repetitions
from tests.compat.surface import surface

EVERYWHERE = "documents"  # those of commands that belong to no suite


def main() -> None:
    """Record everything, or what is named."""
    wanted = set(sys.argv[1:])
    RECORDED.mkdir(exist_ok=True)
    if "--store" in wanted:
        with tempfile.TemporaryDirectory() as folder:
            old_store.make(Path(folder))
    if not wanted - {"--store"}:
        _write("surface", surface())
        _write("store", _twice(old_store.documents_of_store))
    for name in [*suites(), EVERYWHERE]:
        if name in wanted or not wanted - {"--store"}:
            _write(name, _twice(lambda folder, name=name: documents_of(name, folder)))


def _twice(make: Callable[[Path], list[dict[str, Any]]]) -> list[dict[str, Any]]:
    documents = []
    for _ in range(2):
        with tempfile.TemporaryDirectory() as folder:
            documents.append(make(Path(folder)))
    return with_repetitions(common(*documents))


def _write(name: str, document: Any) -> None:
    """Write a document: a line for each entry."""
    entries = document if isinstance(document, list) else [{key: value} for key, value in document.items()]
    lines = ",\n".join(json.dumps(entry, ensure_ascii=False, separators=(",", ":")) for entry in entries)
    (RECORDED / f"{name}.json").write_text(f"[\n{lines}\n]\n", "utf-8")


if __name__ == "__main__":
    main()
