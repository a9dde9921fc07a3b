"""The terms of a gate, as a suite states them under `gate`; scores and shares are in points of 100."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from fairtrial.core.types_in_threads import look_into

Points = Annotated[float, Meta(ge=0, le=100)]
Loss = Annotated[float, Meta(gt=0, le=100)]
Cases = Annotated[str, Meta(min_length=1)]  # a case's id, a pattern such as refund-*, tag:NAME or category:NAME
RATES = ("cost", "latency")  # guards whose limit is a percentage of the baseline
REFUSALS = "refusals"


class GateSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a run must satisfy before a merge; options of `fairtrial gate` override it.

    Cases are named by id, by a pattern such as `refund-*`, or as `tag:NAME` or `category:NAME`.
    """

    against: Annotated[
        str | None, Meta(description="The baseline: a run or tag, branch:main, file:PATH, notes:, auto …")
    ] = None
    margin: Annotated[Loss | None, Meta(description="Acceptable loss of the mean, in points; default: 5.")] = None
    min_score: Annotated[Points | None, Meta(description="Minimum score of every arm.")] = None
    min_coverage: Annotated[Points | None, Meta(description="Minimum percentage of scored trials.")] = None
    pass_score: Annotated[
        Points, Meta(description="The minimum score of an answer that passes, for rules about cases.")
    ] = 50.0
    must_pass: Annotated[list[Cases], Meta(description="Cases of which every answer must pass.")] = []
    k_of_n: Annotated[
        dict[Cases, Annotated[int, Meta(ge=1)]],
        Meta(description="Cases of which this many answers must pass, such as {refund-*: 2}."),
    ] = {}
    quarantine: Annotated[
        list[Cases], Meta(description="Cases that are asked and listed, but count neither in means nor in rules.")
    ] = []
    categories: Annotated[
        dict[str, Loss], Meta(description="Acceptable loss on the cases of a category, in points.")
    ] = {}
    guards: Annotated[
        dict[str, Annotated[float, Meta(gt=0)]],
        Meta(
            description="What must not get worse by more than this: `cost` and `latency` in percent, `refusals` in "
            "percentage points, other metrics on their own scale."
        ),
    ] = {}
    unsure: Annotated[
        Literal["pass", "fail", 101] | None, Meta(description="Exit code if nobody can tell: 0, 100 or 101.")
    ] = None

    @property
    def about_cases(self) -> bool:
        """Whether there are rules about single cases."""
        return bool(self.must_pass or self.k_of_n)


look_into(GateSpec)
