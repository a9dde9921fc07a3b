"""`fairtrial replicate`: the politeness studies on any model, analysed as in the papers and as here."""

from __future__ import annotations

from collections import Counter

import click
import yaml
from rich.text import Text

from fairtrial import pipeline
from fairtrial.analyse.run import Run
from fairtrial.analyse.units import in_points
from fairtrial.cli.asking import load_dotenv
from fairtrial.cli.console import Console
from fairtrial.cli.documents import print_json
from fairtrial.cli.finish import Ending, check_outputs
from fairtrial.cli.start import open_store, run_coroutine
from fairtrial.cli.tables import table
from fairtrial.cli.watch import watcher
from fairtrial.config import RunOptions, Suite, parse_suite
from fairtrial.core.formatting import signs
from fairtrial.text.printable import counted, printable
from fairtrial.tracks.politeness.analysis import Replication, TonePair, replication
from fairtrial.tracks.politeness.studies import demo_target, document

_TONES = ("tone", "accuracy", "sd", "worst run", "best run")
_PAIRS = ("tones", "points", "p, runs", "95 % CI", "p, questions")
_DIFFERENCES = (
    "p, runs: paired t-test of the run means, unadjusted, as in the papers. Its sample are runs of the same questions: "
    "it speaks of these questions in these wordings.",
    "p, questions: the questions are the sample, so that it speaks of questions like these; interval and p are "
    "adjusted for all pairs. * is below 0.05.",
    "Questions and wordings are our own, not those of the papers.",
)


def replicate_studies(
    targets: tuple[str, ...],
    demo: bool,
    run_id: str | None,
    runs: int,
    limit: int | None,
    first: int | None,
    concurrency: int | None,
    budget_usd: float | None,
    outputs: tuple[str, ...],
    store: str | None,
    as_json: bool,
    quiet: bool,
) -> int:
    """Ask the questions of the studies, or take an earlier run, and print both analyses."""
    if sum(map(bool, (targets, demo, run_id))) != 1:
        raise click.UsageError("give either the models to ask, or --demo, or --run with a run to analyse")

    code = 0
    if run_id is not None:
        run = Run.find(run_id, open_store(store))
    else:
        check_outputs(outputs)
        options = RunOptions(limit=limit, first=first, budget_usd=budget_usd, concurrency=concurrency)
        suite = _suite(targets, runs, options)
        opened = open_store(store, create=True)
        run = run_coroutine(pipeline.arun(suite, store=opened, watch=watcher(quiet=quiet)))
        code = Ending(outputs=outputs, quiet=True).report(run)
    result = replication(run)
    if as_json:
        print_json(in_points(result))
    elif not quiet:
        print_replication(result)
    return code


def _suite(targets: tuple[str, ...], runs: int, options: RunOptions) -> Suite:
    load_dotenv()
    asked = document(list(targets) or [demo_target(runs)], runs=runs)
    text = yaml.safe_dump(asked, sort_keys=False, allow_unicode=True)
    return parse_suite(text, file="politeness", options=options)


def print_replication(result: Replication) -> None:
    """Print accuracies, both analyses side by side, and what differs between them."""
    console = Console()
    for target in dict.fromkeys(tone.target for tone in result.tones):
        tones = [tone for tone in result.tones if tone.target == target]
        console.print(
            Text(printable(f"{target} · {result.questions} questions, {counted(tones[0].runs, 'run')}"), style="bold")
        )
        console.print()
        rows = [
            [tone.tone, f"{100 * tone.mean:.1f} %", "–" if tone.std_dev is None else f"{100 * tone.std_dev:.1f}",
             f"{100 * tone.min:.1f}", f"{100 * tone.max:.1f}"]
            for tone in tones
        ]  # fmt: skip
        console.print(table(_TONES, rows, names=("tone",)))
        if missing := sum(tone.missing for tone in tones):
            console.print(Text(f"{counted(missing, 'answer')} without a score, left out of the runs", style="yellow"))
        pairs = [pair for pair in result.pairs if pair.target == target]
        if pairs:
            console.print()
            console.print(table(_PAIRS, [_cells(pair) for pair in pairs], names=("tones",)))
            console.print()
            console.print(Text(_verdict(pairs)))
            for note, number in Counter(pair.note for pair in pairs if pair.note).items():
                console.print(Text(f"{counted(number, 'pair')}: {note}", style="yellow"))
        console.print()
    for line in _DIFFERENCES:
        console.print(Text(line, style="dim"))


def _cells(pair: TonePair) -> list[str]:
    runs, questions = ("*" if found else " " for found in (pair.found_by_runs, pair.found_by_questions))
    interval = "–" if pair.ci95 is None else f"{100 * pair.ci95[0]:+.1f} to {100 * pair.ci95[1]:+.1f}"
    return [
        f"{pair.a} − {pair.b}",
        signs(f"{100 * pair.difference:+.1f}"),
        f"{_p(pair.p_runs)}{runs}",
        signs(interval),
        f"{_p(pair.p_questions)}{questions}",
    ]


def _p(value: float | None) -> str:
    return "–" if value is None else "< 0.001" if value < 0.001 else f"{value:.3f}"


def _verdict(pairs: list[TonePair]) -> str:
    runs, questions = sum(pair.found_by_runs for pair in pairs), sum(pair.found_by_questions for pair in pairs)
    return (
        f"Of {len(pairs)} pairs of tones, the papers' test calls {runs or 'none'} significant, and the comparison over "
        f"questions {questions or 'none'}."
    )
