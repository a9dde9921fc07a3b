"""`fairtrial optim generate`."""

from __future__ import annotations

from collections import Counter
from functools import partial
from pathlib import Path
from shlex import quote

import click

from fairtrial.cli.options import json_option, option, print_json, quiet_option
from fairtrial.text.printable import counted
from fairtrial.tracks.optimisation.cases import show_progress
from fairtrial.tracks.optimisation.commands import time_limit_option
from fairtrial.tracks.optimisation.domains import DOMAINS, GROUPS, stories
from fairtrial.tracks.optimisation.families import FAMILIES, FIXED
from fairtrial.tracks.optimisation.generate import Wanted, generate

_REJECTED_SHOWN = 10
_INCOMPLETE = 2


@click.command("generate")
@click.argument("folder", required=False, type=click.Path(path_type=Path, file_okay=False))
@option("--family", "families", multiple=True, metavar="F", help="A family; may be repeated. --list names them.")
@option("--n", "sizes", multiple=True, type=click.IntRange(min=1), help="A size; may be repeated. Default: 5.")
@option("--seed", type=click.IntRange(min=1), default=1, show_default=True, help="Another seed, other problems.")
@option(
    "--count",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    help="Number of problems of every family and size.",
)
@option(
    "--variants",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Number of other wordings of every problem: the same mathematics in another story, order and names.",
)
@time_limit_option("Time limit for certifying one problem, in seconds.")
@option("--list", "listed", is_flag=True, help="List the families, and what --n counts in each.")
@json_option
@quiet_option
def command(
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
    """Generate problems that no model has seen, and write those that a solver certifies into FOLDER.

    The same family, size, seed and number give the same file on every machine. A problem that is not certified within
    the time limit is thrown away, and said; the exit code is 2 then. Proofs are in certificates.json.
    """
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
