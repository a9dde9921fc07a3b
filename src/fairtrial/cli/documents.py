"""JSON on standard output: one document per command."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import click
import msgspec

from fairtrial.reports import SCHEMA_VERSION

_CONTROL_CODES = re.compile(r"[\x7f-\x9f]|(?<=##)\[")


def print_json(value: dict[str, Any]) -> None:
    """Print the command's one JSON document, with its schema version."""
    print_plain_json({"schema_version": SCHEMA_VERSION, **value})


def print_json_with_list(value: dict[str, Any], name: str, items: Iterable[Any]) -> None:
    """Print the command's one JSON document with a list at its end, item by item: it may be long."""
    head = msgspec.json.format(msgspec.json.encode({"schema_version": SCHEMA_VERSION, **value}), indent=2).decode()
    click.echo(f'{harmless(head.removesuffix("}").rstrip())},\n  "{name}": [', nl=False)
    for number, item in enumerate(items):
        click.echo(("," if number else "") + "\n    " + harmless(msgspec.json.encode(item).decode()), nl=False)
    click.echo("\n  ]\n}")


def print_plain_json(value: Any) -> None:
    """Print JSON whose format is defined elsewhere, so without our schema version."""
    click.echo(harmless(msgspec.json.format(msgspec.json.encode(value), indent=2).decode()))


def harmless(text: str) -> str:
    """Escape what a terminal or CI server would take for commands; the JSON means the same."""
    return _CONTROL_CODES.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
