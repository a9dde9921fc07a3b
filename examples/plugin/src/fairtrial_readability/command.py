"""`fairtrial readability`."""

from __future__ import annotations

import click

import fairtrial
from fairtrial.plugins import FairtrialError, json_option, print_json, store_option
from fairtrial_readability.arms import by_arm


@click.command()
@click.argument("run", default="latest")
@store_option
@json_option
def command(run: str, store: str | None, as_json: bool) -> None:
    """Show how easy the answers of RUN are to read."""
    opened = fairtrial.open_run(run, store=store)
    arms = by_arm(opened)
    if not arms:
        raise FairtrialError(f"run {opened.id} has no answers with words; look at them with `fairtrial show --trials`")
    if as_json:
        print_json({"run": opened.id, "arms": [arm._asdict() for arm in arms]})
        return
    width = max(len(arm.arm) for arm in arms)
    click.echo(f"{'arm':{width}}  reading ease  words a sentence  answers")
    for arm in arms:
        click.echo(f"{arm.arm:{width}}  {arm.ease:12.1f}  {arm.words_per_sentence:16.1f}  {arm.answers:7}")
