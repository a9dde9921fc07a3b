"""A run as trajectories in ATIF, one for each line."""

from __future__ import annotations

from typing import IO

from fairtrial.analyse.run import Run
from fairtrial.tracks.interchange.exports.atif import line_of
from fairtrial.tracks.interchange.exports.trajectory_steps import trajectories


def write(run: Run, file: IO[str]) -> None:
    """Write every trial."""
    for one in trajectories(run):
        file.write(line_of(run, one))
