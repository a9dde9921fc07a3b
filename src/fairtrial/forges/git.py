"""What git knows about the folder of a suite: commit, branch, ancestors and notes; no working tree is changed."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from fairtrial.core.errors import FairtrialError
from fairtrial.forges.ci import NamedBranch, ci_job, short

NOTES = "fairtrial"  # refs/notes/fairtrial
_PATIENCE = 120.0  # seconds: machines can be very busy
_MOST_ANCESTORS = 1000
_INERT = ("-c", "core.fsmonitor=false", "-c", f"core.hooksPath={os.devnull}")  # programs that a repository names
_USUAL = ("main", "master", "trunk")  # names of default branches


class Git:
    """The repository that a folder belongs to."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @classmethod
    def of(cls, folder: Path) -> Git | None:
        """Return the repository of a folder; None if it is in none, or git is not installed."""
        home = folder.resolve()
        if not any((parent / ".git").exists() for parent in (home, *home.parents)):
            return None
        git = cls(home)
        return git if git._ask("rev-parse", "--verify", "-q", "HEAD") else None

    def _run(self, *args: str, given: bytes | None = None) -> subprocess.CompletedProcess[bytes] | None:
        try:
            command = ["git", "-C", str(self._folder), *_INERT, *args]
            return subprocess.run(command, input=given, capture_output=True, timeout=_PATIENCE, check=False)
        except (OSError, subprocess.TimeoutExpired):
            return None

    def _ask(self, *args: str) -> str:
        """Return what git answers; empty if it cannot."""
        result = self._run(*args)
        return result.stdout.decode(errors="replace").strip() if result and result.returncode == 0 else ""

    def _do(self, *args: str, given: bytes | None = None) -> bytes:
        """Return what git answers; raise if it cannot."""
        result = self._run(*args, given=given)
        if result is None or result.returncode:
            reason = result.stderr.decode(errors="replace").strip() if result else "git cannot be started"
            raise FairtrialError(f"git {' '.join(args[:3])} failed: {reason}")
        return result.stdout

    @property
    def commit(self) -> str:
        """The commit that is checked out."""
        return self._ask("rev-parse", "HEAD")

    def branch(self, environment: Mapping[str, str] = os.environ) -> str:
        """Return the branch that is checked out, or that a CI job is about; empty if there is none.

        A pull request is a branch of its own, such as pull/12: a fork may call its branch main.
        """
        job = ci_job(environment)
        if job is not None and job.pull:
            return f"pull/{job.pull}"
        return (job.branch if job else "") or self._ask("symbolic-ref", "--short", "-q", "HEAD")

    def default_branch(self) -> NamedBranch:
        """Return the default branch, and how that is known: by the remote, or because a branch has the usual name."""
        if remote := self._ask("symbolic-ref", "--short", "-q", "refs/remotes/origin/HEAD"):
            return NamedBranch(short(remote), "origin/HEAD")
        for name in filter(None, (self._ask("config", "init.defaultBranch"), *_USUAL)):
            if any(self.resolve(f"refs/{place}/{name}") for place in ("heads", "remotes/origin")):
                return NamedBranch(name, "a branch of that name, and no origin/HEAD")
        return NamedBranch()

    @property
    def changed(self) -> bool:
        """Whether files of the folder differ from the commit."""
        return bool(self._ask("status", "--porcelain", "--untracked-files=no", "--", "."))

    def resolve(self, name: str) -> str:
        """Return the commit that a name means; empty if it means none."""
        return "" if name.startswith("-") else self._ask("rev-parse", "--verify", "-q", f"{name}^{{commit}}")

    def ancestors(self, name: str = "HEAD") -> list[str]:
        """Return a commit and those before it, the newest first, as far as they were fetched."""
        commit = self.resolve(name)
        return self._ask("rev-list", f"--max-count={_MOST_ANCESTORS}", commit).split() if commit else []

    def noted(self) -> set[str]:
        """Return the commits that have a note of ours."""
        return {line.split()[1] for line in self._ask("notes", "--ref", NOTES, "list").splitlines() if " " in line}

    def note(self, commit: str) -> bytes:
        """Return the note of a commit."""
        return self._do("cat-file", "blob", f"{self._ask('notes', '--ref', NOTES, 'list', commit)}")

    def set_note(self, commit: str, body: bytes) -> None:
        """Write the note of a commit; it is pushed by `git push origin refs/notes/fairtrial`."""
        blob = self._do("hash-object", "-w", "--stdin", given=body).decode().strip()
        identity = ("-c", "user.name=fairtrial", "-c", "user.email=fairtrial@localhost")
        own = self._ask("config", "user.email")
        self._do(*(() if own else identity), "notes", "--ref", NOTES, "add", "-f", "-C", blob, commit)


def git_facts(folder: Path) -> dict[str, str | bool]:
    """Return commit, branch and whether files differ from the commit; empty outside of a repository."""
    git = Git.of(folder)
    return {} if git is None else {"commit": git.commit, "branch": git.branch(), "changed": git.changed}
