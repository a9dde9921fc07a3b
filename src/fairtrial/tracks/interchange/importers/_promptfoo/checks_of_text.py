"""Assertions about the text of an answer."""

from __future__ import annotations

import json
import re
from typing import Any

from fairtrial.foreign.suites import FileRef
from fairtrial.tracks.interchange.importers._promptfoo.assertion import Assertion, Converted, Make, Scorer, parsed
from fairtrial.tracks.interchange.importers._promptfoo.files import resolve
from fairtrial.tracks.interchange.importers._promptfoo.vendors import litellm_name

_PROGRAM = re.compile(r"(?:python:|file://)*(.+\.(?:py|[mc]?[jt]s))")
_HTML_TAGS = (
    "html|head|body|div|span|p|a|ul|ol|li|table|tr|td|th|h[1-6]|br|img|form|input|button|section|article|header|footer|"
    "strong|em|b|i|script|style|pre|code"
)


def equals(check: Assertion) -> Converted:
    value = check.value
    text = json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else check.text
    if not text.strip():
        return Converted({"type": "regex", "pattern": r"\A\s*\Z"})
    return Converted({"type": "match"} if isinstance(value, dict | list) else {"type": "match", "verbatim": True}, text)


def contains(check: Assertion) -> Converted | None:
    words = check.words if check.kind.endswith(("-any", "-all")) else check.texts
    if not all(word.strip() for word in words) or not words:
        check.at.notes.lost(
            f"assertion `{check.kind}` without a text", "every answer contains it; leave it out", check.where
        )
        return None
    how = "all" if check.kind.endswith("-all") else "any"
    option = {"words": False} if check.kind.startswith("i") else {"verbatim": True}
    return Converted({"type": "contains", how: words, **option})


def is_json(check: Assertion) -> Converted:
    strict = {"strict": True} if check.kind == "is-json" else {}
    value = check.value
    if isinstance(value, str) and value.strip():
        value = parsed(value)
    schema = resolve(value, check.at.folder) if isinstance(value, dict) else {}
    return Converted({"type": "json_schema", "schema": schema, **strict})


def is_xml(check: Assertion) -> Converted:
    value = check.value
    wanted = value.get("requiredElements") if isinstance(value, dict) else check.words if value else []
    return check.by_function(
        "is_xml", elements=[str(name) for name in wanted or []], inside=check.kind == "contains-xml"
    )


def is_html(check: Assertion) -> Converted:
    check.at.notes.differs("`is-html` and `contains-html` look for tags of HTML with a pattern")
    tags = rf"<(?:{_HTML_TAGS})\b[^>]*>"
    whole = rf"(?is)\A\s*(?:<!doctype html[^>]*>\s*)?{tags}.*>\s*\Z"
    return Converted({"type": "regex", "pattern": whole if check.kind == "is-html" else f"(?i){tags}"})


def similar(check: Assertion) -> Converted | None:
    name, texts = check.provider, check.texts
    if not any(text.strip() for text in texts):
        advice = "its value is blank here; write what answers should be like"
        check.at.notes.lost("assertion `similar`", advice, check.where)
        return None
    if program := _PROGRAM.fullmatch(name):
        file = FileRef(check.at.folder.find(program[1])[0])
        return _by_function(check, "similar_by_code", {"file": file})
    if ":sentence-similarity:" in name:
        return _by_function(check, "similar_at_hugging_face", {"model": name.rpartition(":")[2]})
    provider = check.entry.get("provider")
    model = check.providers.embedder(provider) if provider else "openai:text-embedding-3-large"
    if model is None:
        return None
    if model.startswith(("python:", "litellm:")):  # a vendor whose own API alone has its embeddings
        vendor, _, rest = re.sub(r":embeddings?:", ":", name).partition(":")
        return _by_function(check, "similarity", {"model": f"{litellm_name(vendor)}{rest}"})
    return _to_nearest({"type": "similar", "embedder": model, "threshold": check.limit(0.75)}, texts)


def _to_nearest(scorer: Scorer, texts: list[str]) -> Converted:
    """Return the comparison with a text, or with the one of several that is the most like the answer."""
    several = {"type": "best_of", "scorer": scorer, "references": texts}
    return Converted(several) if len(texts) > 1 else Converted(scorer, texts[0])


def _by_function(check: Assertion, function: str, model: dict[str, Any]) -> Converted:
    """Return a check of similarity that a function next to the suite makes, for each text."""
    needs = {"similarity": "`pip install litellm`", "similar_at_hugging_face": "set HF_TOKEN"}.get(function)
    check.at.notes.differs(
        f"`similar` with this model is computed by a function in {check.at.code.name}" + (f": {needs}" if needs else "")
    )
    limit = check.limit(0.75)
    parts = [check.by_function(function, **model, reference=text, threshold=limit).scorer for text in check.texts]
    return Converted(parts[0] if len(parts) == 1 else {"type": "any_of", "scorers": parts})


def overlap(check: Assertion) -> Converted:
    defaults = {"rouge-n": ("rouge", 0.75), "bleu": ("bleu", 0.5), "gleu": ("bleu", 0.5), "meteor": ("rouge", 0.5)}
    name, threshold = defaults[check.kind]
    scorer: Scorer = {"type": name}
    if check.kind == "rouge-n":
        scorer["variant"] = "1"
    if check.kind != "bleu":
        how = {"rouge-n": "ROUGE-1", "gleu": "BLEU", "meteor": "ROUGE-L"}[check.kind]
        check.at.notes.differs(f"`{check.kind}` is computed as {how} here; scores near the threshold may differ")
    else:
        check.at.notes.differs("`bleu` is computed as sacreBLEU does; scores near the threshold may differ")
    scorer["threshold"] = check.limit(threshold)
    return _to_nearest(scorer, check.texts)


def word_count(check: Assertion) -> Converted | None:
    value = check.value
    if isinstance(value, str):
        value = int(value) if value.strip().isdecimal() else parsed(value)
    if isinstance(value, dict):
        limits = {key: int(value[key]) for key in ("min", "max") if key in value}
    elif isinstance(value, int | float):
        limits = {"min": int(value), "max": int(value)}
    else:
        return None
    return Converted({"type": "length", "unit": "words", **limits})


def is_sql(check: Assertion) -> Converted:
    value = check.settings
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
    check.at.notes.differs("`is-sql` and `contains-sql` parse with sqlglot: `pip install sqlglot`")
    return check.by_function("is_sql", **arguments)


def _pattern(pattern: str) -> Converted:
    """Return a check for a pattern, which is wrapped if it could be mistaken for the `/pattern/flags` form."""
    return Converted({"type": "regex", "pattern": f"(?:{pattern})" if pattern.startswith("/") else pattern})


TEXT: dict[str, Make] = {
    "equals": equals,
    **dict.fromkeys(
        ("contains", "icontains", "contains-any", "icontains-any", "contains-all", "icontains-all"), contains
    ),
    "starts-with": lambda check: Converted({"type": "starts_with", "text": check.text, "verbatim": True}),
    "ends-with": lambda check: _pattern(rf"{re.escape(check.text)}\Z"),
    "regex": lambda check: _pattern(check.text),
    **dict.fromkeys(("is-json", "contains-json"), is_json),
    **dict.fromkeys(("is-xml", "contains-xml"), is_xml),
    **dict.fromkeys(("is-html", "contains-html"), is_html),
    **dict.fromkeys(("is-sql", "contains-sql"), is_sql),
    "similar": similar,
    "levenshtein": lambda check: Converted({"type": "levenshtein", "max_distance": int(check.limit(5))}, check.text),
    **dict.fromkeys(("rouge-n", "bleu", "gleu", "meteor"), overlap),
    "word-count": word_count,
}
