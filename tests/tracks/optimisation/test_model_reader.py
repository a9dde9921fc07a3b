"""Model files are read in a process of their own: HiGHS goes on for ever after some mistakes, and nobody waits for it."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from unittest.mock import Mock

import pytest

from fairtrial.core.errors import FairtrialError
from fairtrial.tracks.optimisation import model_reader
from fairtrial.tracks.optimisation.problem_files import find_problem

GOOD = "NAME\nROWS\n N  COST\n L  LIM1\nCOLUMNS\n    X         COST         2.0   LIM1         1.0\nRHS\nENDATA\n"
ENDLESS = (Path(__file__).parents[2] / "torture/corpus/problems/models/mps--makes-highs-go-on-for-ever").read_text()


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "good.mps").write_text(GOOD)
    (tmp_path / "endless.mps").write_text(ENDLESS)
    return tmp_path


def process_id() -> int:
    process = model_reader._readers[os.getpid()]._process
    assert process is not None
    return process.pid


def test_a_file_that_is_never_read_is_one_sentence(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    find_problem("good.mps", files)  # the process has started
    monkeypatch.setattr(model_reader, "SECONDS", 0.5)
    started = time.monotonic()
    with pytest.raises(FairtrialError, match=r"endless\.mps cannot be read: HiGHS crashes on it, or does not come to"):
        find_problem("endless.mps", files)
    assert time.monotonic() - started < 60
    monkeypatch.undo()
    assert find_problem("good.mps", files).names == ("X",)  # by another process


def test_the_process_is_kept_and_replaced_when_it_has_ended(files: Path) -> None:
    find_problem("good.mps", files)
    first = process_id()
    find_problem("good.mps", files)
    assert process_id() == first
    model_reader._readers[os.getpid()]._process.kill()
    model_reader._readers[os.getpid()]._process.wait()
    find_problem("good.mps", files)
    assert process_id() != first


def test_it_outlives_the_thread_that_started_it(files: Path) -> None:
    """Else the next file would be said to crash HiGHS."""
    model_reader._readers.pop(os.getpid(), None)
    thread = threading.Thread(target=find_problem, args=("good.mps", files))
    thread.start()
    thread.join()
    first = process_id()
    find_problem("good.mps", files)
    assert process_id() == first


@pytest.mark.skipif(not hasattr(os, "kill") or os.name == "nt", reason="no alarms there")
def test_the_process_ends_by_itself_where_nobody_kills_it(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_reader, "SECONDS", 0.5)
    monkeypatch.setattr(model_reader.threading, "Timer", lambda *_: Mock())
    with pytest.raises(FairtrialError, match="does not come to an end"):
        find_problem("endless.mps", files)


def test_threads_share_it(files: Path) -> None:
    found: list[str] = []
    threads = [threading.Thread(target=lambda: found.append(find_problem("good.mps", files).id)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == ["good"] * 4


def test_mistakes_are_said_as_before(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(files)
    Path("bad.mps").write_text("NAME t\nROWS\n N o\nCOLUMNS\n x nowhere 1\nENDATA\n")
    with pytest.raises(FairtrialError, match=r"^bad\.mps cannot be read: "):
        find_problem("bad.mps")
