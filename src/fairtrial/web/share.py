"""Sharing: reports, a site and its badge, exports, a citation, and the exact command that repeats a run."""

from __future__ import annotations

import json
import shlex
import shutil
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route

from fairtrial.analyse.run import Run
from fairtrial.analyse.summary import RunSummary
from fairtrial.core.errors import FairtrialError
from fairtrial.core.formatting import PLUS_MINUS
from fairtrial.present.words.runs import reporting_line
from fairtrial.reports.badge import badge
from fairtrial.reports.export import export
from fairtrial.reports.format import Format
from fairtrial.reports.formats import FORMATS
from fairtrial.reports.site import write_site
from fairtrial.store.address import default_store, dialect_of
from fairtrial.text.printable import counted
from fairtrial.text.yaml_text import read_yaml
from fairtrial.web import numbers
from fairtrial.web.cache import LONG, patience
from fairtrial.web.result import numbers_of
from fairtrial.web.site import Site

_SEALED = {"X-Content-Type-Options": "nosniff", "Content-Security-Policy": "sandbox"}
_FORMATS_BY_NAME = {form.module: form for form in FORMATS}


class SharePages:
    """Pages for sharing and reproducing a run."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self.routes = [
            Route("/runs/{run}/share", self._show),
            Route("/runs/{run}/export/{name}", self._export),
            Route("/runs/{run}/site.zip", self._site_file),
            Route("/runs/{run}/badge.svg", self._badge),
            Route("/runs/{run}/suite.yaml", self._suite),
        ]

    def _show(self, request: Request) -> Response:
        run = self._site.run(request.path_params["run"])
        wait = patience(request.query_params)
        summary = self._site.cache.get(f"summary/{run.id}", [run], RunSummary, numbers.summary, wait=wait)
        return self._site.page(
            request,
            "share.html.j2",
            run=run.record,
            plan=run.plan,
            formats=_formats(run),
            commands=[*_to_repeat(run, self._site.store.path), *_to_look(run, self._site.store.path)],
            citation=_citation(run),
            lines=[reporting_line(arm) for arm in summary.arms] if summary else [],
            plus_minus=PLUS_MINUS,
            context=run.context,
        )

    def _export(self, request: Request) -> Response:
        run, name = self._site.run(request.path_params["run"]), request.path_params["name"]
        if name not in _FORMATS_BY_NAME:
            raise FairtrialError(f"unknown format `{name}`; choose one of {', '.join(_FORMATS_BY_NAME)}")
        ending = _FORMATS_BY_NAME[name].endings[0]
        return _download(run, ending, lambda path: export(run, path))

    def _site_file(self, request: Request) -> Response:
        """Send a site of the run, ready to be unpacked on a static host."""
        run = self._site.run(request.path_params["run"])

        def write(path: Path) -> None:
            folder = path.with_name("site")
            write_site([run], folder)
            shutil.make_archive(str(path.with_suffix("")), "zip", folder)

        return _download(run, ".zip", write)

    def _badge(self, request: Request) -> Response:
        run = self._site.run(request.path_params["run"])
        known = numbers_of(self._site.cache, run, wait=LONG)
        if known is None:
            raise FairtrialError("the badge shows the result of a run, and this one is still running")
        return Response(badge(known.overview.leaderboard), media_type="image/svg+xml", headers=_SEALED)

    def _suite(self, request: Request) -> Response:
        """Send the suite as it was run, with the names of variables, never their values."""
        run = self._site.run(request.path_params["run"])
        headers = {"Content-Disposition": f'attachment; filename="{run.id}.yaml"', "X-Content-Type-Options": "nosniff"}
        return Response(run.plan.suite_text, media_type="application/yaml", headers=headers)


def _download(run: Run, ending: str, write: Callable[[Path], Any]) -> Response:
    """Send a file that is written for this request. A report is a page of its own: it is never shown in our origin."""
    folder = tempfile.TemporaryDirectory(prefix="fairtrial-")
    path = Path(folder.name) / f"export{ending}"
    try:
        write(path)
    except BaseException:
        folder.cleanup()
        raise
    file = f"{run.record.suite_name}-{run.id}".replace("/", "-").replace("\\", "-")
    return FileResponse(
        path, filename=f"{file}{ending}", content_disposition_type="attachment", headers=_SEALED,
        background=BackgroundTask(folder.cleanup),
    )  # fmt: skip


def _formats(run: Run) -> list[Format]:
    """Return the export formats for a run; those for one model, arm or trial only if it has just one."""
    arms = len(run.plan_arms)
    trials = run.plan.case_count * sum(arm.repeats for arm in run.plan_arms)
    several = {"target": len({arm.target.id for arm in run.plan_arms}) > 1, "arm": arms > 1, "trial": trials > 1}
    return [form for form in FORMATS if not several.get(form.one)]


def _to_repeat(run: Run, store: str) -> list[tuple[str, str]]:
    """Return (purpose, command) pairs to type in the suite's folder, once the suite as it was run is saved there."""
    if run.record.origin is not None:
        return []  # it was run by another tool
    document = read_yaml(run.plan.suite_text)
    arms, settings = run.plan_arms, run.settings
    options: list[str] = []
    targets = list(dict.fromkeys(arm.target.id for arm in arms))
    if len(targets) < len(document.get("targets") or ()):
        options += [part for name in targets for part in ("--target", name)]
    conditions = list(dict.fromkeys(arm.condition.name for arm in arms))
    if len(conditions) < len(document.get("conditions") or ()):
        options += [part for name in conditions for part in ("--condition", name)]
    options += _selection(run)
    repeats = {arm.repeats for arm in arms}
    options += ["--repeats", str(repeats.pop())] if len(repeats) == 1 else []
    for name in ("concurrency", "timeout", "budget_usd"):
        if settings.get(name) is not None:
            options += [f"--{name.replace('_', '-')}", str(settings[name])]
    options += ["--benchmark-mode"] if settings.get("benchmark_mode") else []
    command = ["fairtrial", "run", f"{run.id}.yaml", *options, *_where(run, store)]
    return [("Run again with the suite as it was", shlex.join(command))]


def _to_look(run: Run, store: str) -> list[tuple[str, str]]:
    """Return (purpose, command) pairs that show a run, to type in the suite's folder."""
    commands = {
        "Show this run": ["show", run.id],
        "Compare its arms": ["compare", run.id, "--details"],
        "Write the report to a file": ["report", run.id, "-o", "report.html"],
        "Write the site into a folder": ["report", run.id, "--site", "public"],
    }
    if len(run.plan_arms) < 2:
        del commands["Compare its arms"]
    where = _where(run, store)
    return [(purpose, shlex.join(["fairtrial", *command, *where])) for purpose, command in commands.items()]


def _where(run: Run, store: str) -> list[str]:
    """Return the option for the store, unless it is the one that commands in the suite's folder use anyway."""
    usual = dialect_of(default_store(run.plan.folder)).place
    if "://" in store:
        return [] if usual == store else ["--store", store]
    path = Path(store).resolve()
    return [] if "://" not in usual and Path(run.plan.folder, usual).resolve() == path else ["--store", str(path)]


def _selection(run: Run) -> list[str]:
    """Return the options that select the cases of a run; those of earlier versions were the first of their suite."""
    selected = run.record.selected
    if selected is None:
        return ["--first", str(run.plan.case_count)]
    options = [part for name in selected.get("cases", ()) for part in ("--case", name)]
    return options + [
        part for name in ("limit", "first") if name in selected for part in (f"--{name}", str(selected[name]))
    ]


def _citation(run: Run) -> str:
    made = datetime.fromtimestamp(run.record.created_at, UTC)
    title = json.dumps(f"{run.record.suite_name}: run {run.id}", ensure_ascii=False)[1:-1]
    return (
        f"@misc{{fairtrial-{run.id},\n"
        f"  title = {{{title}}},\n"
        f"  year = {{{made.year}}}, month = {{{made.month}}},\n"
        f"  note = {{{counted(run.plan.case_count, 'case')}, {counted(len(run.plan_arms), 'arm')}; dataset SHA-256 "
        f"{run.plan.dataset_sha256}; suite SHA-256 {run.plan.suite_sha256}; "
        f"evaluated with fairtrial {run.context['packages'].get('fairtrial', version('fairtrial'))}}}\n}}"
    )
