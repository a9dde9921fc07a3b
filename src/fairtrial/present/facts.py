"""The facts about a run that are shown below its headline, on the page and in the report."""

from __future__ import annotations

from typing import NamedTuple

from fairtrial.analyse.judging import Judging
from fairtrial.analyse.run import Run
from fairtrial.analyse.summary import RunSummary
from fairtrial.core.formatting import money
from fairtrial.core.money import Cost
from fairtrial.present.figures import Links
from fairtrial.present.words.judges import judges_words
from fairtrial.present.words.runs import left_words
from fairtrial.store.opinions import judges_asked
from fairtrial.text.printable import counted


class RunFacts(NamedTuple):
    """How many cases, arms and answers, which judges, and what it cost."""

    cases: int
    arms: int
    trials: int
    scored: int
    failed: int
    unscored: int
    waiting: int
    left: str  # what these are, in words
    judges: list[str]
    cost: Cost | None  # None where nothing was spent

    def missing(self, links: Links = Links()) -> list[tuple[str, str]]:  # noqa: B008  # immutable
        """Return how many trials have no score for which reason, each with where they are shown."""
        found = (
            (self.failed, "failed", links.failed),
            (self.unscored, "without a score", links.unscored),
            (self.waiting, self.left, ""),
        )
        return [(f"{count:,} {words}", address) for count, words, address in found if count]

    def lines(self) -> list[str]:
        """Return the facts as texts, for a picture or the preview of a link."""
        missing = [words for words, _ in self.missing()]
        return [
            f"{counted(self.cases, 'case')} × {counted(self.arms, 'arm')}",
            ", ".join([f"{self.scored:,} of {self.trials:,} trials scored", *missing]),
            *([f"judge {', '.join(self.judges[:3])}"] if self.judges else []),
            *([money(self.cost)] if self.cost else []),
        ]


def run_facts(run: Run, summary: RunSummary) -> RunFacts:
    """Return the facts about a run."""
    arms, cost = summary.arms, summary.spent
    return RunFacts(
        cases=summary.case_count,
        arms=len(arms),
        trials=sum(arm.trials for arm in arms),
        scored=sum(arm.scored for arm in arms),
        failed=sum(arm.failed for arm in arms),
        unscored=sum(arm.unscored for arm in arms),
        waiting=sum(arm.waiting for arm in arms),
        left=left_words(summary.status),
        judges=_judges(run, summary.judging),
        cost=cost if cost.charged or cost.unknown else None,
    )


def _judges(run: Run, judging: Judging | None) -> list[str]:
    asked = judges_asked(run.store, run.id, run.record.scoring) if judging else []
    return [judges_words([name], judging.second if judging else None) for name, _, _ in asked]
