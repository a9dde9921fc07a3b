"""The campaigns themselves."""

import json

from tests.torture import campaign as campaigns
from tests.torture.__main__ import _count
from tests.torture.campaign import Campaign


def test_a_round_is_repeated_from_its_seed(monkeypatch, tmp_path):
    monkeypatch.setenv(campaigns.SEED, "7")
    monkeypatch.delenv(campaigns.SECONDS, raising=False)
    monkeypatch.setenv(campaigns.TALLY, str(tmp_path / "tally"))
    first = Campaign("x")
    drawn = [chance.random() for chance in first.rounds(4)]
    first.count(kills=2)
    first.close()
    assert json.loads((tmp_path / "tally").read_text()) == {"name": "x", "rounds": 4, "kills": 2}
    monkeypatch.setenv(campaigns.SEED, "7:2")
    again = Campaign("x")
    assert next(again.rounds(1)).random() == drawn[2] and again.current.endswith("7:2")
    assert [chance.random() for chance in Campaign("y").rounds(1)] != drawn[2:3]


def test_the_time_is_divided_among_the_campaigns():
    assert _count(["tests/torture/test_campaign.py"]) == 2
