"""What `init` prints and what its suites say at their top can be typed, one after the other, in the new folder."""

from __future__ import annotations

import re
import sys

import pytest

from fairtrial.suites import KINDS, files_of_kind
from tests import forks
from tests.hints.suggested import commands_in, filled_in, type_in


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_followed_from_init_to_its_last_comment(kind, tmp_path, monkeypatch, request):
    if kind == "code":
        request.getfixturevalue("chromium")
    monkeypatch.setenv("PYTHON", str(forks.programs() / "python") if kind == "agent" else sys.executable)
    ended = type_in(tmp_path, "init", "--kind", kind, "my new")
    (first,) = commands_in(ended.said)
    assert first == "fairtrial run 'my new/suite.yaml'"
    assert type_in(tmp_path, *filled_in(first)).code == 0
    folder = tmp_path / "my new"
    head = files_of_kind(kind)["suite.yaml"].split("\nname:")[0]
    followed = re.findall(r"^# +(fairtrial \S.*?)(?: {2,}|$)", head, re.MULTILINE)
    assert len(followed) >= 3
    for command in followed:
        ended = type_in(folder, *filled_in(command))
        assert ended.code == 0, f"{command}\n{ended.said}"
