"""Assertions about the text of an answer."""

from __future__ import annotations

import json
import re
from typing import Any

from fairtrial.foreign.suites import FileRef
from fairtrial.tracks.interchange.importers._promptfoo.check import (
    Check,
    Make,
    Result,
    Scorer,
    Workshop,
    given_or,
    parsed,
    text_of,
    words_of,
)
from fairtrial.tracks.interchange.importers._promptfoo.files import resolve
from fairtrial.tracks.interchange.importers._promptfoo.vendors import litellm_name

_PROGRAM = re.compile(r"(?:python:|file://)*(.+\.(?:py|[mc]?[jt]s))")
_HTML_TAGS = (
    "html|head|body|div|span|p|a|ul|ol|li|table|tr|td|th|h[1-6]|br|img|form|input|button|section|article|header|footer|"
    "strong|em|b|i|script|style|pre|code"
)


def equals(check: Check, at: Workshop) -> Result:
    value = check.value
    text = json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else text_of(value)
    if not text.strip():
        return Result({"type": "regex", "pattern": r"\A\s*\Z"})
    return Result({"type": "match"} if isinstance(value, dict | list) else {"type": "match", "verbatim": True}, text)


def contains(check: Check, at: Workshop) -> Result | None:
    words = words_of(check.value, several=check.kind.endswith(("-any", "-all")))
    if not all(word.strip() for word in words) or not words:
        at.notes.lost(f"assertion `{check.kind}` without a text", "every answer contains it; leave it out", check.where)
        return None
    how = "all" if check.kind.endswith("-all") else "any"
    option = {"words": False} if check.kind.startswith("i") else {"verbatim": True}
    return Result({"type": "contains", how: words, **option})


def starts_with(check: Check, at: Workshop) -> Result:
    return Result({"type": "starts_with", "text": text_of(check.value), "verbatim": True})


def ends_with(check: Check, at: Workshop) -> Result:
    return Result({"type": "regex", "pattern": _guarded(rf"{re.escape(text_of(check.value))}\Z")})


def regex(check: Check, at: Workshop) -> Result:
    return Result({"type": "regex", "pattern": _guarded(text_of(check.value))})


def is_json(check: Check, at: Workshop) -> Result:
    strict = {"strict": True} if check.kind == "is-json" else {}
    value = check.value
    if isinstance(value, str) and value.strip():
        value = parsed(value)
    schema = resolve(value, at.folder) if isinstance(value, dict) else {}
    return Result({"type": "json_schema", "schema": schema, **strict})


def is_xml(check: Check, at: Workshop) -> Result:
    value = check.value
    wanted = (
        value.get("requiredElements") if isinstance(value, dict) else words_of(value, several=True) if value else []
    )
    arguments = {"elements": [str(name) for name in wanted or []], "inside": check.kind == "contains-xml"}
    return Result({"type": "python", "function": at.code.function("is_xml"), "arguments": arguments})


def is_html(check: Check, at: Workshop) -> Result:
    at.notes.differs("`is-html` and `contains-html` look for tags of HTML with a pattern")
    tags = rf"<(?:{_HTML_TAGS})\b[^>]*>"
    whole = rf"(?is)\A\s*(?:<!doctype html[^>]*>\s*)?{tags}.*>\s*\Z"
    return Result({"type": "regex", "pattern": whole if check.kind == "is-html" else f"(?i){tags}"})


def similar(check: Check, at: Workshop) -> Result | None:
    provider = check.entry.get("provider")
    name = str(provider.get("id") if isinstance(provider, dict) else provider or "")
    texts = words_of(check.value, several=False)
    if not any(text.strip() for text in texts):
        advice = "its value is blank here; write what answers should be like"
        at.notes.lost("assertion `similar`", advice, check.where)
        return None
    if program := _PROGRAM.fullmatch(name):
        file = FileRef(at.folder.find(program[1])[0])
        return _by_function(check, at, "similar_by_code", {"file": file})
    if ":sentence-similarity:" in name:
        return _by_function(check, at, "similar_at_hugging_face", {"model": name.rpartition(":")[2]})
    model = at.embedder(provider) if provider else "openai:text-embedding-3-large"
    if model is None:
        return None
    if model.startswith(("python:", "litellm:")):  # a vendor whose own API alone has its embeddings
        vendor, _, rest = re.sub(r":embeddings?:", ":", name).partition(":")
        return _by_function(check, at, "similarity", {"model": f"{litellm_name(vendor)}{rest}"})
    scorer = {"type": "similar", "embedder": model, "threshold": given_or(check.threshold, 0.75)}
    return (
        Result({"type": "best_of", "scorer": scorer, "references": texts})
        if len(texts) > 1
        else Result(scorer, texts[0])
    )


def _by_function(check: Check, at: Workshop, function: str, model: dict[str, Any]) -> Result:
    """Return a check of similarity that a function next to the suite makes, for each text."""
    needs = {"similarity": "`pip install litellm`", "similar_at_hugging_face": "set HF_TOKEN"}.get(function)
    at.notes.differs(
        f"`similar` with this model is computed by a function in {at.code.name}" + (f": {needs}" if needs else "")
    )
    made, limit = at.code.function(function), given_or(check.threshold, 0.75)
    parts: list[Scorer] = [
        {"type": "python", "function": made, "arguments": {**model, "reference": text, "threshold": limit}}
        for text in words_of(check.value, several=False)
    ]
    return Result(parts[0] if len(parts) == 1 else {"type": "any_of", "scorers": parts})


def levenshtein(check: Check, at: Workshop) -> Result:
    return Result({"type": "levenshtein", "max_distance": int(given_or(check.threshold, 5))}, text_of(check.value))


def overlap(check: Check, at: Workshop) -> Result:
    defaults = {"rouge-n": ("rouge", 0.75), "bleu": ("bleu", 0.5), "gleu": ("bleu", 0.5), "meteor": ("rouge", 0.5)}
    name, threshold = defaults[check.kind]
    scorer: Scorer = {"type": name}
    if check.kind == "rouge-n":
        scorer["variant"] = "1"
    if check.kind != "bleu":
        how = {"rouge-n": "ROUGE-1", "gleu": "BLEU", "meteor": "ROUGE-L"}[check.kind]
        at.notes.differs(f"`{check.kind}` is computed as {how} here; scores near the threshold may differ")
    else:
        at.notes.differs("`bleu` is computed as sacreBLEU does; scores near the threshold may differ")
    scorer["threshold"] = given_or(check.threshold, threshold)
    texts = words_of(check.value, several=False)
    return (
        Result({"type": "best_of", "scorer": scorer, "references": texts})
        if len(texts) > 1
        else Result(scorer, texts[0])
    )


def word_count(check: Check, at: Workshop) -> Result | None:
    value = check.value
    if isinstance(value, str):
        value = int(value) if value.strip().isdecimal() else parsed(value)
    if isinstance(value, dict):
        limits = {key: int(value[key]) for key in ("min", "max") if key in value}
    elif isinstance(value, int | float):
        limits = {"min": int(value), "max": int(value)}
    else:
        return None
    return Result({"type": "length", "unit": "words", **limits})


def is_sql(check: Check, at: Workshop) -> Result:
    value = check.value if isinstance(check.value, dict) else {}
    arguments: dict[str, Any] = {"inside": check.kind == "contains-sql"}
    if value.get("databaseType") or value.get("database"):
        arguments["dialect"] = (
            str(value.get("databaseType") or value["database"]).lower().replace("postgresql", "postgres")
        )
    tables = value.get("allowedTables")
    if isinstance(tables, list):
        arguments["tables"] = [str(table).rpartition("::")[2] for table in tables]
    if isinstance(value.get("allowedColumns"), list):
        arguments["columns"] = [str(column) for column in value["allowedColumns"]]
    at.notes.differs("`is-sql` and `contains-sql` parse with sqlglot: `pip install sqlglot`")
    return Result({"type": "python", "function": at.code.function("is_sql"), "arguments": arguments})


def _guarded(pattern: str) -> str:
    """Wrap a pattern if needed, so that it cannot be mistaken for the `/pattern/flags` form."""
    return f"(?:{pattern})" if pattern.startswith("/") else pattern


TEXT: dict[str, Make] = {
    "equals": equals,
    **dict.fromkeys(
        ("contains", "icontains", "contains-any", "icontains-any", "contains-all", "icontains-all"), contains
    ),
    "starts-with": starts_with,
    "ends-with": ends_with,
    "regex": regex,
    **dict.fromkeys(("is-json", "contains-json"), is_json),
    **dict.fromkeys(("is-xml", "contains-xml"), is_xml),
    **dict.fromkeys(("is-html", "contains-html"), is_html),
    **dict.fromkeys(("is-sql", "contains-sql"), is_sql),
    "similar": similar,
    "levenshtein": levenshtein,
    **dict.fromkeys(("rouge-n", "bleu", "gleu", "meteor"), overlap),
    "word-count": word_count,
}
