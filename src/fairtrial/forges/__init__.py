"""Where pull requests are discussed: GitHub and GitLab, by plain HTTP. One file per service."""

from __future__ import annotations

from collections.abc import Mapping

from fairtrial.core.errors import FairtrialError
from fairtrial.forges.discussion import Discussion, Posted, post

__all__ = ["Discussion", "Posted", "discussion", "post"]

SERVICES = ("github", "gitlab")


def discussion(service: str, environment: Mapping[str, str]) -> Discussion | None:
    """Return the pull request that this CI job is about; None if it is about none. `auto` finds the service."""
    from fairtrial.forges.github import GitHub
    from fairtrial.forges.gitlab import GitLab

    if service == "auto":
        service = "gitlab" if environment.get("GITLAB_CI") else "github"
    if service not in SERVICES:
        raise FairtrialError(f"comments are for {' and '.join(SERVICES)}, not for `{service}`")
    known: dict[str, type[GitHub | GitLab]] = {"github": GitHub, "gitlab": GitLab}
    return known[service].of_job(environment)
