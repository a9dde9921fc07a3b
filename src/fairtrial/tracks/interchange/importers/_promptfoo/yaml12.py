"""YAML as promptfoo reads it: version 1.2, in which `yes` and `12:30` are texts, and `{q: Who?}` is a mapping."""

from __future__ import annotations

import re
from typing import Any

import yaml

from fairtrial.text.yaml_text import read_yaml

_MARK = "\ue002"  # for a question mark until the text has been parsed
_ASKING = re.compile(r"(?<=\S)\?")
_INT = re.compile(r"[-+]?(?:0|[1-9][0-9]*)|0o[0-7]+|0x[0-9a-fA-F]+")
_BOOL = re.compile(r"true|True|TRUE|false|False|FALSE")


class _Loader(yaml.SafeLoader):
    """Knows the booleans and whole numbers of YAML 1.2 alone."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith((":bool", ":int"))]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(f"^(?:{_BOOL.pattern})$"), list("tTfF"))
_Loader.add_implicit_resolver("tag:yaml.org,2002:int", re.compile(f"^(?:{_INT.pattern})$"), list("-+0123456789"))


def _whole(loader: yaml.SafeLoader, node: Any) -> int:
    text = str(loader.construct_scalar(node))
    return int(text, 0) if text[:2] in ("0o", "0x") else int(text)


_Loader.add_constructor("tag:yaml.org,2002:int", _whole)


def parse(text: str) -> Any:
    """Return what a text says as YAML; raise yaml.YAMLError if it is none."""
    try:
        return read_yaml(text, _Loader)
    except yaml.YAMLError:
        if "?" not in text:
            raise
        # PyYAML takes a question mark inside of braces for the beginning of a key.
        try:
            return _restored(read_yaml(_ASKING.sub(_MARK, text), _Loader))
        except yaml.YAMLError:
            pass
        raise


def _restored(value: Any) -> Any:
    if isinstance(value, str):
        return value.replace(_MARK, "?")
    if isinstance(value, dict):
        return {_restored(key): _restored(item) for key, item in value.items()}
    return [_restored(item) for item in value] if isinstance(value, list) else value
