"""The JSON schema of suite files, generated from the types that read them."""

from __future__ import annotations

from typing import Any

import msgspec

from fairtrial.config.case_document import CaseEntry, CaseSettings, Keys, TurnEntry
from fairtrial.config.document import DatasetEntry, JudgeEntry, SuiteDocument, SuiteEntry, TargetEntry
from fairtrial.core import registry
from fairtrial.core.extraction import Extraction
from fairtrial.core.providers import api_kinds

_SHORT: tuple[type[Keys], ...] = (TargetEntry, DatasetEntry, JudgeEntry, SuiteEntry, TurnEntry)
_LABELS = ("category", "difficulty", "cluster")
# Text that may also be written as a number or a boolean; its spelling is kept.
_EXTRACTION, _EXTRACT = "#/$defs/Extraction", {"$ref": "#/$defs/Extract"}
_SCALAR = {"type": ["string", "number", "boolean"]}


def suite_schema() -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) of suite files."""
    (root,), parts = msgspec.json.schema_components([SuiteDocument], ref_template="#/$defs/{name}")
    names = {f"#/$defs/{cls.__name__}" for cls in _SHORT}
    for part in parts.values():
        for key, value in part.get("properties", {}).items():
            part["properties"][key] = {"$ref": "#/$defs/Scorer"} if key == "scorer" else _with_short(value, names)
    for cls, keys in ((CaseEntry, ("id", "input", *_LABELS)), (CaseSettings, _LABELS)):
        properties = parts[cls.__name__]["properties"]
        for key in keys:
            properties[key] = {**_SCALAR, **{k: v for k, v in properties[key].items() if k == "description"}}
    parts[CaseEntry.__name__]["oneOf"] = [{"required": ["input"]}, {"required": ["turns"]}]
    parts["DatasetEntry"]["properties"]["scorer"] = {"type": "string"}
    parts["ProviderEntry"]["properties"]["kind"]["enum"] = list(api_kinds())
    parts["Scorer"] = _scorer_schema()
    parts["Extract"] = {"anyOf": [{"enum": list(Extraction.words)}, parts.pop("Extraction")]}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "fairtrial suite",
        **root,
        "$defs": parts,
    }


def _with_short(value: Any, names: set[str]) -> Any:
    """Also allow a plain string where a struct has a short form."""
    if isinstance(value, dict):
        if value.get("$ref") == _EXTRACTION:
            return _EXTRACT
        if value.get("$ref") in names:
            return {"anyOf": [{"type": "string"}, value]}
        return {key: _with_short(item, names) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_short(item, names) for item in value]
    return value


def _scorer_schema() -> dict[str, Any]:
    scorers = dict(sorted(registry.parts("scorers").items()))
    options = []
    for name, scorer in scorers.items():
        schema = msgspec.json.schema(scorer)
        body = schema["$defs"][schema["$ref"].rsplit("/", 1)[-1]]
        properties = {"type": {"const": name}, **_inlined(body["properties"], schema["$defs"])}
        options.append({**body, "properties": properties, "required": ["type", *body["required"]]})
    return {"description": "How answers are scored.", "anyOf": [{"enum": list(scorers)}, *options]}


def _inlined(value: Any, definitions: dict[str, Any]) -> Any:
    if isinstance(value, dict):
        if value.get("$ref") == _EXTRACTION:
            return _EXTRACT
        if "$ref" in value:
            return _inlined(definitions[value["$ref"].rsplit("/", 1)[-1]], definitions)
        return {key: _inlined(item, definitions) for key, item in value.items()}
    return [_inlined(item, definitions) for item in value] if isinstance(value, list) else value
