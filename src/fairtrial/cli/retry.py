"""`fairtrial retry`."""

from __future__ import annotations

from fairtrial.cli.resume import make_resume_command

command = make_resume_command(
    "retry",
    "Retry the failed trials of RUN (an id, a prefix of one, or `latest`); no other trial is run or scored.",
)
