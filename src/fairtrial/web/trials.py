"""One case under every arm, and one trial with everything that is known of it."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from rapidfuzz.distance import Indel
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from fairtrial.analyse import Run, TrialRecord
from fairtrial.core.errors import FairtrialError
from fairtrial.core.experiment import show_expected
from fairtrial.core.place import Place
from fairtrial.store.files import attachments, contents
from fairtrial.web.grid import case_query, is_position, ordered
from fairtrial.web.optimisation import residuals
from fairtrial.web.site import Site, url
from fairtrial.webpage.extract import extract
from fairtrial.webpage.looking import restless
from fairtrial.webpage.seal import SANDBOX

_WORDS = re.compile(r"\s+|\w+|[^\w\s]")
_MOST_WORDS = 3000  # of a comparison word by word
_LONGEST = 60_000  # characters of a text in a page; the export has all of them
_SHA256 = re.compile(r"[0-9a-f]{64}")


class Trials:
    """Pages about single trials."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self.routes = [
            Route("/runs/{run}/cases/{case}", self._case),
            Route("/runs/{run}/cases/{case}/{arm}/{repeat}", self._trial),
            Route("/files/{sha256}", self._file),
        ]

    def _case(self, request: Request) -> Response:
        """The same case under every arm, side by side."""
        run, (position,) = self._site.run(request.path_params["run"]), _numbers(request, "case")
        case = _case_of(run, position)
        found = list(run.placed_trials(position, 1))
        said = {place: run.judgements_at(place) for place, _ in found[:_MOST_SIDES]}
        return self._site.page(
            request,
            "case.html.j2",
            run=run.record,
            case=case,
            arms=[
                (
                    arm,
                    [(place, _cut(trial), said.get(place, [])) for place, trial in found if place.arm == arm.position],
                )
                for arm in run.plan_arms
            ],
            **self._around(request, run, position),
        )

    def _trial(self, request: Request) -> Response:
        run = self._site.run(request.path_params["run"])
        place = Place(*_numbers(request, "case", "arm", "repeat"))
        case = _case_of(run, place.case)
        if not 0 <= place.arm < len(run.plan_arms) or place.repeat < 0:
            raise FairtrialError(f"run {run.id} has no such trial")
        found = dict(run.placed_trials(place.case, 1))
        trial = found.get(place)
        arm = run.plan_arms[place.arm]
        return self._site.page(
            request,
            "trial.html.j2",
            run=run.record,
            case=case,
            arm=arm,
            arms=run.plan_arms,
            place=place,
            trial=_cut(trial) if trial else None,
            others=found,
            asked_text=arm.condition.asked(case.input, place.repeat),
            judgements=run.judgements_at(place) if trial else [],
            difference=difference(show_expected(trial.expected), trial.answer) if trial else None,
            residuals=residuals(case, trial.answer or "") if trial else None,
            shots=attachments(run.store, run.id, place=place).get(place, {}),
            **self._shown(request, trial),
            **self._around(request, run, place.case),
        )

    def _shown(self, request: Request, trial: TrialRecord | None) -> dict[str, Any]:
        """The page in an answer, live and sealed, and what a browser found in it."""
        details = (trial.details if trial else None) or {}
        looked_at = details.get("page")
        hangs = restless(details)
        html = extract(trial.answer).html if trial and trial.answer and (looked_at or "<html" in trial.answer) else None
        address = self._site.preview(request, html) if html and not hangs else None
        return {"page": looked_at, "preview": address, "sandbox": SANDBOX, "hangs": hangs}

    def _around(self, request: Request, run: Run, position: int) -> dict[str, Any]:
        """The cases before and after this one, among those that were looked for."""
        wanted = case_query(request.query_params)
        positions = ordered(self._site, run, wanted)
        place = positions.index(position) if position in positions else -1
        kept = {**wanted._asdict(), "show": "" if wanted.show == "all" else wanted.show}

        def there(index: int) -> int | None:
            return positions[index] + 1 if place >= 0 and 0 <= index < len(positions) else None

        return {
            "before": there(place - 1),
            "after": there(place + 1),
            "where": (place + 1, len(positions)) if place >= 0 else None,
            "kept": kept,
            "query": url("", **kept),
        }

    def _file(self, request: Request) -> Response:
        """A picture that was taken while scoring; its address is its content."""
        name = request.path_params["sha256"]
        found = contents(self._site.store, [name]) if _SHA256.fullmatch(name) else {}
        if name not in found or not found[name][0].startswith("image/"):
            return Response(status_code=404)
        media, body = found[name]
        headers = {"Cache-Control": "private, max-age=31536000, immutable", "X-Content-Type-Options": "nosniff"}
        return Response(body, media_type=media, headers={**headers, "Content-Security-Policy": "default-src 'none'"})


_MOST_SIDES = 40


def _numbers(request: Request, *names: str) -> list[int]:
    """Places as people count them, from 1, in an address; here they are counted from 0."""
    given = [request.path_params[name] for name in names]
    if not all(is_position(text) for text in given):
        raise HTTPException(404)
    return [int(text) - 1 for text in given]


def _case_of(run: Run, position: int) -> Any:
    if not 0 <= position < run.plan.case_count:
        raise FairtrialError(f"run {run.id} has {run.plan.case_count} cases: there is no case {position + 1}")
    return run.store.cases(run.plan.id, position, 1)[0]


class _Texts(NamedTuple):
    """What a trial says, not longer than a page can show."""

    record: TrialRecord
    answer: str
    cut: bool


def _cut(trial: TrialRecord) -> _Texts:
    answer = trial.answer or ""
    return _Texts(trial, answer[:_LONGEST], len(answer) > _LONGEST)


def difference(expected: str | None, answer: str | None) -> list[tuple[str, str]] | None:
    """What is the same, missing and added, word by word; None where there is nothing to hold against each other."""
    if not expected or not answer:
        return None
    a, b = _WORDS.findall(expected), _WORDS.findall(answer)
    if len(a) > _MOST_WORDS or len(b) > _MOST_WORDS:
        return None
    parts: list[tuple[str, str]] = []
    for step in Indel.opcodes(a, b):
        before = "".join(a[step.src_start : step.src_end])
        after = "".join(b[step.dest_start : step.dest_end])
        if step.tag == "equal":
            parts.append(("same", before))
            continue
        parts += [("missing", before)] if before else []
        parts += [("added", after)] if after else []
    return parts
