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

if TYPE_CHECKING:
    from fairtrial.analyse import Run, TrialRecord
    from fairtrial.analyse.comparison import Comparison
    from fairtrial.core.score import Score, Unscored

_SETTINGS = {
    "fairtrial_target": "What answers the questions of `trial`: a name, or several with commas between them.",
    "fairtrial_scorer": "How the answers to the questions of `trial` are scored; default: match.",
    "fairtrial_judge": "The judge of the questions of `trial`, for scorers that need one.",
    "fairtrial_repeats": "How many times each question of `trial` is asked; default: 1.",
    "fairtrial_min_score": "Minimum mean score of all questions of `trial` together, 0 to 100.",
    "fairtrial_unsure": "Whether the session fails or passes if nobody can tell: fail (default) or pass.",
}
_CASE_KEYS = ("vars", "attach", "weight", "tags", "category", "difficulty", "extract", "choices", "metadata")
_NO_TARGET = 'no target: set fairtrial_target in the ini file, or add @pytest.mark.trial(target="openai:gpt-5-mini")'
_SCORE = "fairtrial.score"
_ASKED: pytest.StashKey[list[tuple[str, float]]] = pytest.StashKey()
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
    config.stash[_ASKED] = []
    if not hasattr(config, "workerinput"):  # the controller of xdist sees the reports of all its workers
        config.pluginmanager.register(_Collector(config), "fairtrial-collector")


class _Collector:
    """Collects the scores of all questions from the reports of tests, which also come from other processes (xdist)."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._gate: tuple[str, str] | None = None

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the scores of one test."""
        if report.when == "call":
            scores = [float(str(value)) for name, value in report.user_properties if name == _SCORE]
            self._config.stash[_ASKED] += [(report.nodeid, score) for score in scores]

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Decide the gate over all questions of the session."""
        least = _least(self._config)
        asked = self._config.stash[_ASKED]
        if least is None or not asked:
            return
        from fairtrial.stats import aggregate

        numbers = aggregate([score / 100 for _, score in asked], clusters=[test for test, _ in asked])
        result, reason = _judged(numbers.mean, numbers.ci95, least / 100)
        mean = 0.0 if numbers.mean is None else 100 * numbers.mean
        message = f"gate {result}: mean {mean:.1f}, {reason}, n = {len(asked)}, at least {least:g}"
        self._gate = (result, message)
        unsure = self._config.getini("fairtrial_unsure") or "fail"
        if (result == "failed" or (result == "cannot tell" and unsure != "pass")) and session.exitstatus == 0:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Show the gate with the numbers behind it."""
        if self._gate is not None:
            colours = {"passed": {"green": True}, "failed": {"red": True}}
            terminalreporter.section("fairtrial")
            terminalreporter.write_line(self._gate[1], **colours.get(self._gate[0], {"yellow": True}))


def _judged(mean: float | None, interval: tuple[float, float] | None, least: float) -> tuple[str, str]:
    """Return the result of the gate: the whole interval must be on one side of the minimum."""
    if mean is None or interval is None:
        return "cannot tell", "no interval"
    low, high = interval
    result = "passed" if low >= least - 1e-9 else "failed" if high < least - 1e-9 else "cannot tell"
    return result, f"95% CI [{100 * low:.1f}, {100 * high:.1f}]"


def _least(config: pytest.Config) -> float | None:
    """Return the minimum of the session's gate, in points."""
    option = config.getoption("--fairtrial-min-score")
    setting = option if option is not None else config.getini("fairtrial_min_score")
    return None if setting in (None, "") else float(setting)


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
        from fairtrial import api
        from fairtrial.config import Suite
        from fairtrial.config.python import Case
        from fairtrial.core.errors import FairtrialError

        settings = {**self._settings(), **keys}
        if "target" in settings:
            settings["targets"] = [settings.pop("target")]
        own = {name: settings.pop(name) for name in list(settings) if name in _CASE_KEYS}
        if not settings.get("targets"):
            raise pytest.UsageError(_NO_TARGET)
        try:
            suite = Suite(
                name=self._request.node.nodeid,
                cases=[Case(input, expected=expected, **own)],
                folder=self._request.path.parent,
                **settings,
            )
            run = api.run(suite, store=store_url(self._request.config), progress=False)
        except FairtrialError as error:
            pytest.fail(str(error), pytrace=False)
        return self._checked(run, min_score, _least(self._request.config) is None if check is None else check)

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
        record.append((_SCORE, round(mean, 4)))
        record.append(("fairtrial.answers", len(scores)))
        least = 100.0 if min_score is None else min_score
        if check and mean < least - 1e-9:
            pytest.fail(_why(trials, mean, least, run.id), pytrace=False)
        answers = [one.answer or "" for one in trials]
        return Asked(answers[0], answers, mean, run)


def _why(trials: Sequence[TrialRecord], mean: float, least: float, run: str) -> str:
    worst = min(trials, key=lambda one: one.score or 0.0)
    head = f"score {mean:g} of 100, at least {least:g}, over {len(trials)} answer{'s' if len(trials) > 1 else ''}"
    lines = [head, f"  question: {worst.input}", f"  answer:   {worst.answer}"]
    lines += [f"  expected: {worst.expected}"] if worst.expected is not None else []
    lines += [f"  notes:    {worst.notes}"] if worst.notes else []
    return "\n".join([*lines, f"  run:      {run}"])


def _target(name: str | None) -> list[str]:
    return [part.strip() for part in name.split(",") if part.strip()] if name else []


def store_url(config: pytest.Config) -> str:
    """Return where the runs of tests are stored."""
    import os

    option: str | None = config.getoption("--fairtrial-store")
    return option or os.environ.get("FAIRTRIAL_STORE") or f"sqlite:///{config.rootpath}/.fairtrial/fairtrial.db"


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
        from fairtrial import api, pipeline
        from fairtrial.cli.options import load_dotenv
        from fairtrial.config import RunOptions
        from fairtrial.core.errors import FairtrialError

        path = (self._request.path.parent / suite).resolve()
        runs = self._request.config.stash[_RUNS]
        key = (str(path), repr(sorted(options.items())))
        if key not in runs:
            try:
                load_dotenv(path)
                runs[key] = api.run(pipeline.load(path, RunOptions(**options)), store=self._store_url())
            except FairtrialError as error:
                pytest.fail(str(error), pytrace=False)
        return runs[key]

    def open_run(self, name: str) -> Run:
        """Open a stored run by its id, tag, unambiguous prefix, or `latest`."""
        from fairtrial import api

        return api.open_run(name, store=self._store_url())

    def gate(
        self,
        *,
        min_score: float | None = None,
        against: str | None = None,
        margin: float | None = None,
        min_coverage: float = 95.0,
        arms: Sequence[str] = (),
        metric: str = "",
        these_cases: bool = False,
        unsure: Literal["fail", "skip", "pass"] = "fail",
        run: Run | None = None,
    ) -> None:
        """Fail the test unless the run passes the gate; scores are 0–100 as on the command line, metrics on their own
        scale. `unsure` says what to do if the gate cannot tell."""
        __tracebackhide__ = True
        from fairtrial.analyse.gate import Terms, gate, gate_line
        from fairtrial.analyse.score_table import sources_of
        from fairtrial.core.errors import FairtrialError
        from fairtrial.workflows.baselines import find_baseline

        if unsure not in ("fail", "skip", "pass"):
            raise pytest.UsageError(f"unsure must be `fail`, `skip` or `pass`, not `{unsure}`")
        checked = run or self.run
        terms = Terms(
            min_score=None if min_score is None else min_score / (1 if metric else 100),
            margin=None if margin is None else margin / (1 if metric else 100),
            min_coverage=min_coverage / 100,
            metric=metric,
            arms=tuple(arms),
            these_cases=these_cases,
        )
        try:
            reference = find_baseline(against, checked.store, checked) if against else None
            outcome = gate(sources_of(checked)[0], reference, terms)
        except FairtrialError as error:
            pytest.fail(str(error), pytrace=False)
        details = "\n".join(gate_line(check) for check in outcome.checks if check.result != "passed")
        if outcome.result == "failed" or (outcome.result == "cannot tell" and unsure == "fail"):
            pytest.fail(f"run {checked.id}: gate {outcome.result}\n{details}", pytrace=False)
        if outcome.result == "cannot tell" and unsure == "skip":
            pytest.skip(details)

    def compare(self, a: str, b: str, *, margin: float | None = None, run: Run | None = None) -> Comparison:
        """Compare two arms of the run; the margin is in points of 100."""
        from fairtrial import api

        return api.compare(run or self.run, a, b, margin=None if margin is None else margin / 100)

    def score(self, scorer: str, *, response: str, expected: Any = None, **options: Any) -> Score | Unscored:
        """Score one answer without a suite."""
        from fairtrial import api

        return api.score(scorer, response=response, expected=expected, **options)

    def _store_url(self) -> str:
        return store_url(self._request.config)
