"""`fairtrial run`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import click
import msgspec
from click.core import ParameterSource
from rich.table import Table

from fairtrial import pipeline
from fairtrial.cli.asking import load_dotenv
from fairtrial.cli.calibrate import how_to_calibrate
from fairtrial.cli.console import Console
from fairtrial.cli.documents import print_json
from fairtrial.cli.finish import Ending, check_outputs, exit_code
from fairtrial.cli.more import more_cases
from fairtrial.cli.options import from_points
from fairtrial.cli.rerun import watch_suite
from fairtrial.cli.start import open_store, raise_open_file_limit, run_coroutine, tune_garbage_collector
from fairtrial.cli.watch import watcher
from fairtrial.config import RunOptions
from fairtrial.config.advice import lines
from fairtrial.core.formatting import money
from fairtrial.engine.engines import where_of
from fairtrial.engine.job import HERE
from fairtrial.text.printable import counted
from fairtrial.workflows.calibrate import calibration_notes
from fairtrial.workflows.estimate import estimate
from fairtrial.workflows.series import arun_series

if TYPE_CHECKING:
    from fairtrial.analyse.run import Run
    from fairtrial.config import Suite
    from fairtrial.engine.job import Where
    from fairtrial.workflows.estimate import CostEstimate


def run_file(suite: str, watch: bool, **options: Any) -> int:
    """Run the suite in a file, once or whenever one of its files is saved."""
    context = click.get_current_context()
    if watch:
        check_outputs(options["outputs"])
        stops = any(options[name] for name in ("stop_when", "looks", "race", "gap"))
        if options["runs"] > 1 or options["dry_run"] or stops:
            raise click.UsageError(
                "--watch cannot be combined with --runs, --dry-run, --stop-when, --looks, --race or --gap"
            )
        return watch_suite(suite, _arguments(context))
    return run_loaded(lambda chosen, whole: pipeline.load(suite, chosen, whole=whole), suite, **options)


def run_loaded(
    load: Callable[[RunOptions, bool], Suite],
    file: str | None,
    *,
    runs: int,
    dry_run: bool,
    outputs: tuple[str, ...],
    store: str | None,
    engine: str,
    workers: int | None,
    as_json: bool,
    quiet: bool,
    plain: bool,
    show_result: Callable[[Run], bool] | None = None,
    **options: Any,
) -> int:
    """Run what `load` returns, with the options of `run_options`; keys are read next to `file`, if there is one.

    `show_result` prints the result of the run in place of its page, and says whether it could.
    """
    check_outputs(outputs)
    where = where_of(engine, workers)
    load_dotenv(file)
    if options["margin"] is not None and not any(options[name] for name in ("stop_when", "looks", "race")):
        raise click.UsageError("--margin needs --stop-when or --looks")
    for name in ("margin", "gap"):
        options[name] = from_points(options[name], "")
    more = options.pop("more")
    if more is not None:
        options |= more_cases(load(RunOptions(), True), open_store(store), more, options)
    loaded = load(RunOptions(**options), dry_run)
    if runs > 1 and loaded.settings.cache:
        raise click.UsageError("--runs and --cache cannot be combined: the runs of a series must be independent")
    if runs > 1 and loaded.settings.stop:
        raise click.UsageError(
            "--runs cannot be combined with --stop-when or looks, as the runs of a series must be complete; "
            "--looks 0 takes none, although a suite plans some"
        )
    if dry_run:
        return _show_plan(loaded, as_json=as_json)
    ending = Ending(outputs=outputs, as_json=as_json, quiet=quiet, plain=plain, show_result=show_result, file=file)
    return run_suite(loaded, ending, runs=runs, store=store, where=where)


def _arguments(context: click.Context) -> list[str]:
    """Return the arguments that this command was given, for one run of a suite that is watched."""
    arguments = ["--cache"]
    for parameter in context.command.params:
        name = parameter.name or ""
        given = context.get_parameter_source(name) == ParameterSource.COMMANDLINE
        if not isinstance(parameter, click.Option) or not given or name in ("watch", "cache"):
            continue
        value = context.params[name]
        for item in value if parameter.multiple else [value]:
            arguments += [parameter.opts[0]] if parameter.is_flag else [parameter.opts[0], str(item)]
    return [*arguments, "--", context.params["suite"]]


def run_suite(suite: Suite, ending: Ending, *, runs: int, store: str | None, where: Where | None = None) -> int:
    """Run a loaded suite once or as a series, and report each run."""
    tune_garbage_collector()
    raise_open_file_limit()
    for line in lines(suite):
        click.echo(line, err=True)
    opened = open_store(store, create=True)
    for note in calibration_notes(opened, suite, partial(how_to_calibrate, suite)):
        click.echo(note, err=True)

    def report(part: tuple[int, int], run: Run) -> None:
        if not ending.quiet:
            click.echo(f"run {part[0]} of {part[1]}: {run.id}, {run.status}", err=True)

    where = where or HERE
    if runs == 1:
        finished = [run_coroutine(pipeline.arun(suite, store=opened, watch=watcher(quiet=ending.quiet), where=where))]
    else:
        work = arun_series(
            suite,
            runs,
            store=opened,
            watch=lambda part: watcher(quiet=ending.quiet, part=part),
            after=report,
            where=where,
        )
        finished = run_coroutine(work)
    code = ending.report(finished[-1], timed=True, series=finished if runs > 1 else ())
    return max(code, *(exit_code(run.status) for run in finished))


def _show_plan(suite: Suite, *, as_json: bool) -> int:
    plan = estimate(suite)
    if as_json:
        print_json(msgspec.to_builtins(plan))
        return 0
    table = Table(box=None, padding=(0, 1), header_style="bold")
    for name in ("arm", "trials", "prompt tokens", "cost at most"):
        table.add_column(name, justify="left" if name == "arm" else "right")
    for arm in plan.arms:
        table.add_row(arm.arm, str(arm.trials), f"~{arm.prompt_tokens}", money(arm.most_usd))
    console = Console()
    console.print(f"{suite.name}: {counted(plan.cases, 'case')}, {counted(plan.trials, 'trial')}; nothing was run")
    console.print(table)
    if plan.judge_calls:
        console.print(f"judging: {counted(plan.judge_calls, 'call')}, {_at_most(plan.judge_usd)}")
    for name, usd in (("embeddings", plan.embedder_usd), ("simulated user", plan.user_usd)):
        if usd != 0:
            console.print(f"{name}: {_at_most(usd)}")
    console.print(f"total: {_at_most(plan.total_usd)}{_against_budget(plan)}")
    for arm in plan.arms:
        if arm.unknown:
            console.print(f"{arm.arm}: cost unknown, {arm.unknown}")
    return 0


def _at_most(usd: float | None) -> str:
    return "unknown" if usd is None else f"{money(usd)} at most"


def _against_budget(plan: CostEstimate) -> str:
    """Return whether a budget is enough, as the end of a sentence."""
    if plan.budget_usd is None:
        return ""
    budget = money(plan.budget_usd)
    if plan.total_usd is None:
        return f"; the run ends at the budget of {budget}"
    if plan.total_usd <= plan.budget_usd:
        return f", within the budget of {budget}"
    return f"; the budget of {budget} may end the run early: raise it, or choose fewer cases"
