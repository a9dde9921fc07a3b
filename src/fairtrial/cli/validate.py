"""`fairtrial validate`."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING

import click

from fairtrial.cli.options import json_option, option, print_json, print_plain_json

if TYPE_CHECKING:
    from fairtrial.agents.mcp.preflight import Inventory
    from fairtrial.config import Suite

_LONGEST_LIST = 300  # characters
_OBJECTIVE = re.compile(rb"(?:^|[{,])\s*[\"']?(?:objective|variables)[\"']?\s*:", re.MULTILINE)


@click.command()
@click.argument("suite", type=click.Path(), required=False)
@option("--schema", is_flag=True, help="Print the JSON schema of suite files.")
@option("--no-keys", is_flag=True, help="Do not report variables and keys that are not set.")
@option("--servers", is_flag=True, help="Start every MCP server and list its tools.")
@option("--run-code", is_flag=True, help="Import its functions and read what is outside of its folder, as a run does.")
@json_option
def command(suite: str | None, schema: bool, no_keys: bool, servers: bool, run_code: bool, as_json: bool) -> int:
    """Check SUITE: syntax, keys, cases, patterns, numbers, files, variables, provider keys, prices.

    No model is called, nothing is spent, and nothing of the suite is run: its functions are checked by reading their
    source. SUITE may be an optimisation problem instead (YAML, JSON, MPS, LP).
    """
    if schema:
        from fairtrial.config.schema import suite_schema

        print_plain_json(suite_schema())
        return 0
    if suite is None:
        raise click.UsageError("missing suite file; name one, or use --schema")
    if _is_problem(suite):
        return _report_problem(suite, as_json=as_json)
    from fairtrial.core.trust import running_code
    from fairtrial.text.printable import clipped, one_line

    report = _report_json if as_json else _report
    with running_code(run_code) as left_out:
        code = report(suite, placeholders=no_keys, servers=servers)
    if left_out and code == 0:
        names = one_line(clipped(", ".join(left_out), _LONGEST_LIST))
        click.echo(f"note: not run or fetched: {names}; --run-code checks as a run does", err=True)
    return code


def _tools_of_servers(suite: Suite) -> list[Inventory]:
    """Start the servers of a suite; raise TargetUnusableError with what is wrong with them."""
    from fairtrial.agents.mcp.preflight import preflight

    return asyncio.run(preflight(suite.arms, suite.variables.hide))


def _is_problem(file: str) -> bool:
    """Return whether a file is an optimisation problem rather than a suite, without importing what problems need."""
    from pathlib import Path

    if file.endswith((".mps", ".lp", ".mps.gz", ".lp.gz")):
        return True
    path = Path(file)
    try:
        if not path.is_file() or not _OBJECTIVE.search(path.read_bytes()):
            return False
    except OSError:
        return False  # reading it as a suite says what is wrong
    from fairtrial.tracks.optimisation.problem_files import is_problem_file

    return is_problem_file(path)


def _report_problem(file: str, *, as_json: bool) -> int:
    from fairtrial.core.errors import FairtrialError, Problem, ProblemsError
    from fairtrial.text.printable import counted
    from fairtrial.tracks.optimisation.problem_files import find_problem
    from fairtrial.tracks.optimisation.structure import kind

    try:
        problem = find_problem(file)
    except FairtrialError as error:
        if not as_json:
            raise
        problems = error.problems if isinstance(error, ProblemsError) else [Problem(str(error), file=file)]
        print_json({"valid": False, "problems": problems})
        return 1
    words = kind(problem.objective, problem.constraints, problem.integers)
    if as_json:
        facts = {"id": problem.id, "n": problem.n, "constraints": len(problem.constraints), "kind": words}
        more = {"sense": problem.sense, "convex": problem.convex, "difficulty": problem.difficulty}
        print_json({"valid": True, "problems": [], **facts, **more})
        return 0
    size = f"{counted(problem.n, 'variable')}, {counted(len(problem.constraints), 'constraint')}"
    shape = f"{words}{', convex' if problem.convex and words != 'linear' else ''}"
    click.echo(f"{file} is valid: {problem.sense} `{problem.id}`, {size}, {shape}, {problem.difficulty}")
    return 0


def _report(suite: str, *, placeholders: bool, servers: bool) -> int:
    from fairtrial import pipeline
    from fairtrial.config.advice import lines
    from fairtrial.text.printable import counted
    from fairtrial.workflows.estimate import estimate

    loaded = pipeline.load(suite, placeholders=placeholders)
    for line in lines(loaded):
        click.echo(line, err=True)
    for server in _tools_of_servers(loaded) if servers else ():
        version = f" {server.version}" if server.version else ""
        names = ", ".join(tool.name for tool in server.tools)
        others = [(server.resources, "resource"), (server.prompts, "prompt")]
        more = "".join(f", {counted(len(found), noun)}" for found, noun in others if found)
        tokens = sum(tool.tokens for tool in server.tools)
        size = f"{counted(len(server.tools), 'tool')} (about {tokens:,} tokens of every prompt){more}"
        click.echo(f"{server.server} ({server.name}{version}): {size}: {names}")
    plan = estimate(loaded)
    size = f"{counted(plan.cases, 'case')} × {counted(len(plan.arms), 'arm')}, {counted(plan.trials, 'trial')}"
    click.echo(f"{suite} is valid: {size}")
    if loaded.variables.assumed:
        click.echo(f"to run it, set {', '.join(sorted(loaded.variables.assumed))}")
    return 0


def _report_json(suite: str, *, placeholders: bool, servers: bool) -> int:
    import msgspec

    from fairtrial import pipeline
    from fairtrial.config.advice import ending_models, warnings
    from fairtrial.core.errors import FairtrialError, Problem, ProblemsError
    from fairtrial.workflows.estimate import estimate

    problems: list[Problem] = []
    try:
        loaded = pipeline.load(suite, placeholders=placeholders)
        found = {"mcp_servers": msgspec.to_builtins(_tools_of_servers(loaded))} if servers else {}
        plan = {**msgspec.to_builtins(estimate(loaded)), **found}
        plan["warnings"], plan["retiring"] = warnings(loaded), msgspec.to_builtins(ending_models(loaded))
    except ProblemsError as error:
        plan, problems = {}, error.problems
    except FairtrialError as error:
        plan, problems = {}, [Problem(str(error), file=suite)]
    print_json({"valid": not problems, "problems": problems, **plan})
    return 1 if problems else 0
