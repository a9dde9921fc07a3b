"""What is typed is separate from what is done: help imports no more than it needs, and each body takes its options."""

import json
import subprocess
import sys
from importlib import import_module
from inspect import getclosurevars, signature

import click
import pytest

from fairtrial.cli.main import cli

# What help may import of the package; in `commands` and `options` is what is typed.
LIGHT = {
    "cli", "cli.interrupts", "cli.main", "cli.options", "cli.output", "core", "core.errors", "core.looks", "core.private",
    "core.registry", "core.trust", "reports", "reports.format", "reports.formats", "suites", "text", "text.printable", "tracks",
    "tracks.interchange.formats",
}  # fmt: skip
LIBRARIES = {"click", "colorama", "fairtrial", "msgspec", "typing_extensions"}
HELP_OF_ALL = """
import json, sys
before = set(sys.modules)
import click
from fairtrial.cli.main import cli

def every(command, path, parent):
    context = click.Context(command, info_name=path, parent=parent)
    command.get_help(context)
    for name in command.list_commands(context) if isinstance(command, click.Group) else ():
        every(command.get_command(context, name), name, context)

every(cli, "fairtrial", None)
print(json.dumps(sorted(set(sys.modules) - before)))
"""


def every(command, parent=None, path=()):
    """Yield every command that is not a group, with its name."""
    context = click.Context(command, parent=parent)
    if not isinstance(command, click.Group):
        yield " ".join(path), command
        return
    for name in command.list_commands(context):
        yield from every(command.get_command(context, name), context, (*path, name))


def test_the_help_of_all_commands_together_imports_little():
    done = subprocess.run([sys.executable, "-c", HELP_OF_ALL], capture_output=True, text=True, check=True)
    loaded = json.loads(done.stdout)
    others = {name.split(".")[0] for name in loaded} - sys.stdlib_module_names
    assert others <= LIBRARIES and "asyncio" not in loaded
    own = {name.removeprefix("fairtrial.") for name in loaded if name.startswith("fairtrial.")}
    typed = {name for name in own if name.startswith("cli.commands") or name.endswith((".commands", ".options"))}
    tracks = {name for name in own if name.startswith("tracks.") and name.count(".") == 1}
    assert own - typed - tracks - LIGHT == set()


@pytest.mark.parametrize(("name", "command"), [pytest.param(name, command, id=name) for name, command in every(cli)])
def test_what_is_typed_is_what_the_body_takes(name, command):
    known = getclosurevars(command.callback).nonlocals
    body = getattr(import_module(known["module"]), known["function"])
    options = {parameter.name: None for parameter in command.params if parameter.expose_value}
    signature(body).bind(**known["fixed"], **options)
    named = {each.name for each in signature(body).parameters.values() if each.kind != each.VAR_KEYWORD}
    assert named <= options.keys() | known["fixed"].keys()
