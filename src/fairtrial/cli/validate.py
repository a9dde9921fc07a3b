"""`fairtrial validate`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import click

from fairtrial.cli.options import json_option, load_dotenv, option, print_json, print_plain_json

if TYPE_CHECKING:
    from fairtrial.config import Suite
    from fairtrial.toolbox.preflight import Inventory


@click.command()
@click.argument("suite", type=click.Path(), required=False)
@option("--schema", is_flag=True, help="Print the JSON schema of suite files.")
@option("--no-keys", is_flag=True, help="Do not report variables and keys that are not set.")
@option("--servers", is_flag=True, help="Start every MCP server and list its tools.")
@json_option
def command(suite: str | None, schema: bool, no_keys: bool, servers: bool, as_json: bool) -> int:
    """Check SUITE: syntax, keys, cases, patterns, numbers, files, variables, provider keys, prices.

    No model is called and nothing is spent.
    """
    if schema:
        from fairtrial.config.schema import suite_schema

        print_plain_json(suite_schema())
        return 0
    if suite is None:
        raise click.UsageError("missing suite file; name one, or use --schema")
    load_dotenv(suite)
    report = _report_json if as_json else _report
    return report(suite, placeholders=no_keys, servers=servers)


def _tools_of_servers(suite: Suite) -> list[Inventory]:
    """Start the servers of a suite; raise TargetUnusableError with what is wrong with them."""
    from fairtrial.toolbox.preflight import preflight

    return asyncio.run(preflight(suite.arms, suite.variables.hide))


def _report(suite: str, *, placeholders: bool, servers: bool) -> int:
    from fairtrial import pipeline
    from fairtrial.config.advice import warnings
    from fairtrial.core.text import counted
    from fairtrial.workflows.estimate import estimate

    loaded = pipeline.load(suite, placeholders=placeholders)
    for warning in warnings(loaded):
        click.echo(f"warning: {warning}", err=True)
    for server in _tools_of_servers(loaded) if servers else ():
        version = f" {server.version}" if server.version else ""
        names = ", ".join(tool.name for tool in server.tools)
        click.echo(f"{server.server} ({server.name}{version}): {counted(len(server.tools), 'tool')}: {names}")
    plan = estimate(loaded)
    size = f"{counted(plan.cases, 'case')} × {counted(len(plan.arms), 'arm')}, {counted(plan.trials, 'trial')}"
    click.echo(f"{suite} is valid: {size}")
    if loaded.variables.assumed:
        click.echo(f"to run it, set {', '.join(sorted(loaded.variables.assumed))}")
    return 0


def _report_json(suite: str, *, placeholders: bool, servers: bool) -> int:
    import msgspec

    from fairtrial import pipeline
    from fairtrial.core.errors import FairtrialError, Problem, ProblemsError
    from fairtrial.workflows.estimate import estimate

    problems: list[Problem] = []
    try:
        loaded = pipeline.load(suite, placeholders=placeholders)
        found = {"mcp_servers": msgspec.to_builtins(_tools_of_servers(loaded))} if servers else {}
        plan = {**msgspec.to_builtins(estimate(loaded)), **found}
    except ProblemsError as error:
        plan, problems = {}, error.problems
    except FairtrialError as error:
        plan, problems = {}, [Problem(str(error), file=suite)]
    print_json({"valid": not problems, "problems": problems, **plan})
    return 1 if problems else 0
