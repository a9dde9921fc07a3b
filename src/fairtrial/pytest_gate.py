"""The gate over all questions of a pytest session: a test of its own, `fairtrial::gate`, the last one.

Imports are lazy: every test session where fairtrial is installed imports this.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Literal, NamedTuple

import pytest

SCORE, QUESTION = "fairtrial.score", "fairtrial.question"  # properties of a test, one of each for every question
UNSURE = ("fail", "skip", "pass")
_MOST_LOST = 10  # questions to name


class _Scored(NamedTuple):
    """A question of the session: its test, its score in points, and what was asked, answered and expected."""

    test: str
    score: float
    words: str


class SessionGate:
    """The gate over all questions of the session: a test of its own, so that whoever counts tests counts it.

    Scores come from the reports of tests, which also come from other processes (xdist). No item is collected for it: it
    has to be decided after the last test of all processes, and neither -k nor --lf may leave it out.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._least = session_minimum(config)
        self._unsure = config.getini("fairtrial_unsure") or "fail"
        self._asked: list[_Scored] = []
        self._decided: tuple[str, str] | None = None
        if self._unsure not in UNSURE:
            raise pytest.UsageError(f"fairtrial_unsure must be `fail`, `skip` or `pass`, not `{self._unsure}`")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the scores of one test."""
        if report.when == "call":
            known = [(name, str(value)) for name, value in report.user_properties]
            scores = [float(value) for name, value in known if name == SCORE]
            words = [value for name, value in known if name == QUESTION]
            self._asked += [_Scored(report.nodeid, *one) for one in zip(scores, words, strict=True)]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, Any, Any]:
        """Decide after the last test."""
        done = yield
        if self._least is not None and self._asked:
            session.testscollected += 1
            self._report(*self._decide(self._least))
        return done

    def _decide(self, least: float) -> tuple[str, str]:
        """Return the result of the gate, and the sentence that says it."""
        from fairtrial.stats import aggregate  # numpy: only a session with questions needs it

        numbers = aggregate([one.score / 100 for one in self._asked], clusters=[one.test for one in self._asked])
        result, reason = _judged(numbers.mean, numbers.ci95, least / 100)
        mean = 0.0 if numbers.mean is None else 100 * numbers.mean
        return result, f"gate {result}: mean {mean:.1f} ({reason}), n = {len(self._asked)}, at least {least:g}"

    def _report(self, result: str, sentence: str) -> None:
        """Report the gate as a test that was run."""
        self._decided = result, sentence
        outcome = {"passed": "pass", "failed": "fail"}.get(result, self._unsure)
        text = "\n".join([sentence, *self._lost(self._least or 0.0)])
        place = ("fairtrial", None, "gate")
        says: dict[str, tuple[Literal["passed", "failed", "skipped"], Any]] = {
            "pass": ("passed", None),
            "fail": ("failed", text),
            "skip": ("skipped", ("fairtrial", 0, f"Skipped: {sentence}")),
        }
        hook, name = self._config.hook, "fairtrial::gate"
        hook.pytest_runtest_logstart(nodeid=name, location=place)
        for when in ("setup", "call", "teardown"):
            told, why = says[outcome] if when == "call" else says["pass"]
            report = pytest.TestReport(name, place, {}, told, why, when)
            hook.pytest_runtest_logreport(report=report)
        hook.pytest_runtest_logfinish(nodeid=name, location=place)

    def _lost(self, least: float) -> list[str]:
        """Name the questions that scored less than the minimum, the worst first."""
        below = sorted((one for one in self._asked if one.score < least - 1e-9), key=lambda one: one.score)
        lines = [f"  {one.score:g} of 100: {one.test}: {one.words}" for one in below[:_MOST_LOST]]
        more = len(below) - len(lines)
        head = [f"{len(below)} of {len(self._asked)} questions scored less than {least:g}, the worst first:"]
        return [*head, *lines, *([f"  and {more} more"] if more else [])] if below else []

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Show the gate with the numbers behind it."""
        stopped = ("cannot tell", "gate cannot tell: the session was stopped before its last test")
        if self._least is not None and self._asked:
            result, sentence = self._decided or stopped
            colours = {"passed": {"green": True}, "failed": {"red": True}}
            terminalreporter.section("fairtrial")
            terminalreporter.write_line(sentence, **colours.get(result, {"yellow": True}))


def _judged(mean: float | None, interval: tuple[float, float] | None, least: float) -> tuple[str, str]:
    """Return the result of the gate: the whole interval must be on one side of the minimum."""
    if mean is None or interval is None:
        return "cannot tell", "no interval"
    low, high = interval
    result = "passed" if low >= least - 1e-9 else "failed" if high < least - 1e-9 else "cannot tell"
    return result, f"95 % CI {100 * low:.1f} to {100 * high:.1f}"


def session_minimum(config: pytest.Config) -> float | None:
    """Return the minimum of the session's gate, in points."""
    option = config.getoption("--fairtrial-min-score")
    setting = option if option is not None else config.getini("fairtrial_min_score")
    if setting in (None, ""):
        return None
    try:
        least = float(setting)
    except ValueError:
        raise pytest.UsageError(f"fairtrial_min_score is a number from 0 to 100, not `{setting}`") from None
    if not 0 <= least <= 100 or 0 < least <= 1:
        hint = f"; did you mean {100 * least:g}?" if 0 < least <= 1 else ""
        raise pytest.UsageError(f"fairtrial_min_score is in points from 0 to 100, not {least:g}{hint}")
    return least
