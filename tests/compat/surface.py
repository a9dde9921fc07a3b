"""The outside of fairtrial: commands with their options, public names, keys of suites, names of parts."""

from __future__ import annotations

import enum
import inspect
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

import fairtrial
from fairtrial import plugins
from fairtrial.cli.main import cli
from fairtrial.core import registry
from tests.compat.driving import fairtrial as command_line

FAMILIES = ("scorers", "targets", "importers", "results")  # those that plug-ins can add to
_LIMITS = ("minimum", "maximum", "exclusiveMinimum", "minItems", "required")
_MANY = 10  # alternatives from which on a part of the schema is described once


def surface() -> dict[str, Any]:
    """Return everything that others rely on by name. Names are keys: further ones are no difference."""
    return {
        "commands": dict(_commands(cli, "fairtrial")),
        "exported formats": dict.fromkeys(_formats(), True),
        "public": {name: _described(getattr(fairtrial, name)) for name in fairtrial.__all__},
        "for plug-ins": {name: _described(getattr(plugins, name), made=True) for name in plugins.__all__},
        "families": {family: dict.fromkeys(registry.names(family), True) for family in FAMILIES},
        "suite keys": suite_keys(json.loads(command_line("validate --schema")[1])),
    }


def _commands(command: click.Command, path: str) -> Iterator[tuple[str, Any]]:
    """Yield every command with its parameters, by what is typed."""
    required = [_typed(parameter) for parameter in command.params if parameter.required]
    yield path, {"required": required} | {_typed(parameter): _parameter(parameter) for parameter in command.params}
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from _commands(inner, f"{path} {name}")


def _typed(parameter: click.Parameter) -> str:
    return parameter.opts[-1] if isinstance(parameter, click.Option) else (parameter.name or "").upper()


def _parameter(parameter: click.Parameter) -> dict[str, Any]:
    """Return what an option or argument takes; choices and second names may be added to."""
    facts = {
        "of": parameter.type.name,
        "default": _plain(parameter.default),
        "required": parameter.required,
        "values": parameter.nargs,
        "repeated": parameter.multiple,
        "flag": getattr(parameter, "is_flag", False),
        "variable": parameter.envvar,
        "min": getattr(parameter.type, "min", None),
        "max": getattr(parameter.type, "max", None),
    }
    return {
        "is": _facts(facts),
        "choices": dict.fromkeys(map(str, getattr(parameter.type, "choices", ())), True),
        "names": dict.fromkeys([*parameter.opts, *parameter.secondary_opts], True),
    }


def _facts(facts: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in facts.items() if value is not None and value is not False)


def _plain(value: Any) -> Any:
    """Return a default as JSON has it; click marks those that are not set in its own way."""
    if isinstance(value, enum.Enum) or callable(value):
        return None
    return list(value) if isinstance(value, tuple) else str(value) if isinstance(value, Path) else value


def _formats() -> list[str]:
    """Return the formats that `export` names."""
    export = cli.get_command(click.Context(cli), "export")
    help_ = next(parameter.help for parameter in export.params if "--format" in parameter.opts)  # type: ignore
    return re.findall(r"[a-z][\w.]*\w", help_.partition("one of ")[2])


def _described(value: Any, made: bool = False) -> Any:
    """Return the parameters of a function, the attributes of a class, the names of a module.

    Results are read, not made: a field that is added to one breaks nothing. With `made`, others make them, too.
    """
    if inspect.ismodule(value):
        listed = hasattr(value, "__all__")
        return {name: "name" for name in _public(value) if listed or inspect.isclass(getattr(value, name))}
    if not callable(value):
        return type(value).__name__
    if not inspect.isclass(value):
        return _parameters(value)
    made = made or not hasattr(value, "__struct_fields__")
    return {"parameters": _parameters(value) if made else {}, "attributes": dict.fromkeys(_public(value), True)}


def _public(value: Any) -> list[str]:
    return [name for name in getattr(value, "__all__", dir(value)) if not name.startswith("_")]


def _parameters(function: Any) -> dict[str, Any]:
    """Return by parameter how it can be given, and which must be."""
    if fields := getattr(function, "__struct_fields__", None):
        required = list(fields[: len(fields) - len(function.__struct_defaults__)])
        return {"required": required, **dict.fromkeys(fields, "field")}
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:
        return {}
    open_kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    required = [each.name for each in parameters if each.default is each.empty and each.kind not in open_kinds]
    return {"required": required, **{each.name: each.kind.description for each in parameters if each.name[0] != "_"}}


def suite_keys(schema: dict[str, Any]) -> dict[str, Any]:
    """Return every key of a suite by its path, with its types, choices and default; classes have no name here."""
    found: dict[str, Any] = {}
    once: dict[str, Any] = {}
    _keys(schema, schema, "", found, once)
    for name, node in once.items():
        for alternative in _alternatives(schema, node):
            kind = alternative.get("properties", {}).get("type", {}).get("const", "")
            _keys(schema, alternative, f"{name}<{kind}>", found, {})
    return found


def _keys(schema: Any, node: Any, path: str, found: dict[str, Any], once: dict[str, Any]) -> None:
    """Add what a node of the schema and everything below it may be."""
    alternatives = list(_alternatives(schema, node))
    if len(alternatives) > _MANY:
        once.setdefault("scorer", node)
        found[path] = "scorer"
        return
    facts = {"default": node.get("default")}
    types: dict[str, bool] = {}
    for alternative in alternatives:
        facts |= {name: alternative[name] for name in _LIMITS if name in alternative}
        named = alternative.get("type", [])
        types |= dict.fromkeys([named] if isinstance(named, str) else named, True)
        types |= dict.fromkeys((repr(choice) for choice in alternative.get("enum", [])), True)
        for name, inner in alternative.get("properties", {}).items():
            _keys(schema, inner, f"{path}.{name}".lstrip("."), found, once)
        for key, mark in (("items", "[]"), ("additionalProperties", ".*")):
            if isinstance(alternative.get(key), dict):
                _keys(schema, alternative[key], f"{path}{mark}", found, once)
    found[path] = {"is": _facts(facts), "types": types}


def _alternatives(schema: Any, node: Any) -> Iterator[Any]:
    """Yield what a node of the schema may be, with references followed."""
    if "$ref" in node:
        yield from _alternatives(schema, schema["$defs"][node["$ref"].rpartition("/")[2]])
    elif "anyOf" in node:
        for inner in node["anyOf"]:
            yield from _alternatives(schema, inner)
    else:
        yield node
