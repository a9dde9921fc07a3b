"""Resolving the models other than targets: judges, embedders and the simulated user."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from fairtrial.config.document import JudgeEntry, SuiteDocument, UserEntry
from fairtrial.config.source import SuiteSource, check_scorer
from fairtrial.config.targets import TargetResolver
from fairtrial.config.wording import check_template
from fairtrial.core import registry
from fairtrial.core.errors import FairtrialError
from fairtrial.core.experiment import EMBEDDER, ScorerSpec, TargetSpec
from fairtrial.core.functions import Functions, is_given, own_name
from fairtrial.core.options import Path as KeyPath
from fairtrial.core.options import build_scorer, read, scorer_problems, scorer_spec
from fairtrial.core.settings import JudgeSpec, UserSpec
from fairtrial.core.variables import Variables


def resolve_judges(source: SuiteSource, document: SuiteDocument) -> tuple[JudgeSpec, ...]:
    """Return the judges of a suite: one, a panel of several, or none."""
    if document.judge is not None and document.judges:
        source.problem(("judges",), "set `judge` or `judges`, not both")
    entries = _entries(document)
    paths: list[KeyPath] = [("judge",)] if document.judge is not None else [("judges", n) for n in range(len(entries))]
    names = judge_names(document)
    judges = []
    for path, entry in zip(paths, entries, strict=True):
        name = entry.id or entry.target
        if names.count(name) > 1:
            source.problem(
                path,
                f"duplicate judge `{name}`: give each judge its own `id`, or set `panel: judgements` to ask one "
                "several times",
            )
        spec = _resolve_judge(source, path, document, entry)
        judges += [spec] if spec else []
    return (*judges, *_resolve_second(source, document, names))


def _resolve_second(source: SuiteSource, document: SuiteDocument, names: list[str]) -> list[JudgeSpec]:
    """Return the second judge, if a suite has one."""
    entry = document.second_judge
    if entry is None:
        return []
    if not names:
        source.problem(("second_judge",), "a second judge corrects the first one: add `judge:` to the suite")
    if (entry.id or entry.target) in names:
        source.problem(("second_judge",), "this judge judges all cases already: a second one has to be another model")
    spec = _resolve_judge(source, ("second_judge",), document, entry)
    return [msgspec.structs.replace(spec, share=entry.share)] if spec else []


def judge_names(document: SuiteDocument) -> list[str]:
    """Return the names of all judges that a suite has, whether or not they can be used."""
    return [entry.id or entry.target for entry in _entries(document)]


def _entries(document: SuiteDocument) -> list[JudgeEntry]:
    return [document.judge] if document.judge is not None else document.judges


def has_turns(document: SuiteDocument) -> bool:
    """Return whether cases of a suite are conversations."""
    from_rows = document.dataset is not None and document.dataset.turns is not None
    return from_rows or any(case.turns[1:] for case in document.cases)


def resolve_user(source: SuiteSource, document: SuiteDocument) -> UserSpec | None:
    """Return the simulated user of a suite, if it has one."""
    entry = document.user
    if entry is None:
        return None
    for key, text in (("persona", entry.persona), ("goal", entry.goal)):
        check_template(source, ("user", key), text)
    if not (entry.persona.strip() or entry.goal.strip()):
        source.problem(("user",), "a simulated user needs a `persona` or a `goal`")
    if any(case.turns for case in document.cases) or (document.dataset and document.dataset.turns):
        source.problem(("user",), "a suite has a simulated user, or cases with `turns`, not both")
    end = _end_of(source, entry)
    target = TargetResolver(source, document).resolve(("user",), entry)
    if target is None:
        return None
    if not registry.load("targets", target.kind).takes_chats:
        source.problem(("user", "target"), f"{entry.target} takes one question: it cannot play a user")
    return UserSpec(
        target=msgspec.structs.replace(target, id=f"user {entry.target}"),
        params=entry.params.given() if entry.params else {},
        persona=entry.persona,
        goal=entry.goal,
        max_turns=entry.max_turns,
        end=end,
    )


def _end_of(source: SuiteSource, entry: UserEntry) -> tuple[ScorerSpec, ...]:
    """Return the checks that end a conversation with a simulated user."""
    if entry.end is None:
        return ()
    given = entry.end if isinstance(entry.end, list) else [entry.end]
    sound = []
    for number, scorer in enumerate(given):
        path = ("user", "end", number) if isinstance(entry.end, list) else ("user", "end")
        check_scorer(source, path, scorer)
        if scorer_problems(scorer):
            continue
        if build_scorer(scorer).needs_judge():
            source.problem(path, "what ends a conversation is checked without a judge, after every answer")
        sound.append(scorer_spec(scorer))
    return tuple(sound)


def judge_named(
    name: str,
    variables: Variables,
    folder: Path,
    suite_text: str = "name: judge\ntargets: []\n",
    functions: Functions | None = None,
) -> JudgeSpec:
    """Return a judge by its model's name; with a suite's text, its providers and instructions apply.

    `functions` are those given in Python that a name may stand for.
    """
    source, document = _stored_suite(suite_text, variables, folder)
    source.functions = functions or {}
    instructions = document.judge.instructions if document.judge else ""
    own = own_name(name).removeprefix("python:") if is_given(name) else None
    entry = JudgeEntry(target=name, id=own, instructions=instructions)
    spec = _resolve_judge(source, (), document, entry)
    if spec is None or source.problems:
        raise FairtrialError("; ".join(problem.message for problem in source.hidden_problems()))
    return spec


def suite_vars(suite_text: str, variables: Variables) -> dict[str, Any]:
    """Return the `vars` of a suite that was checked before it was stored."""
    return dict(_stored_suite(suite_text, variables, Path())[1].vars)


def _stored_suite(text: str, variables: Variables, folder: Path) -> tuple[SuiteSource, SuiteDocument]:
    """Read the text of a suite that was checked before it was stored."""
    source = SuiteSource(text, "suite", variables, folder)
    document = read(SuiteDocument, source.value, [])
    assert document is not None
    source.problems.clear()
    return source, document


def resolve_embedders(source: SuiteSource, document: SuiteDocument, names: Iterable[str]) -> dict[str, TargetSpec]:
    """Return the models whose embeddings scorers need, by name."""
    embedders = {}
    for name in names:
        spec = TargetResolver(source, document).resolve(("scorer",), JudgeEntry(target=name))
        if spec is not None and not registry.load("targets", spec.kind).embeds:
            source.problem(
                ("scorer",),
                f"{name} has no embeddings: use a model of openai (or a server with its API), google, azure, mistral, "
                "bedrock, or `local:smollm2`",
            )
        elif spec is not None:
            embedders[name] = msgspec.structs.replace(spec, id=f"{EMBEDDER}{name}")
    return embedders


def embedders_named(names: Iterable[str], variables: Variables, folder: Path, suite_text: str) -> dict[str, TargetSpec]:
    """Return embedders by their names; the providers of the suite's text apply."""
    source, document = _stored_suite(suite_text, variables, folder)
    embedders = resolve_embedders(source, document, names)
    if source.problems:
        raise FairtrialError("; ".join(problem.message for problem in source.hidden_problems()))
    return embedders


def _resolve_judge(source: SuiteSource, path: KeyPath, document: SuiteDocument, entry: JudgeEntry) -> JudgeSpec | None:
    target = TargetResolver(source, document).resolve(path, entry)
    if target is None:
        return None
    params = entry.params.given() if entry.params else {}
    if entry.temperature is not msgspec.UNSET:
        params["temperature"] = entry.temperature
    # A separate id, because the same model may also be a target with other options.
    name = entry.id or entry.target
    target = msgspec.structs.replace(target, id=f"judge {name}")
    if entry.vision and not registry.load("targets", target.kind).takes_files:
        source.problem((*path, "vision"), f"{name} cannot receive images: only models behind an API can")
    check_template(source, (*path, "instructions"), entry.instructions)
    return JudgeSpec(name=name, target=target, params=params, instructions=entry.instructions, vision=entry.vision)
