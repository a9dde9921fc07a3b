"""`fairtrial init`."""

from __future__ import annotations

from pathlib import Path

import click

from fairtrial.cli.options import option


@click.command()
@click.argument("folder", default=".", type=click.Path(file_okay=False, path_type=Path), metavar="[DIR]")
@option("--force", is_flag=True, help="Overwrite existing files.")
def command(folder: Path, force: bool) -> None:
    """Write a commented example suite, ready to run, with a JSON schema for your editor."""
    import msgspec

    from fairtrial.config.schema import suite_schema
    from fairtrial.core.errors import FairtrialError
    from fairtrial.suites import suite_path

    files = {
        folder / "suite.yaml": suite_path("template").read_text("utf-8"),
        folder / "suite.schema.json": msgspec.json.format(msgspec.json.encode(suite_schema())).decode() + "\n",
    }
    for path in files:
        if path.exists() and not force:
            raise FairtrialError(f"{path} already exists; use --force to overwrite it")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, text in files.items():
            path.write_text(text, "utf-8")
    except OSError as error:
        raise FairtrialError(f"{folder} cannot be written: {error.strerror}") from None
    suite = folder / "suite.yaml"
    click.echo(f"written: {suite}\nnext: fairtrial run {suite}")
