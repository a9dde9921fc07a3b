"""`fairtrial label`."""

from __future__ import annotations

from pathlib import Path
from shlex import quote

import click

from fairtrial.analyse.run import Run
from fairtrial.cli.console import Console
from fairtrial.cli.options import in_store, open_store, option, print_json, store_options
from fairtrial.present.words.judges import label_lines
from fairtrial.reports.json import labels_document
from fairtrial.store import opinions
from fairtrial.text.printable import counted, printable
from fairtrial.workflows.label import PersonLabel, add_labels, read_labels, read_mark, write_sample


@click.command()
@click.argument("run", default="latest")
@option("--sample", type=click.IntRange(min=1), metavar="N", help="Draw N answers of each arm to label.")
@option("-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="File for the sample: .csv or .jsonl.")
@option("--arm", "arms", multiple=True, metavar="A", help="Draw from this arm only; may be repeated.")
@option("--seed", type=int, help="Random seed, to draw the same sample again.")
@option("--import", "file", type=click.Path(path_type=Path), metavar="FILE", help="Import labelled answers.")
@option("--trial", metavar="ID", help="Label one answer.")
@option("--score", metavar="X", help="The label for --trial: 0 to 100, or pass or fail.")
@option("--note", default="", help="Reason for the label.")
@option("--by", default="person", show_default=True, metavar="NAME", help="Name of the person who labels.")
@option("--renew", is_flag=True, help="Compare stale labels with the current judge.")
@store_options
def command(
    run: str,
    sample: int | None,
    output: Path | None,
    arms: tuple[str, ...],
    seed: int | None,
    file: Path | None,
    trial: str | None,
    score: str | None,
    note: str,
    by: str,
    renew: bool,
    store: str | None,
    as_json: bool,
) -> None:
    """Let people label answers of RUN, and correct its judge's scores with the labels.

    \b
    fairtrial label RUN --sample 30 -o marks.csv   draws answers at random, blind
    (fill in the column `label`: 0 to 100, or pass and fail)
    fairtrial label RUN --import marks.csv         shows corrected means

    Without options, shows the result of the labels so far.
    """
    stored_run = Run.find(run, open_store(store))
    if (sample is None) != (output is None):
        raise click.UsageError("--sample and -o go together: the number of answers, and the file to write")
    if (trial is None) != (score is None):
        raise click.UsageError("--trial and --score go together: the answer, and its label")
    if sample is not None and (file or trial or renew):
        raise click.UsageError("--sample cannot be combined with --import, --trial or --renew; use a separate command")
    if sample is not None and output is not None:
        count = write_sample(stored_run, output, count=sample, arms=arms, seed=seed)
        if as_json:
            print_json({"run_id": stored_run.id, "file": str(output), "answers": count})
        else:
            click.echo(f"written: {output}, {counted(count, 'answer')} to label")
            command = in_store(f"fairtrial label {stored_run.id} --import {quote(str(output))}")
            click.echo(f"next: fill in the column `label` (0 to 100, or pass and fail), then `{command}`")
        return
    if file is not None:
        count = add_labels(stored_run, read_labels(file), by=by)
        click.echo(f"{counted(count, 'answer')} labelled", err=True)
    if trial is not None and score is not None:
        add_labels(stored_run, [PersonLabel(trial, read_mark(score), note)], by=by)
    if renew:
        count = opinions.renew_labels(stored_run.store, stored_run.id, stored_run.record.scoring)
        click.echo(f"{counted(count, 'stale label')} now compared with the current judge", err=True)
    _show(stored_run, as_json=as_json)


def _show(run: Run, *, as_json: bool) -> None:
    from rich.text import Text

    arms = run.arms
    if as_json:
        print_json(
            {"run_id": run.id, "arms": [{"arm": arm.arm, "labels": labels_document(arm.labels)} for arm in arms]}
        )
        return
    if not any(arm.labels for arm in arms):
        command = in_store(f"fairtrial label {run.id} --sample 20 -o marks.csv")
        click.echo(f"no answer of this run has a label yet; `{command}` draws some to label")
    console = Console(highlight=False)
    for arm in arms:
        for line in label_lines(arm):
            console.print(Text(printable(f"{arm.arm}: {line}")))
