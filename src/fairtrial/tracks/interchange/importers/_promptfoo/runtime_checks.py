"""Assertions of promptfoo that are not scorers of fairtrial's, as functions that score."""

from __future__ import annotations

import json
import os
import re
from typing import Any

from fairtrial.tracks.interchange.importers._promptfoo.runtime import check_context, expanded, filled, graded, post


def is_xml(response: str, elements: list[str] | tuple[str, ...] = (), inside: bool = False) -> bool:
    """Return whether an answer is XML, or has XML in it, with these elements (`root.child`)."""
    import xml.etree.ElementTree as ET

    pieces = [response.strip()]
    if inside:
        pieces = [match[0] for match in re.finditer(r"<(\w[\w.:-]*)\b[^>]*>.*</\1\s*>", response, re.DOTALL)]
    for piece in pieces:
        try:
            root = ET.fromstring(piece)
        except ET.ParseError:
            continue
        if all(_has(root, element.split(".")) for element in elements):
            return True
    return False


def _has(root: Any, path: list[str]) -> bool:
    return bool(root.tag == path[0] and (len(path) == 1 or root.find("/".join(path[1:])) is not None))


def is_sql(
    response: str,
    inside: bool = False,
    dialect: str | None = None,
    tables: list[str] | None = None,
    columns: list[str] | None = None,
) -> bool:
    """Return whether an answer is SQL, or has SQL in a fence (`pip install sqlglot`), of these tables and columns.

    Columns are patterns for `select::table::column`, with `null` for a table that the statement does not name.
    """
    import sqlglot
    from sqlglot import exp

    fence = re.search(r"```(?:\w*)\s*\n?(.*?)```", response, re.DOTALL) if inside else None
    try:
        statements = [one for one in sqlglot.parse(fence[1] if fence else response, dialect=dialect) if one]
    except sqlglot.errors.SqlglotError:
        return False
    known = (exp.Query, exp.DML, exp.DDL, exp.Alter, exp.Drop)
    named = {table.name for one in statements for table in one.find_all(exp.Table)}
    if not statements or not all(isinstance(one, known) for one in statements):
        return False
    used = {
        f"{one.key}::{column.table or 'null'}::{'(.*)' if isinstance(column.this, exp.Star) else column.name}"
        for one in statements
        for column in one.find_all(exp.Column)
    }
    allowed = not columns or all(any(_allows(column, one) for column in columns) for one in used)
    return allowed and (not tables or named <= set(tables))


def _allows(pattern: str, column: str) -> bool:
    return pattern == column or bool(re.fullmatch(pattern, column, re.IGNORECASE))


def call_webhook(url: str, facts: dict[str, Any]) -> Any:
    """Send an answer to an address that checks it, as promptfoo does."""
    body = json.loads(json.dumps({"output": facts["response"], "context": check_context(facts)}, default=str))
    return graded(post(filled(url, facts["vars"]), body, timeout=30))


def is_harmless(response: str, categories: list[str] | None = None) -> Any:
    """Ask OpenAI's moderation whether an answer is harmless (`OPENAI_API_KEY`)."""
    address = os.environ.get("OPENAI_BASE_URL", "https://api.openai.com/v1") + "/moderations"
    headers = {"Authorization": f"Bearer {os.environ['OPENAI_API_KEY']}"}
    reply = post(address, {"model": "omni-moderation-latest", "input": response}, headers, timeout=30)
    flagged = [name for name, hit in reply["results"][0]["categories"].items() if hit]
    found = [name for name in flagged if not categories or name in categories]
    return {"pass": not found, "score": float(not found), "reason": ", ".join(found) or "nothing was flagged"}


def _at_hugging_face(model: str, body: Any, address: str = "", path: str = "") -> Any:
    key = os.environ.get("HF_TOKEN") or os.environ.get("HF_API_TOKEN")
    place = expanded(address) or f"https://router.huggingface.co/hf-inference/models/{model}{path}"
    return post(place, body, {"Authorization": f"Bearer {key}"} if key else {}, timeout=60)


def classify(response: str, model: str, label: str, threshold: float = 1.0, address: str = "") -> Any:
    """Ask a classifier of Hugging Face for the share of a class in an answer (`HF_TOKEN`)."""
    rows = _at_hugging_face(model, {"inputs": response}, address)
    rows = rows[0] if rows and isinstance(rows[0], list) else rows
    names = ("label", "entity_group", "entity")
    scores = [row["score"] for row in rows if not label or label in [row.get(name) for name in names]]
    score = max(scores, default=0.0)
    return {"pass": score >= threshold, "score": score}


def similar_at_hugging_face(response: str, model: str, reference: str, threshold: float = 0.75) -> Any:
    """Ask a model of Hugging Face how similar an answer and a text are (`HF_TOKEN`)."""
    body = {"inputs": {"source_sentence": reference, "sentences": [response]}}
    score = max(0.0, float(_at_hugging_face(model, body, path="/pipeline/sentence-similarity")[0]))
    return {"pass": score >= threshold, "score": min(1.0, score)}


def calls_are_valid(tool_calls: list[Any], tools: list[Any]) -> Any:
    """Return whether an answer is calls of tools that were offered, with arguments that fit."""
    import jsonschema_rs

    offered = {one.get("function", one).get("name"): one.get("function", one) for one in tools}
    for call in tool_calls:
        tool = offered.get(call["tool"])
        if offered and tool is None:
            return {"pass": False, "score": 0.0, "reason": f"there is no tool {call['tool']}"}
        schema = (tool or {}).get("parameters") or (tool or {}).get("input_schema") or {"type": "object"}
        if not jsonschema_rs.is_valid(schema, call.get("arguments") or {}):
            return {"pass": False, "score": 0.0, "reason": f"the arguments of {call['tool']} do not fit"}
    return {"pass": bool(tool_calls), "score": float(bool(tool_calls))}


def count_steps(
    tool_calls: list[Any] | None,
    trace: Any,
    kind: str = "",
    pattern: str = "*",
    min: int | None = None,
    max: int | None = None,
) -> Any:
    """Return whether an agent made as many steps of a kind as it should; spans that it reported are steps too."""
    from fnmatch import fnmatchcase

    spans = (trace or {}).get("spans") or []
    texts = [
        str((call.get("arguments") or {}).get("command") or "") if kind == "command" else str(call.get("tool"))
        for call in ([] if kind in ("reasoning", "search", "message", "span") else tool_calls or [])
    ]
    if kind not in ("tool", "command"):
        words = {"reasoning": ("reason", "think"), "search": ("search", "retriev"), "message": ("message",)}.get(kind)
        names = [str(span["name"]) for span in spans]
        texts += [name for name in names if words is None or any(word in name.lower() for word in words)]
    number = sum(1 for text in texts if text and fnmatchcase(text, pattern))
    fits = (min is None or number >= min) and (max is None or number <= max)
    return {"pass": fits, "score": float(fits), "reason": f"{number} steps"}
