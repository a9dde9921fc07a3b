"""`fairtrial label`."""

from __future__ import annotations

from pathlib import Path
from shlex import quote

import click
from rich.text import Text

from fairtrial.analyse.run import Run
from fairtrial.cli.console import Console
from fairtrial.cli.documents import print_json
from fairtrial.cli.options import in_store
from fairtrial.cli.start import open_store
from fairtrial.present.words.judges import label_lines
from fairtrial.reports.json import labels_document
from fairtrial.store import opinions
from fairtrial.text.printable import counted, printable
from fairtrial.workflows.label import PersonLabel, add_labels, read_labels, read_mark, write_sample


def label_run(
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
    """Draw a sample to label, take labels, and print what they correct."""
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
    arms = run.arms
    if as_json:
        print_json(
            {"run_id": run.id, "arms": [{"arm": arm.arm, "labels": labels_document(arm.labels)} for arm in arms]}
        )
        return
    if not any(arm.labels for arm in arms):
        command = in_store(f"fairtrial label {run.id} --sample 20 -o marks.csv")
        click.echo(f"no answer of this run has a label yet; `{command}` draws some to label")
    console = Console()
    for arm in arms:
        for line in label_lines(arm):
            console.print(Text(printable(f"{arm.arm}: {line}")))
