"""Environments of their own for other tools, made on request and never a dependency of ours."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path


def python_environment(folder: Path, *packages: str, python: str | None = None) -> Path:
    """Return the folder with the programs of a Python environment, which is made if it is not there.

    With uv, which takes seconds; where uv cannot reach the packages, for it does not read pip's configuration, with pip.
    """
    programs = folder / "bin"
    done = folder / ".complete"
    if done.exists():
        return programs
    shutil.rmtree(folder, ignore_errors=True)
    uv = _uv()
    if uv is None:
        _call([python or sys.executable, "-m", "venv", str(folder)])
        _call([str(programs / "python"), "-m", "pip", "install", "--quiet", *packages])
    else:
        _call([uv, "venv", "-q", "--seed", "--python", python or sys.executable, str(folder)])
        try:
            _call([uv, "pip", "install", "-q", "--python", str(programs / "python"), *packages])
        except subprocess.CalledProcessError:
            _call([str(programs / "python"), "-m", "pip", "install", "--quiet", *packages])
    done.touch()
    return programs


def node_environment(folder: Path, *packages: str) -> Path:
    """Return the folder with the programs of npm packages, which are installed if they are not there."""
    done = folder / ".complete"
    if not done.exists():
        folder.mkdir(parents=True, exist_ok=True)
        _call(["npm", "install", "--no-audit", "--no-fund", "--prefix", str(folder), *packages])
        done.touch()
    return folder / "node_modules" / ".bin"


def installed_version(programs: Path, package: str) -> str:
    """Return the version of a package in a Python environment."""
    code = f"from importlib.metadata import version; print(version({package!r}))"
    done = subprocess.run([str(programs / "python"), "-c", code], check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout.strip()


def _uv() -> str | None:
    own = Path(sys.executable).with_name("uv")
    return str(own) if own.exists() else shutil.which("uv")


def _call(command: list[str]) -> None:
    certificates = os.environ.get("PIP_CERT")
    variables = {**os.environ, **({"SSL_CERT_FILE": certificates} if certificates else {})}
    subprocess.run(command, check=True, env=variables)
