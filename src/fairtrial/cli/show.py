"""`fairtrial show`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fairtrial.cli.options import json_option, open_store, option, print_json, store_option

if TYPE_CHECKING:
    from fairtrial.analyse import Run, TrialRecord
    from fairtrial.cli.console import Console


@click.command()
@click.argument("run", default="latest")
@option("--trial", metavar="ID", help="One trial: prompt, answer, score, timings.")
@option(
    "--pictures",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="With --trial: write its screenshots and its code there.",
)
@option("--trials", is_flag=True, help="A line for every trial.")
@option("--cases", is_flag=True, help="A line for every case under every arm.")
@option("--failures", is_flag=True, help="A line for every trial without a score.")
@option("--claims", is_flag=True, help="Every statement that goes beyond the golden answer.")
@option("--baseline", metavar="C", help="Show what the others bring over this condition.")
@option("--context", is_flag=True, help="Suite, parameters, prompts, versions.")
@store_option
@json_option
def command(
    run: str,
    trial: str | None,
    pictures: Path | None,
    trials: bool,
    cases: bool,
    failures: bool,
    claims: bool,
    context: bool,
    baseline: str | None,
    store: str | None,
    as_json: bool,
) -> None:
    """Show RUN (an id, a prefix of one, a tag or `latest`), one of its trials, or a whole series."""
    from fairtrial.analyse import Run
    from fairtrial.analyse.cases import case_results
    from fairtrial.cli.display import next_step, print_summary
    from fairtrial.reports.json import case_document, context_document, document

    opened = open_store(store)
    records = opened.find_runs(run)
    if len(records) > 1:
        parts = (trial, trials, cases, failures, claims, context)
        _show_series([Run(opened, record) for record in records], whole=not any(parts), as_json=as_json)
        return
    found = Run(opened, records[0])
    if trial is not None:
        _show_trial(found, trial, pictures, as_json=as_json)
        return
    summary = found.summary(baseline)
    if as_json:
        more = context_document(found) if context else {}
        if cases:
            more["cases"] = [case_document(result) for result in case_results(found)]
        print_json(document(summary) | more)
        return
    print_summary(summary)
    if cases:
        _print_cases(found)
    if trials or failures:
        _print_trials(found, failures_only=failures)
    if claims:
        _print_claims(found)
    if context:
        _print_context(found)
    if step := next_step(summary):
        click.echo(step, err=True)


def _show_trial(run: Run, name: str, pictures: Path | None, *, as_json: bool) -> None:
    from fairtrial.reports.json import trial_document

    trial = run.trial(name)
    if as_json:
        print_json(trial_document(trial))
    else:
        _print_trial(trial)
    if pictures is not None:
        _write_pictures(run, trial, pictures)


def _show_series(runs: list[Run], *, whole: bool, as_json: bool) -> None:
    if not whole:
        raise click.UsageError(f"that is a series: name one of its runs ({', '.join(run.id for run in runs)})")
    from fairtrial.analyse.series_summary import summarise_series
    from fairtrial.cli.display import print_series
    from fairtrial.reports.json import series_document

    summary = summarise_series(runs)
    print_json(series_document(summary)) if as_json else print_series(summary)


def _print_trials(run: Run, *, failures_only: bool) -> None:
    from rich.table import Table
    from rich.text import Text

    from fairtrial.analyse.wording.runs import number
    from fairtrial.cli.console import Console
    from fairtrial.cli.tables import shortened
    from fairtrial.core.text import printable

    table = Table(box=None, padding=(0, 1), header_style="bold", expand=True)
    for name in ("trial", "case", "arm", "score"):
        table.add_column(name, no_wrap=name in ("trial", "score"), overflow="fold")
    table.add_column("answer or reason", ratio=1, no_wrap=True, overflow="ellipsis")
    for trial in run.trials():
        if failures_only and trial.status == "scored":
            continue
        repeat = f" #{trial.repeat + 1}" if trial.repeat else ""
        said = trial.failure_message or trial.unscored_message or trial.answer or ""
        score = number(trial.score) if trial.status == "scored" else trial.status
        names = (shortened(trial.case_id + repeat, 20), shortened(trial.arm, 24))
        shown = (trial.trial_id[:8], *names, score, " ".join(said.split()))
        table.add_row(*(Text(printable(cell)) for cell in shown))
    Console(highlight=False).print(table)


def _print_cases(run: Run) -> None:
    """Means over repeats, with their deviation: how reliable an arm is on each case."""
    from fairtrial.analyse.cases import case_results
    from fairtrial.analyse.wording.runs import number
    from fairtrial.cli.console import Console
    from fairtrial.cli.tables import table

    results = list(case_results(run))
    names = list(dict.fromkeys(name for result in results for name in result.metrics))
    rows = []
    for result in results:
        score = result.score
        cells = [result.case_id, result.arm, f"{score.count if score else 0}/{result.trials}"]
        spread = "" if score is None or score.std_dev is None else f" ± {number(score.std_dev)}"
        cells.append("–" if score is None else f"{number(score.mean)}{spread}")
        for name in names:
            metric = result.metrics.get(name)
            spread = "" if metric is None or metric.std_dev is None else f" ± {metric.std_dev:.1f}"
            cells.append("–" if metric is None else f"{metric.mean:.1f}{spread}")
        rows.append(cells)
    columns = ("case", "arm", "scored", "score", *(name.replace("_", "\n") for name in names))
    Console(highlight=False).print(table(columns, rows, names=("case", "arm")))


def _print_claims(run: Run) -> None:
    from fairtrial.core.text import printable

    for trial in run.trials():
        for claim in (trial.details or {}).get("unverified_claims", ()):
            click.echo(f"{trial.trial_id[:8]} {printable(trial.case_id)} {printable(trial.arm)}: {printable(claim)}")


def _print_trial(trial: TrialRecord) -> None:
    from rich.text import Text

    from fairtrial.analyse.wording.runs import milliseconds, money, number
    from fairtrial.cli.console import Console
    from fairtrial.core.experiment import show_expected
    from fairtrial.core.text import printable

    console = Console(highlight=False)
    facts = {
        "trial": trial.trial_id,
        "case": trial.case_id,
        "arm": f"{trial.arm}, repeat {trial.repeat + 1}",
        "status": trial.status,
        "score": f"{number(trial.score)} by {trial.scorer}: {trial.notes}" if trial.score is not None else "",
        "reason": trial.failure_message or trial.unscored_message or "",
        "model": trial.model or "",
        "finish": trial.finish_reason or "",
        "latency": f"{milliseconds(trial.latency_ms)}, first token {milliseconds(trial.first_token_ms)}",
        "attempts": f"{trial.attempts}, waited {milliseconds(trial.waited_ms)}",
        "tools": _tools_line(trial),
        "tokens": f"{trial.prompt_tokens} in, {trial.completion_tokens} out, {money(trial.cost_usd)}",
    }
    for name, value in facts.items():
        if value:
            console.print(Text.assemble((f"{name:>9} ", "bold"), printable(value)), soft_wrap=True)
    for reason in trial.tried:
        console.print(Text(f"    tried: {printable(reason)}", style="yellow"), soft_wrap=True)
    _print_calls(console, trial.trace)
    _print_page(console, trial.details)
    for title, body in (
        ("prompt", trial.input),
        ("expected", show_expected(trial.expected) or None),
        ("answer", trial.answer),
    ):
        if body is not None:
            console.print(Text(f"\n{title}", style="bold"))
            console.print(Text(printable(body)), soft_wrap=True)


def _print_page(console: Console, details: dict[str, Any] | None) -> None:
    """What a browser found in a page, where one has looked."""
    page = (details or {}).get("page")
    if page is None:
        return
    from rich.text import Text

    from fairtrial.core.text import printable

    console.print(Text("\npage", style="bold"))
    marks = {True: ("✓", "green"), False: ("✗", "red"), None: ("·", "dim")}
    for check in page["checks"]:
        reason = f" ({check['reason']})" if check["reason"] else ""
        console.print(Text.assemble(marks[check["passed"]], printable(f" {check['name']}{reason}")), soft_wrap=True)
    for probe in page["probes"]:
        console.print(Text.assemble(marks[probe["passed"]], printable(f" {probe['words']}")), soft_wrap=True)


def _write_pictures(run: Run, trial: TrialRecord, folder: Path) -> None:
    """A trial's screenshots, and the code of its page as text: nothing seals a page that is opened from a file."""
    from fairtrial.webpage.extract import extract

    files = {f"{name}.png": body for name, (_, body) in run.files(trial.trial_id).items()}
    html = extract(trial.answer or "").html
    if html is not None:
        files["page.txt"] = html.encode("utf-8", "replace")
    folder.mkdir(parents=True, exist_ok=True)
    for name, body in files.items():
        (folder / name).write_bytes(body)
    click.echo(f"written to {folder}: {', '.join(sorted(files)) or 'nothing, this answer has no page'}", err=True)


def _tools_line(trial: TrialRecord) -> str:
    if trial.tool_calls is None:
        return ""
    failed = f", {trial.tool_errors} failed" if trial.tool_errors else ""
    missing = f" ({trial.missing})" if trial.missing else ""
    return f"{trial.tool_calls} calls{failed}{missing}"


def _print_calls(console: Console, trace: dict[str, Any] | None) -> None:
    """What an agent did, call by call."""
    from rich.text import Text

    from fairtrial.core.text import printable

    def listed(name: str) -> list[Any]:  # a foreign agent may put anything there
        found = (trace or {}).get(name)
        return found if isinstance(found, list) else []

    for note in listed("left_out"):
        console.print(Text(f"     note: {printable(str(note))}", style="yellow"), soft_wrap=True)
    for call in listed("tool_calls"):
        if not isinstance(call, dict):
            console.print(Text(f"    {printable(str(call))}"), soft_wrap=True)
            continue
        name = f"{call.get('server') or 'built-in'}.{call.get('tool')}"
        took = f", {call['duration_ms']:.0f} ms" if isinstance(call.get("duration_ms"), int | float) else ""
        took = ", gave no answer" if call.get("unfinished") else took
        asked = " ".join(str(call.get("arguments") or "").split())
        said = " ".join(str(call.get("result") or "").split())
        shown = f"{name}({asked}){' failed' if call.get('error') else ''}{took}: {said[:400]}"
        console.print(Text(f"    {printable(shown)}", style="red" if call.get("error") else ""), soft_wrap=True)


def _print_scorings(console: Console, run: Run) -> None:
    """Where answers were scored more than once: every way, and which one counts."""
    from rich.text import Text

    from fairtrial.core.text import printable

    found = run.store.scorings(run.id)
    if len(found) < 2:
        return
    console.print(Text("\nscorings (`fairtrial rescore --scoring N` goes back to one):", style="bold"))
    for one in found:
        how = one.how.get("scorer") or {"type": "as the suite says"}
        state = "counts" if one.number == run.record.scoring else "kept" if one.completed else "unfinished"
        console.print(Text(printable(f"  {one.number}  {how['type']}  ({state})")), soft_wrap=True)


def _print_context(run: Run) -> None:
    from rich.text import Text

    from fairtrial.analyse.sent import sent_text
    from fairtrial.cli.console import Console
    from fairtrial.core.text import printable

    console = Console(highlight=False)
    for arm in run.plan_arms:
        shown = sent_text(run.sent(arm), arm)
        console.print(Text.assemble((f"\n{arm.name}: ", "bold"), f"parameters: {shown}"), soft_wrap=True)
        if arm.condition.mcp:
            names = ", ".join(server.name for server in arm.condition.mcp)
            console.print(Text(f"  MCP servers: {names}"), soft_wrap=True)
        if arm.condition.system:
            console.print(Text(f"  system: {arm.condition.system}"), soft_wrap=True)
    for server in run.context.get("mcp_servers") or ():
        named = printable(f"{server['name']} {server['version']}".strip())
        console.print(Text.assemble((f"\nMCP server {server['server']}: ", "bold"), named), soft_wrap=True)
        for tool in server["tools"]:
            console.print(Text(f"  {printable(tool['name'])}  {tool['schema_sha256'][:12]}"), soft_wrap=True)
    _print_scorings(console, run)
    packages = ", ".join(f"{name} {version}" for name, version in run.context["packages"].items())
    console.print(Text(f"\nPython {run.context['python']} on {run.context['platform']}; {packages}"), soft_wrap=True)
    console.print(Text(f"\nsuite, SHA-256 {run.plan.suite_sha256}:\n", style="bold"), soft_wrap=True)
    console.print(Text(run.plan.suite_text), soft_wrap=True)
