"""`fairtrial init`."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from shlex import quote

import click
import msgspec

from fairtrial.config.schema import suite_schema
from fairtrial.core.errors import FairtrialError
from fairtrial.core.private import write_shared
from fairtrial.suites import files_of_kind

_NEEDS = {
    "agent": ("mcp", "pip install 'fairtrial[agents]'"),
    "code": ("playwright", "pip install 'fairtrial[arena]' && playwright install chromium"),
}


def write_suite(folder: Path, kind: str, force: bool) -> None:
    """Write an example suite of this kind."""
    schema = msgspec.json.format(msgspec.json.encode(suite_schema())).decode() + "\n"
    files = {folder / name: text for name, text in (files_of_kind(kind) | {"suite.schema.json": schema}).items()}
    for path in files:
        if path.exists() and not force:
            raise FairtrialError(f"{path} already exists; use --force to overwrite it")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, text in files.items():
            write_shared(path, text)
    except OSError as error:
        raise FairtrialError(f"{folder} cannot be written: {error.strerror}") from None
    written = [str(path) for path in files if path.name != "suite.schema.json"]
    module, install = _NEEDS.get(kind, ("", ""))
    click.echo(f"written: {', '.join(written)}")
    if module and find_spec(module) is None:
        click.echo(f"it needs: {install}")
    click.echo(f"next: fairtrial run {quote(str(folder / 'suite.yaml'))}")
