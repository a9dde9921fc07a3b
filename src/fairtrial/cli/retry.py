"""`fairtrial retry`."""

from __future__ import annotations

from fairtrial.cli.resume import going_on

command = going_on(
    "retry",
    "Try the failed trials of RUN again (an id, a prefix of one, or `latest`); nothing else is asked or scored.",
)
