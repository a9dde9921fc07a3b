"""`fairtrial label`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from fairtrial.cli.options import json_option, open_store, option, print_json, store_option

if TYPE_CHECKING:
    from fairtrial.analyse import Run


@click.command()
@click.argument("run", default="latest")
@option("--sample", type=click.IntRange(min=1), metavar="N", help="Draw N answers of each arm for people to mark.")
@option(
    "-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="Where the sample goes: .csv or .jsonl."
)
@option("--arm", "arms", multiple=True, metavar="A", help="Draw from this arm only; may be repeated.")
@option("--seed", type=int, help="Draw the same sample again.")
@option("--import", "file", type=click.Path(path_type=Path), metavar="FILE", help="Take marked answers in.")
@option("--trial", metavar="ID", help="Mark one answer.")
@option("--score", metavar="X", help="Its mark: 0 to 100, or pass or fail.")
@option("--note", default="", help="Why.")
@option("--by", default="person", show_default=True, metavar="NAME", help="Who marks.")
@option("--renew", is_flag=True, help="Hold stale labels against today's judge.")
@store_option
@json_option
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
    """Let people mark answers of RUN, and correct its judge's scores by their marks.

    \b
    fairtrial label RUN --sample 30 -o marks.csv   draws answers at random, blind
    (fill in the column `label`: 0 to 100, or pass and fail)
    fairtrial label RUN --import marks.csv         shows corrected means

    Without options it shows what the labels say.
    """
    from fairtrial.analyse import Run
    from fairtrial.store import opinions
    from fairtrial.workflows.label import Label, add_labels, read_labels, read_mark, write_sample

    found = Run.find(run, open_store(store))
    if (sample is None) != (output is None):
        raise click.UsageError("--sample and -o go together: how many answers, and into which file")
    if (trial is None) != (score is None):
        raise click.UsageError("--trial and --score go together: which answer, and its mark")
    if sample is not None and (file or trial or renew):
        raise click.UsageError("--sample draws answers to mark; take marks in with a command of its own")
    if sample is not None and output is not None:
        count = write_sample(found, output, count=sample, arms=arms, seed=seed)
        if as_json:
            print_json({"run_id": found.id, "file": str(output), "answers": count})
        else:
            click.echo(f"written: {output}, {count} answers to mark")
            click.echo(f"then: fairtrial label {found.id} --import {output}")
        return
    if file is not None:
        count = add_labels(found, read_labels(file), by=by)
        click.echo(f"{count} answers labelled", err=True)
    if trial is not None and score is not None:
        add_labels(found, [Label(trial, read_mark(score), note)], by=by)
    if renew:
        count = opinions.renew_labels(found.store, found.id, found.record.scoring)
        click.echo(f"{count} labels were stale and are held against today's judge now", err=True)
    _show(found, as_json=as_json)


def _show(run: Run, *, as_json: bool) -> None:
    from rich.text import Text

    from fairtrial.analyse.wording.judges import label_lines
    from fairtrial.cli.console import Console
    from fairtrial.core.text import printable
    from fairtrial.reports.json import labels_document

    arms = run.arms
    if as_json:
        print_json(
            {"run_id": run.id, "arms": [{"arm": arm.arm, "labels": labels_document(arm.labels)} for arm in arms]}
        )
        return
    if not any(arm.labels for arm in arms):
        click.echo("no answer of this run has a label; `fairtrial label --help` says how to begin")
    console = Console(highlight=False)
    for arm in arms:
        for line in label_lines(arm):
            console.print(Text(printable(f"{arm.arm}: {line}")))
