"""A methods paragraph and a citation, ready to paste: everything in them is read from the run."""

from __future__ import annotations

from fairtrial.present.words.comparisons import method_words
from fairtrial.text.printable import counted
from fairtrial.tracks.optimisation.analysis import OptimisationReport
from fairtrial.tracks.optimisation.experiment_setup import Setup
from fairtrial.tracks.optimisation.verify import GapKind
from fairtrial.tracks.optimisation.words import listed


def methods(report: OptimisationReport) -> list[str]:
    """Return the paragraphs: what was asked, how answers were verified, how styles were compared."""
    return [_asked(report), _verified(report), _compared(report), _reproduced(report)]


def _asked(report: OptimisationReport) -> str:
    setup = report.setup
    sizes = listed([str(n) for n in setup.sizes])
    levels = listed([f"{count} {level}" for level, count in setup.difficulties.items()])
    count = len(setup.families)
    families = f" of {count} {'family' if count == 1 else 'families'}" if count else ""
    repeats = "–".join(dict.fromkeys(str(count) for count in (setup.repeats[0], setup.repeats[-1])))
    about = (
        f"We compared {counted(len(setup.styles), 'prompt style')} ({listed(setup.styles)}) on "
        f"{counted(setup.problems, 'optimisation problem')}{families} (n = {sizes}; {levels}). "
    )
    if setup.replayed:
        return f"{about}The answers were read from files, up to {setup.repeats[-1]} for each problem and style."
    return (
        f"{about}"
        f"{listed(setup.targets)} answered every problem {repeats} times in each style"
        f"{_wordings(report)}{_params(setup)}. The problem and the sentence that states the answer format were the "
        "same in all styles."
    )


def _wordings(report: OptimisationReport) -> str:
    counts = sorted({one.wordings for one in report.lengths})
    if not counts or counts[-1] == 1:
        return ""
    shown = "–".join(dict.fromkeys(str(count) for count in (counts[0], counts[-1])))
    return f", taking the {shown} wordings of the style in turn"


def _params(setup: Setup) -> str:
    parts = [
        f"{target}: {', '.join(f'{name} {value}' for name, value in sent.items())}"
        for target, sent in setup.params.items()
        if sent
    ]
    return f" ({'; '.join(parts)})" if parts else ""


def _verified(report: OptimisationReport) -> str:
    setup = report.setup
    solvers = f" ({listed(setup.solvers)})" if setup.solvers else ""
    known = (
        f"Objective values and constraint violations were recomputed from each answer's x; {setup.certified} of "
        f"{setup.problems} optima are certified by a solver's bound{solvers}. An answer is feasible if its largest "
        f"violation, scaled by the norm of the constraint's row, is at most {setup.tolerance or '1e-06'}."
    )
    alone = (
        f"Of {counted(setup.problems - setup.known, 'problem')}, only the baseline is known: the objective is the one "
        "that an answer claims, and feasibility is unknown."
    )
    told = [*([known] if setup.known else []), *([alone] if setup.known < setup.problems else [])]
    gaps = [_GAPS[kind] for kind in setup.gaps]
    return " ".join([*told, *gaps, "An answer without a usable point has a gap of 1."])


_GAPS: dict[GapKind, str] = {
    "chance": "The normalised gap is (f(x) − f*)/(f_random − f*), clipped to [0, 1], where f_random is the mean "
    "objective of seeded random feasible points.",
    "relative": "Where f_random is not known, the relative gap |f(x) − f*|/|f*| takes its place, at most 1.",
    "absolute": "Where f_random is not known and f* is 0, the absolute gap |f(x) − f*| takes its place, at most 1.",
    "exact": "Where no random feasible point is known, the gap is 0 at the optimum and 1 anywhere else.",
}


def _compared(report: OptimisationReport) -> str:
    following, closeness = report.weights
    found = report.comparisons
    if found is None:
        return "There is one arm, so nothing was compared."
    if report.one_instance:
        return (
            f"Styles were compared by the composite, {following:g} × following + {closeness:g} × (1 − gap), on this "
            "instance alone: the answers to it are the sample, in Student's two-sample t-test with pooled variance and "
            "in the t-test paired by run. Nothing follows for other problems. Deviations are sample standard "
            "deviations between answers."
        )
    pair = found.pairs[0]
    wordings = (
        " The wordings are a random effect: their variance, beyond that of single answers, is added to the variance "
        "over problems (squared half-widths, Zou and Donner 2008)."
        if any(one.wordings for one in found.pairs)
        else " The effect is that of these wordings."
    )
    count = len(found.pairs)
    together = f" for all {count} pairs together (Holm); p-values are adjusted in the same way" if count > 1 else ""
    return (
        f"Styles were compared by the composite, {following:g} × following + {closeness:g} × (1 − gap), on "
        "the same problems: answers to a problem were averaged first, problems of one family form a cluster "
        f"({counted(pair.units, 'unit')}; {method_words(pair)}).{wordings} Confidence intervals are 95 %{together}. "
        "Student's t-test paired by problem, which takes no account of families, wordings or limits of the scale, "
        "is given next to it. "
        "Deviations are sample standard deviations between problems."
    )


def _reproduced(report: OptimisationReport) -> str:
    setup = report.setup
    seeds = f"problem seeds {', '.join(map(str, setup.seeds))}; " if setup.seeds else ""
    model_seeds = {target: sent["seed"] for target, sent in setup.params.items() if "seed" in sent}
    models = "".join(f"seed of {target} {seed}; " for target, seed in model_seeds.items())
    versions = ", ".join(f"{name} {version}" for name, version in setup.versions.items() if version)
    return (
        f"Run {report.run_id} of {setup.made} ({seeds}{models}dataset SHA-256 {setup.dataset_sha256}, suite SHA-256 "
        f"{setup.suite_sha256}; {versions})."
    )


def citation(report: OptimisationReport) -> str:
    """Return how to cite the tool and the run, as text."""
    version, year = _version(report)
    return (
        f"The fairtrial developers ({year}). fairtrial {version}: the same cases, stated conditions, honest error "
        f"bars. Run {report.run_id}."
    )


def bibtex(report: OptimisationReport) -> str:
    """Return the same as an entry for BibTeX."""
    version, year = _version(report)
    return (
        "@software{fairtrial,\n"
        "  author  = {{The fairtrial developers}},\n"
        "  title   = {fairtrial},\n"
        f"  version = {{{version}}},\n"
        f"  year    = {{{year}}},\n"
        f"  note    = {{run {report.run_id}}}\n"
        "}"
    )


def _version(report: OptimisationReport) -> tuple[str, str]:
    return report.setup.versions.get("fairtrial", "unknown"), report.setup.made[:4]
