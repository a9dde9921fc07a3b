"""Processes that a test starts through a target, found again by an argument that no other process has."""

import time
from uuid import uuid4

import psutil


def unmistakable(seconds: int) -> str:
    """A time for `sleep` that no other process on this machine was given."""
    return f"{seconds}.{uuid4().int % 10**12:012d}"


def ended(argument: str, within: float = 60) -> bool:
    """Whether no process with this argument is left; those that are being killed get a moment to go."""
    deadline = time.monotonic() + within
    while _with(argument):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def _with(argument: str) -> list[psutil.Process]:
    return [p for p in psutil.process_iter(["cmdline"]) if argument in (p.info["cmdline"] or [])]
