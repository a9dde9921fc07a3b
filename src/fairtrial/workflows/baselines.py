"""The baseline of a gate: found by branch, tag or commit in the store, in a file, or in git notes; and kept there.

    RUN, SERIES, TAG, NAME@STORE   as everywhere
    branch:main                    the newest run of the branch that this commit comes after, else the newest one
    tag:v1 · commit:3f2a           the run of that commit, or with that tag in the store
    file:baseline.db.gz            the newest run of the suite in a store in a file, packed or not
    notes: · notes:main            the nearest earlier commit with a run in its git note, from here or another commit
    auto                           the branch that the pull request of a CI job goes to, else the default branch

A kept baseline is a store with one run, packed: everything that compares runs can read it.
"""

from __future__ import annotations

import gzip
import os
import tempfile
import weakref
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import Any, NamedTuple

import msgspec

from fairtrial.analyse.run import Run
from fairtrial.analyse.score_table import RunSource, find_sources
from fairtrial.analyse.stored_run import StoredRun
from fairtrial.core.errors import FairtrialError, NoSuchRunError
from fairtrial.core.private import write_private
from fairtrial.forges.ci import CiJob, NamedBranch, ci_job
from fairtrial.forges.git import NOTES, Git
from fairtrial.store import Store
from fairtrial.store.copying import copy_runs
from fairtrial.store.records import RunRecord

AUTO = "auto"
KINDS = ("branch", "tag", "commit", "file", "notes")
_USABLE = ("completed", "stopped", "incomplete")
_MOST = 2**30  # bytes of a packed baseline: more is no baseline


class NoBaselineError(FairtrialError):
    """There is no run to compare with yet."""


class GateBaseline(NamedTuple):
    """The run to compare with and how it was found, or why there is none."""

    source: RunSource | None
    words: str


def baseline_for(
    name: str, store: Store, run: StoredRun, folder: Path | None = None, environment: Mapping[str, str] = os.environ
) -> GateBaseline:
    """Return the baseline that a name means here. It is not an error if there is none: the gate cannot tell."""
    source, because = None, ""
    try:
        if name == AUTO:
            name, because = _meant_by_auto(environment, Git.of(folder or Path()))
        source = find_baseline(name, store, run, folder)
        words = _what(source)
    except NoBaselineError as error:
        words = str(error)
    return GateBaseline(source, f"{words}. {because}" if because else words)


def _what(source: RunSource) -> str:
    """Say which run the baseline is."""
    facts = facts_of(source.runs[0].record)
    where = ", ".join(fact for fact in (facts["branch"], facts["commit"][:12]) if fact)
    runs = f"run{'s' if len(source.runs) > 1 else ''} {', '.join(run.id for run in source.runs)}"
    return f"Baseline: {runs}{f' ({where})' if where else ''}"


def _meant_by_auto(environment: Mapping[str, str], git: Git | None) -> tuple[str, str]:
    """Return the branch that `auto` means, and why: where the pull request goes, else the default branch."""
    job = ci_job(environment)
    if job is not None and job.target.branch:
        target = job.target
        return f"branch:{target.branch}", f"`auto` is where this pull request goes: {target.branch} ({target.by})"
    default = job.default if job is not None and job.default.branch else git.default_branch() if git else NamedBranch()
    if not default.branch:
        raise NoBaselineError(_nothing_known(job, git))
    merged = " names no target branch" if job is not None and job.pull else " names no pull request"
    service = f"This job of {job.service}{merged}, so " if job else ""
    return f"branch:{default.branch}", f"{service}`auto` is the default branch: {default.branch} ({default.by})"


def _nothing_known(job: CiJob | None, git: Git | None) -> str:
    said = (
        f"{job.service} names no branch that this job is merged into" if job else "no variable of a CI service is set"
    )
    here = "git knows no default branch here" if git else "this folder is in no git repository"
    return f"no baseline: `auto` found no branch, because {said}, and {here}. Name it: --against branch:main"


def find_baseline(name: str, store: Store, run: StoredRun, folder: Path | None = None) -> RunSource:
    """Return the run to compare with; `run` is the one that is gated, `folder` where its repository is."""
    kind, colon, value = name.partition(":")
    if not colon or kind not in KINDS:
        return _named(name, store)
    if kind == "file":
        return _in_file(Path(value), run)
    git = Git.of(folder or Path())
    if kind == "notes":
        return _in_notes(_repository(git, name), value or "HEAD", run)
    records = _earlier_runs(store, run)
    if kind == "branch":
        chosen = _of_branch(records, value, git)
    elif kind == "tag" and value in store.tags():
        return _named(value, store)
    else:
        commit = (git.resolve(f"refs/tags/{value}" if kind == "tag" else value) if git else "") or value
        chosen = [record for record in records if len(commit) >= 4 and facts_of(record)["commit"].startswith(commit)]
    if not chosen:
        raise NoBaselineError(_nothing_found(name, kind, value, records, run))
    return _with_series(store, chosen[0], name)


def _named(name: str, store: Store) -> RunSource:
    try:
        return find_sources([name], store)[0]
    except NoSuchRunError as error:
        raise NoBaselineError(f"no baseline: {error}") from None


def _repository(git: Git | None, name: str) -> Git:
    if git is None:
        raise FairtrialError(f"{name} needs a git repository, and this folder is in none")
    return git


def facts_of(record: RunRecord) -> dict[str, str]:
    """Return commit and branch of a run, as they were recorded when it began."""
    facts = _git_of(record)
    return {"commit": str(facts.get("commit") or ""), "branch": str(facts.get("branch") or "")}


def _earlier_runs(store: Store, run: StoredRun) -> list[RunRecord]:
    """Return the other runs of the same suite that can be a baseline, the newest first.

    A run of changed files is not a run of its commit; a second run of the very same commit is none to compare with; and
    a run that could only use stored answers may lack most of them.
    """
    own, same = run.record.series_id, _gated_commit(run)
    return [
        record
        for record in store.runs_of(run.record.suite_name)
        if record.id != run.id
        and record.status in _USABLE
        and (own is None or record.series_id != own)
        and (record.status == "completed" or not msgspec.json.decode(record.settings).get("replay"))
        and not _git_of(record).get("changed")
        and (same is None or _git_of(record).get("commit") != same)
    ]


def _gated_commit(run: StoredRun) -> str | None:
    """Return the commit that a run is about; None if it is about changed files, or no commit is known."""
    here = run.context.get("git") or {}
    return None if here.get("changed") else here.get("commit")


def _git_of(record: RunRecord) -> dict[str, Any]:
    facts: dict[str, Any] = msgspec.json.decode(record.context).get("git") or {}
    return facts


def _of_branch(records: Sequence[RunRecord], branch: str, git: Git | None) -> list[RunRecord]:
    """Return the runs of a branch, those whose commit this one comes after first."""
    own = [record for record in records if facts_of(record)["branch"] == branch]
    order = {commit: number for number, commit in enumerate(git.ancestors())} if git else {}
    return sorted(own, key=lambda record: order.get(facts_of(record)["commit"], len(order)))


def _nothing_found(name: str, kind: str, value: str, records: Sequence[RunRecord], run: StoredRun) -> str:
    known = dict.fromkeys(facts_of(record)["branch" if kind == "branch" else "commit"][:12] for record in records)
    if listed := ", ".join(word for word in known if word):
        hint = f"there are runs of: {listed}"
    elif records:
        hint = "no run of this suite has recorded its commit"
    else:
        hint = f"this store has no other run of `{run.record.suite_name}` that can be one"
    return f"no baseline: there is no run for {name}; {hint}. {_how_to_get_one(kind, value, run)}"


def _how_to_get_one(kind: str, value: str, run: StoredRun) -> str:
    here = run.context.get("git") or {}
    if kind != "branch" or here.get("branch") != value:
        return f"Run the suite on `{value}` first, with the same store"
    if here.get("changed"):
        return f"Commit the changed files and run the suite on `{value}`: a run of changed files cannot be a baseline"
    return f"From now on this run of `{value}` is one: later commits are compared with it, in the same store"


def _with_series(store: Store, record: RunRecord, label: str) -> RunSource:
    records = store.series_of(record.id) if record.series_id else [record]
    return RunSource(label, tuple(Run(store, one) for one in records if one.status in _USABLE))


def _in_file(path: Path, run: StoredRun) -> RunSource:
    if not path.is_file():
        raise NoBaselineError(
            f"no baseline: there is no file {path}; `fairtrial gate --keep {quote(str(path))}` writes one"
        )
    body = path.read_bytes() if path.suffix == ".gz" else None
    store = _unpacked(body, str(path)) if body is not None else Store(str(path), create=False)
    return _newest(store, run, f"file:{path}")


def _in_notes(git: Git, name: str, run: StoredRun) -> RunSource:
    noted = git.noted() - {_gated_commit(run)}
    commit = next((one for one in git.ancestors(name) if one in noted), None)
    if commit is None:
        raise NoBaselineError(
            f"no baseline: no earlier commit up to {name} has a note; fetch them with `git fetch origin "
            f"refs/notes/{NOTES}:refs/notes/{NOTES}`, or write one with `fairtrial gate --keep notes`"
        )
    return _newest(_unpacked(git.note(commit), f"the note of {commit[:12]}"), run, f"notes:{commit[:12]}")


def _unpacked(body: bytes, place: str) -> Store:
    """Return a store from its packed form; the file goes with the store."""
    try:
        packed = zlib.decompressobj(wbits=31)
        content = packed.decompress(body, _MOST)
    except zlib.error as error:
        raise FairtrialError(f"{place} is not a packed baseline: {error}") from None
    if packed.unconsumed_tail:
        raise FairtrialError(f"{place} is larger than a gigabyte when unpacked: that is not a baseline")
    folder = tempfile.TemporaryDirectory(prefix="fairtrial-baseline-")
    file = Path(folder.name) / "baseline.db"
    file.write_bytes(content)
    store = Store(str(file), create=False)
    weakref.finalize(store, folder.cleanup)
    return store


def _newest(store: Store, run: StoredRun, label: str) -> RunSource:
    own = _earlier_runs(store, run)
    if not own:
        raise NoBaselineError(
            f"no baseline: {label} has no finished run of the suite `{run.record.suite_name}` at another commit"
        )
    return _with_series(store, own[0], label)


def keep_baseline(source: RunSource, where: str, folder: Path | None = None) -> str:
    """Keep a run as a baseline, in a file or in the git note of its commit; return where it is."""
    if any(_git_of(run.record).get("changed") for run in source.runs):
        raise FairtrialError(
            f"run {source.runs[0].id} cannot be kept as a baseline: its files differed from the commit; "
            "commit them and run the gate again"
        )
    body = packed(source)
    if where != "notes":
        path = Path(where)
        try:
            write_private(path, body)
        except OSError as error:
            raise FairtrialError(f"{path} cannot be written: {error.strerror or error}") from None
        return str(path)
    git = _repository(Git.of(folder or Path()), "--keep notes")
    commit = facts_of(source.runs[0].record)["commit"] or git.commit
    git.set_note(commit, body)
    return f"the git note of {commit[:12]}; push it with `git push origin refs/notes/{NOTES}`"


def packed(source: RunSource) -> bytes:
    """Return the runs of a source as a packed store."""
    with tempfile.TemporaryDirectory(prefix="fairtrial-baseline-") as folder:
        file = Path(folder) / "baseline.db"
        target = Store(str(file))
        for result in copy_runs(source.runs[0].store, target, [run.record for run in source.runs]):
            if result.outcome == "skipped":
                raise FairtrialError(f"run {result.id} cannot be kept: {result.reason}")
        target.close()
        return gzip.compress(file.read_bytes(), mtime=0)
