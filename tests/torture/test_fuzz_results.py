"""Results of other tools that were changed at random or cut anywhere: each becomes runs, or is refused in a sentence."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from fairtrial.analyse.run import Run
from fairtrial.core.errors import FairtrialError
from fairtrial.foreign.misfit import MISFITS, reason_of
from fairtrial.foreign.results import Columns, Log, recognise
from fairtrial.foreign.source import Source
from fairtrial.store import Store
from fairtrial.tracks.interchange.import_results import _read, import_all
from tests.contracts.test_results import EXAMPLES, NAMES
from tests.torture.campaign import Campaign
from tests.torture.fuzz import Document, changed, cut_everywhere, fuzz
from tests.tracks.interchange.results.conftest import DATA

MORE = {
    "promptfoo": ["promptfoo/repeat2.jsonl.gz", "promptfoo/promptfoo.db.gz"],
    "deepeval": ["deepeval/test_run_tools.json.gz"],
    "k_eval": ["k-eval/arith_20261116_11111111.json"],
    "eee": ["every-eval-ever/mc/arith_mc/e9677b9d-448f-48a5-9633-efe32921e0a1_samples.jsonl.gz"],
    "lm_eval": ["lm-eval/mc/samples_arith_mc_2026-11-16T06-09-28.235274.jsonl.gz"],
    "helm": ["helm/classification/run_spec.json", "helm/classification/scenario_state.json.gz"],
    "inspect": ["inspect/plain.json.gz", "inspect/err.eval"],
}
BESIDE = {"eee", "lm_eval", "helm"}  # whose results are in several files
_STORED_OF = 8  # inputs, one of which is stored too


def seeds(name: str) -> list[Document]:
    """The example of a reader and others: small ones unpacked, so that what is in them can be changed."""
    example = EXAMPLES[name]
    if not isinstance(example, str):
        return [Document(NAMES.get(name, "results.json"), json.dumps(example).encode())]
    found = []
    for file in [example, *MORE.get(name, [])]:
        body = (DATA / file).read_bytes()
        place = Path(file).name
        if place.endswith(("json.gz", "jsonl.gz")):
            body, place = shorter(gzip.decompress(body)), place.removesuffix(".gz")
        found.append(Document(place, body))
    return found


def shorter(body: bytes) -> bytes:
    """Return a document with a few items of each list, or a few lines: what is read sooner is changed more often."""
    lines = body.strip().split(b"\n")
    if len(lines) > 1 and lines[1].startswith(b"{"):
        return b"\n".join(lines[:4])

    def few(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: few(item) for key, item in value.items()}
        return [few(item) for item in value[:2]] if isinstance(value, list) else value

    return json.dumps(few(json.loads(body))).encode()


def damaged_pages(document: Document, chance: random.Random, pool: Sequence[Document]) -> bytes:
    """Damage what is in a database, or in its packed form."""
    if "promptfoo.db" not in document.kind or chance.random() < 0.5:
        return changed(document, chance, pool)
    body = bytearray(gzip.decompress((DATA / "promptfoo/promptfoo.db.gz").read_bytes()))
    for _ in range(chance.randint(1, 20)):
        at = chance.randrange(len(body))
        body[at] ^= 1 << chance.randrange(8)
    return bytes(body) if chance.random() < 0.9 else bytes(body)[: chance.randrange(len(body))]


class Reading:
    """Reads results as an import does, and now and then stores them."""

    def __init__(self, name: str, folder: Path, store: Store) -> None:
        self.name, self.folder, self.store, self.count = name, folder / "theirs", store, 0
        self.seeds = seeds(name)
        self.folder.mkdir(parents=True)

    def __call__(self, document: Document) -> str:
        self.count += 1
        for other in self.seeds if self.name in BESIDE else ():
            (self.folder / other.kind).write_bytes(other.body)
        path = self.folder / document.kind
        path.write_bytes(document.body)
        recognised = recognise(Source(path))
        if self.count % _STORED_OF == 0:
            for one in import_all(path, store=self.store, format=self.name):
                Run(self.store, one.run.record).summary()
            return f"{recognised} stored"
        logs: list[Log] = list(_read(self.name, [Source(path)], Columns()))
        try:
            return f"{recognised} {sum(1 for log in logs for _ in log.samples()) > 0}"
        except MISFITS as error:  # as where they are stored
            raise FairtrialError(reason_of(error)) from error


@pytest.mark.parametrize("name", EXAMPLES)
def test_results(name: str, tmp_path: Path, campaign: Campaign):
    with closing(Store(str(tmp_path / "s.db"))) as store:
        reading = Reading(name, tmp_path, store)
        fuzz(campaign, reading.seeds, reading, damaged_pages, short=1)


def test_results_that_are_cut(tmp_path: Path, campaign: Campaign):
    with closing(Store(str(tmp_path / "s.db"))) as store:
        readings = {name: Reading(name, tmp_path / name, store) for name in EXAMPLES}
        whole = [Document(f"{name}/{one.kind}", one.body) for name in EXAMPLES for one in readings[name].seeds]

        def read(document: Document) -> str:
            name, _, kind = document.kind.partition("/")
            return readings[name](Document(kind, document.body))

        cut_everywhere(campaign, whole, read)
