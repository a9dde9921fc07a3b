"""Asking a target for one trial: once, or turn after turn in a conversation with scripted or simulated users."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext

import msgspec

from fairtrial.agents.doubles.trials import Doubles, TrialDoubles
from fairtrial.agents.mcp.server import ServerError
from fairtrial.agents.mcp.tokens import AccessTokens
from fairtrial.core.answer import Answer, EarlierTurn, Failure, Outcome, Usage
from fairtrial.core.file import Attachment, File
from fairtrial.core.listening import Listener
from fairtrial.core.money import total
from fairtrial.core.target import Target
from fairtrial.core.templates import TemplateError
from fairtrial.core.trace import join_turns
from fairtrial.core.trial import Trial
from fairtrial.engine.ends import Ends, ended
from fairtrial.engine.executor import Reports
from fairtrial.engine.job import Job
from fairtrial.engine.journals import Journals
from fairtrial.engine.ladder import Ladder
from fairtrial.engine.user import SimulatedUser


class Asking:
    """Asks the targets of a job; `ladders` and `user` are set when its executor is entered."""

    def __init__(
        self,
        job: Job,
        targets: dict[str, Target],
        load_file: Callable[[Attachment], Awaitable[File]],
        ends: Ends,
    ) -> None:
        self._job, self._targets, self._load_file, self._ends = job, targets, load_file, ends
        self.ladders: dict[str, Ladder] = {}  # by target
        self.user: SimulatedUser | None = None
        self._journals = Journals(job.journals, job.variables.hide_all)
        self._tokens = AccessTokens()
        self._doubles = Doubles(job.run_id, job.variables.hide_all)

    def close(self) -> None:
        """Remove what doubles of servers needed."""
        self._doubles.close()

    async def forget(self, trial: Trial) -> None:
        """Remove the journal of a session whose answer is durable."""
        if self.is_agent(trial):
            await self._journals.forget(trial)

    async def ask(self, trial: Trial, reports: Reports, listener: Listener) -> Outcome:
        """Ask the target; of an agent, say if an earlier session on this trial was interrupted."""
        if not self.is_agent(trial):
            return await self._ask(trial, reports, listener)
        interrupted = "" if self._job.fresh else await self._journals.interrupted(trial)
        outcome = await self._ask(trial, reports, listener)
        if not interrupted or outcome.cached:
            return outcome
        return msgspec.structs.replace(outcome, tried=(interrupted, *outcome.tried))

    async def _ask(self, trial: Trial, reports: Reports, listener: Listener) -> Outcome:
        doubled = self._doubles.of(trial)
        try:
            return await self._ask_in_turns(trial, reports, listener, doubled)
        finally:
            if doubled is not None:
                doubled.close()

    async def _ask_in_turns(
        self, trial: Trial, reports: Reports, listener: Listener, doubled: TrialDoubles | None
    ) -> Outcome:
        """Ask the target; in a conversation turn after turn, each durable before the next one."""
        ladder, turns = self.ladders[trial.arm.target.id], list(trial.turns)
        is_conversation = self.user is not None or bool(trial.case.turns)
        files = [await self._load_file(file) for file in trial.case.attach]
        skills = [await self._load_file(skill.files) for skill in trial.arm.condition.skills if not skill.as_text]
        while True:
            if self.user is not None and turns and turns[-1].reply is None:
                failure = await self._let_user_reply(trial, turns, reports)
                if failure is not None:
                    return _whole_conversation(_not_asked(failure), turns)
            if turns and turns[-1].reply == "":
                answer = turns[-1].answer
                return _whole_conversation(Outcome(result=answer, started_at=time.time()), turns)
            try:
                request = trial.request(
                    stream=self._job.settings.stream,
                    turns=turns if is_conversation else None,
                    files=files,
                    skills=skills,
                )
            except TemplateError as error:
                return _not_asked(Failure(kind="template", message=str(error)))
            try:
                servers = await self._tokens.authorised(request.mcp)
            except ServerError as error:
                return _whole_conversation(_not_asked(Failure(kind="mcp", message=str(error))), turns)
            async with self._journals.follow(trial, request.journal) if self.is_agent(trial) else nullcontext():
                request = msgspec.structs.replace(request, mcp=servers, listener=listener, doubled=doubled)
                outcome = await ladder.ask(request)
            if isinstance(outcome.result, Failure) or outcome.result.limit:
                return _whole_conversation(outcome, turns)
            why = await self._why_it_ends(trial, outcome, turns) if is_conversation else ""
            answer = ended(outcome.result, why)
            if self._is_last(trial, len(turns) + 1):
                return _whole_conversation(msgspec.structs.replace(outcome, result=answer), turns)
            reply = "" if why else None
            turns.append(EarlierTurn(question=request.input, answer=answer, cost=outcome.cost, reply=reply))
            await reports.turn_answered(trial, len(turns) - 1, turns[-1], outcome.cost)

    def is_agent(self, trial: Trial) -> bool:
        """Return whether a trial is a whole session of an agent."""
        return self._targets[trial.arm.target.id].agent

    def _is_last(self, trial: Trial, turn: int) -> bool:
        """Return whether the answer in this turn (from 1) is the one that is scored."""
        return turn > len(trial.case.turns) if self.user is None else self.user.is_last(turn)

    async def _why_it_ends(self, trial: Trial, outcome: Outcome, turns: Sequence[EarlierTurn]) -> str:
        """Return why nothing more is asked after this answer, if that is worth telling; empty if it goes on."""
        so_far = _whole_conversation(outcome, turns).result
        assert isinstance(so_far, Answer)
        trial = msgspec.structs.replace(trial, turns=tuple(turns))
        if self.user is not None:
            return await self._ends.of_user(trial, so_far, self.user.spec)
        return "" if self._is_last(trial, len(turns) + 1) else await self._ends.of_script(trial, so_far)

    async def _let_user_reply(self, trial: Trial, turns: list[EarlierTurn], reports: Reports) -> Failure | None:
        """Add the simulated user's reply to the last turn, durably; return why there is none."""
        assert self.user is not None
        reply = await self.user.reply(trial, turns)
        said = reply.text
        turns[-1] = msgspec.structs.replace(
            turns[-1],
            answer=ended(turns[-1].answer, reply.why),
            reply=None if isinstance(said, Failure) else said,
            user_cost=total([turns[-1].user_cost, reply.cost]),
        )
        await reports.turn_answered(trial, len(turns) - 1, turns[-1], reply.cost)
        if not isinstance(said, Failure):
            return None
        message = said.message if said.kind == "budget" else f"the simulated user: {said.message}"
        # The target is not to blame, whatever is wrong with the user.
        return Failure(kind=said.kind if said.kind == "budget" else "user", message=message)


def _not_asked(failure: Failure) -> Outcome:
    return Outcome(result=failure, attempts=0, started_at=time.time())


def _whole_conversation(outcome: Outcome, turns: Sequence[EarlierTurn]) -> Outcome:
    """Return the outcome of a conversation: its last answer, with what happened, tokens, time and cost of all turns."""
    if not turns:
        return outcome
    earlier = [turn.answer for turn in turns if turn.reply != ""]  # otherwise it is the last answer itself
    trace = join_turns([*(answer.trace for answer in earlier), outcome.result.trace])
    result = msgspec.structs.replace(outcome.result, trace=trace)
    if isinstance(result, Answer):
        usages = [answer.usage for answer in (*earlier, result)]
        known = [usage for usage in usages if usage is not None]
        usage = sum(known, Usage()) if len(known) == len(usages) else None
        latencies = [answer.latency_ms for answer in (*earlier, result)]
        latency = None if None in latencies else sum(ms for ms in latencies if ms is not None)
        result = msgspec.structs.replace(result, usage=usage, latency_ms=latency)
    elif result.kind != "budget":
        result = msgspec.structs.replace(result, message=f"turn {len(turns) + 1}: {result.message}")
    cost = total([*(turn.cost for turn in turns), outcome.cost])
    return msgspec.structs.replace(outcome, result=result, cost=cost, turns=tuple(turns))
