"""`fairtrial import traces`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from fairtrial.core.errors import FairtrialError
from fairtrial.text.yaml_text import read_yaml
from fairtrial.tracks.interchange.import_traces import TraceOptions, import_traces


def write_cases(files: tuple[Path, ...], output: Path, where: tuple[str, ...], force: bool, **options: Any) -> None:
    """Write the recorded calls as the cases of a suite or a dataset."""
    if output.exists() and not force:
        raise FairtrialError(f"{output} already exists: choose another file with -o, or overwrite it with --force")
    conditions = {name: value for text in where for name, value in _condition(text).items()}
    read = import_traces(files, output, TraceOptions(where=conditions, **options))
    click.echo(f"written: {output}", err=True)
    for line in read.lines():
        click.echo(f"  {line}", err=True)


def _condition(text: str) -> dict[str, Any]:
    import yaml

    try:
        value = read_yaml(text)
    except yaml.YAMLError:
        value = None
    if not isinstance(value, dict) or not all(isinstance(name, str) for name in value):
        raise FairtrialError(f"--where `{text}` is not `COLUMN: CONDITION`, such as 'model: gpt-6.1-sol'")
    return value
