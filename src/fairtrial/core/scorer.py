"""The interface of a scorer: its fields are its options; it takes a context and returns a score."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, ClassVar

import msgspec

from fairtrial.core.experiment import Case
from fairtrial.core.extraction import Extraction
from fairtrial.core.score import Scale, Score, ScoreContext, Unscored


class Guide(msgspec.Struct, frozen=True, kw_only=True):
    """What users should know when they choose a scorer."""

    scale: str
    reproducibility: str
    best_for: str
    runs: str = "1"


class Scorer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base class of scorers. To add one, add a file to `scorers/` or an entry point `fairtrial.scorers`.

    The fields here are options of every scorer, and `score_answer` (core/accepted.py) sees to them.
    """

    guide: ClassVar[Guide]
    judged: ClassVar[bool] = False
    looks: ClassVar[bool] = False  # whether it opens pages in a browser
    scores_refusals: ClassVar[bool] = False  # whether it scores refusals itself, whatever `on_refusal` says
    sees_all: ClassVar[bool] = False  # whether it sees all accepted answers at once, not one at a time
    reads_text: ClassVar[bool] = True  # whether it looks at the answer's text itself, so that `extract` concerns it
    extract: Annotated[Extraction | None, msgspec.Meta(description="What of an answer it scores.")] = None
    threshold: Annotated[
        Annotated[float, msgspec.Meta(ge=0, le=1)] | None,
        msgspec.Meta(description="Scores from here on are right (1), all others wrong (0)."),
    ] = None
    resources: Annotated[
        dict[str, Annotated[float, msgspec.Meta(gt=0)]] | None,
        msgspec.Meta(description="What it takes of a machine while it runs, such as {cpu: 1}."),
    ] = None

    def needs_expected(self) -> bool:
        """Return whether a case must have an expected text."""
        return False

    def lacks_expected(self, case: Case) -> bool:
        """Return whether a case does not say what is right, and must."""
        return self.needs_expected() and not case.accepted

    def forbids(self) -> bool:
        """Return whether an answer must differ from `expected`: if several are listed, from all of them."""
        return False

    def needs_judge(self) -> bool:
        """Return whether it needs a judge."""
        return self.judged

    def judge_calls(self, judge: str) -> int:
        """Return how often a judge of the suite is asked about one answer, for each judgement."""
        return int(self.needs_judge() and (not self.judges() or judge in self.judges()))

    def sees_refusals(self) -> bool:
        """Return whether it scores refusals itself, or one of its parts does."""
        return self.scores_refusals

    def needs_workspace(self) -> bool:
        """Return whether it looks into the folder in which an agent worked."""
        return False

    def judges(self) -> frozenset[str]:
        """Return the names of the judges that it wants; empty: whoever is there."""
        return frozenset()

    def embedders(self) -> frozenset[str]:
        """Return the names of the models whose embeddings it needs."""
        return frozenset()

    def scales(self) -> dict[str, Scale]:
        """Return the metrics it measures in addition to the score, with their scales."""
        return {}

    def prompt_hash(self, instructions: str) -> str | None:
        """Return a hash of the judge's prompt without the answer; None if no judge gives a mark."""
        return None

    def samples(self) -> list[dict[str, Any]] | None:
        """Return answers of known quality to calibrate its judge with; None: the default texts fit."""
        return None

    def top_mark(self) -> float:
        """Return the best mark that the judge can give, on the scale in its prompt."""
        return 10.0

    def check(self, case: Case, folder: Path) -> Iterable[str]:
        """Return the reasons, known before the run, why this case cannot be scored."""
        return ()

    async def score(self, context: ScoreContext) -> Score | Unscored:
        """Score one answer; the same context gives the same score, unless a judge is used."""
        raise NotImplementedError

    async def stop(self, context: ScoreContext) -> Score | Unscored | None:
        """Return the score of the check that must be full for a conversation to go on; None: nothing ends it here."""
        return None


def without_extract(scorer: Scorer) -> Scorer:
    """Return a scorer that reads answers whole."""
    return msgspec.structs.replace(scorer, extract=None)
