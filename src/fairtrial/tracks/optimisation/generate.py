"""Generating problems: new instances of a family from a seed, each certified before it is kept."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from fairtrial.core.errors import FairtrialError
from fairtrial.core.private import write_shared
from fairtrial.core.registry import nearest
from fairtrial.tracks.optimisation.cases import CACHE
from fairtrial.tracks.optimisation.catalogue import Watch, baselines
from fairtrial.tracks.optimisation.domains import DOMAINS, GROUPS, draw_model, stories
from fairtrial.tracks.optimisation.domains.story import tell
from fairtrial.tracks.optimisation.draws import Draws
from fairtrial.tracks.optimisation.export import document_yaml, problem_yaml
from fairtrial.tracks.optimisation.families import FAMILIES, FIXED, make
from fairtrial.tracks.optimisation.problem import Baseline, OptimisationProblem
from fairtrial.tracks.optimisation.problem_file import parse_problem

CERTIFICATES = "certificates.json"


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """Which problems to generate: `count` for every family and size, each with this many other wordings."""

    families: tuple[str, ...]
    sizes: tuple[int, ...]
    seed: int = 1
    count: int = 10
    variants: int = 0


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """A generated problem: the text of its file, and what is in it."""

    text: str
    problem: OptimisationProblem


class Rejected(msgspec.Struct, frozen=True, kw_only=True):
    """A generated problem that was thrown away, and why."""

    problem: str
    reason: str


class Generated(msgspec.Struct, frozen=True, kw_only=True):
    """What was written, with certificates, and what was not."""

    files: list[str]
    certificates: list[Baseline]
    rejected: list[Rejected]


def draft(wanted: Wanted) -> Iterator[Draft]:
    """Return the problems. The same family, size, seed and number give the same text on every machine."""
    for family in _families(wanted.families):
        make_drafts = _told if family in DOMAINS else _built_in
        for n in dict.fromkeys(wanted.sizes):
            for number in range(1, wanted.count + 1):
                yield from make_drafts(family, n, wanted, number)


def _families(names: Sequence[str]) -> list[str]:
    """Return the families, with the members of groups, each once."""
    known = list(dict.fromkeys([*DOMAINS, *GROUPS, *(name for name in FAMILIES if name not in FIXED)]))
    for name in names:
        if name not in known:
            raise FairtrialError(f"there is no family `{name}` to generate{nearest(name, known)}")
    return list(dict.fromkeys(member for name in names for member in GROUPS.get(name, (name,))))


def _told(family: str, n: int, wanted: Wanted, number: int) -> Iterator[Draft]:
    """Return a problem as a story, and the same problem in other stories."""
    model = draw_model(family, n, wanted.seed, number)
    original = f"{family}-n{n}-s{wanted.seed}-{number}"
    known = stories(family)
    first = Draws("story", original).whole(0, len(known) - 1)
    for variant in range(wanted.variants + 1):
        draws = Draws("variant", original, variant)
        own = model.reordered(draws) if variant else model
        told = tell(known[(first + variant) % len(known)], own, draws, mixed=variant > 0)
        identity = {"id": f"{original}-v{variant}", "variant_of": original} if variant else {"id": original}
        text = document_yaml({**identity, "family": family, **told})
        yield _draft(text, family, n, wanted, number, f" --variants {variant}" if variant else "")


def _built_in(family: str, n: int, wanted: Wanted, number: int) -> Iterator[Draft]:
    if wanted.variants:
        raise FairtrialError(f"problems of {family} are formulas and have no other wordings: leave out --variants")
    yield _draft(problem_yaml(make(family, n, wanted.seed + number - 1)), family, n, wanted, number)


def _draft(text: str, family: str, n: int, wanted: Wanted, number: int, variants: str = "") -> Draft:
    arguments = f"--family {family} --n {n} --seed {wanted.seed} --count {number}{variants}"
    text = f"# Number {number} of `fairtrial optim generate {arguments}`: the same on every machine.\n{text}"
    return Draft(text=text, problem=parse_problem(text))


def generate(wanted: Wanted, folder: Path, *, time_limit: float = 60.0, watch: Watch | None = None) -> Generated:
    """Write every problem that a solver certifies into a folder, with the certificates in a file of their own.

    Certificates are kept apart because points and times depend on the solver's version, and problem files on nothing.
    """
    drafts = list(draft(wanted))
    solved = baselines([one.problem for one in drafts], CACHE, time_limit=time_limit, watch=watch)
    by_id = {one.problem: one for one in solved}
    kept: list[Draft] = []
    rejected: list[Rejected] = []
    for one, baseline in zip(drafts, solved, strict=True):
        if reason := _fault(one.problem, baseline, by_id):
            rejected.append(Rejected(problem=one.problem.id, reason=reason))
        else:
            kept.append(one)
    certificates = [by_id[one.problem.id] for one in kept]
    return Generated(files=_write(folder, kept, certificates), certificates=certificates, rejected=rejected)


def _fault(problem: OptimisationProblem, baseline: Baseline, by_id: dict[str, Baseline]) -> str:
    """Return why a problem is not kept; empty if it is."""
    if not baseline.certified:
        bound = "no bound" if baseline.gap is None else f"a gap of {baseline.gap:.1e}"
        return f"not certified within the time limit ({bound})"
    if problem.family in DOMAINS and baseline.status == "infeasible":
        return "it has no feasible point"
    if not problem.variant_of:
        return ""
    original = by_id[problem.variant_of]
    if not original.certified or original.objective is None or baseline.objective is None:
        return "its original is not certified"
    if not math.isclose(original.objective, baseline.objective, rel_tol=2e-6, abs_tol=2e-6):
        return f"its optimum is {baseline.objective}, and that of its original {original.objective}"
    return ""


def _write(folder: Path, drafts: Sequence[Draft], certificates: list[Baseline]) -> list[str]:
    """Write the files; certificates of problems that were already in the folder stay."""
    path = folder / CERTIFICATES
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for one in drafts:
            write_shared(folder / f"{one.problem.id}.yaml", one.text)
        known = {one.problem: one for one in (*_read_certificates(path), *certificates)}
        body = msgspec.json.encode({"certificates": [known[name] for name in sorted(known)]})
        write_shared(path, msgspec.json.format(body, indent=2).decode() + "\n")
    except OSError as error:
        raise FairtrialError(f"{folder} cannot be written: {error.strerror or error}") from None
    return [f"{one.problem.id}.yaml" for one in drafts]


def _read_certificates(path: Path) -> list[Baseline]:
    if not path.is_file():
        return []
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, list[Baseline]]).get("certificates", [])
    except msgspec.DecodeError:
        raise FairtrialError(f"{path} is not a file of certificates; move it away") from None
