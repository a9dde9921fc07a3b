"""Recordings and mocks that were changed at random: each is played, or refused in sentences."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import yaml

from fairtrial.agents.doubles.cassette import CassetteError
from fairtrial.agents.doubles.mocks import MockError
from fairtrial.agents.doubles.played import read_played
from fairtrial.core.double import ServerDouble
from fairtrial.core.errors import FairtrialError
from tests.torture.campaign import Campaign
from tests.torture.fuzz import Document, fuzz

EXAMPLE = Path(__file__).parents[2] / "examples/doubles"
OFFERS, CALLS = ((EXAMPLE / "recordings/shop" / name).read_bytes() for name in ("offers.json", "calls.jsonl"))
PART = b'{"case": "a"}\n{"kind": "tool", "name": "stock", "arguments": {"article": "lamp"}, "reply": {"result": {}}}\n'
WHOLE = {"offers.json": OFFERS, "calls.jsonl": CALLS, "parts/a.jsonl": PART}


def play(folder: Path, document: Document) -> str:
    double = ServerDouble(play=str(folder / "played"), mock=document.kind == "mock", shown="played")
    if document.kind == "mock":
        (folder / "played").write_bytes(document.body)
    else:
        (folder / "played/parts").mkdir(parents=True, exist_ok=True)
        for name, body in {**WHOLE, document.kind: document.body}.items():
            (folder / "played" / name).write_bytes(body)
    try:
        played = read_played(double)
    except (CassetteError, MockError) as error:
        raise FairtrialError(f"{double} cannot be used: {error}") from None
    json.dumps(played.document(("article",)))
    return str(min(3, len(played.calls) + len(played.answers)))  # what is new, without every hash


def test_recordings(tmp_path: Path, campaign: Campaign):
    fuzz(campaign, [Document(name, body) for name, body in WHOLE.items()], partial(play, tmp_path), short=3)


def test_mocks(tmp_path: Path, campaign: Campaign):
    more = yaml.safe_dump({"tools": [{"name": "a", "answers": [{"result": {"content": [{"type": "text"}]}}]}]})
    documents = [Document("mock", body) for body in ((EXAMPLE / "shop-mock.yaml").read_bytes(), more.encode())]
    fuzz(campaign, documents, partial(play, tmp_path), short=3)
