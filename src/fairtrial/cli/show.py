"""`fairtrial show`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fairtrial.cli.options import json_option, open_store, option, print_json, store_option
from fairtrial.cli.output import write_file

if TYPE_CHECKING:
    from fairtrial.analyse import Run, TrialRecord
    from fairtrial.cli.console import Console


@click.command()
@click.argument("run", default="latest")
@option("--trial", metavar="ID", help="Show one trial: prompt, answer, score, timings.")
@option(
    "--pictures",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="With --trial: write its screenshots and code to this folder.",
)
@option("--trials", is_flag=True, help="Show a line for every trial.")
@option("--cases", is_flag=True, help="Show a line for every case and arm.")
@option("--failures", is_flag=True, help="Show a line for every trial without a score.")
@option("--claims", is_flag=True, help="Show every claim that goes beyond the golden answer.")
@option("--baseline", metavar="C", help="Show the gain of the other conditions over this one.")
@option("--context", is_flag=True, help="Show suite, parameters, prompts and versions.")
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
        run_options = (trial, trials, cases, failures, claims, context)
        _show_series([Run(opened, record) for record in records], whole=not any(run_options), as_json=as_json)
        return
    stored_run = Run(opened, records[0])
    if trial is not None:
        _show_trial(stored_run, trial, pictures, as_json=as_json)
        return
    summary = stored_run.summary(baseline)
    if as_json:
        extra = context_document(stored_run) if context else {}
        if cases:
            extra["cases"] = [case_document(result) for result in case_results(stored_run)]
        print_json(document(summary) | extra)
        return
    print_summary(summary)
    if cases:
        _print_cases(stored_run)
    if trials or failures:
        _print_trials(stored_run, failures_only=failures)
    if claims:
        _print_claims(stored_run)
    if context:
        _print_context(stored_run)
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
        raise click.UsageError(
            f"these options need a single run, not a series; name one of its runs ({', '.join(run.id for run in runs)})"
        )
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
        text = trial.failure_message or trial.unscored_message or _with_extracted(trial) or ""
        score = number(trial.score) if trial.status == "scored" else trial.status
        names = (shortened(trial.case_id + repeat, 20), shortened(trial.arm, 24))
        shown = (trial.trial_id[:8], *names, score, " ".join(text.split()))
        table.add_row(*(Text(printable(cell)) for cell in shown))
    Console(highlight=False).print(table)


def _with_extracted(trial: TrialRecord) -> str | None:
    """Return the answer, after the part of it that was scored."""
    extracted = (trial.details or {}).get("extracted")
    return trial.answer if extracted is None else f"{extracted} ← {trial.answer}"


def _print_cases(run: Run) -> None:
    """Print means over repeats with their standard deviation, to show how reliable each arm is on each case."""
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
    """Print what a browser found in a page, if one has rendered it."""
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
    """Write a trial's screenshots, and its page as a text file, because a page opened from a file is not sealed."""
    from fairtrial.webpage.extract import extract

    files = {f"{name}.png": body for name, (_, body) in run.files(trial.trial_id).items()}
    html = extract(trial.answer or "").html
    if html is not None:
        files["page.txt"] = html.encode("utf-8", "replace")
    for name, body in files.items():
        write_file(folder / name, body)
    click.echo(
        f"written to {folder}: {', '.join(sorted(files)) or 'nothing, because this answer has no page'}", err=True
    )


def _tools_line(trial: TrialRecord) -> str:
    if trial.tool_calls is None:
        return ""
    failed = f", {trial.tool_errors} failed" if trial.tool_errors else ""
    missing = f" ({trial.missing})" if trial.missing else ""
    return f"{trial.tool_calls} calls{failed}{missing}"


def _print_calls(console: Console, trace: dict[str, Any] | None) -> None:
    """Print the tool calls of an agent."""
    from rich.text import Text

    from fairtrial.core.text import printable

    def listed(name: str) -> list[Any]:  # a third-party agent may put anything here
        entries = (trace or {}).get(name)
        return entries if isinstance(entries, list) else []

    for note in listed("left_out"):
        console.print(Text(f"     note: {printable(str(note))}", style="yellow"), soft_wrap=True)
    for call in listed("tool_calls"):
        if not isinstance(call, dict):
            console.print(Text(f"    {printable(str(call))}"), soft_wrap=True)
            continue
        name = f"{call.get('server') or 'built-in'}.{call.get('tool')}"
        duration = f", {call['duration_ms']:.0f} ms" if isinstance(call.get("duration_ms"), int | float) else ""
        duration = ", did not finish" if call.get("unfinished") else duration
        arguments = " ".join(str(call.get("arguments") or "").split())
        result = " ".join(str(call.get("result") or "").split())
        line = f"{name}({arguments}){' failed' if call.get('error') else ''}{duration}: {result[:400]}"
        console.print(Text(f"    {printable(line)}", style="red" if call.get("error") else ""), soft_wrap=True)


def _print_scorings(console: Console, run: Run) -> None:
    """Print the scorings of a run that was scored more than once, and which one is current."""
    from rich.text import Text

    from fairtrial.core.text import printable

    scorings = run.store.scorings(run.id)
    if len(scorings) < 2:
        return
    console.print(Text("\nscorings (`fairtrial rescore --scoring N` returns to one):", style="bold"))
    for scoring in scorings:
        scorer = scoring.how.get("scorer") or {"type": "as the suite says"}
        state = "current" if scoring.number == run.record.scoring else "kept" if scoring.completed else "unfinished"
        console.print(Text(printable(f"  {scoring.number}  {scorer['type']}  ({state})")), soft_wrap=True)


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
        version = printable(f"{server['name']} {server['version']}".strip())
        console.print(Text.assemble((f"\nMCP server {server['server']}: ", "bold"), version), soft_wrap=True)
        for tool in server["tools"]:
            console.print(Text(f"  {printable(tool['name'])}  {tool['schema_sha256'][:12]}"), soft_wrap=True)
    _print_scorings(console, run)
    packages = ", ".join(f"{name} {version}" for name, version in run.context["packages"].items())
    console.print(Text(f"\nPython {run.context['python']} on {run.context['platform']}; {packages}"), soft_wrap=True)
    console.print(Text(f"\nsuite, SHA-256 {run.plan.suite_sha256}:\n", style="bold"), soft_wrap=True)
    console.print(Text(run.plan.suite_text), soft_wrap=True)
