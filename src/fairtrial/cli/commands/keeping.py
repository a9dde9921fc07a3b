"""What is typed to hand results on, to name them and to maintain the store."""

from __future__ import annotations

import click

from fairtrial.cli.options import FILE, done_by, json_option, option, store_option, store_options


class _NamesFormats(click.Option):
    """An option whose help names the formats, also those of plug-ins: they are looked up when it is shown."""

    @property
    def help(self) -> str | None:
        from fairtrial.reports.formats import ENDINGS, NAMES  # what only help needs

        return self._help and self._help.format(endings=" ".join(ENDINGS), names=" ".join(NAMES))

    @help.setter
    def help(self, text: str | None) -> None:
        self._help = text


_OUTPUT_HELP = (
    "The file to write, ending in one of {endings}, or - for standard output; may be repeated. "
    "A folder (ending in /) with --format inspect or eee; an address or project, or nothing, with mlflow or wandb."
)


@click.command(short_help="Write a run as one self-contained HTML page.")
@done_by("fairtrial.cli.report:write_report")
@click.argument("runs", nargs=-1, metavar="[RUN]...")
@option("-o", "--output", metavar="FILE", help="The file to write; report.html by default.")
@option("--site", metavar="DIR", help="Write a site of the runs to a folder, for any static host.")
@option("--suite", metavar="NAME", help="With --site: every finished run of this suite.")
@option("--base-url", default="", metavar="URL", help="With --site: its future address, for link previews.")
@store_option
def report() -> None:
    """Write RUN as one self-contained HTML page that opens from disk, without a network; or several as a site."""


@click.command(short_help="Write a run to a file: HTML, Markdown, JSON, CSV, Parquet, JUnit and others.")
@done_by("fairtrial.cli.export:export_run")
@click.argument("run", default="latest")
@option("-o", "--output", "outputs", cls=_NamesFormats, multiple=True, metavar="FILE", help=_OUTPUT_HELP)
@option(
    "--format",
    "form",
    cls=_NamesFormats,
    metavar="F",
    help="The format, if the extension does not determine it: one of {names}.",
)
@store_option
def export() -> None:
    """Write RUN to a file; the file's extension decides the format. `-o - --format jsonl` writes to a pipe.

    `--format mlflow` and `--format wandb` send it to these services, by default to the one that is configured there.
    """


@click.command(short_help="Give a run a name that works wherever its id does.")
@done_by("fairtrial.cli.tag:tag_run")
@click.argument("run", required=False)
@click.argument("name", required=False)
@option("--delete", is_flag=True, help="Remove a name: `fairtrial tag --delete NAME`.")
@store_options
def tag() -> None:
    """Give RUN (or a series) a NAME that works wherever its id does; without arguments, list the names.

    A name that another run already has moves to this one: `fairtrial tag latest main` after every release.
    """


@click.command(short_help="Delete runs from the store.")
@done_by("fairtrial.cli.delete:delete_runs")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
@store_option
def delete() -> None:
    """Delete runs with all their answers and scores."""


@click.group(short_help="Check the store for damage, and save what can be read.")
def store() -> None:
    """Maintain the store."""


@store.command()
@done_by("fairtrial.cli.store:check_rows")
@option("--save", type=FILE, metavar="FILE", help="Copy all readable rows of a SQLite file to a new one.")
@store_options
def check() -> None:
    """Check that every row of the store can be read, and save those that can."""


@store.command()
@done_by("fairtrial.cli.store:copy_to")
@click.argument("source")
@click.argument("target")
@option("--run", "runs", multiple=True, metavar="RUN", help="Copy this run or series only; may be repeated.")
@json_option
def copy() -> None:
    """Copy runs from the store SOURCE to the store TARGET, each a file name or a URL, and verify every row.

    Nothing in SOURCE changes. A run that is in TARGET already is compared and left as it is. If copying is interrupted,
    the same command continues it.
    """
