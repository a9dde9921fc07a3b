"""`fairtrial demo`."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

import click

from fairtrial import pipeline
from fairtrial.cli.console import Console
from fairtrial.cli.finish import Ending, check_outputs
from fairtrial.cli.layout import print_commands
from fairtrial.cli.run import run_suite
from fairtrial.providers.weights import fetch, weights_path
from fairtrial.suites import suite_path


def run_demo(outputs: tuple[str, ...], store: str | None, as_json: bool, quiet: bool) -> int:
    """Run the built-in suite, or one with scripted answers if the embedded model is not installed."""
    check_outputs(outputs)
    suite = pipeline.load(suite_path("demo" if _embedded_model() else "template"))
    ending = Ending(outputs=outputs, as_json=as_json, quiet=quiet)
    code = run_suite(suite, ending, runs=1, store=store)
    if not quiet and not as_json:
        program = _program()
        commands = [(f"{program} show --trials", "the answers"), (f"{program} init", "a suite for you to edit")]
        print_commands(Console(stderr=True), commands)
    return code


def _embedded_model() -> bool:
    """Return whether the embedded model can run; download its weights if they are missing."""
    if find_spec("xllamacpp") is None:
        click.echo(
            "The embedded model is not installed (pip install 'fairtrial[local]'): these answers are scripted.\n",
            err=True,
        )
        return False
    if not weights_path("smollm2").is_file():
        click.echo("Downloading the weights of the embedded model (98 MB, once) …", err=True)
    fetch("smollm2")
    return True


def _program() -> str:
    """Return what to type to run this program again: its name, or its path if the name would not find it."""
    started = Path(sys.argv[0]).resolve()
    found = shutil.which("fairtrial")
    if started.name != "fairtrial" or (found and Path(found).resolve() == started):
        return "fairtrial"
    inside = started.is_relative_to(Path.cwd())
    return shlex.quote(os.path.relpath(started) if inside else str(started))
