"""Estimates of the size and cost of a run before it starts.

What a call can cost at most is what a budget reserves for it (`providers/bounds.py`). What cannot be known yet counts
as long as it may become: an answer in the prompt of the next turn, of a judge, of an embedder or of a simulated user.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

import msgspec

from fairtrial.config import Suite
from fairtrial.core import registry
from fairtrial.core.answer import Answer, EarlierTurn, Request
from fairtrial.core.experiment import Arm, Case, TargetSpec
from fairtrial.core.file import Attachment, File
from fairtrial.core.ids import canonical_json
from fairtrial.core.options import build_scorer
from fairtrial.core.settings import JudgeSpec, UserSpec
from fairtrial.core.templates import TemplateError, fill
from fairtrial.core.trial import Trial
from fairtrial.engine.bench import embedding_request
from fairtrial.engine.targets import build_target
from fairtrial.engine.user import MAX_REPLY_TOKENS, SimulatedUser
from fairtrial.judging.asking import longest_reply
from fairtrial.judging.second import is_drawn
from fairtrial.judging.whole_way import DEFAULT_TOKENS
from fairtrial.providers.bounds import Most, is_bounded, most_tokens, most_usd
from fairtrial.providers.judge_models import can_see
from fairtrial.providers.prices import FREE, price_of_target

_ANSWER_TOKENS = 2048  # of an answer that nothing limits, where another model reads it
_BYTES_OF_TOKEN = 4  # of a trajectory that a judge is shown
_OTHER_TOKENS = 2  # for the same text, another model may need this many times as many
_JUDGE_BYTES = (
    8000  # of what every judge gets in addition to question and answer: its task, the schema, the form of a reply
)
_SCREENSHOTS = (File(body=b""), File(body=b""))


class ArmEstimate(msgspec.Struct, frozen=True, kw_only=True):
    """The estimate for one arm; `most_usd` is None if it is unknown, and `unknown` says why."""

    arm: str
    trials: int
    prompt_tokens: int
    most_usd: float | None
    judge_calls: int = 0
    unknown: str = ""


class CostEstimate(msgspec.Struct, frozen=True, kw_only=True):
    """The estimate for a run. Token counts are rough (4 characters each); costs are what the calls can cost at most,
    unless some have to be repeated."""

    cases: int
    trials: int
    arms: list[ArmEstimate]
    most_usd: float | None
    judge_calls: int = 0
    judge_usd: float | None = 0.0  # at most, in addition to `most_usd`
    embedder_usd: float | None = 0.0  # at most, for embeddings
    user_usd: float | None = 0.0  # at most, for the simulated user
    total_usd: float | None = None  # at most: answers, judging, embeddings and the simulated user
    budget_usd: float | None = None


def estimate(suite: Suite) -> CostEstimate:
    """Estimate the size and cost of a run of this suite."""
    arms = [_ArmToEstimate(arm, suite) for arm in suite.arms]
    others = _Others(suite)
    for case in suite.cases():
        for arm in arms:
            arm.add(case, others)
    judge_calls = sum(arm.judge_calls for arm in arms)
    most = _sum(arm.calls.usd for arm in arms)
    judging = _sum(calls.usd for calls in others.judges) if judge_calls else 0.0
    embedding = _sum(calls.usd for calls in others.embedders.values())
    user = others.user.usd if others.user else 0.0
    return CostEstimate(
        cases=suite.case_count,
        trials=sum(arm.trials for arm in arms),
        arms=[arm.result() for arm in arms],
        most_usd=most,
        judge_calls=judge_calls,
        judge_usd=judging,
        embedder_usd=embedding,
        user_usd=user,
        total_usd=_sum([most, judging, embedding, user]),
        budget_usd=suite.settings.budget_usd,
    )


class _Calls:
    """The calls to one target, and the most tokens that they can use together."""

    def __init__(self, spec: TargetSpec, suite: Suite) -> None:
        kind = registry.load("targets", spec.kind)
        price = price_of_target(kind, spec, suite.settings.prices)
        self.price = price.times(kind.batch_api.part_of_price) if price is not None and spec.batch else price
        self._target = build_target(spec, suite.folder, suite.functions) if is_bounded(kind) else None
        self._prompt, self._completion = 0, 0
        self._unlimited = False  # whether nothing limits a reply
        self.characters = 0

    def add(self, request: Request, times: int = 1, more: int = 0) -> int | None:
        """Add a call, `times` times, with this many more bytes in its prompt; return its longest reply, if limited."""
        self.characters += times * (len(request.system) + len(request.input))
        self.characters += times * sum(len(message.content) for message in request.history)
        if self._target is None:
            return None
        most = most_tokens(self._target.spec, request, self._target.sent(request))
        self._prompt += times * (most.prompt + more)
        self._completion += times * (most.completion or 0)
        self._unlimited |= most.completion is None
        return most.completion

    @property
    def usd(self) -> float | None:
        """What all calls can cost at most; None if that is unknown."""
        if self.price is None or (self._target is None and self.price is not FREE):
            return None
        return most_usd(self.price, Most(self._prompt, None if self._unlimited else self._completion))

    @property
    def unknown(self) -> str:
        """Why it is unknown."""
        if self.usd is not None:
            return ""
        if self.price is None:
            return "no price is known for it: add one under `prices`"
        if self._target is None:
            return "it is only known afterwards: `budget_usd` limits it"
        return "nothing limits its replies: set `max_tokens`"


class _Others:
    """All other calls: judges, embedders and the simulated user."""

    def __init__(self, suite: Suite) -> None:
        settings = suite.settings
        self.specs = settings.judges
        self.judges = [_Calls(judge.target, suite) for judge in settings.judges]
        self.embedders = {name: _Calls(spec, suite) for name, spec in settings.embedders.items()}
        self.user_spec = settings.user
        self.user = _Calls(settings.user.target, suite) if settings.user else None
        self.judgements = settings.panel.judgements
        for judge, calls in zip(self.specs, self.judges, strict=True):  # each is tried with one easy question
            calls.add(_judge_request(judge), more=_JUDGE_BYTES)

    def judge(self, scorer: bytes, trial: Trial, read: int, times: int) -> int:
        """Add what judges are asked about an answer, when they read this many bytes of it; return how often."""
        asked = 0
        for judge, calls in zip(self.specs, self.judges, strict=True):
            number = times * self.judgements * self._calls_of(judge, scorer, trial.case)
            if number:
                told = len(scorer) + sum(_filled(text, trial) for text in (judge.instructions, *_templates(scorer)))
                calls.add(_judge_request(judge, trial.case), number, _JUDGE_BYTES + told + read + _seen_bytes(scorer))
            asked += number
        return asked

    def _calls_of(self, judge: JudgeSpec, scorer: bytes, case: Case) -> int:
        """Return how often a judge is asked about one answer; a second one stands for all others, on some cases."""
        if judge.share is None:
            return _judge_calls(scorer, judge.name)
        others = (_judge_calls(scorer, one.name) for one in self.specs if one.share is None)
        return max(others, default=0) if is_drawn(case.id, judge.share) else 0

    def embed(self, scorer: bytes, case: Case, answer: int, times: int) -> None:
        """Add the embeddings of an answer of this many bytes, and of what it is compared with."""
        for name in _embedders(scorer):
            self.embedders[name].add(embedding_request(name, ""), times, answer)
            for text in case.accepted:
                self.embedders[name].add(embedding_request(name, text), times)


class _ArmToEstimate:
    """What an arm is asked, and what its answers cause."""

    def __init__(self, arm: Arm, suite: Suite) -> None:
        self._arm = arm
        self.calls = _Calls(arm.target, suite)
        self.trials = self.judge_calls = 0

    def add(self, case: Case, others: _Others) -> None:
        """Add the trials of a case."""
        repeats = self._arm.repeats_of(case)
        if not repeats:
            return
        self.trials += repeats
        variants = max(1, min(repeats, len(self._arm.condition.prompts)))  # repeats take turns with the prompts
        for repeat in range(variants):
            self._add_trial(case, repeat, len(range(repeat, repeats, variants)), others)

    def _add_trial(self, case: Case, repeat: int, times: int, others: _Others) -> None:
        params = self._arm.params_of(case)
        trial = Trial(id="", case=case, arm=self._arm, repeat=repeat, params=params)
        files = tuple(map(_as_long, case.attach))
        turns: list[EarlierTurn] = []
        later = _later_turns(case, others.user_spec)
        for reply in (*later, None):
            chat = trial.chat(turns)
            request = Request(
                trial_id="", case_id="", params=params, files=files,
                system=chat.system, history=chat.history, input=chat.question,
            )  # fmt: skip
            longest = self.calls.add(request, times) or params.get("max_tokens") or _ANSWER_TOKENS
            if reply is None:
                break
            turns.append(EarlierTurn(question=chat.question, answer=Answer(text=_blank(longest)), reply=reply))
            if others.user is not None and others.user_spec is not None:
                asked = SimulatedUser.request(others.user_spec, trial, turns)
                others.user.add(asked, times, (_OTHER_TOKENS - 1) * longest * len(turns))
        if not (others.judges or others.embedders):
            return
        scorer = canonical_json(self._arm.scorer_of(case))
        answers = _OTHER_TOKENS * longest * (1 + len(turns))
        said = (message.content for message in chat.messages)
        read = answers + sum(len(text.encode()) for text in (case.input, *case.accepted, *said))
        self.judge_calls += others.judge(scorer, trial, read, times)
        others.embed(scorer, case, _OTHER_TOKENS * longest, times)

    def result(self) -> ArmEstimate:
        """Return the estimate."""
        return ArmEstimate(
            arm=self._arm.name,
            trials=self.trials,
            prompt_tokens=self.calls.characters // 4,
            most_usd=self.calls.usd,
            judge_calls=self.judge_calls,
            unknown=self.calls.unknown,
        )


def _later_turns(case: Case, user: UserSpec | None) -> Sequence[str]:
    """Return what the user says after the first question; what a model will say is as long as it may become."""
    if user is None:
        return case.turns
    tokens = int(user.params.get("max_tokens") or MAX_REPLY_TOKENS)
    return [_blank(_OTHER_TOKENS * tokens)] * (user.max_turns - 1)


def _judge_request(judge: JudgeSpec, case: Case | None = None) -> Request:
    """Return a judge's request as far as it is known: its parameters, and files and screenshots if it can see them."""
    params = {"max_tokens": longest_reply(judge.target, judge.params), **judge.params}
    files = (*_SCREENSHOTS, *map(_as_long, case.attach)) if case and can_see(judge) else ()
    given = {name: value for name, value in params.items() if value is not None}
    return Request(trial_id="", case_id="", input="", params=given, files=files)


def _as_long(attachment: Attachment) -> File:
    return File(media=attachment.media, body=bytes(attachment.size))


@lru_cache(maxsize=64)
def _blank(length: int) -> str:
    return " " * length


def _sum(costs: Iterable[float | None]) -> float | None:
    known = list(costs)
    return None if None in known else sum((cost for cost in known if cost is not None), 0.0)


def _filled(instructions: str, trial: Trial) -> int:
    """Return the length of a judge's instructions, which may be a template."""
    if "{" not in instructions:
        return len(instructions.encode())
    try:
        return len(fill(instructions, trial.arm.condition.values(trial.case)).encode())
    except TemplateError:  # such a case will not be judged
        return 0


@lru_cache(maxsize=512)
def _templates(scorer: bytes) -> tuple[str, ...]:
    """Return the texts of a scorer that may be templates."""

    def texts(value: object) -> Iterator[str]:
        if isinstance(value, str) and "{" in value:
            yield value
        for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            yield from texts(part)

    return tuple(texts(msgspec.json.decode(scorer)))


@lru_cache(maxsize=512)
def _seen_bytes(scorer: bytes) -> int:
    """Return how much of a trajectory a judge of a scorer is shown at most."""

    def seen(value: object) -> int:
        own = 0
        if isinstance(value, dict) and value.get("sees") == "trajectory":
            own = _BYTES_OF_TOKEN * int(value.get("trajectory_tokens") or DEFAULT_TOKENS)
        parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        return max([own, *map(seen, parts)])

    return seen(msgspec.json.decode(scorer))


@lru_cache(maxsize=512)
def _judge_calls(scorer: bytes, judge: str) -> int:
    return build_scorer(msgspec.json.decode(scorer)).judge_calls(judge)


@lru_cache(maxsize=512)
def _embedders(scorer: bytes) -> frozenset[str]:
    return build_scorer(msgspec.json.decode(scorer)).embedders()
