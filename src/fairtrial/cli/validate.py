"""`fairtrial validate`."""

from __future__ import annotations

import click
import msgspec

from fairtrial import pipeline
from fairtrial.agents.mcp.offers import Inventory
from fairtrial.agents.mcp.preflight import drift_words, preflight
from fairtrial.cli.documents import print_json, print_plain_json
from fairtrial.cli.start import run_coroutine
from fairtrial.config import Suite
from fairtrial.config.advice import ending_models, lines, warnings
from fairtrial.config.schema import suite_schema
from fairtrial.core import registry
from fairtrial.core.errors import FairtrialError, Problem, ProblemsError
from fairtrial.core.trust import running_code
from fairtrial.text.printable import clipped, counted, one_line
from fairtrial.workflows.estimate import estimate

_LONGEST_LIST = 300  # characters


def validate_suite(suite: str | None, schema: bool, no_keys: bool, servers: bool, run_code: bool, as_json: bool) -> int:
    """Check a suite, or whatever else a validator recognises."""
    if schema:
        print_plain_json(suite_schema())
        return 0
    if suite is None:
        raise click.UsageError("missing suite file; name one, or use --schema")
    for name in registry.listed("validators"):
        other = registry.load("validators", name)
        if other.recognises(suite):
            code: int = other.report(suite, as_json=as_json)
            return code

    report = _report_json if as_json else _report
    with running_code(run_code) as left_out:
        code = report(suite, placeholders=no_keys, servers=servers)
    if left_out and code == 0:
        names = one_line(clipped(", ".join(left_out), _LONGEST_LIST))
        click.echo(f"note: not run or fetched: {names}; --run-code checks as a run does", err=True)
    return code


def _tools_of_servers(suite: Suite) -> list[Inventory]:
    """Start the servers of a suite; raise TargetUnusableError with what is wrong with them."""
    return run_coroutine(preflight(suite.arms, suite.variables.hide, compare=True))


def _report(suite: str, *, placeholders: bool, servers: bool) -> int:
    loaded = pipeline.load(suite, placeholders=placeholders)
    for line in lines(loaded):
        click.echo(line, err=True)
    found = _tools_of_servers(loaded) if servers else []
    for words in drift_words(found):
        click.echo(f"warning: {one_line(words)}", err=True)
    for server in found:
        version = f" {server.version}" if server.version else ""
        names = ", ".join(tool.name for tool in server.tools)
        others = [(server.resources, "resource"), (server.prompts, "prompt")]
        more = "".join(f", {counted(len(found), noun)}" for found, noun in others if found)
        tokens = sum(tool.tokens for tool in server.tools)
        size = f"{counted(len(server.tools), 'tool')} (about {tokens:,} tokens of every prompt){more}"
        stands_in = f", from {server.stand_in}" if server.stand_in else ""
        click.echo(f"{server.server} ({server.name}{version}{stands_in}): {size}: {names}")
    plan = estimate(loaded)
    size = f"{counted(plan.cases, 'case')} × {counted(len(plan.arms), 'arm')}, {counted(plan.trials, 'trial')}"
    click.echo(f"{suite} is valid: {size}")
    if loaded.variables.assumed:
        click.echo(f"to run it, set {', '.join(sorted(loaded.variables.assumed))}")
    return 0


def _report_json(suite: str, *, placeholders: bool, servers: bool) -> int:
    problems: list[Problem] = []
    try:
        loaded = pipeline.load(suite, placeholders=placeholders)
        found = _tools_of_servers(loaded) if servers else []
        told = {"mcp_servers": msgspec.to_builtins(found)} if servers else {}
        plan = {**msgspec.to_builtins(estimate(loaded)), **told}
        plan["warnings"] = [*warnings(loaded), *drift_words(found)]
        plan["retiring"] = msgspec.to_builtins(ending_models(loaded))
    except ProblemsError as error:
        plan, problems = {}, error.problems
    except FairtrialError as error:
        plan, problems = {}, [Problem(str(error), file=suite)]
    print_json({"valid": not problems, "problems": problems, **plan})
    return 1 if problems else 0
