"""Checks everything in a suite and resolves it into arms and cases."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from fairtrial.config.check_cases import check_cases
from fairtrial.config.checked_suite import CheckedSuite
from fairtrial.config.dataset import dataset_problems
from fairtrial.config.defaults import KEY as CASE_DEFAULTS
from fairtrial.config.defaults import with_case_defaults
from fairtrial.config.document import DatasetEntry, SuiteDocument
from fairtrial.config.judges import judge_names, resolve_embedders, resolve_judges, resolve_user
from fairtrial.config.literals import check_literals
from fairtrial.config.looks import planned_looks
from fairtrial.config.money import check_prices
from fairtrial.config.resolve import resolve_arms
from fairtrial.config.run_options import RunOptions
from fairtrial.config.source import SuiteSource
from fairtrial.config.stop_rule import stop_rule
from fairtrial.core import registry
from fairtrial.core.errors import FairtrialError, ProblemsError
from fairtrial.core.functions import is_given
from fairtrial.core.mistakes import sentence_of
from fairtrial.core.options import Path as KeyPath
from fairtrial.core.options import functions_in, read
from fairtrial.core.providers import api_kinds
from fairtrial.core.settings import Settings
from fairtrial.text.printable import name_problem

_CHECK_TEXTS = ("text", "contains", "matches", "value", "option", "press")
_TEXT_KEYS = ("id", "input", "category", "difficulty", "cluster")

S = TypeVar("S", bound=CheckedSuite)


def check_source(suite: S, source: SuiteSource, options: RunOptions, *, whole: bool = True) -> S:
    """Check everything in a source and fill the suite with it; raise ProblemsError with all its problems."""
    try:
        return _checked(suite, source, options, whole=whole)
    except (OSError, ValueError) as error:  # of a file that it names, and nothing can have
        if not (sentence := sentence_of(error)):
            raise
        raise FairtrialError(f"{source.file}: {source.variables.hide(sentence)}") from None


def _checked(suite: S, source: SuiteSource, options: RunOptions, *, whole: bool) -> S:
    document = _read_document(source)
    if document is None:
        raise ProblemsError(source.hidden_problems())
    _resolve(suite, source, document, options)
    check_cases(suite, source, judge_names(document), whole=whole)
    _check_functions(suite, source)
    names = sorted({name for scorer in suite.build_scorers(sound=True) for name in scorer.embedders()})
    embedders = resolve_embedders(source, document, names)
    suite.settings = msgspec.structs.replace(suite.settings, embedders=embedders)
    if source.problems:
        raise ProblemsError(sorted(source.hidden_problems(), key=lambda found: (found.file != source.file, found.line)))
    check_prices(suite.arms, suite.settings)
    suite.settings = msgspec.structs.replace(suite.settings, stop=stop_rule(suite, document))
    return suite


def _check_functions(suite: CheckedSuite, source: SuiteSource) -> None:
    """Report functions that stand for themselves only where they were given."""
    names = {name for key in suite.scorers for name in functions_in(msgspec.json.decode(key)) if is_given(name)}
    for name in sorted(names - source.functions.keys()):
        source.problem(("scorer",), f"`{name}` is the name of a function that was given in Python; name its module")


def _read_document(source: SuiteSource) -> SuiteDocument | None:
    if not isinstance(source.value, dict):
        source.problem((), "a suite must be a mapping with `name`, `targets` and `cases` or `dataset`")
        return None
    _keep_spelling(source)
    check_literals(source)
    problems: list[tuple[KeyPath, str]] = []
    document = read(SuiteDocument, source.value, problems)
    for path, message in problems:
        if path not in source.unset:
            source.problem(path, message)
    if document:
        _check_questions(source, document)
        _check_names(source, document)
        _check_providers(source, document)
    if document and not (document.cases or document.dataset or document.suite) and not problems:
        source.problem((), "the suite has no cases: add `cases` or a `dataset`")
    return document


def _check_questions(source: SuiteSource, document: SuiteDocument) -> None:
    """Check that every case has a question: `input`, or the `turns` of a conversation."""
    for index, entry in enumerate(document.cases):
        if entry.input is msgspec.UNSET and not entry.turns and ("cases", index, "input") not in source.unset:
            written = source.value["cases"][index]
            if not isinstance(written, dict) or not isinstance(written.get("input", ""), str):
                continue  # reported as being of the wrong type
            source.problem(("cases", index), "`input` is missing")
        elif entry.turns and entry.input is not msgspec.UNSET:
            source.problem(("cases", index, "turns"), "set `input` or `turns`, not both")


def _check_names(source: SuiteSource, document: SuiteDocument) -> None:
    """Check that names shown in terminals and files are plain text."""
    names: list[tuple[KeyPath, str]] = [(("name",), document.name)]
    names += [(("targets", index), entry.id or entry.target) for index, entry in enumerate(document.targets)]
    names += [(("judges", index), entry.id or entry.target) for index, entry in enumerate(document.judges)]
    names += [(("judge",), document.judge.id or document.judge.target)] if document.judge else []
    second = document.second_judge
    names += [(("second_judge",), second.id or second.target)] if second else []
    names += [(("conditions", name), name) for name in document.conditions]
    names += [(("providers", name), name) for name in document.providers]
    for path, name in names:
        if problem := name_problem(name):
            source.problem(path, problem)


def _check_providers(source: SuiteSource, document: SuiteDocument) -> None:
    """Check that the suite's own servers provide a known API."""
    for name, entry in document.providers.items():
        if entry.kind not in api_kinds():
            hint = registry.nearest(entry.kind, list(api_kinds()))
            source.problem(("providers", name, "kind"), f"unknown API `{entry.kind}`{hint}")


def _keep_spelling(source: SuiteSource) -> None:
    """Keep the original spelling of texts that look like numbers or booleans."""
    cases = source.value.get("cases")
    for index, case in enumerate(cases if isinstance(cases, list) else ()):
        _keep_case(source, ("cases", index), case)
    _keep_case(source, (CASE_DEFAULTS,), source.value.get(CASE_DEFAULTS))
    dataset = source.value.get("dataset")
    where: Any = dataset.get("where") if isinstance(dataset, dict) else None
    for column in where if isinstance(where, dict) else ():
        where[column] = _keep_words(source, ("dataset", "where", column), where[column])


def _keep_case(source: SuiteSource, path: KeyPath, case: Any) -> None:
    if not isinstance(case, dict):
        return
    for key in _TEXT_KEYS:
        text = source.as_text((*path, key), case.get(key))
        if text is not None:
            case[key] = text
    if "expected" in case:
        case["expected"] = _keep_expected(source, (*path, "expected"), case["expected"])
    turns = case.get("turns")
    for number, turn in enumerate(turns if isinstance(turns, list) else ()):
        if isinstance(turn, dict) and "expected" in turn:
            turn["expected"] = _keep_expected(source, (*path, "turns", number, "expected"), turn["expected"])
    _keep_checks(source, (*path, "checks"), case.get("checks"))


def _keep_words(source: SuiteSource, path: KeyPath, value: Any) -> Any:
    """Return `yes`, `off` and the like as they were spelled: in a table they are words."""
    if isinstance(value, list):
        return [_keep_words(source, (*path, number), item) for number, item in enumerate(value)]
    if isinstance(value, dict):
        return {key: _keep_words(source, (*path, key), item) for key, item in value.items()}
    return source.as_text(path, value) if isinstance(value, bool) else value


def _keep_expected(source: SuiteSource, path: KeyPath, expected: Any) -> Any:
    """Return the `expected` value as it was spelled; in a list, each item."""
    if isinstance(expected, list):
        return [_keep_expected(source, (*path, number), item) for number, item in enumerate(expected)]
    text = source.as_text(path, expected)
    return expected if text is None else text


def _keep_checks(source: SuiteSource, path: KeyPath, value: Any) -> None:
    """Keep the original spelling of the texts in page checks, at any depth."""
    items: Any = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        text = source.as_text((*path, key), item) if key in _CHECK_TEXTS else None
        if text is not None:
            value[key] = text
        else:
            _keep_checks(source, (*path, key), item)


def _resolve(suite: CheckedSuite, source: SuiteSource, document: SuiteDocument, options: RunOptions) -> None:
    document = with_case_defaults(source, _with_defaults(source, document))
    settings = _settings(document, options)
    arms = resolve_arms(source, document, options, settings)
    judges, user = resolve_judges(source, document), resolve_user(source, document)
    settings = msgspec.structs.replace(settings, judges=judges, panel=document.panel, user=user)
    if document.second_judge is not None and (options.stop_when or planned_looks(document, options)[0]):
        source.problem(
            ("second_judge",), "a run that may stop early decides by the first judge alone: let it ask all cases"
        )
    if document.dataset and not _dataset_usable(source, document.dataset):
        document = msgspec.structs.replace(document, dataset=None)  # the cases in the file can still be checked
    suite.fill(source, document, options, tuple(arms), settings)


def _with_defaults(source: SuiteSource, document: SuiteDocument) -> SuiteDocument:
    """Apply the defaults of a built-in suite, unless the file overrides them."""
    if document.suite is None:
        return document
    kind = registry.load("suite_kinds", document.suite.kind)
    changed: SuiteDocument = kind.with_defaults(source, document)
    return changed


def _settings(document: SuiteDocument, options: RunOptions) -> Settings:
    overridable = {
        name: getattr(document if getattr(options, name) is None else options, name)
        for name in ("concurrency", "timeout", "budget_usd", "benchmark_mode", "cache", "stream")
    }
    primary = None if document.primary_metric == "score" else document.primary_metric
    return Settings(
        **overridable,
        retry=document.retry,
        prices=document.prices,
        on_refusal=document.on_refusal,
        solved=document.solved,
        primary_metric=primary,
        largest=document.largest if document.largest is None or primary else document.largest / 100,
        gate=document.gate,
    )


def _dataset_usable(source: SuiteSource, dataset: DatasetEntry) -> bool:
    problems = list(dataset_problems(dataset, source.folder))
    for key, message in problems:
        source.problem(("dataset", *key.split(".", 1)), message)
    return not problems
