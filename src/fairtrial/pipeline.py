"""READ FIRST: the data's whole way.

    suite ──► plan ──► run ──► score ──► store ──► analyse ──► report
    cases     trials   answers  scores    rows      numbers     what people read

A suite is loaded and checked (`config`), its plan is written to the store, the engine (`engine`) asks the targets,
stores each answer, scores it and stores the score. Whoever wants to know something reads the store (`analyse`).
Command line, web page and library all come through here.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import platform
import sys
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec

from fairtrial.analyse import Run
from fairtrial.config import RunOptions, Suite, judge_named, load_suite
from fairtrial.core import registry
from fairtrial.core.errors import FairtrialError, InterruptedWorkError, TargetUnusableError
from fairtrial.core.ids import canonical_json, new_id
from fairtrial.core.judge import family_of
from fairtrial.core.options import build_scorer, read, scorer_problems
from fairtrial.core.suite import Arm, JudgeSpec, ScorerSpec, Settings, TargetSpec
from fairtrial.core.target import Target
from fairtrial.core.variables import Variables
from fairtrial.engine import bench
from fairtrial.engine.prices import find_price
from fairtrial.engine.progress import Progress
from fairtrial.engine.scoring import Scoring
from fairtrial.engine.session import Engine, Work
from fairtrial.judging.attacks import Resistance, attack_samples, resistance
from fairtrial.judging.calibration import Calibration, load_samples
from fairtrial.store import Store, totals
from fairtrial.store.rows import encode
from fairtrial.store.todo import Mode

_MOST_PROBLEMS = 20
Watch = Callable[[Engine], AbstractAsyncContextManager[None]]


def load(path: str | Path, options: RunOptions | None = None) -> Suite:
    """Load a suite and check everything that can be known before anything is spent."""
    suite = load_suite(path, options)
    check_prices(suite.arms, suite.settings)
    return suite


def check_prices(arms: Sequence[Arm], settings: Settings) -> None:
    """A budget can only be kept where prices are known."""
    if settings.budget_usd is None:
        return
    unknown = sorted(
        {
            arm.target.id
            for arm in arms
            if registry.load("targets", arm.target.kind).priced and find_price(arm.target, settings.prices) is None
        }
    )
    if unknown:
        raise FairtrialError(
            f"the budget cannot be kept: nobody knows the price of {', '.join(unknown)}; "
            "add it under `prices:` (USD per million tokens, `input` and `output`)"
        )


def warnings(suite: Suite) -> list[str]:
    """What is allowed but should be known before the numbers are believed."""
    found = []
    for judge in suite.settings.judges:
        own = [arm.target.id for arm in suite.arms if family_of(arm.target) == family_of(judge.target)]
        if own and suite.settings.panel.own_family == "flag":
            names = ", ".join(dict.fromkeys(own))
            found.append(f"the judge {judge.name} is of the same family as {names}: it may favour it")
    return found


async def arun(
    suite: Suite, *, store: Store | None = None, series_id: str | None = None, watch: Watch | None = None
) -> Run:
    """Run a suite; the result is in the store, and everything in it was durable before it was counted."""
    store = store or Store()
    run_id = new_id()
    async with opened_targets(
        _specs(suite.arms, suite.settings), suite.settings, suite.folder, suite.variables
    ) as targets:
        await asyncio.to_thread(_write_plan, suite, store)
        work = Work(
            run_id=run_id,
            plan_id=suite.plan_id,
            series_id=series_id,
            case_count=suite.case_count,
            arms=suite.arms,
            settings=suite.settings,
            mode="resume",
            fresh=True,
        )
        with store.lease(run_id):
            store.add_run(
                {
                    "id": run_id,
                    "plan_id": suite.plan_id,
                    "series_id": series_id,
                    "settings": canonical_json(suite.variables.template_all(msgspec.to_builtins(suite.settings))),
                    "context": canonical_json(_context()),
                }
            )
            return await _session(store, work, targets, suite.variables, Scoring(suite.folder), watch)


async def acalibrate(
    judge: JudgeSpec,
    *,
    scorer: ScorerSpec | None = None,
    samples: Path | None = None,
    runs: int = 1,
    settings: Settings | None = None,
    folder: Path | None = None,
    variables: Variables | None = None,
    store: Store | None = None,
) -> Calibration:
    """See what a judge makes of answers whose worth is known, and keep the result in the store."""
    settings, folder = settings or Settings(), folder or Path()
    variables = variables or Variables(os.environ)
    built = build_scorer(scorer or {"type": "llm_judge"})
    if built.prompt_hash("") is None:
        raise FairtrialError("only a scorer that asks a judge can be calibrated: llm_judge or golden_judge")
    found = load_samples(samples)
    store = store or Store()
    async with opened_targets([judge.target], settings, folder, variables) as targets:
        result = await bench.calibrate(judge, targets[judge.target.id], built, found, settings, runs=runs)
    store.add_calibration(
        {
            "id": new_id(),
            "judge": judge.name,
            "judge_key": result.judge_key,
            "prompt_hash": result.prompt_hash,
            "rating": result.rating,
            "body": encode(variables.hide_all(msgspec.to_builtins(result))),
            "created_at": result.summary.created_at,
        }
    )
    return result


async def aattack(
    judge: JudgeSpec,
    *,
    scorer: ScorerSpec | None = None,
    settings: Settings | None = None,
    folder: Path | None = None,
    variables: Variables | None = None,
) -> Resistance:
    """Try a set of attacks on a judge, and see how many move its mark."""
    settings, folder, variables = settings or Settings(), folder or Path(), variables or Variables(os.environ)
    built = build_scorer(scorer or {"type": "llm_judge"})
    async with opened_targets([judge.target], settings, folder, variables) as targets:
        result = await bench.calibrate(judge, targets[judge.target.id], built, attack_samples(), settings)
    return resistance(judge.name, [sample.actual for sample in result.samples])


def calibration_notes(store: Store, judges: Sequence[JudgeSpec], scorers: Sequence[ScorerSpec]) -> list[str]:
    """How the judges of a run did when they were calibrated — with this prompt, with another, or never."""
    notes = []
    for judge in judges:
        known = store.calibrations(bench.judge_key(judge))
        hashes = {build_scorer(scorer).prompt_hash(judge.instructions) for scorer in scorers} - {None}
        fitting = [row for row in known if row["prompt_hash"] in hashes]
        if not hashes:
            continue
        if fitting:
            notes.append(f"judge {judge.name}: rated {fitting[0]['rating']} when calibrated with this prompt")
        elif known:
            notes.append(f"warning: judge {judge.name} was calibrated with another prompt only")
        else:
            notes.append(
                f"warning: judge {judge.name} was never calibrated; `fairtrial calibrate` tells how good it is"
            )
    return notes


def _write_plan(suite: Suite, store: Store) -> None:
    plan = {
        "id": suite.plan_id,
        "suite_name": suite.name,
        "suite_text": suite.text,
        "suite_sha256": hashlib.sha256(suite.text.encode()).hexdigest(),
        "dataset_sha256": suite.dataset_sha256,
        "folder": str(suite.folder.resolve()),
        "arms": canonical_json(suite.variables.template_all(msgspec.to_builtins(suite.arms))),
    }
    store.add_plan(plan, suite.cases(), suite.variables)


def _context() -> dict[str, Any]:
    packages = ("fairtrial", "aiohttp", "rapidfuzz", "regex", "genai-prices")
    return {
        "python": sys.version.split()[0],
        "platform": f"{platform.system()} {platform.machine()}",
        "packages": {name: version(name) for name in packages},
    }


async def aresume(
    name: str,
    *,
    store: Store | None = None,
    mode: Mode = "resume",
    overrides: dict[str, Any] | None = None,
    watch: Watch | None = None,
) -> Run:
    """Go on with a run (`resume`), or try its failed trials again (`retry`). No finished call is repeated."""
    store = store or Store(create=False)
    record = store.find_run(name)
    if record.status == "completed":
        return Run(store, record)
    work, variables, folder = _stored_work(store, record.id, mode, overrides or {})
    how = store.scoring(record.id, record.scoring)
    work = _with_judge(store, work, variables, folder, how.get("judge"))
    check_prices(work.arms, work.settings)
    async with opened_targets(_specs(work.arms, work.settings), work.settings, folder, variables) as targets:
        scoring = Scoring(folder, how.get("scorer"), record.scoring)
        with store.lease(record.id):
            return await _session(store, work, targets, variables, scoring, watch)


async def arescore(
    name: str,
    *,
    scorer: ScorerSpec | None = None,
    judge: str | None = None,
    store: Store | None = None,
    watch: Watch | None = None,
) -> Run:
    """Score the stored answers anew, with another scorer or judge; nobody is asked for new answers.

    The earlier scores stay in the store.
    """
    problems = scorer_problems(scorer) if scorer else []
    if problems:
        raise FairtrialError("; ".join(message for _, message in problems))
    store = store or Store(create=False)
    record = store.find_run(name)
    work, variables, folder = _stored_work(store, record.id, "rescore", {})
    work = _with_judge(store, work, variables, folder, judge)
    judged = _check_rescoring(store, work, variables, folder, scorer)
    needed = work.settings.judges if judged else ()
    _check_keys(needed)
    work = msgspec.structs.replace(work, settings=msgspec.structs.replace(work.settings, judges=needed))
    specs = [spec.target for spec in needed]
    async with opened_targets(specs, work.settings, folder, variables) as judges:
        targets = {arm.target.id: Target(arm.target, None, folder) for arm in work.arms} | judges
        with store.lease(record.id):
            how = {"scorer": scorer, "judge": judge} if scorer or judge else None
            number = store.add_scoring(record.id, canonical_json(how) if how else None)
            return await _session(store, work, targets, variables, Scoring(folder, scorer, number), watch)


def _with_judge(store: Store, work: Work, variables: Variables, folder: Path, judge: str | None) -> Work:
    """The same work with another judge, where one is named."""
    if judge is None:
        return work
    chosen = judge_named(judge, store.plan(work.plan_id).suite_text, folder, variables)
    return msgspec.structs.replace(work, settings=msgspec.structs.replace(work.settings, judges=(chosen,)))


def _check_keys(judges: Sequence[JudgeSpec]) -> None:
    """A stored judge whose key is not set cannot be asked."""
    for judge in judges:
        for text in (judge.target.api_key, judge.target.base_url):
            if text.startswith("${"):
                raise FairtrialError(f"the judge {judge.name} needs {text[2:].rstrip('}')}: set it in the environment")


def _check_rescoring(store: Store, work: Work, variables: Variables, folder: Path, scorer: ScorerSpec | None) -> bool:
    """What can be known beforehand: a scorer that does not fit the cases must not replace scores that do.

    Returns whether a judge will be asked.
    """
    found: list[str] = []
    judged = False
    for first in range(0, work.case_count, 1000):
        for case in store.cases(work.plan_id, first, 1000, variables):
            specs = [scorer] if scorer else [arm.scorer_of(case) for arm in work.arms]
            scorers = [build_scorer(spec) for spec in specs]
            reasons = {reason for one in scorers for reason in one.check(case, folder)}
            asked = any(one.needs_judge() for one in scorers)
            judged = judged or asked
            if asked and not work.settings.judges:
                reasons.add("its scorer needs a judge: name one with --judge")
            found += [f"{case.id}: {reason}" for reason in sorted(reasons)]
        if len(found) >= _MOST_PROBLEMS:
            break
    if found:
        raise FairtrialError(variables.hide("\n".join(found[:_MOST_PROBLEMS])))
    return judged


def _stored_work(store: Store, run_id: str, mode: Mode, overrides: dict[str, Any]) -> tuple[Work, Variables, Path]:
    """What a stored run needs to go on: its plan, with variables filled in anew from the environment."""
    record = store.find_run(run_id)
    plan, variables = store.plan(record.plan_id), Variables(os.environ)
    arms = store.arms(plan, variables)
    settings = msgspec.convert(variables.reveal_all(msgspec.json.decode(record.settings)), Settings)
    missing = set() if mode == "rescore" else set(variables.missing)  # scoring needs no key
    cases = Variables(os.environ)
    for template in store.case_templates(plan.id):
        cases.reveal(template)
    missing |= cases.missing
    if missing:
        names = ", ".join(sorted(missing))
        raise FairtrialError(f"run {record.id} needs {names}: set it in the environment or in a .env file")
    given = {name: value for name, value in overrides.items() if value is not None}
    work = Work(
        run_id=record.id,
        plan_id=plan.id,
        series_id=record.series_id,
        case_count=plan.case_count,
        arms=arms,
        settings=msgspec.structs.replace(settings, **given),
        mode=mode,
    )
    return work, variables, Path(plan.folder)


@asynccontextmanager
async def opened_targets(
    specs: Sequence[TargetSpec], settings: Settings, folder: Path, variables: Variables
) -> AsyncIterator[dict[str, Target]]:
    """These targets, ready to be asked, and closed in the end."""
    targets = {spec.id: _build_target(spec, folder) for spec in specs}
    try:
        opened = await asyncio.gather(
            *(target.open(settings.concurrency) for target in targets.values()), return_exceptions=True
        )
        reasons = [error for error in opened if isinstance(error, BaseException)]
        for error in reasons:
            if not isinstance(error, FairtrialError):
                raise error
        if reasons:
            raise TargetUnusableError("\n".join(dict.fromkeys(variables.hide(str(error)) for error in reasons)))
        yield targets
    finally:
        await asyncio.gather(*(target.close() for target in targets.values()), return_exceptions=True)


def _specs(arms: Sequence[Arm], settings: Settings) -> list[TargetSpec]:
    return [arm.target for arm in arms] + [judge.target for judge in settings.judges]


def _build_target(spec: TargetSpec, folder: Path) -> Target:
    cls = registry.load("targets", spec.kind)
    options = read(cls.options_type, spec.options, [])
    return cls(spec, options, folder)  # type: ignore[no-any-return]  # the registry knows no types


async def _session(
    store: Store,
    work: Work,
    targets: dict[str, Target],
    variables: Variables,
    scoring: Scoring,
    watch: Watch | None,
) -> Run:
    """One session of work on a run, alone with it, and the run's status afterwards."""
    rescoring = work.mode == "rescore"
    planned = totals.planned_trials(store, work.plan_id, work.arms)
    progress = Progress([arm.name for arm in work.arms], planned)
    if not work.fresh:
        progress.restore(totals.arm_totals(store, work.run_id, scoring.number), work.mode)
    spent = store.spent(work.run_id, work.series_id) if work.settings.budget_usd is not None else 0.0
    engine = Engine(work, targets, store, variables, scoring, progress, spent=spent)
    if not rescoring:
        store.set_run(work.run_id, status="running", reason=None, ended_at=None)
    try:
        async with watch(engine) if watch else nullcontext():
            await engine.run()
        if rescoring and engine.halt is None:
            _use_scoring(store, work, scoring.number)
    finally:
        _set_status(store, work.run_id, engine)
    if rescoring and engine.halt is not None:
        raise InterruptedWorkError(
            "rescoring was interrupted; the same command goes on, until then the old scores count"
        )
    if engine.halt is not None and engine.halt.unusable:
        raise TargetUnusableError(
            f"{engine.halt.reason}; correct it, then run the suite again "
            f"(or `fairtrial resume {work.run_id}` if the suite itself was right)"
        )
    return Run(store, store.find_run(work.run_id))


def _use_scoring(store: Store, work: Work, number: int) -> None:
    """From now on these scores count, if there are any."""
    found = totals.arm_totals(store, work.run_id, number).values()
    if not any(arm.scored for arm in found):
        reason = next(iter(totals.failure_reasons(store, work.run_id, number)), ("", "nothing was answered", 0))[1]
        raise FairtrialError(f"no answer could be scored ({reason}); the old scores still count")
    store.finish_scoring(work.run_id, number)


def _set_status(store: Store, run_id: str, engine: Engine) -> None:
    """completed only if every planned trial has a score."""
    record = store.find_run(run_id)
    planned = totals.planned_trials(store, engine.work.plan_id, engine.work.arms)
    scored = sum(arm.scored for arm in totals.arm_totals(store, run_id, record.scoring).values())
    if engine.halt is not None and engine.halt.interrupted and engine.work.mode != "rescore":
        status = "interrupted"
    else:
        status = "completed" if scored == sum(planned) else "incomplete"
    if engine.work.mode == "rescore":  # rescoring changes what is known, not when the run ended
        store.set_run(run_id, status=status)
        return
    reason = engine.halt.reason if engine.halt else None
    store.set_run(run_id, status=status, reason=reason, ended_at=time.time())
