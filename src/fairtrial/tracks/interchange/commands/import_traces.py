"""`fairtrial import traces`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from fairtrial.cli.options import option
from fairtrial.core.errors import FairtrialError
from fairtrial.text.yaml_text import read_yaml
from fairtrial.tracks.interchange.import_traces import TraceOptions, import_traces


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE...")
@option("-o", "--output", type=click.Path(path_type=Path), default=Path("suite.yaml"), show_default=True,
        metavar="FILE", help="The suite (.yaml) or dataset (.jsonl) to write.")  # fmt: skip
@option("--format", "form", type=click.Choice(["otlp", "langfuse", "logfire"]), help="The kind of FILE, if unclear.")
@option("--where", multiple=True, metavar="'COLUMN: CONDITION'",
        help="Only these calls, as in a dataset: 'model: gpt-6.1-sol', 'turns: {min: 2}'; repeatable.")  # fmt: skip
@option("--by", type=click.Choice(["call", "trace", "session"]), default="call", show_default=True,
        help="A case for every call, or for the longest call of each trace or session.")  # fmt: skip
@option("--sample", type=click.IntRange(min=1), help="Draw this many cases at random.")
@option("--seed", type=int, default=0, show_default=True, help="The seed of --sample.")
@option("--expected", metavar="COLUMN", help="The expected answers: `answer` for the recorded ones, `tools` for the "
        "recorded calls of tools, or a column; default: labels recorded with the calls.")  # fmt: skip
@option("--redact", multiple=True, metavar="REGEX", help="Replace this as well as e-mail addresses, phone and card "
        "numbers and API keys; `off` replaces nothing; repeatable.")  # fmt: skip
@option("--target", metavar="T", help="The target of the suite; default: the model that was recorded most often.")
@option("--force", is_flag=True, help="Overwrite an existing file.")
def command(files: tuple[Path, ...], output: Path, where: tuple[str, ...], force: bool, **options: Any) -> None:
    """Turn the recorded calls in FILEs into cases: yesterday's production becomes today's suite.

    Reads OpenTelemetry (OTLP as JSON), Langfuse and Logfire exports. Equal questions become one case.
    """
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
