"""What is typed for `fairtrial import`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import click

from fairtrial.cli.options import FILE, done_by, option, store_options
from fairtrial.core import registry
from fairtrial.tracks.interchange.options import GroupBy


class _Imports(click.Group):
    """Every name that is none of the kinds above is a tool, whose suite is converted."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*_KINDS, *_tools()]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return _KINDS[cmd_name][0] if cmd_name in _KINDS else _suite_command(cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("What to import"):
            kinds = ((kind, what) for kind, (_, what) in _KINDS.items())
            formatter.write_dl([*kinds, *((tool, _summary(tool)) for tool in _tools())])


def _tools() -> list[str]:
    names = [*registry.built_in("importers"), *registry.plugged_parts("importers")]
    return [name.replace("_", "-") for name in names]


def _summary(tool: str) -> str:
    part = registry.built_in("importers").get(tool.replace("-", "_"))
    if part is None and hasattr(registry.load("importers", tool), "certify"):
        return f"Convert the data of {tool}, and certify its labels."
    return (part and part.summary) or f"Convert a suite of {tool}."


@click.group(cls=_Imports, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
def import_() -> None:
    """Import results from other tools or recorded calls, or convert another tool's suite (`TOOL FILE`)."""


def _suite_command(tool: str) -> click.Command:
    """Return the command that converts suites of a tool, which may come from a plug-in."""

    @click.command(name=tool, help=_SUITE_HELP.format(tool=tool))
    @done_by("fairtrial.tracks.interchange.commands.import_:convert_suite", tool=tool)
    @click.argument("file", type=FILE)
    @option("-o", "--output", type=FILE, default=Path("suite.yaml"), show_default=True, metavar="FILE")
    @option("--force", is_flag=True, help="Overwrite an existing file.")
    @option(
        "--run-code",
        is_flag=True,
        help="Run what the original has: programs that make tests, reference programs of benchmarks.",
    )
    @option(
        "--sandbox",
        type=click.Choice(["bubblewrap", "none"]),
        default="bubblewrap",
        help="Benchmarks: where their reference programs are run; with none, these have your rights.",
    )
    @option(
        "--answer",
        type=click.Choice(["value", "code"]),
        default="value",
        help="Benchmarks: ask for the optimal value, or for a program that finds it.",
    )
    def convert() -> None: ...

    return convert


_SUITE_HELP = """Convert FILE, a suite of {tool}, to a fairtrial suite.

Everything that has no counterpart here is listed; nothing is dropped silently. The suite is checked as `validate
--no-keys` does; code of the original that it needs is written next to it."""


_COLUMNS = {
    "case": "Column with the id of the case.",
    "arm": "Column with the arm: model, system, variant.",
    "score": "Column with the score; of logs, the metric that becomes the score.",
    "repeat": "Column that tells repeats of a case apart.",
    "category": "Column, or key of the metadata, with the category.",
    "difficulty": "Column, or key of the metadata, with the difficulty.",
    "cluster": "Column, or key of the metadata, with what cases have in common.",
    "cost": "Column with the cost in USD.",
    "latency": "Column with the time in ms.",
    "input": "Column with the question.",
    "expected": "Column with the right answer.",
    "answer": "Column with the answer.",
}


def _with_columns(function: Any) -> Any:
    for name, text in reversed(_COLUMNS.items()):
        function = click.option(f"--{name}", f"column_{name}", metavar="NAME", help=text)(function)
    return function


@click.command(name="results")
@done_by("fairtrial.tracks.interchange.commands.import_results:import_files")
@click.argument("files", nargs=-1, required=True, type=FILE)
@option("--format", "format_", metavar="FORMAT", help="What the files are; found out from their content by default.")
@_with_columns
@click.option(
    "--scale", "scales", multiple=True, metavar="[METRIC=]WORST..BEST", help="Scale of the score or a metric."
)
@store_options
def results() -> None:
    """Import results from other tools as runs; then compare, rank, gate and report work on them.

    FILES are logs of inspect-ai (.eval, .json), lm-eval, promptfoo (JSON or its database), DeepEval, pydantic-evals,
    k-eval, Benchmaker, Every Eval Ever, OpenAI evals or HELM, or any table with columns for case, arm and score; or
    folders with such files. The same file is never imported twice.
    """


@click.command(name="log")
@done_by("fairtrial.tracks.interchange.commands.import_log:import_sessions")
@click.argument("files", nargs=-1, required=True, type=FILE, metavar="FILE...")
@option("--format", "form", metavar="FORMAT", help="What the files are; found out from their content by default.")
@option("--group-by", type=click.Choice(get_args(GroupBy)),
        help="A run for each folder, branch, model, agent or day; default: one run of all.")  # fmt: skip
@option("--score", metavar="NAME", help="The reward that becomes the score, where logs have several.")
@click.option(
    "--scale", "scales", multiple=True, metavar="[REWARD=]WORST..BEST", help="Scale of the score or a reward."
)
@option("--as-cases", type=FILE, metavar="FILE", help="Write a suite with what the users asked; import nothing.")
@option("--expected", type=click.Choice(["answer", "tools"]),
        help="With --as-cases: expect the recorded answers, or the tools that were called.")  # fmt: skip
@option("--redact", multiple=True, metavar="REGEX", help="With --as-cases: replace this as well as e-mail addresses, "
        "phone and card numbers and API keys; `off` replaces nothing; repeatable.")  # fmt: skip
@option("--force", is_flag=True, help="With --as-cases: overwrite an existing file.")
@store_options
def log() -> None:
    """Import logs of agents' sessions as runs: each session is a trial, its user's first message the case.

    FILES are sessions of Claude Code, Codex, Gemini CLI (.jsonl, .json) and opencode (`opencode export ID`),
    trajectories in ATIF, jobs of Harbor, traces of OpenTelemetry (OTLP as JSON); or folders with such files, such as
    ~/.claude/projects. Answers are not scored: `fairtrial rescore RUN --scorer NAME` does that.
    """


@click.command()
@done_by("fairtrial.tracks.interchange.commands.import_traces:write_cases")
@click.argument("files", nargs=-1, required=True, type=FILE, metavar="FILE...")
@option("-o", "--output", type=FILE, default=Path("suite.yaml"), show_default=True,
        metavar="FILE", help="The suite (.yaml) or dataset (.jsonl) to write.")  # fmt: skip
@option("--format", "form", type=click.Choice(["otlp", "langfuse", "logfire"]), help="The kind of FILE, if unclear.")
@option("--where", multiple=True, metavar="'COLUMN: CONDITION'",
        help="Only these calls, as in a dataset: 'model: gpt-6.1-sol', 'turns: {min: 2}'; repeatable.")  # fmt: skip
@option("--by", type=click.Choice(["call", "trace", "session"]), default="call", show_default=True,
        help="A case for every call, or for the longest call of each trace or session.")  # fmt: skip
@option("--sample", type=click.IntRange(min=1), help="Draw this many cases at random.")
@option("--seed", type=int, default=0, show_default=True, help="The seed of --sample.")
@option("--expected", metavar="COLUMN", help="The expected answers: `answer` for the recorded ones, `tools` for the "
        "recorded calls of tools, or a column; default: labels recorded with the calls.")  # fmt: skip
@option("--redact", multiple=True, metavar="REGEX", help="Replace this as well as e-mail addresses, phone and card "
        "numbers and API keys; `off` replaces nothing; repeatable.")  # fmt: skip
@option("--target", metavar="T", help="The target of the suite; default: the model that was recorded most often.")
@option("--force", is_flag=True, help="Overwrite an existing file.")
def traces() -> None:
    """Turn the recorded calls in FILEs into cases: yesterday's production becomes today's suite.

    Reads OpenTelemetry (OTLP as JSON), Langfuse and Logfire exports. Equal questions become one case.
    """


_KINDS = {  # what is imported, if it is not a suite
    "results": (results, "Import results from other tools as runs: compare, rank, report."),
    "log": (log, "Import sessions of coding agents, ATIF, Harbor jobs, as runs; or as cases."),
    "traces": (traces, "Turn recorded calls into cases: OpenTelemetry, Langfuse, Logfire."),
}
