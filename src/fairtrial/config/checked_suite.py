"""A checked suite: its arms, its settings, and a stream of its cases."""

from __future__ import annotations

import hashlib
import heapq
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from fairtrial.config.attach import is_address, load_files, read_attached
from fairtrial.config.case_document import CaseEntry, CaseSettings, listed
from fairtrial.config.cases import built_in_cases, inline_case
from fairtrial.config.dataset import Dataset
from fairtrial.config.document import SuiteDocument
from fairtrial.config.looks import planned_looks
from fairtrial.config.run_options import RunOptions
from fairtrial.config.skills import skill_files, skill_paths
from fairtrial.config.source import SuiteSource
from fairtrial.config.workspaces import own_fields, workspace_files, workspace_paths
from fairtrial.core.errors import Problem, ProblemsError
from fairtrial.core.experiment import INPUT_NAMES, Arm, Case, ScorerSpec
from fairtrial.core.file import File
from fairtrial.core.functions import Functions
from fairtrial.core.ids import canonical_json, content_hash
from fairtrial.core.mistakes import sentence_of
from fairtrial.core.options import Path as KeyPath
from fairtrial.core.options import build_scorer, scorer_problems, scorer_spec
from fairtrial.core.questions import Questions
from fairtrial.core.scorer import Scorer as BuiltScorer
from fairtrial.core.settings import Settings
from fairtrial.text.printable import counted

if TYPE_CHECKING:
    from fairtrial.config.python import Made
    from fairtrial.config.rows import GivenRows

_TAG = re.compile(r"\{[{%](.*?)[%}]\}", re.DOTALL)
_NAME = re.compile(r"[^\W\d]\w*")
Located = tuple[Problem, Case | None, str]  # place, case, problem


class CheckedSuite:
    """A checked suite: its arms, its settings, and a stream of its cases."""

    path: Path | None = None  # the file that it was loaded from, as it was named
    _made: Made | None = None

    def fill(
        self,
        source: SuiteSource,
        document: SuiteDocument,
        options: RunOptions,
        arms: tuple[Arm, ...],
        settings: Settings,
    ) -> None:
        """Set everything that is known of a suite."""
        self.name, self.description = document.name, document.description
        self.vars = document.vars
        self.text, self.file, self.folder = source.text, source.file, source.folder
        self.options, self.variables = options, source.variables
        self._drawing = _Drawing(options)
        self.arms, self.settings = arms, settings
        self._questions = Questions(arms)
        self._source, self._document = source, document
        self._dataset = None
        if document.dataset:
            names, defaults = self._template_names(), self._row_defaults()
            self._dataset = Dataset(document.dataset, self.folder, names, defaults, fetch=self._fetch)
        self._built_in = built_in_cases(document, source.folder) if document.suite else []
        self.dataset_sha256 = self._fingerprint()
        self.case_count = 0  # the cases checked so far: all of them, unless there are very many
        self.repeated = 0  # those of them that repeat the question of another one
        self.check_later: Callable[[Case], list[str]] | None = None  # returns the problems of a case not yet checked
        self.scorers: set[bytes] = set()  # as JSON
        self.notes: list[str] = []  # what users should know about how the suite was read

    def __repr__(self) -> str:
        arms, cases = counted(len(self.arms), "arm"), counted(self.case_count, "case")
        return f"<Suite {self.name}: {arms}, {cases}>"

    @property
    def functions(self) -> Functions:
        """The functions that have no importable name, by their names in the plan."""
        return self._source.functions

    @property
    def code(self) -> dict[str, str]:
        """Hashes of the code of the functions that were given in Python, by their names in the plan."""
        return self._made.code if self._made else {}

    @property
    def default_scorer(self) -> ScorerSpec:
        """The suite's scorer, used unless a more specific setting overrides it."""
        return scorer_spec(self._document.scorer)

    @property
    def has_problems(self) -> bool:
        """Whether its cases are the optimisation problems that come with fairtrial."""
        return self._document.suite is not None and self._document.suite.kind == "optimisation"

    @property
    def has_clusters(self) -> bool:
        """Whether cases that ask the same are one cluster."""
        return self._document.cluster_by is not None

    @property
    def _fetch(self) -> bool:
        """Whether attachments at web addresses are fetched: not if the suite is only checked, without keys."""
        return not self.variables.placeholders

    def _row_defaults(self) -> Case | None:
        """Return what every row says unless it says otherwise; None if there is nothing."""
        defaults = self._document.case_defaults
        if defaults == CaseSettings():
            return None
        values = {name: getattr(defaults, name) for name in CaseSettings.__struct_fields__}
        return inline_case(CaseEntry(**values), 0, self.folder, fetch=self._fetch)

    def _template_names(self) -> set[str]:
        """Return the names in templates: those in prompts, which may be in files, and those in the suite itself."""
        conditions = [arm.condition for arm in self.arms]
        texts = [text for condition in conditions for text in (condition.system, *condition.prompts)]
        texts += [message.content for condition in conditions for message in condition.chat]
        tags = [tag for text in (*texts, self.text) for tag in _TAG.findall(text)]
        return {name for tag in tags for name in _NAME.findall(tag)} - set(INPUT_NAMES)

    def _fingerprint(self) -> str:
        entries: list[CaseSettings] = [*self._document.cases]
        if self._dataset and self._document.case_defaults != CaseSettings():
            entries.append(self._document.case_defaults)
        if self._dataset and not entries and not self._built_in:
            return self._dataset.sha256()
        digest = hashlib.sha256()
        for entry in entries:
            fields = msgspec.to_builtins(entry)
            for name in ("tools", "on_limit"):  # which came later: without them, cases keep their fingerprint
                if fields[name] is None:
                    del fields[name]
            digest.update(canonical_json(self.variables.template_all(fields)) + b"\n")
            with suppress(ValueError):  # reported with the case
                files = read_attached(listed(entry.attach), self.folder, fetch=self._fetch).files
                digest.update(b"".join(file.sha256.encode() for file in files))
                if entry.workspace is not None:
                    digest.update(canonical_json(own_fields(entry.workspace, self.folder)))
        for case in self._built_in:
            digest.update(canonical_json([case.id, case.input, case.metadata]) + b"\n")
        if self._dataset:
            digest.update(self._dataset.sha256().encode())
        return digest.hexdigest()

    def cases(self) -> Iterator[Case]:
        """Yield the selected cases in live form. Streamed: a dataset is read again each time."""
        for place, case, problem in self.located_cases():
            problems = [problem] if case is None else self._problems_of(case)
            if problems:
                raise ProblemsError([msgspec.structs.replace(place, message=problem) for problem in problems])
            assert case is not None
            yield case

    def _problems_of(self, case: Case) -> list[str]:
        """Return the problems of a case that is read for the first time."""
        if self.check_later is None or case.position < self.case_count:
            return []
        self.case_count = case.position + 1
        return self.check_later(case)

    @property
    def can_check_later(self) -> bool:
        """Whether a run can start when the first cases are checked, because nothing depends on the others.

        A stopping rule, a sample, a selection and clusters of questions depend on all cases, and a scorer on a case may
        need a judge.
        """
        dataset, options = self._document.dataset, self.options
        stops = options.stop_when or any(planned_looks(self._document, options))
        if stops or options.selected() or self.has_clusters:
            return False
        return dataset is not None and dataset.scorer is None and dataset.sample is None

    def located_cases(self) -> Iterator[Located]:
        """Yield (place, case, problem) for every selected case; unreadable cases are always included."""
        for position, (place, case, problem) in enumerate(self._drawing.cases(self._all_cases)):
            yield place, self._with_position(self._in_cluster(case), position), problem

    def _in_cluster(self, case: Case | None) -> Case | None:
        """Return a case in the cluster of its question, if the suite wants that and any question is repeated."""
        if case is None or not self.repeated or not self.has_clusters:
            return case
        question = self._questions.key(case)
        return (
            case
            if question is None
            else msgspec.structs.replace(case, cluster=f"question {content_hash(question)[:8]}")
        )

    def _with_position(self, case: Case | None, position: int) -> Case | None:
        if case is None:
            return None
        repeats = None if self.options.repeats else case.repeats
        if case.position == position and case.repeats == repeats:
            return case  # as most are: a copy of each of a million cases takes a while
        return msgspec.structs.replace(case, position=position, repeats=repeats)

    def _all_cases(self) -> Iterator[Located]:
        for index, entry in enumerate(self._document.cases):
            path: KeyPath = ("cases", index)
            place = Problem("", self.file, self._source.line(path), f"cases.{index}")
            try:
                yield place, inline_case(entry, index, self.folder, fetch=self._fetch), ""
            except (ValueError, OSError) as error:  # about an attachment
                yield place, None, sentence_of(error) or str(error)
        for built in self._built_in:
            yield Problem("", self.file, self._source.line(("suite",)), "suite"), built, ""
        if self._dataset:
            for file, line, case, problem in self._dataset.cases(len(self._document.cases) + len(self._built_in)):
                yield Problem("", "row" if self._rows else file, line), case, problem

    @property
    def dataset_origin(self) -> dict[str, Any] | None:
        """Where the rows of the dataset come from and which are selected; None without a dataset."""
        if self._rows is not None and self._dataset is not None:
            return {**self._dataset.origin(), "files": [], "rows": self._rows.count}
        return self._dataset.origin() if self._dataset else None

    @property
    def _rows(self) -> GivenRows | None:
        return self._made.rows if self._made else None

    def files(self) -> Iterator[File]:
        """Yield the files that are sent with the cases, and those that workspaces start from."""
        entries = (self._document.case_defaults, *self._document.cases)
        names = dict.fromkeys(name for entry in entries for name in listed(entry.attach))
        attached = load_files(chain(names, self._dataset.attached_names() if self._dataset else ()), self.folder)
        return chain(attached, workspace_files(self._document, self.folder), skill_files(self._document, self.folder))

    def files_used(self) -> set[Path]:
        """Return the files that the suite consists of, apart from code: itself, its prompts, data and attachments."""
        entries = (self._document.case_defaults, *self._document.cases)
        names = [name for entry in entries for name in listed(entry.attach)]
        files = {*self._source.files, *workspace_paths(self._document, self.folder)}
        files |= {self.path} if self.path else set()
        files |= {*(self.folder / name for name in names if not is_address(name))}
        files |= skill_paths(self._document, self.folder)
        if self._dataset is not None:
            files |= {self.folder / name for name in self._dataset.attached_names() if not is_address(name)}
        return files | set(self._dataset.files if self._dataset else ())

    def build_scorers(self, *, sound: bool = False) -> list[BuiltScorer]:
        """Build the scorers that the cases use; with `sound`, leave out those with problems."""
        specs = map(msgspec.json.decode, self.scorers)
        return [build_scorer(spec) for spec in specs if not (sound and scorer_problems(spec))]

    @property
    def plan_id(self) -> str:
        """The id of the plan: equal for the same arms, cases and selection of cases."""
        arms = self.variables.template_all(msgspec.to_builtins(self.arms))
        for arm in arms:
            _forget_unused(arm)
        options = self.options
        # `first` is in the place of the limit of earlier versions, which took the first cases too.
        some = options.first if options.limit is None else {"random": options.limit}
        selection = [options.cases, some, options.repeats]
        folder = str(self.folder.resolve())  # files next to the suite are part of what is asked
        return content_hash([self.name, self.text, self.dataset_sha256, folder, arms, selection])[:32]


def _forget_unused(arm: dict[str, Any]) -> None:
    """Remove what later versions added and an arm does not use, so that older plans keep their ids."""
    condition = arm["condition"]
    if arm["workspace"] is None:
        del arm["workspace"]
    if not condition["skills"]:
        del condition["skills"]
    for server in condition["mcp"]:
        for name in ("only", "auth"):
            if not server[name]:
                del server[name]


class _Drawing:
    """The selected cases of a suite, in the suite's order. Cases that cannot be read are never left out."""

    def __init__(self, options: RunOptions) -> None:
        self._named, self._limit, self._first = frozenset(options.cases), options.limit, options.first
        self._last: tuple[bytes, int] | None = None  # the last draw within the limit, found when first needed

    def cases(self, read: Callable[[], Iterator[Located]]) -> Iterator[Located]:
        """Yield the selected cases; with a limit, all cases are read once more, the first time."""
        if self._limit is None:
            yield from islice(self._wanted(read()), self._first)
            return
        if self._last is None:
            draws = (_draw(item[1], place) for place, item in enumerate(self._wanted(read())) if item[1] is not None)
            self._last = max(heapq.nsmallest(self._limit, draws), default=(b"", 0))
        for place, item in enumerate(self._wanted(read())):
            if item[1] is None or _draw(item[1], place) <= self._last:
                yield item

    def _wanted(self, located: Iterator[Located]) -> Iterator[Located]:
        return (item for item in located if item[1] is None or not self._named or item[1].id in self._named)


def _draw(case: Case, place: int) -> tuple[bytes, int]:
    """Return a case's place in a random order that depends on its id alone.

    The plan's id cannot be the key, since it depends on the limit; a hash of the dataset could, but then every
    correction of a text would draw other cases. This way all suites and runs with these cases draw the same, fewer are
    among more, and a new case replaces one at most.
    """
    key = case.id.encode(errors="surrogatepass")
    return hashlib.blake2b(key, digest_size=16, person=b"limit").digest(), place
