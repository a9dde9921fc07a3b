"""Problem selection and baselines: shipped with the package, cached, or solved now."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path

import msgspec
import numpy as np

from fairtrial.core.errors import FairtrialError
from fairtrial.core.private import write_shared
from fairtrial.core.registry import nearest
from fairtrial.text.printable import clipped, one_line
from fairtrial.tracks.optimisation.families import DEFAULT, FAMILIES, FIXED, SMALL, can_make, make
from fairtrial.tracks.optimisation.model import check_installed
from fairtrial.tracks.optimisation.problem import Baseline, Floats, OptimisationProblem, problem_digest
from fairtrial.tracks.optimisation.solve import CERTIFIED
from fairtrial.tracks.optimisation.solving import NotSolvedError, Stopped, later, solve_all
from fairtrial.tracks.optimisation.worker import SolvingTask

SHIPPED = Path(__file__).parent / "baselines.json"
_LABEL = re.compile(r"P([1-9][0-9]?)-([1-9][0-9]{0,3})-([1-9][0-9]{0,3})")
_NAME = re.compile(r"([a-z_]+?)(?:-s([1-9][0-9]{0,3}))?-([1-9][0-9]{0,3})")
Watch = Callable[[int, int], None]  # called with how many are solved, and of how many


class ProblemSelection(msgspec.Struct, frozen=True, kw_only=True):
    """Which instances to select; empty fields do not restrict."""

    family: tuple[str, ...] = ()
    n: tuple[int, ...] = ()
    difficulty: tuple[str, ...] = ()
    count: int | None = None
    seed: int = 1


def select(selection: ProblemSelection) -> list[OptimisationProblem]:
    """Return the matching default instances; for another seed or other sizes, new ones of the same families."""
    unknown = [name for name in selection.family if name not in FAMILIES]
    if unknown:
        raise FairtrialError(f"unknown family `{unknown[0]}`; choose one of {', '.join(FAMILIES)}")
    seed = selection.seed
    chosen = [make(*key) for key in DEFAULT] if seed == 1 else []
    kinds = dict.fromkeys((family, n) for family, n, _ in DEFAULT)
    if selection.family and selection.n:
        kinds = dict.fromkeys((family, n) for family in selection.family for n in selection.n)
    elif selection.n and not set(selection.n) <= {n for _, n in kinds}:
        kinds = dict.fromkeys((family, n) for family in FAMILIES for n in selection.n)
    ids = {problem.id for problem in chosen}
    made = [make(family, n, seed) for family, n in kinds if can_make(family, n, seed)]
    chosen += [problem for problem in made if problem.id not in ids]
    matching = [problem for problem in chosen if _matches(problem, selection)]
    if not matching:
        raise FairtrialError("no instance matches: choose other values of family, n or difficulty")
    count = selection.count
    if count is None or count == len(matching):
        return matching
    if count < len(matching):  # spread over all kinds, not just the first ones
        return [matching[len(matching) * place // count] for place in range(count)]
    return matching + _more(matching, selection, count - len(matching))


def matching(
    problems: Sequence[OptimisationProblem], selection: ProblemSelection, ids: Sequence[str] = ()
) -> list[OptimisationProblem]:
    """Return those of some problems that match a selection, or have these ids; at most `count`."""
    unknown = [name for name in ids if name not in {problem.id for problem in problems}]
    if unknown:
        hint = nearest(unknown[0], [problem.id for problem in problems])
        raise FairtrialError(f"there is no problem `{unknown[0]}` in these files{hint}")
    chosen = [p for p in problems if (p.id in ids if ids else _matches(p, selection))]
    if not chosen:
        raise FairtrialError("no problem in these files matches: choose other values of family, n or difficulty")
    return chosen if selection.count is None else chosen[: selection.count]


def _matches(problem: OptimisationProblem, selection: ProblemSelection) -> bool:
    return (
        (not selection.family or problem.family in selection.family)
        and (not selection.n or problem.n in selection.n)
        and (not selection.difficulty or problem.difficulty in selection.difficulty)
    )


def _more(
    problems: Sequence[OptimisationProblem], selection: ProblemSelection, count: int
) -> list[OptimisationProblem]:
    """Return instances with further seeds of the same families and sizes, in turn."""
    kinds = [(p.family, p.n) for p in problems if p.family not in FIXED]
    if not kinds:
        raise FairtrialError(
            "these families have only one instance of each size: choose more families or a smaller count"
        )
    kinds = list(dict.fromkeys(kinds))
    first = max(2, selection.seed + 1)
    return [make(*kinds[number % len(kinds)], first + number // len(kinds)) for number in range(count)]


def by_name(name: str) -> OptimisationProblem:
    """Return an instance by its id (`box_qp-10`, `convex_qp-s3-50`) or by the label in its text (P6-10-1)."""
    if match := _LABEL.fullmatch(name):
        number, size, seed = (int(part) for part in match.groups())
        family = list(FAMILIES)[number - 1] if 0 < number <= len(FAMILIES) else ""
    elif match := _NAME.fullmatch(name):
        family, size, seed = match[1], int(match[3]), int(match[2] or 1)
    else:
        family, size, seed = "", 0, 0
    if family not in FAMILIES:
        raise FairtrialError(
            f"there is no problem `{clipped(one_line(name), 80)}`; `fairtrial baseline --list` lists them (FAMILY-N)"
        )
    return make(family, size, seed)


@lru_cache
def shipped() -> dict[str, Baseline]:
    """Return the baselines shipped with the package, by the digest of their problem."""
    if not SHIPPED.exists():
        return {}
    entries = msgspec.json.decode(SHIPPED.read_bytes(), type=list[Baseline])
    return {baseline.digest: baseline for baseline in entries}


def baselines(
    problems: Sequence[OptimisationProblem],
    cache: Path | None = None,
    *,
    time_limit: float = 60.0,
    watch: Watch | None = None,
    stopped: Stopped | None = None,
) -> list[Baseline]:
    """Return a baseline for each problem: shipped, else from the cache, else solved now, in processes of their own.

    One that is not certified is taken from the cache if it was given this much time; with more time, the search goes on
    from what is known.

    Args:
        stopped: Asked every now and then whether to end; then StoppedError is raised.
    """
    digests = [problem_digest(problem) for problem in problems]
    given = dict(zip(digests, problems, strict=True))
    known = {key: one for key, problem in given.items() if (one := shipped().get(key) or _cached(cache, key, problem))}
    done = {digest: one for digest, one in known.items() if one.certified or one.time_limit >= time_limit}
    missing = {digest: problem for digest, problem in given.items() if digest not in done}
    if missing and later.get():
        raise NotSolvedError(list(missing.values()), time_limit)
    if missing:
        check_installed()  # fail here with a clear message rather than in another process
    tasks = [
        SolvingTask(problem=problem, time_limit=time_limit, known=known.get(key)) for key, problem in missing.items()
    ]
    if tasks and watch:
        watch(0, len(tasks))
    for number, baseline in enumerate(solve_all(tasks, stopped), 1):
        done[baseline.digest] = baseline
        _write_to_cache(cache, baseline)
        if watch:
            watch(number, len(tasks))
    return [
        msgspec.structs.replace(done[digest], problem=problem.id)  # the same problem may have another name
        for digest, problem in zip(digests, problems, strict=True)
    ]


def known_baseline(problem: OptimisationProblem, cache: Path | None = None) -> Baseline | None:
    """Return the shipped or cached baseline of a problem; None if it would have to be solved."""
    digest = problem_digest(problem)
    found = shipped().get(digest) or _cached(cache, digest, problem)
    return None if found is None else msgspec.structs.replace(found, problem=problem.id)


def _cached(cache: Path | None, digest: str, problem: OptimisationProblem) -> Baseline | None:
    path = cache / f"{digest}.json" if cache else None
    if path is None or not path.exists():
        return None
    try:
        found = msgspec.json.decode(path.read_bytes(), type=Baseline)
    except msgspec.DecodeError:
        return None  # a partly written file from a killed process: solve again
    return found if _holds(problem, found) else None


def _holds(problem: OptimisationProblem, found: Baseline) -> bool:
    """Return whether a point has the objective that was stored with it, perhaps by another version, and is feasible.

    Unlike numbers about runs it is not thrown away with every change of the code: it is part of the cases of plans.
    """
    if found.x is None or found.objective is None:
        return True
    x = np.asarray(found.x)
    if len(x) != problem.n or not math.isclose(problem.value(x), found.objective, rel_tol=1e-9, abs_tol=1e-9):
        return False
    return not found.certified or problem.violations(x).largest <= 2 * CERTIFIED


def _write_to_cache(cache: Path | None, baseline: Baseline) -> None:
    if cache is None:
        return
    cache.mkdir(parents=True, exist_ok=True)
    write_shared(cache / f"{baseline.digest}.json", msgspec.json.encode(baseline).decode())


class BaselineCheck(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a shipped baseline agrees with a new solution."""

    problem: str
    right: bool
    message: str


def verify_all(time_limit: float = 60.0) -> Iterator[BaselineCheck]:
    """Solve the default suite again and compare it with the shipped baselines."""
    problems = [make(*key) for key in DEFAULT]
    solved = solve_all([SolvingTask(problem=problem, time_limit=time_limit) for problem in problems])
    for problem, new in zip(problems, solved, strict=True):
        old = shipped().get(problem_digest(problem))
        yield _compare_baselines(problem, old, new)


def _compare_baselines(problem: OptimisationProblem, old: Baseline | None, new: Baseline) -> BaselineCheck:
    if old is None:
        trouble, shown = "no shipped baseline", ""
    elif old.objective is None or old.x is None or new.objective is None:
        shown = f"{old.status}, solved again: {new.status}"
        trouble = "" if old.status == new.status else shown
    else:
        shown = f"{old.objective:.8g}, solved again: {new.objective:.8g}"
        trouble = _trouble(problem, old.objective, np.asarray(old.x), new) if old.certified else ""
    return BaselineCheck(problem=problem.id, right=not trouble, message=trouble or shown)


def _trouble(problem: OptimisationProblem, objective: float, x: Floats, new: Baseline) -> str:
    """Return what is wrong with a certified solution; empty if nothing is."""
    violation = problem.violations(x).largest
    slack = 1e-6 * max(1.0, abs(objective))
    if violation > 1e-6 or abs(problem.value(x) - objective) > slack:
        return f"its own x gives {problem.value(x):.8g}, with a violation of {violation:.1e}"
    sign = 1.0 if problem.sense == "minimise" else -1.0
    if new.objective is not None and sign * (objective - new.objective) > slack:
        return f"{objective:.8g}, but {new.objective:.8g} was found"
    if new.bound is not None and sign * (new.bound - objective) > slack:
        return f"{objective:.8g} is beyond the bound {new.bound:.8g}"
    return ""


def write_shipped() -> None:
    """Solve the default suite and the small instances, and write what ships (`python -m` with this module)."""
    solved = list(solve_all([SolvingTask(problem=make(*key), time_limit=300.0) for key in (*DEFAULT, *SMALL)]))
    lines = ",\n".join(msgspec.json.encode(baseline).decode() for baseline in solved)
    SHIPPED.write_text(f"[\n{lines}\n]\n", "utf-8")


if __name__ == "__main__":
    write_shipped()
