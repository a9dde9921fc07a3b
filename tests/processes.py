"""Processes that a test starts through a target, found again by an argument that no other process has."""

import time
from typing import Any
from uuid import uuid4

from tests.lazily import Library

psutil = Library("psutil")


def new_mark() -> str:
    """An argument for a program that no other process on this machine was given."""
    return f"mark-{uuid4().hex}"


def unmistakable(seconds: int) -> str:
    """A time for `sleep` that no other process on this machine was given."""
    return f"{seconds}.{uuid4().int % 10**12:012d}"


def ended(argument: str, within: float = 240) -> bool:
    """Whether no process with this argument is left; those that are being killed get a moment to go."""
    deadline = time.monotonic() + within
    while _with(argument):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def _with(argument: str) -> list[Any]:
    """Also those to whom it was given as a part of an argument, such as a configuration."""
    return [p for p in psutil.process_iter(["cmdline"]) if argument in " ".join(p.info["cmdline"] or [])]
