"""What the JSON documents say about a run: verdicts of pairs, means, order. Claims of sentences are held against it."""

from __future__ import annotations

from typing import Any

from tests.surfaces.reading import Claim, shows


class Truth:
    """The documents of `compare --json` and `show --json`, by one metric."""

    def __init__(self, compared: dict[str, Any], shown: dict[str, Any], metric: str, lower: bool) -> None:
        self.metric, self.lower = metric, lower
        self.means = {
            one["label"]: one["aggregate"]["mean"]
            for one in compared["standings"]
            if one["aggregate"]["mean"] is not None
        }
        self.pairs = {(one["a"], one["b"]): one for one in compared["pairs"]}
        self.arms = {arm["arm"]: arm for arm in shown["arms"]}
        self.silent = {name for name in self.arms if name not in self.means}
        self.named = 1  # arms that share the best mean, if a headline names them
        self.cases = compared["pairs"][0]["count"] if compared["pairs"] else 0

    @property
    def order(self) -> list[str]:
        """Every arm with a value, the best first; those whose means are equal in the order of the suite."""
        sign = 1 if self.lower else -1
        return sorted(self.means, key=lambda name: sign * self.means[name])

    def verdict(self, one: str, other: str) -> str:
        """The verdict on `one` against `other`."""
        if (one, other) in self.pairs:
            return str(self.pairs[one, other]["verdict"])
        return {"better": "worse", "worse": "better"}.get(
            self.pairs[other, one]["verdict"], self.pairs[other, one]["verdict"]
        )

    def lead(self, one: str, other: str) -> tuple[float, tuple[float, float] | None]:
        """By how much `one` is ahead: positive where it is better."""
        turned = (one, other) not in self.pairs
        pair = self.pairs[other, one] if turned else self.pairs[one, other]
        sign = (-1 if turned else 1) * (-1 if self.lower else 1)
        low, high = sorted(sign * end for end in pair["ci95"]) if pair["ci95"] else (0.0, 0.0)
        return sign * pair["difference"], (low, high) if pair["ci95"] else None

    @property
    def leading(self) -> set[str]:
        """The arms that no other is better than."""
        return {a for a in self.means if not any(self.verdict(b, a) == "better" for b in self.means if b != a)}

    def holds(self, claims: list[Claim]) -> None:
        """Fail unless everything that a headline claims is so, and nothing that matters is left out."""
        said = {claim.one for claim in claims if claim.kind in ("silent", "unscored")}
        dead = {name for name in self.silent if self.arms[name]["failed"]}
        assert said == dead, f"arms without a score: {dead}, said: {said}"
        standing = [claim for claim in claims if claim.kind not in ("silent", "unscored")]
        assert standing, "nothing is said about the arms that answered"
        for claim in standing:
            getattr(self, f"_{claim.kind.replace(' ', '_')}")(claim)
            if self.metric and claim.metric:
                assert (claim.metric, claim.lower) == (self.metric, self.lower)
        self._complete({claim.kind for claim in standing})

    def _complete(self, kinds: set[str]) -> None:
        """What is so must be said: a decided pair of two, a leader, a tie."""
        if len(self.means) == 2:
            verdict = self.verdict(*self.order)
            wanted = {
                "better": {"better"},
                "worse": {"better"},
                "equivalent": {"equivalent"},
                "cannot tell": {"close", "level", "one case"},
                "depends on failures": {"depends"},
            }
            assert kinds & wanted[verdict], f"{verdict}, said: {kinds}"
            over_answers = any(pair["on_this_case"] for pair in self.pairs.values())
            assert over_answers == bool(kinds & {"here", "here level"}), "what holds on the only case"
        elif len(self.means) > 2 and self.order[0] in self.leading:
            alone, everybody = len(self.leading) == 1, len(self.leading) == len(self.means)
            wanted = {"no leader", "all equivalent"} if everybody else {"leads", "highest"} if alone else set()
            assert kinds & (wanted or {"tied", "highest"}), f"leading: {self.leading}, said: {kinds}"

    def _size(self, claim: Claim, one: str, other: str) -> None:
        lead, bounds = self.lead(one, other)
        assert shows(claim.amount, abs(lead)), f"{claim.amount} for {lead}"
        if claim.bounds is not None:
            assert bounds is not None
            assert all(shows(text, end) for text, end in zip(claim.bounds, bounds, strict=True)), (claim, bounds)
            assert (bounds[0] > 0) == (not claim.bounds[0].startswith("−") and float(claim.bounds[0]) > 0), claim

    def _better(self, claim: Claim) -> None:
        assert self.verdict(claim.one, claim.other) == "better"
        self._size(claim, claim.one, claim.other)

    def _leads(self, claim: Claim) -> None:
        assert self.leading == {claim.one} == {self.order[0]}

    def _next(self, claim: Claim) -> None:
        first = self.order[0]
        assert claim.other == self.order[1] and self.verdict(first, claim.other) == "better"
        self._size(claim, first, claim.other)

    def _behind(self, claim: Claim) -> None:
        assert claim.one in self.leading and self.verdict(claim.one, claim.other) == "better"
        assert claim.other == next(name for name in self.order if name not in self.leading)
        self._size(claim, claim.one, claim.other)

    def _tied(self, claim: Claim) -> None:
        assert set(claim.names) <= self.leading and claim.names == [n for n in self.order if n in claim.names]
        assert len(claim.names) + sum(claim.counts) == len(self.leading)

    def _highest(self, claim: Claim) -> None:
        best = [name for name in self.leading if abs(self.means[name] - self.means[self.order[0]]) < 1e-9]
        assert set(claim.names) <= set(best) and len(claim.names) + sum(claim.counts) == len(best)
        self.named = len(best)

    def _ruled_out(self, claim: Claim) -> None:
        _, out, others = claim.counts
        assert (out, others) == (len(self.means) - len(self.leading), len(self.means) - self.named)

    def _all_ruled_out(self, claim: Claim) -> None:
        assert claim.counts[1] == len(self.means) - self.named and len(self.leading) == self.named

    def _racing(self, claim: Claim) -> None:
        assert claim.counts == (len(self.leading) - self.named,)

    def _no_leader(self, claim: Claim) -> None:
        assert claim.counts == (len(self.means),) and self.leading == set(self.means)

    def _all_equivalent(self, claim: Claim) -> None:
        assert claim.counts == (len(self.means),)
        assert {pair["verdict"] for pair in self.pairs.values()} == {"equivalent"}

    def _close(self, claim: Claim) -> None:
        assert self.verdict(claim.one, claim.other) == "cannot tell" and self.lead(claim.one, claim.other)[0] > 0
        self._size(claim, claim.one, claim.other)

    def _level(self, claim: Claim) -> None:
        assert self.verdict(claim.one, claim.other) == "cannot tell" and not self.lead(claim.one, claim.other)[0]

    def _one_case(self, claim: Claim) -> None:
        assert self.verdict(claim.one, claim.other) == "cannot tell" and self.cases == 1

    def _on_this_case(self, one: str) -> tuple[str, float, tuple[float, float] | None]:
        """The verdict on an arm on the only case, over its answers; its lead, and the interval of that."""
        (pair,) = (pair for pair in self.pairs.values() if one in (pair["a"], pair["b"]) and pair["on_this_case"])
        found, turned = pair["on_this_case"], pair["b"] == one
        verdict = {"better": "worse", "worse": "better"}.get(found["verdict"], found["verdict"])
        sign = (-1 if turned else 1) * (-1 if self.lower else 1)
        low, high = sorted(sign * end for end in found["test"]["ci95"] or (0.0, 0.0))
        bounds = (low, high) if found["test"]["ci95"] else None
        return verdict if turned else found["verdict"], sign * found["test"]["difference"], bounds

    def _here(self, claim: Claim) -> None:
        verdict, lead, bounds = self._on_this_case(claim.one)
        assert lead > 0 and claim.how == ("better" if verdict == "better" else "ahead")
        assert shows(claim.amount, lead), f"{claim.amount} for {lead}"
        assert (claim.bounds is None) == (bounds is None)
        if claim.bounds is not None and bounds is not None:
            assert all(shows(text, end) for text, end in zip(claim.bounds, bounds, strict=True)), (claim, bounds)

    def _here_level(self, claim: Claim) -> None:
        assert abs(self._on_this_case(self.order[0])[1]) < 1e-9

    def _equivalent(self, claim: Claim) -> None:
        assert self.verdict(claim.one, claim.other) == "equivalent"

    def _depends(self, claim: Claim) -> None:
        assert self.verdict(claim.one, claim.other) == "depends on failures"
        if claim.counts:
            assert claim.counts == (sum(arm["failed"] for arm in self.arms.values()),)

    def _overtaken(self, claim: Claim) -> None:
        assert claim.other == self.order[0] and self.verdict(claim.one, claim.other) == "better"

    def _alone(self, claim: Claim) -> None:
        assert list(self.means) == [claim.one] and shows(claim.amount, self.means[claim.one])
