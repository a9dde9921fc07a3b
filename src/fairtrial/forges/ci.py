"""What a CI service says about its job: which branch it is about, and which one a merge goes to.

Services differ in what they call things, and in what they leave out: a pull request may have the name of its target as
its branch (Travis, AppVeyor, Drone), or a fork's branch may be called main. So the runs of a pull request belong to the
pull request, whatever its branch is called, and a target is only believed in a job that is about one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

GITHUB, GITLAB = "GitHub Actions", "GitLab CI"
_QUEUE = re.compile(r"gh-readonly-queue/(.+)/pr-(\d+)-[0-9a-f]+")
_PULL = re.compile(r"refs/pull/(\d+)/")


class NamedBranch(NamedTuple):
    """A branch, and the variable that names it."""

    branch: str = ""
    by: str = ""


class CiJob(NamedTuple):
    """What is known about a job; what its service does not say is empty."""

    service: str
    pull: str = ""  # the number of the pull request, or another name for it
    target: NamedBranch = NamedBranch()  # the branch that the pull request goes to
    branch: str = ""  # the branch of a job that is about no pull request
    default: NamedBranch = NamedBranch()  # the default branch of the repository


class Service(NamedTuple):
    """The variables of a service; of several, the first that is set counts."""

    name: str
    marks: tuple[str, ...]  # one of them is set in every job, `NAME=value` where others set it too
    pull: tuple[str, ...] = ()  # set and not `false` in jobs about a pull request, and only there
    target: tuple[str, ...] = ()
    branch: tuple[str, ...] = ()
    default: tuple[str, ...] = ()


# As their documentation has them; Woodpecker comes before GitLab, with which it shares names.
SERVICES = (
    Service(
        "Woodpecker", ("CI=woodpecker", "CI_SYSTEM_NAME=woodpecker"), pull=("CI_COMMIT_PULL_REQUEST",),
        target=("CI_COMMIT_TARGET_BRANCH",), branch=("CI_COMMIT_BRANCH",), default=("CI_REPO_DEFAULT_BRANCH",),
    ),
    Service(
        GITLAB, ("GITLAB_CI", "CI_COMMIT_BRANCH"),
        pull=("CI_MERGE_REQUEST_IID", "CI_EXTERNAL_PULL_REQUEST_IID", "CI_MERGE_REQUEST_TARGET_BRANCH_NAME"),
        target=("CI_MERGE_REQUEST_TARGET_BRANCH_NAME", "CI_EXTERNAL_PULL_REQUEST_TARGET_BRANCH_NAME"),
        branch=("CI_COMMIT_BRANCH",), default=("CI_DEFAULT_BRANCH",),
    ),
    Service(
        "Jenkins", ("JENKINS_URL",), pull=("CHANGE_ID", "ghprbPullId", "gitlabMergeRequestIid", "CHANGE_TARGET"),
        target=("CHANGE_TARGET", "ghprbTargetBranch", "gitlabTargetBranch"),
        branch=("BRANCH_NAME", "GIT_LOCAL_BRANCH", "GIT_BRANCH"),
    ),
    Service("CircleCI", ("CIRCLECI",), branch=("CIRCLE_BRANCH",)),  # a fork's is pull/12; no variable names a target
    Service(
        "Buildkite", ("BUILDKITE",), pull=("BUILDKITE_PULL_REQUEST", "BUILDKITE_PULL_REQUEST_BASE_BRANCH"),
        target=("BUILDKITE_PULL_REQUEST_BASE_BRANCH",), branch=("BUILDKITE_BRANCH",),
        default=("BUILDKITE_PIPELINE_DEFAULT_BRANCH",),
    ),
    Service(
        "Azure Pipelines", ("TF_BUILD", "BUILD_SOURCEBRANCH"),
        pull=(
            "SYSTEM_PULLREQUEST_PULLREQUESTNUMBER", "SYSTEM_PULLREQUEST_PULLREQUESTID",
            "SYSTEM_PULLREQUEST_TARGETBRANCH",
        ),
        target=("SYSTEM_PULLREQUEST_TARGETBRANCH",), branch=("BUILD_SOURCEBRANCH",),
    ),
    Service(
        "Bitbucket Pipelines", ("BITBUCKET_BUILD_NUMBER",),
        pull=("BITBUCKET_PR_ID", "BITBUCKET_PR_DESTINATION_BRANCH"), target=("BITBUCKET_PR_DESTINATION_BRANCH",),
        branch=("BITBUCKET_BRANCH",),
    ),
    Service(
        "Drone", ("DRONE",), pull=("DRONE_PULL_REQUEST",), target=("DRONE_TARGET_BRANCH", "DRONE_BRANCH"),
        branch=("DRONE_BRANCH",), default=("DRONE_REPO_BRANCH",),
    ),
    Service(
        "Travis CI", ("TRAVIS",), pull=("TRAVIS_PULL_REQUEST",), target=("TRAVIS_BRANCH",), branch=("TRAVIS_BRANCH",),
    ),
    Service(
        "AppVeyor", ("APPVEYOR",), pull=("APPVEYOR_PULL_REQUEST_NUMBER",), target=("APPVEYOR_REPO_BRANCH",),
        branch=("APPVEYOR_REPO_BRANCH",),
    ),
    Service(
        "Cirrus CI", ("CIRRUS_CI",), pull=("CIRRUS_PR",), target=("CIRRUS_BASE_BRANCH",), branch=("CIRRUS_BRANCH",),
        default=("CIRRUS_DEFAULT_BRANCH",),
    ),
    Service(
        "Semaphore", ("SEMAPHORE",), pull=("SEMAPHORE_GIT_PR_NUMBER",), target=("SEMAPHORE_GIT_BRANCH",),
        branch=("SEMAPHORE_GIT_BRANCH",),
    ),
    Service(
        "AWS CodeBuild", ("CODEBUILD_BUILD_ID",), pull=("CODEBUILD_WEBHOOK_BASE_REF",),
        target=("CODEBUILD_WEBHOOK_BASE_REF",), branch=("CODEBUILD_WEBHOOK_HEAD_REF",),
    ),
    Service("TeamCity", ("TEAMCITY_VERSION",)),  # says nothing in variables: git knows the branch
)  # fmt: skip


def ci_job(environment: Mapping[str, str]) -> CiJob | None:
    """Return what the service of this job says; None outside of the services that are known."""
    if any(environment.get(name) for name in ("GITHUB_ACTIONS", "GITHUB_BASE_REF", "GITHUB_REF_NAME")):
        return _github(environment)
    for service in SERVICES:
        if any(_is_set(mark, environment) for mark in (*service.marks, *service.pull)):
            return _job(service, environment)
    return None


def _is_set(mark: str, environment: Mapping[str, str]) -> bool:
    name, equals, value = mark.partition("=")
    return environment.get(name) == value if equals else bool(environment.get(name))


def _job(service: Service, environment: Mapping[str, str]) -> CiJob:
    pull = next((environment[name] for name in service.pull if environment.get(name, "false") not in ("", "false")), "")
    return CiJob(
        service.name,
        pull=pull,
        target=_said(service.target, environment) if pull else NamedBranch(),
        branch="" if pull else _said(service.branch, environment).branch,
        default=_said(service.default, environment),
    )


def _said(names: Sequence[str], environment: Mapping[str, str]) -> NamedBranch:
    found = ((short(environment.get(name, "")), name) for name in names)
    return next((NamedBranch(branch, name) for branch, name in found if branch), NamedBranch())


def short(reference: str) -> str:
    """Return the plain name of a branch; empty for a tag."""
    for prefix in ("refs/heads/", "refs/remotes/", "origin/"):
        reference = reference.removeprefix(prefix)
    return "" if reference.startswith("refs/tags/") else reference


def _github(environment: Mapping[str, str]) -> CiJob:
    """Return what GitHub Actions says, or what runs its workflows elsewhere (Gitea, Forgejo)."""
    reference, name = environment.get("GITHUB_REF", ""), environment.get("GITHUB_REF_NAME", "")
    default = NamedBranch(_default_of_event(environment.get("GITHUB_EVENT_PATH", "")), "GITHUB_EVENT_PATH")
    default = default if default.branch else NamedBranch()
    if queued := _QUEUE.fullmatch(name):
        return CiJob(GITHUB, pull=queued[2], target=NamedBranch(queued[1], "GITHUB_REF_NAME"), default=default)
    if into := environment.get("GITHUB_BASE_REF"):
        number = _PULL.match(reference)
        pull = number[1] if number else environment.get("GITHUB_HEAD_REF") or name or "request"
        return CiJob(GITHUB, pull=pull, target=NamedBranch(into, "GITHUB_BASE_REF"), default=default)
    on_branch = environment.get("GITHUB_REF_TYPE", "branch") == "branch"
    return CiJob(GITHUB, branch=name if on_branch else "", default=default)


def _default_of_event(path: str) -> str:
    """Return the default branch that the event of a job names; events without a push may name none."""
    try:
        repository = json.loads(Path(path).read_text("utf-8")).get("repository") if path else None
        return str((repository or {}).get("default_branch") or "")
    except (OSError, ValueError, AttributeError):
        return ""
