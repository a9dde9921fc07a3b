"""Where a gate's result goes besides the terminal: files, GitHub's summary and annotations, the comment."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import click
import msgspec

from fairtrial.analyse.gate import Gate
from fairtrial.analyse.gate_changes import changes_between
from fairtrial.analyse.leaderboard import run_leaderboard
from fairtrial.analyse.run import as_run
from fairtrial.analyse.score_table import RunSource
from fairtrial.cli.output import tell_github, write_file
from fairtrial.core.errors import FairtrialError
from fairtrial.core.private import opener
from fairtrial.forges import discussion, post
from fairtrial.forges.ci import GITHUB, GITLAB, ci_job
from fairtrial.present.arms import arm_table
from fairtrial.reports import SCHEMA_VERSION
from fairtrial.reports.comment import render, run_of
from fairtrial.reports.export import export
from fairtrial.reports.json import gate_document
from fairtrial.reports.junit import render_gate as render_junit
from fairtrial.reports.md import render_gate

_MOST_ANNOTATIONS = 10  # GitHub shows no more of a step


def renderer(output: str, metric: str) -> Callable[[Gate], str] | None:
    """Return the function that renders a file, by its extension; an unknown one is refused before anything is done.

    None stands for the report of the run itself.
    """
    name = output.lower()
    if name.endswith(".html"):
        return None
    if name.endswith(".md"):
        return render_gate
    if name.endswith(".xml"):
        return render_junit
    if name.endswith(".json"):
        return lambda result: msgspec.json.encode(
            {"schema_version": SCHEMA_VERSION, **gate_document(result, metric)}
        ).decode()
    raise click.UsageError(f"{output}: the file name must end in .md, .junit.xml, .json or .html")


def write_output(path: Path, render: Callable[[Gate], str] | None, result: Gate, source: RunSource) -> None:
    """Write one file: the result, or the report of the run."""
    if render is not None:
        write_file(path, render(result).encode())
        return

    export(as_run(source.runs[-1]), str(path))


def _append(path: Path, text: str) -> None:
    try:
        with open(path, "a", encoding="utf-8", opener=opener) as file:
            file.write(text)
    except OSError as error:
        raise FairtrialError(f"{path} cannot be written: {error.strerror or error}") from None


def append_github_summary(result: Gate) -> None:
    """Append the result to $GITHUB_STEP_SUMMARY, which GitHub shows on the job's page."""
    if target := os.environ.get("GITHUB_STEP_SUMMARY"):
        _append(Path(target), render_gate(result))


def annotate(result: Gate) -> None:
    """Tell GitHub Actions about every check that did not pass, next to the changed files."""
    if os.environ.get("GITHUB_ACTIONS") != "true":
        return
    for check in [check for check in result.checks if check.result != "passed"][:_MOST_ANNOTATIONS]:
        level = "error" if check.result == "failed" else "warning"
        title = _property(f"fairtrial: {check.name} of {check.arm}")
        tell_github(f"::{level} title={title}::{_data(check.message)}")


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def comment(result: Gate, source: RunSource, against: RunSource | None, service: str, report: str | None) -> None:
    """Write the comment on the pull request; if that is not possible, say so and keep the gate's verdict."""

    run = as_run(source.runs[0])
    suite = run.record.suite_name
    changes = changes_between(source, against)
    arms = arm_table(run.summary().arms, run_leaderboard(run)) if len(source.runs) == 1 else None
    body = render(result, changes, suite=suite, run_id=run.id, report=report or artefacts_of_job(), arms=arms)
    post_comment(body, suite, run.id, service)


def artefacts_of_job() -> str | None:
    """Return where the files of this CI job can be downloaded."""
    job = os.environ
    if job.get("GITHUB_RUN_ID") and job.get("GITHUB_SERVER_URL"):
        return (
            f"{job['GITHUB_SERVER_URL']}/{job.get('GITHUB_REPOSITORY')}/actions/runs/{job['GITHUB_RUN_ID']}#artifacts"
        )
    return f"{job['CI_JOB_URL']}/artifacts/browse" if job.get("CI_JOB_URL") else None


def _why_no_comment() -> str:
    job = ci_job(os.environ)
    if job is None or job.service in (GITHUB, GITLAB):
        return "this job is not about a pull request"
    return f"comments are written by jobs of {GITHUB} and {GITLAB}, and this is one of {job.service}"


def post_comment(body: str, suite: str, run_id: str, service: str) -> None:
    """Create the comment or update it in place."""
    try:
        where = discussion(service, os.environ)
        if where is None:
            click.echo(f"no comment: {_why_no_comment()}", err=True)
            return
        done = post(where, body, run_id=run_id, run_of=lambda text: run_of(text, suite))
    except FairtrialError as error:
        click.echo(f"no comment: {error}", err=True)
        return
    click.echo(f"comment {done}", err=True)
