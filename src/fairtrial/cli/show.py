"""`fairtrial show`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click
from rich.text import Text

from fairtrial.analyse.cases import case_results
from fairtrial.analyse.kind_means import by_kind
from fairtrial.analyse.run import Run
from fairtrial.analyse.scorers_used import scorer_label
from fairtrial.analyse.series_summary import summarise_series
from fairtrial.analyse.stored_run import TrialRecord
from fairtrial.cli.causes_page import show_causes
from fairtrial.cli.console import Console
from fairtrial.cli.documents import print_json
from fairtrial.cli.late_page import show_late
from fairtrial.cli.output import write_file
from fairtrial.cli.run_page import print_next, print_run
from fairtrial.cli.series_page import print_series
from fairtrial.cli.session_page import show_sessions
from fairtrial.cli.side_by_side_page import show_side_by_side
from fairtrial.cli.start import open_store
from fairtrial.cli.tables import table
from fairtrial.cli.trial_list import Filters, find_trials, print_trial_documents, print_trials
from fairtrial.cli.trial_page import next_difference, print_trial
from fairtrial.core.errors import FairtrialError
from fairtrial.core.events import as_data
from fairtrial.core.formatting import with_deviation
from fairtrial.present.words.runs import sent_text
from fairtrial.reports.json import case_document, context_document, run_document, series_document, trial_document
from fairtrial.store.browsing import cells, positions_of, runs_with_trial
from fairtrial.store.records import RunRecord
from fairtrial.store.scorings import scorings_of
from fairtrial.store.store import Store
from fairtrial.text.printable import printable
from fairtrial.webpage.extract import extract

_LATEST = "latest"  # the run if none is named


def show_run(
    run: str,
    case: str | None,
    arm: str | None,
    by: str | None,
    go_on: bool,
    trial: str | None,
    against: str | None,
    pictures: Path | None,
    cases: bool,
    sessions: bool,
    causes: bool,
    late: bool,
    claims: bool,
    context: bool,
    baseline: str | None,
    details: bool,
    plain: bool,
    store: str | None,
    as_json: bool,
    **filters: Any,
) -> None:
    """Print a run, its trials, one of them, or a series."""
    if case is not None and arm is None and not go_on:
        filters["case_ids"] = (*filters["case_ids"], case)

    opened = open_store(store)
    records = opened.find_runs(run)
    wanted = Filters(**filters)
    if len(records) > 1:
        run_options = (by, trial, arm, go_on, cases, claims, context, wanted.lists_trials)
        runs = [Run(opened, record) for record in records]
        _show_series(runs, whole=not any(run_options), as_json=as_json, plain=plain)
        return
    stored_run = Run(opened, records[0] if trial is None or run != _LATEST else _with_trial(opened, records[0], trial))
    if go_on:
        case, arm = _next_case(stored_run, case, arm)
    if case is not None and arm is not None:
        trial = _find_trial(stored_run, case, arm)
    own_pages = {show_sessions: sessions, show_causes: causes, show_late: late}
    own_page = next((page for page, wanted in own_pages.items() if wanted), None)
    if against is not None:
        show_side_by_side(stored_run, trial, against, as_json=as_json)
    elif own_page is not None:
        own_page(stored_run, as_json=as_json)
    elif trial is not None:
        _show_trial(stored_run, trial, pictures, as_json=as_json)
    elif as_json:
        _print_document(stored_run, wanted, by=by, baseline=baseline, cases=cases, context=context)
    else:
        _print_run(
            stored_run,
            wanted,
            by=by,
            baseline=baseline,
            cases=cases,
            claims=claims,
            context=context,
            plain=plain,
            details=details,
        )


def _print_document(
    run: Run, filters: Filters, *, by: str | None, baseline: str | None, cases: bool, context: bool
) -> None:
    shown = run_document(run, baseline, by) | (context_document(run) if context else {})
    if cases:
        shown["cases"] = [case_document(result) for result in case_results(run)]
    if filters.lists_trials:
        print_trial_documents(run, shown, find_trials(run, filters))
    else:
        print_json(shown)


def _print_run(
    run: Run,
    filters: Filters,
    *,
    by: str | None,
    baseline: str | None,
    cases: bool,
    claims: bool,
    context: bool,
    plain: bool,
    details: bool,
) -> None:
    if filters.lists_trials:
        print_trials(run, find_trials(run, filters))
    else:
        summary = run.summary(baseline)
        print_run(run, summary, by_kind(run, by), whole=by is not None, stored=True, plain=plain, details=details)
    if cases:
        _print_cases(run)
    if claims:
        _print_claims(run)
    if context:
        _print_context(run)
    if not filters.lists_trials:
        sys.stdout.flush()
        print_next(run, summary, stored=True)


def _next_case(run: Run, case: str | None, arm: str | None) -> tuple[str, str]:
    """Return the next case on which arms differ, and the arm whose answer to show."""
    if case is not None and not positions_of(run.store, run.plan.id, case):
        raise FairtrialError(f"run {run.record.number} has no case `{case}`")
    position = next_difference(run, case)
    if position is None:
        where = f" after {case}" if case is not None and next_difference(run, None) is not None else ""
        raise FairtrialError(f"the arms of run {run.record.number} differ on no case{where}")
    if arm is None:
        scored = [(cell.mean, cell.arm) for cell in cells(run.store, run.record, [position]) if cell.mean is not None]
        arm = run.plan_arms[min(scored)[1]].name
    return run.store.cases(run.plan.id, position, 1)[0].id, arm


def _find_trial(run: Run, case: str, arm: str) -> str:
    """Return the id of the first trial of a case by an arm."""
    places = find_trials(run, Filters(arms=(arm,), case_ids=(case,))).places
    trial = next(run.trials_at(places[:1]), None)
    if trial is None:
        raise FairtrialError(f"run {run.id} has no answer of {arm} to {case} yet")
    return trial.trial_id


def _with_trial(store: Store, latest: RunRecord, trial: str) -> RunRecord:
    """Return the newest run that has a trial; the latest one, which will say so, if there is none."""
    found = runs_with_trial(store, trial)
    if found and all(run.id != latest.id for run in found):
        click.echo(f"in run {found[0].number} of {found[0].suite_name}; the latest run has no such trial", err=True)
        return found[0]
    return latest


def _show_trial(run: Run, name: str, pictures: Path | None, *, as_json: bool) -> None:
    trial = run.trial(name)
    if as_json:
        events = run.trajectory(*run.locate(trial.case_id, trial.arm, trial.repeat), trial)
        print_json({**trial_document(trial), "trajectory": as_data(events)})
    else:
        print_trial(run, trial)
    if pictures is not None:
        _write_pictures(run, trial, pictures)


def _show_series(runs: list[Run], *, whole: bool, as_json: bool, plain: bool) -> None:
    if not whole:
        raise click.UsageError(
            f"these options need a single run, not a series; name one of its runs ({', '.join(run.id for run in runs)})"
        )

    summary = summarise_series(runs)
    print_json(series_document(summary)) if as_json else print_series(summary, plain=plain)


def _print_cases(run: Run) -> None:
    """Print means over repeats with their standard deviation, to show how reliable each arm is on each case."""
    results = list(case_results(run))
    names = list(dict.fromkeys(name for result in results for name in result.metrics))
    rows = []
    for result in results:
        score = result.score
        cells = [result.case_id, result.arm, f"{score.count if score else 0}/{result.trials}"]
        cells.append("–" if score is None else with_deviation(score.mean, score.std_dev))
        for name in names:
            metric = result.metrics.get(name)
            cells.append("–" if metric is None else with_deviation(metric.mean, metric.std_dev, "{:.1f}".format))
        rows.append(cells)
    columns = ("case", "arm", "scored", "score", *(name.replace("_", "\n") for name in names))
    Console().print(table(columns, rows, names=("case", "arm")))


def _print_claims(run: Run) -> None:
    for trial in run.trials():
        for claim in (trial.details or {}).get("unverified_claims", ()):
            click.echo(f"{trial.trial_id[:8]} {printable(trial.case_id)} {printable(trial.arm)}: {printable(claim)}")


def _write_pictures(run: Run, trial: TrialRecord, folder: Path) -> None:
    """Write a trial's screenshots, and its page as a text file, because a page opened from a file is not sealed."""
    files = {f"{name}.png": body for name, (_, body) in run.files(trial.trial_id).items()}
    html = extract(trial.answer or "").html
    if html is not None:
        files["page.txt"] = html.encode("utf-8", "replace")
    for name, body in files.items():
        write_file(folder / name, body)
    click.echo(
        f"written to {folder}: {', '.join(sorted(files)) or 'nothing, because this answer has no page'}", err=True
    )


def _print_scorings(console: Console, run: Run) -> None:
    """Print the scorings of a run that was scored more than once, and which one is current."""
    scorings = scorings_of(run.store, run.id)
    if len(scorings) < 2:
        return
    console.print(Text("\nscorings (`fairtrial rescore --scoring N` returns to one):", style="bold"))
    for scoring in scorings:
        scorer = scorer_label(scoring.how.get("scorer") or {"type": "as the suite says"})
        state = "current" if scoring.number == run.record.scoring else "kept" if scoring.completed else "unfinished"
        console.print(Text(printable(f"  {scoring.number}  {scorer}  ({state})")), soft_wrap=True)


def _recorded(run: Run, arm: str, what: str) -> list[str]:
    """Return something that the record has about an arm: `variables` that it was given, `remarks` on its parameters."""
    recorded = run.context.get("arms") or ()
    return next((entry.get(what, []) for entry in recorded if entry["arm"] == arm), [])


def _sheet(run: Run) -> str:
    """Return which model sheet a run was made with, and its days; earlier versions did not record it."""
    models = run.context.get("models")
    if not models:
        return ""
    days = sorted({models["checked"], *models.get("refreshed", {}).values()})
    return f"; model sheet {models['sheet'][:12]} ({' to '.join(dict.fromkeys((days[0], days[-1])))})"


def _print_context(run: Run) -> None:
    console = Console()
    for arm in run.plan_arms:
        shown = sent_text(run.sent(arm), arm)
        console.print(Text.assemble((f"\n{arm.name}: ", "bold"), f"parameters: {shown}"), soft_wrap=True)
        for remark in _recorded(run, arm.name, "remarks"):
            console.print(Text(f"  {printable(remark)}"), soft_wrap=True)
        if variables := _recorded(run, arm.name, "variables"):
            console.print(Text(f"  variables: {printable(', '.join(variables))}"), soft_wrap=True)
        if arm.condition.mcp:
            names = ", ".join(server.name for server in arm.condition.mcp)
            console.print(Text(f"  MCP servers: {names}"), soft_wrap=True)
        if arm.condition.system:
            console.print(Text(f"  system: {arm.condition.system}"), soft_wrap=True)
    for server in run.context.get("mcp_servers") or ():
        version = printable(f"{server['name']} {server['version']}".strip())
        console.print(Text.assemble((f"\nMCP server {server['server']}: ", "bold"), version), soft_wrap=True)
        for tool in server["tools"]:
            console.print(Text(f"  {printable(tool['name'])}  {tool['schema_sha256'][:12]}"), soft_wrap=True)
    _print_scorings(console, run)
    versions = [f"{name} {version}" for name, version in run.context["packages"].items()]
    if run.record.origin is not None:  # another tool ran it, elsewhere
        console.print(Text(f"\nimported by {', '.join(versions)}"), soft_wrap=True)
        return
    python = f"Python {run.context['python']} on {run.context['platform']}"
    console.print(Text(f"\n{python}; {', '.join(versions)}{_sheet(run)}"), soft_wrap=True)
    console.print(Text(f"\nsuite, SHA-256 {run.plan.suite_sha256}:\n", style="bold"), soft_wrap=True)
    console.print(Text(run.plan.suite_text), soft_wrap=True)
