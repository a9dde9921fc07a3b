"""What goes wrong every day is one sentence that says what to do, and never an internal error."""

import errno
import os

import pytest

from fairtrial.cli.main import _run
from fairtrial.core.errors import FairtrialError

AMOUNTS = ("--budget-usd", "--timeout", "--margin")


@pytest.mark.parametrize("option", AMOUNTS)
@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "NaN"])
def test_an_amount_that_nothing_can_be_compared_with_is_refused(write_suite, capsys, option, value):
    assert _run(["run", str(write_suite()), option, value]) == 1
    said = capsys.readouterr().err
    assert option in said and value in said and "internal" not in said


def test_a_scorer_that_was_left_empty_is_named(write_suite, capsys):
    assert _run(["validate", str(write_suite(scorer=None))]) == 1
    said = capsys.readouterr().err
    assert "scorer: is empty" in said and "internal" not in said


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS])
@pytest.mark.parametrize("name", ["answers.txt", None])
def test_a_full_disk_is_said(monkeypatch, capsys, tmp_path, number, name):
    def fail(*_, **__):
        raise OSError(number, os.strerror(number), name)

    monkeypatch.setattr("fairtrial.cli.list.list_runs", fail)
    assert _run(["list"]) == 1
    said = capsys.readouterr().err
    assert os.strerror(number) in said and (name or "prints") in said and "internal" not in said


def test_any_other_error_is_still_a_defect(monkeypatch, capsys):
    def fail(*_, **__):
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))

    monkeypatch.setattr("fairtrial.cli.list.list_runs", fail)
    assert _run(["list"]) == 1
    assert "internal error" in capsys.readouterr().err


def test_a_sentence_stays_a_sentence(monkeypatch, capsys):
    def fail(*_, **__):
        raise FairtrialError("do this")

    monkeypatch.setattr("fairtrial.cli.list.list_runs", fail)
    assert _run(["list"]) == 1 and capsys.readouterr().err == "error: do this\n"
