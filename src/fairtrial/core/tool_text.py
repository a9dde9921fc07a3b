"""Other texts for a tool than its server's: what a condition tells an agent that the tool does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec


class ToolText(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The description of a tool, or of some of its parameters, in the place of the server's."""

    tool: str
    description: str | None = None
    parameters: dict[str, str] = {}

    def of_schema(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        """Return the schema of the tool's arguments with these descriptions: what is valid stays the same."""
        properties = dict(schema.get("properties") or {})
        for name, text in self.parameters.items():
            own = properties.get(name)
            properties[name] = {**(own if isinstance(own, Mapping) else {}), "description": text}
        return {**schema, "properties": properties} if self.parameters else dict(schema)

    def unknown(self, schema: Mapping[str, Any]) -> list[str]:
        """Return the parameters that the tool does not have."""
        return [name for name in self.parameters if name not in (schema.get("properties") or {})]
