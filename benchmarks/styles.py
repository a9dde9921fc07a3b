"""Is a planted effect of a style found, and a planted null not? `python -m benchmarks.styles [RULE] [PATH]` writes
benchmarks/STYLES.md: RULE experiments a line on arrays, PATH experiments a line through the whole way, from the suite
over answers, verification and store to the report's verdict.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairtrial.config.styles import styles
from fairtrial.stats import CrossedMean, between_columns
from fairtrial.stats.crossed import sum_of
from fairtrial.stats.mean import Mean
from fairtrial.tracks.optimisation.families import DEFAULT

RESULTS = Path(__file__).parent / "STYLES.md"
Floats = NDArray[np.float64]
FAMILIES = np.unique([family for family, _, _ in DEFAULT], return_inverse=True)[1]


class World(NamedTuple):
    """How answers vary: between families within a style, between wordings, between answers; and the style's effect."""

    name: str
    family: float
    wording: float
    answer: float
    wordings: int = 5
    effect: float = 0.0


RULE = (
    World("nothing varies but answers", 0.0, 0.0, 0.15),
    World("families differ", 0.1, 0.0, 0.15),
    World("wordings differ a little", 0.0, 0.03, 0.15),
    World("wordings differ", 0.0, 0.1, 0.15),
    World("families and wordings differ", 0.1, 0.05, 0.15),
    World("three wordings", 0.05, 0.05, 0.15, 3),
    World("ten wordings", 0.05, 0.05, 0.15, 10),
    World("an effect of 0.15, wordings differ a little", 0.0, 0.03, 0.15, 5, 0.15),
    World("an effect of 0.15, families and wordings differ", 0.1, 0.05, 0.15, 5, 0.15),
)
PATH = (
    World("no effect", 0.0, 0.0, 0.2),
    World("no effect, wordings differ", 0.0, 0.15, 0.2),
    World("an effect", 0.0, 0.0, 0.2, 5, 1.2),
    World("an effect, wordings differ", 0.0, 0.15, 0.2, 5, 1.2),
)


def rule_line(world: World, experiments: int, rng: np.random.Generator) -> tuple[float, float]:
    """Return how often an effect is claimed: with the wordings as a random effect, and with them left out."""
    claimed, fixed = 0, 0
    for _ in range(experiments):
        base = rng.beta(2, 2, len(FAMILIES))
        a, b = (_table(world, base, effect, rng) for effect in (world.effect, 0.0))
        mean = Mean(a.mean(axis=1) - b.mean(axis=1), clusters=FAMILIES, bounds=(-np.inf, np.inf))
        between = sum_of([part for part in (between_columns(a), between_columns(b)) if part is not None])
        assert between is not None
        claimed += _excludes_0(CrossedMean(mean, between).interval())
        fixed += _excludes_0(mean.interval())
    return claimed / experiments, fixed / experiments


def _table(world: World, base: Floats, effect: float, rng: np.random.Generator) -> Floats:
    families = rng.normal(0, world.family, FAMILIES.max() + 1)[FAMILIES]
    wordings = rng.normal(0, world.wording, world.wordings)
    answers = rng.normal(0, world.answer, (len(base), world.wordings))
    return (base + families + effect)[:, None] + wordings + answers


def _excludes_0(interval: tuple[float, float] | None) -> bool:
    return interval is not None and not interval[0] <= 0 <= interval[1]


class Model:
    """A target that walks from the optimum towards a random point: how far depends on style, wording and luck."""

    def __init__(self, world: World, rng: np.random.Generator) -> None:
        from fairtrial.tracks.optimisation.catalogue import baselines
        from fairtrial.tracks.optimisation.families import SMALL, make

        problems = [make(*key) for key in SMALL]
        self._known = {problem.id: (problem, best) for problem, best in zip(problems, baselines(problems), strict=True)}
        self._labels = {re.search(r"Problem (\S+)\.", text)[1]: name for name, text in _texts(problems)}  # type: ignore[index]
        self._world, self._rng = world, rng
        starts = [(style, text.split("{{problem}}")[0]) for style in ("polite", "strict") for text in styles()[style]]
        self._luck = {start: rng.normal(0, world.wording) for _, start in starts}
        self._style = {start: style for style, start in starts}

    def __call__(self, prompt: str) -> str:
        start = max((start for start in self._style if prompt.startswith(start)), key=len)
        label = re.search(r"Problem (\S+)\.", prompt)
        assert label is not None
        problem, best = self._known[self._labels[label[1]]]
        far = 0.1 + self._luck[start] + self._rng.normal(0, self._world.answer)
        far += self._world.effect if self._style[start] == "strict" else 0.0
        if self._rng.random() < far / 2:
            return "I think that all of them are 0."
        if best.x is None:
            return json.dumps({"x": None, "objective_value": None, "status": "infeasible"})
        low, high = problem.box
        x = np.asarray(best.x)
        x = x + min(1.0, abs(far)) * (self._rng.uniform(np.maximum(low, -100), np.minimum(high, 100)) - x)
        return json.dumps({"x": x.tolist(), "objective_value": 0})


def _texts(problems: list) -> list[tuple[str, str]]:
    from fairtrial.tracks.optimisation.text import problem_text

    return [(problem.id, problem_text(problem)) for problem in problems]


def path_line(world: World, experiments: int, rng: np.random.Generator, folder: Path) -> float:
    """Return how often the report of a whole run says that one style is better than the other."""
    import fairtrial as ft
    from fairtrial.tracks.optimisation.analysis import optimisation_report

    claimed = 0
    for number in range(experiments):
        suite = ft.Suite(
            name="styles",
            targets=[_target(Model(world, rng))],
            suite={"kind": "optimisation", "n": [2, 5], "styles": ["polite", "strict"]},
            repeats=5,
        )
        run = ft.run(suite, store=str(folder / f"{number}.db"))
        assert run.status == "completed"
        comparisons = optimisation_report(run).comparisons
        assert comparisons is not None
        claimed += comparisons.pairs[0].verdict in ("better", "worse")
    return claimed / experiments


def _target(model: Model) -> Callable[[str], str]:
    def answer(prompt: str) -> str:
        return model(prompt)

    return answer


def main(rule: int = 2000, path: int = 100) -> None:
    """Simulate every line and write the page."""
    started = time.monotonic()
    rng = np.random.default_rng(20261117)
    lines = [
        "# Is an effect of a style found, and none where there is none?",
        "",
        f"Written by `python -m benchmarks.styles {rule} {path}`. A false claim may happen in 5 % of experiments (bar 6 %,",
        "give or take twice what the simulation itself may be off by).",
        "",
        "## The rule, on arrays",
        "",
        f"30 problems in 12 families as in the built-in suite, two styles, as many answers as wordings; {rule:,} experiments a line.",
        "Deviations of the worlds are of the composite, which is 0 to 1. Beside: the same with the wordings left out, as if they were",
        "the style.",
        "",
        "| | claimed | wordings left out |",
        "| --- | ---: | ---: |",
    ]
    for world in RULE:
        with_wordings, without = rule_line(world, rule, rng)
        lines.append(f"| {world.name} | {100 * with_wordings:.1f} % | {100 * without:.1f} % |")
    if path:
        lines += [
            "",
            "## The whole way",
            "",
            "A scripted model answers the 21 small problems in the built-in styles, five times each: suite, run, verification, store and",
            f"report; {path} experiments a line. The interval over problems is mostly the one that is bounded by the scale, which is careful.",
            "",
            "| | claimed |",
            "| --- | ---: |",
        ]
        for number, world in enumerate(PATH):
            own = np.random.default_rng(100 + number)
            with tempfile.TemporaryDirectory() as folder:
                lines.append(f"| {world.name} | {100 * path_line(world, path, own, Path(folder)):.0f} % |")
            print(lines[-1], flush=True)
    RESULTS.write_text("\n".join([*lines, ""]), "utf-8")
    print(f"{RESULTS} in {time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]))
