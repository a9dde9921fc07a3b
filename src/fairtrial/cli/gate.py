"""`fairtrial gate`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, NamedTuple

import click
import msgspec
from click.core import ParameterSource

from fairtrial import pipeline
from fairtrial.analyse.gate import Terms, gate, gate_spec, terms_of
from fairtrial.analyse.gate_changes import changes_between
from fairtrial.analyse.gate_plan import gate_against_itself, plan_gate
from fairtrial.analyse.gate_reasons import StatedReason
from fairtrial.analyse.gate_result import Gate, GateCheck
from fairtrial.analyse.run import Run
from fairtrial.analyse.score_table import RunSource, find_sources
from fairtrial.cli import gate_outputs
from fairtrial.cli.asking import load_dotenv, load_dotenv_of, say_what_ends
from fairtrial.cli.documents import print_json
from fairtrial.cli.gate_outputs import renderer
from fairtrial.cli.gate_page import print_gate, print_itself, print_plan
from fairtrial.cli.options import from_points
from fairtrial.cli.start import open_store, raise_open_file_limit, run_coroutine, tune_garbage_collector
from fairtrial.cli.watch import watcher
from fairtrial.config import RunOptions
from fairtrial.config.advice import ending_models
from fairtrial.reports.json import gate_document, gate_outlook_document
from fairtrial.store import Store
from fairtrial.text.printable import counted
from fairtrial.workflows.baselines import GateBaseline, baseline_for, keep_baseline
from fairtrial.workflows.until_sure import abuy_until_sure

NOT_RUN = "answers"  # the check of a gate for which nothing could be asked


def decide(
    run: str,
    min_score: float | None,
    against: str | None,
    margin: float | None,
    min_coverage: float | None,
    arms: tuple[str, ...],
    metric: str,
    largest: float | None,
    unsure: Literal["pass", "fail", "101"],
    until_sure: bool,
    budget_usd: float | None,
    replay: bool,
    keep: str | None,
    comment: str | None,
    report_url: str | None,
    plan: bool,
    aa: bool,
    repeats: int | None,
    these_cases: bool,
    outputs: tuple[str, ...],
    store: str | None,
    as_json: bool,
    quiet: bool,
) -> int:
    """Decide whether a run passes, and write the result wherever it is wanted."""
    context = click.get_current_context()
    if until_sure and budget_usd is None:
        raise click.UsageError("--until-sure needs --budget-usd: the most that further answers may cost")
    if budget_usd is not None and not until_sure:
        raise click.UsageError(
            "--budget-usd limits what --until-sure asks: give both; a suite has `budget_usd` of its own"
        )
    if replay and not _is_suite(run):
        raise click.UsageError("--replay needs the file of a suite: a run that is named is not run again")
    if repeats is not None and not _is_suite(run) and not plan:
        raise click.UsageError("--repeats needs the file of a suite or --plan: a run that is named is not run again")
    renderers = [renderer(output, metric) for output in outputs]
    terms = Terms(
        min_score=from_points(min_score, metric),
        margin=from_points(margin, metric),
        largest=from_points(largest, metric),
        unsure=unsure,
        min_coverage=None if min_coverage is None else min_coverage / 100,
        metric=metric,
        arms=arms,
        these_cases=these_cases,
    )
    named = frozenset(name for name in context.params if context.get_parameter_source(name) != ParameterSource.DEFAULT)
    from_suite = _is_suite(run)
    opened, not_run, folder = open_store(store, create=from_suite), "", Path()
    if from_suite:
        folder = Path(run).parent
        ran = _run_suite(run, opened, replay=replay, repeats=repeats, quiet=quiet or as_json)
        run, not_run = ran.run.id, ran.not_run
    source = find_sources([run], opened)[0]
    terms = terms_of(source.runs[0], terms, named=named)
    _forewarn(source, needed=(plan or until_sure) and not from_suite)
    if plan or aa:
        _foresee(source, terms, plan=plan, aa=aa, repeats=repeats, as_json=as_json)
        return 0
    baseline = GateBaseline(None, "")
    if not_run:
        result = _not_run(source, not_run, terms)
    else:
        baseline = _baseline(against, source, opened, folder)
        if until_sure and not baseline.words:
            raise click.UsageError("--until-sure needs a baseline: give --against")
        if until_sure and baseline.source is not None and budget_usd is not None:
            result, source = _until_sure(source, baseline, terms, budget_usd, quiet=quiet or as_json)
        else:
            result = gate(source, baseline.source, terms, baseline=baseline.words, first=keep is not None)
    return _show(
        result, source, baseline.source, renderers=dict(zip(outputs, renderers, strict=True)), metric=metric, keep=keep,
        comment=comment, report_url=report_url, as_json=as_json,
    )  # fmt: skip


def _forewarn(source: RunSource, *, needed: bool) -> None:
    """Say which models of a run end, where more is planned or bought of it."""
    if needed:
        say_what_ends(source.runs[0].store, source.runs[0].record)


def _baseline(given: str | None, source: RunSource, opened: Store, folder: Path) -> GateBaseline:
    """Find the run to compare with, as the command or the suite names it."""
    spec = gate_spec(source.runs[0])
    name = given or (spec.against if spec else None)
    return GateBaseline(None, "") if name is None else baseline_for(name, opened, source.runs[0], folder)


def _not_run(source: RunSource, reason: str, terms: Terms) -> Gate:
    """Return a gate that says that nothing was run: nobody can tell."""
    checks = [GateCheck(name=NOT_RUN, arm="all arms", result="cannot tell", reason=StatedReason(text=reason))]
    return Gate(run_ids=[run.id for run in source.runs], against=[], checks=checks, unsure=terms.unsure)


def _until_sure(
    source: RunSource, baseline: GateBaseline, terms: Terms, budget_usd: float, *, quiet: bool
) -> tuple[Gate, RunSource]:
    """Ask more until the gate can tell; say what that took."""
    run = source.runs[0]
    assert baseline.source is not None
    load_dotenv_of(run.id, run.store)
    bought = run_coroutine(
        abuy_until_sure(run, baseline.source, terms, budget_usd=budget_usd, watch=lambda _: watcher(quiet=quiet))
    )
    spent = f"{counted(bought.rounds, 'further round')} of answers, ${bought.usd:.2f}"
    click.echo(f"--until-sure: {spent}; {bought.ended}", err=True)
    gate = msgspec.structs.replace(bought.gate, origin=StatedReason(text=baseline.words))
    return gate, find_sources([bought.series], run.store)[0]


def _show(
    result: Gate,
    source: RunSource,
    reference: RunSource | None,
    *,
    renderers: dict[str, Any],
    metric: str,
    keep: str | None,
    comment: str | None,
    report_url: str | None,
    as_json: bool,
) -> int:
    """Print the result and write it wherever it is wanted."""
    for output, render in renderers.items():
        gate_outputs.write_output(Path(output), render, result, source)
    gate_outputs.append_github_summary(result)
    gate_outputs.annotate(result)
    if comment is not None:
        gate_outputs.comment(result, source, reference, comment, report_url)
    if as_json:
        print_json(gate_document(result, metric))
    else:
        print_gate(result, changes_between(source, reference, answers=False) if reference else None)
    if keep is not None:
        _keep(result, source, keep)
    return result.exit_code


def _keep(result: Gate, source: RunSource, where: str) -> None:
    """Keep a run that passed as a baseline: with one that did not, the next gate would compare a loss with itself."""
    if result.exit_code or any(check.name == NOT_RUN for check in result.checks):
        why = "the gate blocked it" if result.result == "failed" else "the gate cannot tell whether it passes"
        if result.lacks_baseline:
            why += "; --unsure pass keeps it as the first one"
        click.echo(f"not kept as a baseline: {why}", err=True)
        return
    click.echo(f"kept as a baseline: {keep_baseline(source, where)}", err=True)


def _foresee(source: RunSource, terms: Terms, *, plan: bool, aa: bool, repeats: int | None, as_json: bool) -> None:
    """Print what the gate can decide, and how often it would contradict itself."""
    planned = plan_gate(source, terms, repeats=repeats) if plan else None
    itself = gate_against_itself(source, terms) if aa else None
    if as_json:
        print_json(gate_outlook_document(planned, itself))
        return
    if planned:
        print_plan(planned)
    if itself:
        print_itself(itself)


class _GatedRun(NamedTuple):
    """A run for the gate; `not_run` says why it has no complete answers where nothing could be asked."""

    run: Run
    not_run: str = ""


def _is_suite(name: str) -> bool:
    return Path(name).suffix.lower() in (".yaml", ".yml", ".json") and Path(name).is_file()


def _run_suite(suite: str, store: Store, *, replay: bool, repeats: int | None, quiet: bool) -> _GatedRun:
    """Run a suite with stored answers wherever they are still valid; without keys, with stored answers only."""
    tune_garbage_collector()
    raise_open_file_limit()
    load_dotenv(suite)
    options = RunOptions(cache=True, repeats=repeats)
    loaded = pipeline.load(suite, options, placeholders=True)
    missing = sorted(loaded.variables.assumed)
    if not missing:
        loaded = pipeline.load(suite, options)
    if missing or replay:
        reason = f"{', '.join(missing)} is not set" if missing else "--replay"
        click.echo(f"{reason}: only stored answers are used, nothing is asked", err=True)
        loaded.settings = msgspec.structs.replace(loaded.settings, replay=True)
    for known in ending_models(loaded):
        click.echo(known.line, err=True)
    run = run_coroutine(pipeline.arun(loaded, store=store, watch=watcher(quiet=quiet)))
    return _GatedRun(run, _why_not_run(run, missing))


def _why_not_run(run: Run, missing: list[str]) -> str:
    """Say why a run that may not ask anything is not complete; empty if it is, or may."""
    if not run.settings.get("replay"):
        return ""
    arms = run.summary().arms
    trials = sum(arm.trials for arm in arms)
    absent = trials - sum(arm.scored for arm in arms)  # of answers or of verdicts; others were not looked for any more
    why = f"{', '.join(missing)} is not set (forks get no secrets)" if missing else "--replay asks nothing"
    return f"not run: {absent} of {trials} answers are not stored, and {why}" if absent else ""
