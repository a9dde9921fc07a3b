"""READ FIRST: the data's whole way.

    suite ──► plan ──► run ──► score ──► store ──► analyse ──► report
    cases     trials   answers  scores    rows      numbers     what people read

A suite is loaded and checked (`config`), its plan is written to the store, the engine (`engine`) asks the targets,
stores each answer, scores it and stores the score. Whoever wants to know something reads the store (`analyse`).
Command line, web page and library all come through here; `again` goes on with stored runs, `calibrating` tries judges.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import msgspec

from fairtrial.analyse import Run
from fairtrial.config import RunOptions, Suite, load_suite, parse_suite
from fairtrial.core import registry
from fairtrial.core.errors import FairtrialError, InterruptedWorkError, TargetUnusableError
from fairtrial.core.ids import canonical_json, new_id
from fairtrial.core.judge import can_see, family_of
from fairtrial.core.options import build_scorer, read
from fairtrial.core.scorer import Scorer
from fairtrial.core.stopping import FEWEST
from fairtrial.core.suite import Arm, Condition, Settings, StopSpec, TargetSpec
from fairtrial.core.target import Target
from fairtrial.core.variables import Variables
from fairtrial.engine.prices import find_price
from fairtrial.engine.progress import Progress
from fairtrial.engine.provenance import run_context
from fairtrial.engine.scoring import Scoring
from fairtrial.engine.session import Engine, Work
from fairtrial.importers import Imported, suite_text
from fairtrial.importers.k_eval import KEval, looks_like_k_eval
from fairtrial.providers.params import not_taken
from fairtrial.store import Store, ledger, totals
from fairtrial.store.store import RunRecord
from fairtrial.toolbox.preflight import Inventory, preflight, with_tools

Watch = Callable[[Engine], AbstractAsyncContextManager[None]]


def load(path: str | Path, options: RunOptions | None = None) -> Suite:
    """Load a suite and check everything that can be known before anything is spent.

    A configuration of k-eval is a suite too.
    """
    path = Path(path)
    foreign = _read_k_eval(path)
    if foreign is None:
        return _ready(load_suite(path, options))
    shown = f"{path} (as a suite of ours)"  # lines are those of the suite that it was turned into
    suite = parse_suite(suite_text(foreign), file=shown, folder=path.parent, options=options)
    suite.notes = [f"not carried over from k-eval: {finding}" for finding in foreign.findings]
    suite.notes += [f"unlike k-eval: {difference}" for difference in foreign.differences]
    return _ready(suite)


def load_text(text: str, *, file: str, folder: Path, options: RunOptions | None = None) -> Suite:
    """The same for a suite that is no file, or not one yet; paths in it are relative to the folder."""
    return _ready(parse_suite(text, file=file, folder=folder, options=options))


def _ready(suite: Suite) -> Suite:
    check_prices(suite.arms, suite.settings)
    if suite.options.stop_when is not None:
        suite.settings = msgspec.structs.replace(suite.settings, stop=_stop_rule(suite))
    return suite


def _read_k_eval(path: Path) -> Imported | None:
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return None  # whoever loads it says what is wrong
    return KEval().read(path) if looks_like_k_eval(text) else None


def _stop_rule(suite: Suite) -> StopSpec:
    """When to end early, for a suite whose cases can be looked at one by one."""
    when, margin = suite.options.stop_when, suite.options.margin
    assert when is not None
    if when == "equivalent" and margin is None:
        raise FairtrialError("equivalent within what? --stop-when equivalent needs --margin")
    if len(suite.arms) < 2:
        raise FairtrialError("a run can stop early only when there are two arms to tell apart: this suite has one")
    if any(case.cluster is not None or case.weight != 1 for case in suite.cases()):
        raise FairtrialError("stopping early needs cases that count alike and stand alone: no `weight`, no `cluster`")
    if suite.case_count < FEWEST:
        raise FairtrialError(f"stopping early begins at {FEWEST} cases, and this suite has {suite.case_count}")
    return StopSpec(when=when, margin=margin)


def check_prices(arms: Sequence[Arm], settings: Settings) -> None:
    """A budget can only be kept where prices are known."""
    if settings.budget_usd is None:
        return
    unknown = sorted(
        {
            spec.id
            for spec in target_specs(arms, settings)
            if _needs_price(spec) and find_price(spec, settings.prices) is None
        }
    )
    if unknown:
        raise FairtrialError(
            f"the budget cannot be kept: nobody knows the price of {', '.join(unknown)}; "
            "add it under `prices:` (USD per million tokens, `input` and `output`; 0 for what costs nothing)"
        )
    endless = sorted({arm.name for arm in arms if _needs_price(arm.target) and not arm.params.get("max_tokens")})
    if endless:
        raise FairtrialError(
            f"the budget cannot be kept: nothing limits the replies of {', '.join(endless)}; set `max_tokens`"
        )


def _needs_price(spec: TargetSpec) -> bool:
    cls = registry.load("targets", spec.kind)
    return cls.priced and not cls.tells_cost(read(cls.options_type, spec.options, []))


def warnings(suite: Suite) -> list[str]:
    """What is allowed but should be known before the numbers are believed."""
    found = [*suite.notes, *_confounded(suite), *_unseen(suite), *_not_sent(suite)]
    for judge in suite.settings.judges:
        own = [arm.target.id for arm in suite.arms if family_of(arm.target) == family_of(judge.target)]
        if own and suite.settings.panel.own_family == "flag":
            names = ", ".join(dict.fromkeys(own))
            found.append(f"the judge {judge.name} is of the same family as {names}: it may favour it")
    return found


def _scorers(suite: Suite) -> list[Scorer]:
    return [build_scorer(msgspec.json.decode(spec)) for spec in suite.scorers]


def _not_sent(suite: Suite) -> Iterator[str]:
    """Parameters that somebody set and a model does not take."""
    asked = [
        (arm.target.id, arm.target, {name: arm.params[name] for name in arm.params if name not in arm.defaulted})
        for arm in suite.arms
    ]
    asked += [(f"the judge {judge.name}", judge.target, judge.params) for judge in suite.settings.judges]
    for name, target, params in asked:
        if left := not_taken(target, params):
            yield f"{name} does not take {' and '.join(left)}: not sent, and not part of the record"


def _unseen(suite: Suite) -> Iterator[str]:
    """Pages that nobody will see."""
    scorers = _scorers(suite)
    if not any(scorer.looks for scorer in scorers):
        return
    from fairtrial.webpage.browser import NoBrowserError, usable_browser

    try:
        usable_browser()
    except NoBrowserError as error:
        yield f"pages will not be looked at, and what a browser would measure is left open: {error}"
    blind = [judge.name for judge in suite.settings.judges if not can_see(judge)]
    if blind and any(scorer.looks and scorer.judged for scorer in scorers):
        yield (
            f"{', '.join(blind)} judges pages without seeing them, by their code and what a browser measures; "
            "`vision: true` beside a judge says that it can see"
        )


def _confounded(suite: Suite) -> Iterator[str]:
    """Styles that change more than the tone."""
    from fairtrial.optim.styles import confounded

    own = {arm.condition.name: arm.condition for arm in suite.arms if arm.condition.prompts}
    for name, condition in own.items():
        texts = (*condition.prompts, condition.system)
        word = next((word for text in texts if (word := confounded(text))), None)
        if word and len({arm.condition.name for arm in suite.arms}) > 1:
            yield (
                f"the wording of condition `{name}` speaks of the format (`{word}`): what it does to the answers "
                "cannot be told from its tone"
            )


class Series(NamedTuple):
    """Several runs of one plan: what they are called together, and how many there are to be."""

    id: str
    runs: int


async def arun(
    suite: Suite, *, store: Store | None = None, series: Series | None = None, watch: Watch | None = None
) -> Run:
    """Run a suite; the result is in the store, and everything in it was durable before it was counted."""
    store = store or Store()
    work = Work(
        run_id=new_id(),
        plan_id=suite.plan_id,
        series_id=series.id if series else None,
        case_count=suite.case_count,
        arms=suite.arms,
        settings=suite.settings,
        mode="resume",
        fresh=True,
    )
    settings = canonical_json(suite.variables.template_all(msgspec.to_builtins(suite.settings)))
    begin = partial(_write_plan, suite, store)
    return await begin_run(store, work, suite.variables, suite.folder, _scorers(suite), settings, series, watch, begin)


async def begin_run(
    store: Store,
    work: Work,
    variables: Variables,
    folder: Path,
    scorers: Sequence[Scorer],
    settings: bytes,
    series: Series | None,
    watch: Watch | None,
    begin: Callable[[], None] | None = None,
) -> Run:
    """A new run of a plan, once its servers and targets were seen to be there; `begin` is called just before."""
    inventory = await inspect_servers(work.arms, variables)
    async with opened_targets(target_specs(work.arms, work.settings), work.settings, folder, variables) as targets:
        looks = any(scorer.looks for scorer in scorers)
        context = await run_context(work.arms, targets, inventory, looks=looks)
        if series is not None:
            context["series_runs"] = series.runs
        if begin is not None:
            await asyncio.to_thread(begin)
        judged = any(scorer.needs_judge() for scorer in scorers)
        work = msgspec.structs.replace(work, arms=equipped(work.arms, inventory), judged=judged)
        with store.lease(work.run_id):
            store.add_run(
                {
                    "id": work.run_id,
                    "plan_id": work.plan_id,
                    "series_id": work.series_id,
                    "settings": settings,
                    "context": canonical_json(variables.hide_all(context)),
                }
            )
            scoring = Scoring(folder, on_refusal=work.settings.on_refusal)
            return await session(store, work, targets, variables, scoring, watch)


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


async def inspect_servers(arms: Sequence[Arm], variables: Variables) -> list[Inventory]:
    """Start or reach every MCP server that will be used, before anything is spent, and list its tools."""
    conditions = [arm.condition for arm in arms if arm.condition.mcp]
    if not conditions:
        return []
    return await preflight(conditions, variables.hide)


def equipped(arms: Sequence[Arm], inventory: Sequence[Inventory]) -> tuple[Arm, ...]:
    """These arms, whose servers now have the names of their tools: so a call can be told whose it was."""

    def equip(condition: Condition) -> Condition:
        return msgspec.structs.replace(condition, mcp=with_tools(condition.mcp, inventory))

    return tuple(msgspec.structs.replace(arm, condition=equip(arm.condition)) for arm in arms)


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


def target_specs(arms: Sequence[Arm], settings: Settings) -> list[TargetSpec]:
    """Everybody who may be asked: the arms' targets and the judges."""
    return [arm.target for arm in arms] + [judge.target for judge in settings.judges]


def _build_target(spec: TargetSpec, folder: Path) -> Target:
    cls = registry.load("targets", spec.kind)
    options = read(cls.options_type, spec.options, [])
    return cls(spec, options, folder)  # type: ignore[no-any-return]  # the registry knows no types


async def session(
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
    ledger.settle_crash(store, work.run_id)
    spent = ledger.charged(store, work.run_id, work.series_id) if work.settings.budget_usd is not None else 0.0
    engine = Engine(work, targets, store, variables, scoring, progress, spent=spent)
    if not rescoring:
        store.set_run(work.run_id, status="running", reason=None, ended_at=None)
    # Numpy reads a run but does not make one: it is imported while the first answers are awaited.
    warming = asyncio.create_task(asyncio.to_thread(import_module, "fairtrial.analyse.summary"))
    try:
        async with watch(engine) if watch else nullcontext():
            await engine.run()
        await warming
        if rescoring and engine.halt is None:
            _use_scoring(store, work, scoring.number)
    finally:
        _set_status(store, work.run_id, engine)
    if rescoring and engine.halt is not None:
        ending = "the same command goes on, until then the old scores count"
        if engine.halt.interrupted:
            raise InterruptedWorkError(f"rescoring was interrupted; {ending}")
        raise FairtrialError(f"rescoring stopped: {engine.halt.reason}; with a remedy {ending}")
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


def settle_status(store: Store, record: RunRecord) -> None:
    """After its scores have changed, a run is complete if every planned trial has one; when it ended stays."""
    if record.status in ("completed", "incomplete"):
        arms = store.arms(store.plan(record.plan_id))
        store.set_run(record.id, status=_completeness(store, record, arms))


def _completeness(store: Store, record: RunRecord, arms: tuple[Arm, ...]) -> str:
    planned = totals.planned_trials(store, record.plan_id, arms)
    scored = sum(arm.scored for arm in totals.arm_totals(store, record.id, record.scoring).values())
    return "completed" if scored == sum(planned) else "incomplete"


def _set_status(store: Store, run_id: str, engine: Engine) -> None:
    """completed only if every planned trial has a score."""
    record = store.find_run(run_id)
    status = _completeness(store, record, engine.work.arms)
    if status == "incomplete" and engine.work.stopped is not None and engine.work.mode != "resume":
        status = "stopped"  # trying failures again, or scoring anew, does not make it an unfinished one
    if engine.halt is not None and engine.work.mode != "rescore":
        if engine.halt.interrupted:
            status = "interrupted"
        elif engine.halt.decided and status == "incomplete":
            status = "stopped"
    if engine.work.mode == "rescore":  # rescoring changes what is known, not when the run ended
        store.set_run(run_id, status=status)
        return
    reason = engine.halt.reason if engine.halt else engine.work.stopped if status == "stopped" else None
    store.set_run(run_id, status=status, reason=reason, ended_at=time.time())
