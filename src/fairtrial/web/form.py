"""The values that the suite form shows."""

from __future__ import annotations

import shlex
from typing import Any

import msgspec
import yaml

from fairtrial.config.editing import Editor
from fairtrial.core import registry
from fairtrial.core.errors import FairtrialError
from fairtrial.web.changes import as_list, as_mapping

_CASES_PER_PAGE = 50
_DUMPER: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


def form_of(text: str, page: int = 1, editor: Editor | None = None) -> dict[str, Any]:
    """Return the form values of a suite text and one page of its cases; text that is not valid YAML has no form.

    An editor that is already open on the text saves parsing it again.
    """
    try:
        value = (editor or Editor(text)).value
    except FairtrialError as error:
        return {"suite": None, "broken": str(error)}
    cases = as_list(value.get("cases"))
    pages = max(1, -(-len(cases) // _CASES_PER_PAGE))
    page = min(page, pages)
    first = (page - 1) * _CASES_PER_PAGE
    return {
        "suite": _lenient({key: item for key, item in value.items() if key != "cases"}),
        "broken": "",
        "scorers": scorer_guides(),
        "cases": [
            (index, _lenient(case if isinstance(case, dict) else {"input": str(case)}))
            for index, case in list(enumerate(cases))[first : first + _CASES_PER_PAGE]
        ],
        "case_count": len(cases),
        "page": page,
        "pages": pages,
        "targets": [_lenient(_target(entry)) for entry in as_list(value.get("targets"))],
        "conditions": _mappings(value.get("conditions")),
        "servers": _mappings(value.get("mcp_servers")),
        "judge": _lenient(_judge(value.get("judge"))),
        "params": _lenient(as_mapping(value.get("params"))),
        "kind_of": _scorer_type,
        "options_of": _scorer_options,
        "lines": _as_lines,
        "shell": lambda words: shlex.join(str(word) for word in as_list(words)),
    }


def _scorer_type(scorer: Any) -> str:
    return str(scorer.get("type", "")) if isinstance(scorer, dict) else str(scorer or "")


def _scorer_options(scorer: Any) -> str:
    """Return the options of a scorer as YAML lines."""
    options = {key: value for key, value in scorer.items() if key != "type"} if isinstance(scorer, dict) else {}
    return _as_lines(options)


def _as_lines(value: Any) -> str:
    """Return a value as YAML, one entry per line."""
    return yaml.dump(_plain(value), Dumper=_DUMPER, sort_keys=False, allow_unicode=True).strip() if value else ""


def _plain(value: Any) -> Any:
    """Return a value as plain Python types, without the editor's formatting information."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    for kind in (str, bool, int, float):
        if isinstance(value, kind):
            return kind(value)
    return value


class Lenient(dict[str, Any]):
    """A mapping from a suite, in which missing keys are None."""

    def __missing__(self, key: str) -> None:
        return None


def _lenient(value: Any) -> Any:
    if isinstance(value, dict):
        return Lenient({str(key): _lenient(item) for key, item in value.items()})
    return [_lenient(item) for item in value] if isinstance(value, list) else value


def _mappings(value: Any) -> dict[str, Any]:
    """Return named mappings; an entry that is not a mapping, such as an empty condition, becomes an empty one."""
    return {str(name): _lenient(item if isinstance(item, dict) else {}) for name, item in as_mapping(value).items()}


def _target(entry: Any) -> dict[str, Any]:
    return dict(entry) if isinstance(entry, dict) else {"target": str(entry)}


def _judge(entry: Any) -> dict[str, Any]:
    return dict(entry) if isinstance(entry, dict) else {"target": str(entry)} if entry else {}


def scorer_guides() -> list[dict[str, Any]]:
    """Return every scorer with what helps to choose one."""
    guides = []
    for name, cls in sorted(registry.parts("scorers").items()):
        guide = cls.guide
        summary = (cls.__doc__ or "").strip().split("\n")[0]
        guides.append({"name": name, "words": summary, "judged": cls.judged, **msgspec.to_builtins(guide)})
    return guides
