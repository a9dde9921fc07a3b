"""`fairtrial optim generate`."""

from __future__ import annotations

from collections import Counter
from functools import partial
from pathlib import Path
from shlex import quote

import click

from fairtrial.cli.documents import print_json
from fairtrial.text.printable import counted
from fairtrial.tracks.optimisation.cases import show_progress
from fairtrial.tracks.optimisation.domains import DOMAINS, GROUPS, stories
from fairtrial.tracks.optimisation.families import FAMILIES, FIXED
from fairtrial.tracks.optimisation.generate import Wanted, generate

_REJECTED_SHOWN = 10
_INCOMPLETE = 2


def generate_problems(
    folder: Path | None,
    families: tuple[str, ...],
    sizes: tuple[int, ...],
    seed: int,
    count: int,
    variants: int,
    time_limit: float,
    listed: bool,
    as_json: bool,
    quiet: bool,
) -> int:
    """Generate problems of families, and write those that are certified."""
    if listed:
        return _list(as_json=as_json)
    if folder is None:
        raise click.UsageError("missing folder to write to; or use --list")
    if not families:
        raise click.UsageError("missing --family; --list names them")

    watch = partial(show_progress, what="certifying problems")
    wanted = Wanted(families=families, sizes=sizes or (5,), seed=seed, count=count, variants=variants)
    result = generate(wanted, folder, time_limit=time_limit, watch=None if quiet or as_json else watch)
    if as_json:
        print_json({"folder": str(folder), **{name: getattr(result, name) for name in result.__struct_fields__}})
    elif not quiet:
        certified = Counter(one.solver for one in result.certificates)
        by = ", ".join(f"{number} by {solver}" for solver, number in certified.items())
        click.echo(f"{counted(len(result.files), 'problem')} written to {folder}" + (f", certified {by}" if by else ""))
        if result.files:
            click.echo(f"`fairtrial optim run TARGET --problems {quote(str(folder))}` asks them", err=True)
    for one in result.rejected[:_REJECTED_SHOWN]:
        click.echo(f"thrown away: {one.problem}: {one.reason}", err=True)
    if len(result.rejected) > _REJECTED_SHOWN:
        click.echo(f"thrown away: {len(result.rejected) - _REJECTED_SHOWN} more", err=True)
    if result.rejected:
        click.echo("a longer --time-limit continues from what is known", err=True)
    return _INCOMPLETE if result.rejected else 0


def _list(*, as_json: bool) -> int:
    formulas = [name for name in FAMILIES if name not in FIXED and name not in DOMAINS]
    if as_json:
        told = [{"family": name, "n": n, "stories": len(stories(name))} for name, n in DOMAINS.items()]
        rows = [*told, *({"family": name, "n": "variables", "stories": 0} for name in formulas)]
        print_json({"families": rows, "groups": GROUPS})
        return 0
    width = max(map(len, DOMAINS)) + 2
    for name, n in DOMAINS.items():
        click.echo(f"{name:<{width}}n counts {n}")
    for name, members in GROUPS.items():
        click.echo(f"{name:<{width}}{' and '.join(members)}")
    click.echo()
    click.echo(click.wrap_text(f"As formulas, without a story; n counts variables: {', '.join(formulas)}.", 80))
    return 0
