"""The form of a suite: what it shows of the text."""

from __future__ import annotations

import shlex
from typing import Any

import msgspec
import yaml

from fairtrial.config.editing import Editor
from fairtrial.core import registry
from fairtrial.core.errors import FairtrialError
from fairtrial.web.changes import list_of, mapping_of

_CASES = 50


def form_of(text: str, page: int = 1, editor: Editor | None = None) -> dict[str, Any]:
    """What the form shows of a text, and of its cases a page; a text that is no YAML has no form.

    With an editor that is open on the text, it is not read again.
    """
    try:
        value = (editor or Editor(text)).value
    except FairtrialError as error:
        return {"suite": None, "broken": str(error)}
    listed = value.get("cases")
    cases = listed if isinstance(listed, list) else []
    pages = max(1, -(-len(cases) // _CASES))
    page = min(page, pages)
    first = (page - 1) * _CASES
    return {
        "suite": _soft({key: item for key, item in value.items() if key != "cases"}),
        "broken": "",
        "scorers": scorer_guides(),
        "cases": [
            (index, _soft(case if isinstance(case, dict) else {"input": str(case)}))
            for index, case in list(enumerate(cases))[first : first + _CASES]
        ],
        "case_count": len(cases),
        "page": page,
        "pages": pages,
        "targets": [_soft(_target(entry)) for entry in list_of(value.get("targets"))],
        "conditions": _mappings(value.get("conditions")),
        "servers": _mappings(value.get("mcp_servers")),
        "judge": _soft(_judge(value.get("judge"))),
        "params": _soft(mapping_of(value.get("params"))),
        "kind_of": _scorer_type,
        "options_of": _scorer_options,
        "lines": _as_lines,
        "shell": lambda words: shlex.join(str(word) for word in list_of(words)),
    }


def _scorer_type(scorer: Any) -> str:
    return str(scorer.get("type", "")) if isinstance(scorer, dict) else str(scorer or "")


def _scorer_options(scorer: Any) -> str:
    """A scorer's options as people write them."""
    given = {key: value for key, value in scorer.items() if key != "type"} if isinstance(scorer, dict) else {}
    return _as_lines(given)


def _as_lines(given: Any) -> str:
    """A mapping as people write it, one a line."""
    return yaml.safe_dump(_plain(given), sort_keys=False, allow_unicode=True).strip() if given else ""


def _plain(value: Any) -> Any:
    """Without what the editor knows of a value's spelling."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    for kind in (str, bool, int, float):
        if isinstance(value, kind):
            return kind(value)
    return value


class Soft(dict[str, Any]):
    """What somebody wrote: a key that is not there is None."""

    def __missing__(self, key: str) -> None:
        return None


def _soft(value: Any) -> Any:
    if isinstance(value, dict):
        return Soft({str(key): _soft(item) for key, item in value.items()})
    return [_soft(item) for item in value] if isinstance(value, list) else value


def _mappings(value: Any) -> dict[str, Any]:
    """Named mappings; what is none, such as a condition without anything, is an empty one."""
    return {str(name): _soft(item if isinstance(item, dict) else {}) for name, item in mapping_of(value).items()}


def _target(entry: Any) -> dict[str, Any]:
    return dict(entry) if isinstance(entry, dict) else {"target": str(entry)}


def _judge(entry: Any) -> dict[str, Any]:
    return dict(entry) if isinstance(entry, dict) else {"target": str(entry)} if entry else {}


def scorer_guides() -> list[dict[str, Any]]:
    """Every scorer with what a person should know when choosing one."""
    found = []
    for name in registry.names("scorers"):
        cls = registry.load("scorers", name)
        guide = cls.guide
        words = (cls.__doc__ or "").strip().split("\n")[0]
        found.append({"name": name, "words": words, "judged": cls.judged, **msgspec.to_builtins(guide)})
    return found
