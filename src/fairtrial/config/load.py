"""Loading a suite: parse, fill in, check everything that can be known, and resolve it into arms and cases."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from fairtrial.config.check import check_cases
from fairtrial.config.dataset import FORMATS, Dataset
from fairtrial.config.document import CaseEntry, ParamsEntry, SuiteDocument
from fairtrial.config.resolve import resolve_arms, resolve_judge
from fairtrial.config.source import Source
from fairtrial.core.errors import FairtrialError, Problem, ProblemsError
from fairtrial.core.ids import canonical_json, content_hash
from fairtrial.core.options import Path as KeyPath
from fairtrial.core.options import read
from fairtrial.core.suite import Arm, Case, Settings
from fairtrial.core.variables import Variables

_TEXT_KEYS = ("id", "input", "expected", "category", "difficulty", "cluster")


class RunOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What the caller of a run may choose or override; None leaves what the suite says."""

    cases: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()
    limit: int | None = None
    repeats: int | None = None
    concurrency: int | None = None
    timeout: float | None = None
    budget_usd: float | None = None
    benchmark_mode: bool | None = None
    cache: bool | None = None
    stream: bool | None = None


class Suite:
    """A checked suite: its arms, its settings, and a stream of its cases."""

    def __init__(
        self,
        *,
        source: Source,
        document: SuiteDocument,
        folder: Path,
        options: RunOptions,
        variables: Variables,
        arms: tuple[Arm, ...],
        settings: Settings,
    ) -> None:
        self.name, self.description = document.name, document.description
        self.text, self.file, self.folder = source.text, source.file, folder
        self.options, self.variables = options, variables
        self.arms, self.settings = arms, settings
        self._source, self._document = source, document
        self._dataset = Dataset(document.dataset, folder) if document.dataset else None
        self.dataset_sha256 = self._fingerprint()
        self.case_count = 0  # known once the cases were checked

    def _fingerprint(self) -> str:
        if self._dataset and not self._document.cases:
            return self._dataset.sha256()
        digest = hashlib.sha256()
        for entry in self._document.cases:
            digest.update(canonical_json(self.variables.template_all(msgspec.to_builtins(entry))) + b"\n")
        if self._dataset:
            digest.update(self._dataset.sha256().encode())
        return digest.hexdigest()

    def cases(self) -> Iterator[Case]:
        """The chosen cases, in live form. Streamed: a dataset is read anew each time."""
        for _, case, problem in self.located_cases():
            if case is None:
                raise FairtrialError(problem)
            yield case

    def located_cases(self) -> Iterator[tuple[Problem, Case | None, str]]:
        """(place, case, problem) for every chosen case; a case that cannot be read is never left out."""
        wanted = set(self.options.cases)
        position = 0
        for place, case, problem in self._all_cases():
            if case is not None and wanted and case.id not in wanted:
                continue
            if self.options.limit is not None and position >= self.options.limit:
                return
            yield place, self._placed(case, position), problem
            position += 1

    def _placed(self, case: Case | None, position: int) -> Case | None:
        if case is None:
            return None
        repeats = None if self.options.repeats else case.repeats
        return msgspec.structs.replace(case, position=position, repeats=repeats)

    def _all_cases(self) -> Iterator[tuple[Problem, Case | None, str]]:
        for index, entry in enumerate(self._document.cases):
            path: KeyPath = ("cases", index)
            place = Problem("", self.file, self._source.line(path), f"cases.{index}")
            yield place, _inline_case(entry, index), ""
        if self._dataset:
            for line, case, problem in self._dataset.cases(len(self._document.cases)):
                yield Problem("", str(self._dataset.entry.path), line), case, problem

    @property
    def plan_id(self) -> str:
        """Identity of what is asked: the same arms, cases and choice of cases make the same plan."""
        arms = self.variables.template_all(msgspec.to_builtins(self.arms))
        chosen = [self.options.cases, self.options.limit, self.options.repeats]
        return content_hash([self.name, self.text, self.dataset_sha256, arms, chosen])[:32]


def load_suite(
    path: str | Path, options: RunOptions | None = None, environment: Mapping[str, str] | None = None
) -> Suite:
    """Load and check a suite file; ProblemsError holds everything that is wrong with it."""
    path = Path(path)
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        raise FairtrialError(f"there is no file {path}; `fairtrial init` writes a suite to start from") from None
    except IsADirectoryError:
        raise FairtrialError(f"{path} is a folder; name the suite file in it") from None
    except UnicodeDecodeError:
        raise FairtrialError(f"{path} is not a text file in UTF-8") from None
    except OSError as error:
        raise FairtrialError(f"{path} cannot be read: {error.strerror}") from None
    return parse_suite(text, file=str(path), folder=path.parent, options=options, environment=environment)


def parse_suite(
    text: str,
    *,
    file: str = "suite",
    folder: Path | None = None,
    options: RunOptions | None = None,
    environment: Mapping[str, str] | None = None,
) -> Suite:
    """Check a suite given as text."""
    folder, options = folder or Path(), options or RunOptions()
    variables = Variables(os.environ if environment is None else environment)
    source = Source(text, file, variables)
    document = _read_document(source)
    if document is None:
        raise ProblemsError(source.problems)
    suite = _resolve(source, document, folder, options, variables)
    check_cases(suite, source)
    if source.problems:
        raise ProblemsError(sorted(source.problems, key=lambda problem: problem.line))
    return suite


def _read_document(source: Source) -> SuiteDocument | None:
    if not isinstance(source.value, dict):
        source.problem((), "a suite is a mapping with `name`, `targets` and `cases` or `dataset`")
        return None
    _keep_spelling(source)
    problems: list[tuple[KeyPath, str]] = []
    document = read(SuiteDocument, source.value, problems)
    for path, message in problems:
        if path not in source.unset:
            source.problem(path, message)
    if document and not document.cases and document.dataset is None and not problems:
        source.problem((), "there is nothing to ask: give `cases` or a `dataset`")
    return document


def _keep_spelling(source: Source) -> None:
    """Texts that look like numbers or booleans stay as they were written."""
    cases = source.value.get("cases")
    for index, case in enumerate(cases if isinstance(cases, list) else ()):
        if isinstance(case, dict):
            for key in _TEXT_KEYS:
                text = source.as_text(("cases", index, key), case.get(key))
                if text is not None:
                    case[key] = text


def _resolve(source: Source, document: SuiteDocument, folder: Path, options: RunOptions, variables: Variables) -> Suite:
    settings = _settings(document, options)
    arms = resolve_arms(source, document, folder, options, settings, variables)
    settings = msgspec.structs.replace(settings, judge=resolve_judge(source, document, folder, variables))
    if document.dataset and not _dataset_usable(source, document, folder):
        document = msgspec.structs.replace(document, dataset=None)  # the cases in the file can still be checked
    return Suite(
        source=source,
        document=document,
        folder=folder,
        options=options,
        variables=variables,
        arms=tuple(arms),
        settings=settings,
    )


def _settings(document: SuiteDocument, options: RunOptions) -> Settings:
    given = {
        name: getattr(document if getattr(options, name) is None else options, name)
        for name in ("concurrency", "timeout", "budget_usd", "benchmark_mode", "cache", "stream")
    }
    return Settings(**given, retry=document.retry, prices=document.prices)


def _dataset_usable(source: Source, document: SuiteDocument, folder: Path) -> bool:
    assert document.dataset is not None
    path = folder / document.dataset.path
    if not path.is_file():
        source.problem(("dataset", "path"), f"there is no file {path}")
        return False
    if path.suffix.lower() not in FORMATS:
        source.problem(("dataset", "path"), f"a dataset is one of {', '.join(FORMATS)}, not `{path.name}`")
        return False
    return True


def _inline_case(entry: CaseEntry, index: int) -> Case:
    params: ParamsEntry | None = entry.params
    return Case(
        id=entry.id or f"case-{index + 1}",
        input=entry.input,
        expected=_expected_text(entry.expected),
        weight=entry.weight,
        tags=tuple(entry.tags),
        category=entry.category,
        difficulty=entry.difficulty,
        cluster=entry.cluster,
        scorer={"type": entry.scorer} if isinstance(entry.scorer, str) else entry.scorer,
        params=params.given() if params else None,
        repeats=entry.repeats,
        metadata=entry.metadata,
        position=index,
    )


def _expected_text(expected: Any) -> str | None:
    if expected is None or isinstance(expected, str):
        return expected
    return msgspec.json.encode(expected).decode()
