"""The pytest plug-in: a marker names the suite, and a fixture runs it once and checks the result.

    @pytest.mark.fairtrial("suite.yaml", repeats=3)
    def test_capitals(fairtrial):
        fairtrial.gate(min_score=80, against="main")

Another fixture asks single questions; the ini file or a marker names the target and the scorer:

    def test_capital(trial):
        trial("Capital of France?", expected="Paris")

With `fairtrial_min_score`, a single wrong answer does not fail its test: all of them together pass a gate or do not.

Imports are lazy, so that test sessions without fairtrial tests are not slowed down.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import pytest

import fairtrial as ft
from fairtrial.pytest_gate import QUESTION, SCORE, UNSURE, SessionGate, session_minimum

if TYPE_CHECKING:
    from fairtrial import Comparison, Run, Score, TrialRecord, Unscored

_SETTINGS = {
    "fairtrial_target": "What answers the questions of `trial`: a name, or several with commas between them.",
    "fairtrial_scorer": "How the answers to the questions of `trial` are scored; default: match.",
    "fairtrial_judge": "The judge of the questions of `trial`, for scorers that need one.",
    "fairtrial_repeats": "How many times each question of `trial` is asked; default: 1.",
    "fairtrial_min_score": "Minimum mean score of all questions of `trial` together, 0 to 100.",
    "fairtrial_unsure": "What happens to the test `fairtrial::gate` if nobody can tell: fail (default), skip or pass.",
}
_CASE_KEYS = ("vars", "attach", "weight", "tags", "category", "difficulty", "extract", "choices", "metadata")
_NO_TARGET = 'no target: set fairtrial_target in the ini file, or add @pytest.mark.trial(target="openai:gpt-6-luna")'
_LONGEST = 200  # characters of a question, an answer and what was expected
_RUNS: pytest.StashKey[dict[tuple[str, str], Run]] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options, and the settings of the ini file."""
    for name, text in _SETTINGS.items():
        parser.addini(name, text, default=None)
    parser.getgroup("fairtrial").addoption(
        "--fairtrial-min-score",
        metavar="X",
        type=float,
        default=None,
        help="Minimum mean score of all `trial` questions together, 0 to 100; replaces fairtrial_min_score.",
    )
    parser.getgroup("fairtrial").addoption(
        "--fairtrial-store",
        metavar="URL",
        default=None,
        help="Where runs are stored: sqlite:///file.db or a file name.",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line(
        "markers",
        "fairtrial(suite, **options): the suite of this test, run once per session; options as in `RunOptions`",
    )
    config.addinivalue_line(
        "markers", "trial(**keys): the target, scorer, repeats and other keys of a suite for this test's questions"
    )
    config.stash[_RUNS] = {}
    if not hasattr(config, "workerinput"):  # the controller of xdist sees the reports of all its workers
        config.pluginmanager.register(SessionGate(config), "fairtrial-session-gate")


@pytest.fixture
def trial(request: pytest.FixtureRequest) -> Trial:
    """Ask single questions and check the answers."""
    return Trial(request)


class Asked(NamedTuple):
    """What came of a question: the first answer, all answers, and the mean score in points."""

    answer: str
    answers: list[str]
    score: float
    run: Run


class Trial:
    """The value of the `trial` fixture: call it with a question."""

    def __init__(self, request: pytest.FixtureRequest) -> None:
        self._request = request

    def __call__(
        self,
        input: str,
        *,
        expected: Any = None,
        min_score: float | None = None,
        check: bool | None = None,
        **keys: Any,
    ) -> Asked:
        """Ask a question and fail the test if the answers score less than `min_score` points; default: 100.

        Other keywords are those of a case (`vars`, `attach`, …) or of a suite (`target`, `scorer`, `repeats`, `system`,
        …); the marker `trial` and the ini file say what is not given. With a gate over the session, or `check=False`,
        the score only counts there; an answer that failed always fails the test.
        """
        __tracebackhide__ = True
        settings = {**self._settings(), **keys}
        if "target" in settings:
            settings["targets"] = [settings.pop("target")]
        own = {name: settings.pop(name) for name in list(settings) if name in _CASE_KEYS}
        if not settings.get("targets"):
            raise pytest.UsageError(_NO_TARGET)
        try:
            suite = ft.Suite(
                name=self._request.node.nodeid,
                cases=[ft.Case(input, expected=expected, **own)],
                folder=self._request.path.parent,
                **settings,
            )
            run = ft.run(suite, store=store_url(self._request.config), progress=False)
        except ft.FairtrialError as error:
            raise pytest.fail.Exception(str(error), pytrace=False) from None
        return self._checked(run, min_score, session_minimum(self._request.config) is None if check is None else check)

    def _settings(self) -> dict[str, Any]:
        """Return the keys of a suite from the ini file, the markers of the test's folders and classes, and its own."""
        config = self._request.config
        settings: dict[str, Any] = {
            "targets": _target(config.getini("fairtrial_target")),
            "scorer": config.getini("fairtrial_scorer") or None,
            "judge": config.getini("fairtrial_judge") or None,
            "repeats": int(config.getini("fairtrial_repeats") or 1),
        }
        for marker in reversed(list(self._request.node.iter_markers("trial"))):
            settings |= marker.kwargs
            if "target" in marker.kwargs:
                settings["targets"] = [settings.pop("target")]
        return settings

    def _checked(self, run: Run, min_score: float | None, check: bool) -> Asked:
        __tracebackhide__ = True
        trials = list(run.trials())
        record = self._request.node.user_properties
        record.append(("fairtrial.run", run.id))
        for one in trials:
            if one.score is None:
                reason = one.failure_message or one.unscored_message or one.status
                pytest.fail(f"no score for {one.input!r} from {one.arm}: {reason} (run {run.id})", pytrace=False)
        scores = [100 * one.score for one in trials if one.score is not None]
        mean = sum(scores) / len(scores)
        record.append((SCORE, round(mean, 4)))
        record.append((QUESTION, _told(_worst(trials))))
        record.append(("fairtrial.answers", len(scores)))
        least = 100.0 if min_score is None else min_score
        if check and mean < least - 1e-9:
            pytest.fail(_why(trials, mean, least, run.id), pytrace=False)
        answers = [one.answer or "" for one in trials]
        return Asked(answers[0], answers, mean, run)


def _why(trials: Sequence[TrialRecord], mean: float, least: float, run: str) -> str:
    worst = _worst(trials)
    head = f"score {mean:g} of 100, at least {least:g}, over {len(trials)} answer{'s' if len(trials) > 1 else ''}"
    lines = [head, f"  question: {worst.input}", f"  answer:   {worst.answer}"]
    lines += [f"  expected: {worst.expected}"] if worst.expected is not None else []
    lines += [f"  notes:    {worst.notes}"] if worst.notes else []
    return "\n".join([*lines, f"  run:      {run}"])


def _worst(trials: Sequence[TrialRecord]) -> TrialRecord:
    return min(trials, key=lambda one: one.score or 0.0)


def _told(one: TrialRecord) -> str:
    """Return a question with its answer and what was expected, on one line."""
    from fairtrial.core.expected import show_expected
    from fairtrial.text.printable import clipped, one_line, printable

    texts = [one.input, one.answer or "", *([] if one.expected is None else [show_expected(one.expected)])]
    shown = (repr(clipped(one_line(printable(text)), _LONGEST)) for text in texts)
    return ", ".join(f"{said}{text}" for said, text in zip(("", "answered ", "expected "), shown, strict=False))


def _target(name: str | None) -> list[str]:
    return [part.strip() for part in name.split(",") if part.strip()] if name else []


def store_url(config: pytest.Config) -> str:
    """Return where the runs of tests are stored."""
    from fairtrial.store.address import default_store

    option: str | None = config.getoption("--fairtrial-store")
    return option or default_store(config.rootpath)


@pytest.fixture
def fairtrial(request: pytest.FixtureRequest) -> FairTrial:
    """Run suites and check their results."""
    return FairTrial(request)


class FairTrial:
    """The value of the `fairtrial` fixture."""

    def __init__(self, request: pytest.FixtureRequest) -> None:
        self._request = request

    @property
    def run(self) -> Run:
        """The run of the suite named by the test's marker; made once per session."""
        marker = self._request.node.get_closest_marker("fairtrial")
        if marker is None or not marker.args:
            raise pytest.UsageError('the test has no suite: add @pytest.mark.fairtrial("suite.yaml")')
        return self.run_suite(marker.args[0], **marker.kwargs)

    def run_suite(self, suite: str | Path, **options: Any) -> Run:
        """Run a suite, given by its path relative to the test's folder; once per session for the same options."""
        from fairtrial.cli.asking import load_dotenv

        path = (self._request.path.parent / suite).resolve()
        runs = self._request.config.stash[_RUNS]
        key = (str(path), repr(sorted(options.items())))
        if key not in runs:
            try:
                load_dotenv(path)
                runs[key] = ft.run(ft.load_suite(path, ft.RunOptions(**options)), store=store_url(self._request.config))
            except ft.FairtrialError as error:
                raise pytest.fail.Exception(str(error), pytrace=False) from None
        return runs[key]

    def open_run(self, name: str) -> Run:
        """Open a stored run by its id, tag, unambiguous prefix, or `latest`."""
        return ft.open_run(name, store=store_url(self._request.config))

    def gate(
        self,
        *,
        min_score: float | None = None,
        against: str | None = None,
        margin: float | None = None,
        min_coverage: float | None = None,
        arms: Sequence[str] = (),
        metric: str = "",
        these_cases: bool = False,
        unsure: Literal["fail", "skip", "pass"] | None = None,
        run: Run | None = None,
    ) -> None:
        """Fail the test unless the run passes the gate, as `fairtrial.gate` of Python decides it: scores are 0–100,
        metrics on their own scale, and what the suite says under `gate` holds too. `unsure` says what to do if the gate
        cannot tell; default: what the suite says, else fail."""
        __tracebackhide__ = True
        from fairtrial.present.words.gates import check_line

        if unsure is not None and unsure not in UNSURE:
            raise pytest.UsageError(f"unsure must be `fail`, `skip` or `pass`, not `{unsure}`")
        checked = run or self.run
        try:
            outcome = ft.gate(
                checked, min_score=min_score, against=against, margin=margin, min_coverage=min_coverage, arms=arms,
                metric=metric, these_cases=these_cases,
            )  # fmt: skip
        except ft.FairtrialError as error:
            raise pytest.fail.Exception(str(error), pytrace=False) from None
        details = "\n".join(check_line(check) for check in outcome.checks if check.result != "passed")
        what = unsure or ("pass" if outcome.unsure == "pass" else "fail")
        if outcome.result == "failed" or (outcome.result == "cannot tell" and what == "fail"):
            pytest.fail(f"run {checked.id}: gate {outcome.result}\n{details}", pytrace=False)
        if outcome.result == "cannot tell" and what == "skip":
            pytest.skip(details)

    def compare(self, a: str, b: str, *, margin: float | None = None, run: Run | None = None) -> Comparison:
        """Compare two arms of the run; the margin is in points of 100."""
        return ft.compare(run or self.run, a, b, margin=None if margin is None else margin / 100)

    def score(self, scorer: str, *, response: str, expected: Any = None, **options: Any) -> Score | Unscored:
        """Score one answer without a suite."""
        return ft.score(scorer, response=response, expected=expected, **options)
