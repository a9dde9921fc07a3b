"""Files that take their place as a whole."""

import os
import stat
import threading

import pytest

from fairtrial.core.private import replacing, write_private, write_shared
from fairtrial.web import files


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture(autouse=True)
def mask():
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.mark.parametrize(("private", "new"), [(True, 0o600), (False, 0o644)])
def test_a_mode_that_was_there_stays(tmp_path, private, new):
    path = tmp_path / "a"
    for before in (None, 0o640, 0o600):
        if before is not None:
            path.chmod(before)
        with replacing(path, private=private) as file:
            file.write(b"x")
        assert mode(path) == (before or new)
    assert os.listdir(tmp_path) == ["a"]


def test_what_fails_leaves_what_was_there(tmp_path):
    path = tmp_path / "a"
    path.write_text("old")
    with pytest.raises(KeyboardInterrupt), replacing(path) as file:
        file.write(b"new")
        file.flush()
        raise KeyboardInterrupt
    assert path.read_text() == "old" and os.listdir(tmp_path) == ["a"]


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "folder").mkdir()
    link, path = tmp_path / "link", tmp_path / "folder" / "a"
    link.symlink_to(path)
    for text in ("one", "two"):
        write_shared(link, text)
        assert link.is_symlink() and path.read_text() == text


def test_a_pipe_is_written_itself(tmp_path):
    pipe, read = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    write_private(pipe, b"x")
    reader.join()
    assert read == [b"x"] and stat.S_ISFIFO(pipe.stat().st_mode)


def test_the_longest_name_can_be_written(tmp_path):
    write_private(tmp_path / ("n" * 255), b"x")


def test_a_suite_that_is_edited_on_the_page_stays_private(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_text("old")
    path.chmod(0o600)
    files.write(tmp_path, "a.yaml", "new", before=files.fingerprint("old"))
    assert mode(path) == 0o600
