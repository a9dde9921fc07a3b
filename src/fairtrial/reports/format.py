"""What an export format is: the contract of the door `reports`."""

from __future__ import annotations

from typing import NamedTuple


class Format(NamedTuple):
    """An export format: its name, which is that of the module in `home` that writes it, and its file extensions.

    A module has `write(run, file)`. With `folder`, it also has `write_folder(run, folder)`; a service, which has no
    extension, has `send(run, address)` alone, which returns where the run can be seen.
    """

    module: str
    title: str
    endings: tuple[str, ...]
    binary: bool = False
    folder: bool = False
    one: str = ""  # what a file holds one of: `arm`, `target` or `trial`; empty: a whole run
    home: str = "fairtrial.reports"
