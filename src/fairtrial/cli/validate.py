"""`fairtrial validate`."""

from __future__ import annotations

import click

from fairtrial.cli.options import json_option, load_dotenv, option, print_json, print_plain_json


@click.command()
@click.argument("suite", type=click.Path(), required=False)
@option("--schema", is_flag=True, help="Print the JSON schema of suite files.")
@option("--no-keys", is_flag=True, help="Do not report variables and keys that are not set.")
@json_option
def command(suite: str | None, schema: bool, no_keys: bool, as_json: bool) -> int:
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
    return _report_json(suite, placeholders=no_keys) if as_json else _report(suite, placeholders=no_keys)


def _report(suite: str, *, placeholders: bool) -> int:
    from fairtrial import pipeline
    from fairtrial.config.advice import warnings
    from fairtrial.core.text import counted
    from fairtrial.workflows.estimate import estimate

    loaded = pipeline.load(suite, placeholders=placeholders)
    for warning in warnings(loaded):
        click.echo(f"warning: {warning}", err=True)
    plan = estimate(loaded)
    size = f"{counted(plan.cases, 'case')} × {counted(len(plan.arms), 'arm')}, {counted(plan.trials, 'trial')}"
    click.echo(f"{suite} is valid: {size}")
    if loaded.variables.assumed:
        click.echo(f"to run it, set {', '.join(sorted(loaded.variables.assumed))}")
    return 0


def _report_json(suite: str, *, placeholders: bool) -> int:
    import msgspec

    from fairtrial import pipeline
    from fairtrial.core.errors import FairtrialError, Problem, ProblemsError
    from fairtrial.workflows.estimate import estimate

    problems: list[Problem] = []
    try:
        plan = msgspec.to_builtins(estimate(pipeline.load(suite, placeholders=placeholders)))
    except ProblemsError as error:
        plan, problems = {}, error.problems
    except FairtrialError as error:
        plan, problems = {}, [Problem(str(error), file=suite)]
    print_json({"valid": not problems, "problems": problems, **plan})
    return 1 if problems else 0
