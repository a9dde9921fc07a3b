"""`case_defaults`: defaults for every case and every row of a dataset."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from fairtrial.config.attach import read_attached
from fairtrial.config.case_document import CaseEntry, CaseSettings, ParamsEntry, listed
from fairtrial.config.document import SuiteDocument
from fairtrial.config.source import SuiteSource
from fairtrial.core.errors import FairtrialError
from fairtrial.core.experiment import Case
from fairtrial.core.options import build_scorer
from fairtrial.text.printable import name_problem

KEY = "case_defaults"
_ALSO_IN_ROWS = ("category", "difficulty", "cluster", "scorer")
_NEVER_IN_ROWS = ("extract", "params", "repeats", "on_limit", "targets", "conditions")


def with_case_defaults(source: SuiteSource, document: SuiteDocument) -> SuiteDocument:
    """Check the defaults, report what is wrong with them, and apply the others to the cases in the file."""
    if KEY not in source.value:
        return document
    if document.suite and not document.cases and not document.dataset:
        source.problem((KEY,), f"`{KEY}` are for `cases` and `dataset`, not for the cases of `suite`")
    wrong = dict(_problems(document.case_defaults, source.folder))
    for key, problem in wrong.items():
        source.problem((KEY, key), problem)
    unset = {key: getattr(CaseSettings(), key) for key in wrong}
    defaults = msgspec.structs.replace(document.case_defaults, **unset)
    written = source.value["cases"] if document.cases else []
    cases = [_with_defaults(entry, defaults, own) for entry, own in zip(document.cases, written, strict=False)]
    return msgspec.structs.replace(document, case_defaults=defaults, cases=cases)


def _problems(defaults: CaseSettings, folder: Path) -> Iterable[tuple[str, str]]:
    """Yield what would otherwise be reported of every case."""
    try:
        if defaults.scorer is not None:
            build_scorer(defaults.scorer)
    except FairtrialError as error:
        yield "scorer", str(error)
    try:
        read_attached(listed(defaults.attach), folder, fetch=False)
    except ValueError as error:
        yield "attach", str(error)
    for key in ("tags", "category", "difficulty", "cluster"):
        names = getattr(defaults, key) or []
        for problem in filter(None, map(name_problem, listed(names))):
            yield key, problem


def _with_defaults(entry: CaseEntry, defaults: CaseSettings, written: Any) -> CaseEntry:
    """Return a case with the defaults for what is not written in it."""
    own = written if isinstance(written, Mapping) else {}
    values = {name: getattr(defaults, name) for name in CaseSettings.__struct_fields__ if name not in own}
    if "tags" in own:
        values["tags"] = list(dict.fromkeys((*defaults.tags, *entry.tags)))
    if "vars" in own:
        values["vars"] = {**defaults.vars, **entry.vars}
    if own.get("metadata") is not None:
        values["metadata"] = {**(defaults.metadata or {}), **(entry.metadata or {})}
    if entry.params is not None and defaults.params is not None:
        values["params"] = ParamsEntry(**{**defaults.params.given(), **entry.params.given()})
    return msgspec.structs.replace(entry, **values)


def row_with_defaults(case: Case, defaults: Case, columns: Mapping[str, Any]) -> Case:
    """Return the case of a row with the defaults for its empty cells and missing columns.

    The input of `defaults` is the text of attached files. A row's weight is read with its default already.
    """
    variables = {name: value for name, value in defaults.vars.items() if name not in columns}
    metadata = {name: value for name, value in (defaults.metadata or {}).items() if name not in columns}
    metadata |= case.metadata or {}
    return msgspec.structs.replace(
        case,
        input=defaults.input + case.input,
        attach=(*defaults.attach, *case.attach),
        expected=case.expected if case.accepted else defaults.expected,
        tags=tuple(dict.fromkeys((*defaults.tags, *case.tags))),
        metadata=metadata or None,
        vars={**variables, **case.vars},
        **{name: getattr(case, name) or getattr(defaults, name) for name in _ALSO_IN_ROWS},
        **{name: getattr(defaults, name) for name in _NEVER_IN_ROWS},
    )
