"""Shared definitions for running and for reading runs that may stop early."""

from __future__ import annotations

FEWEST = 20  # complete cases, so that a run is not decided by a handful of lucky ones
