"""The pytest plug-in: a marker names the suite, and a fixture runs it once and checks the result.

    @pytest.mark.fairtrial("suite.yaml", repeats=3)
    def test_capitals(fairtrial):
        fairtrial.gate(min_score=80, against="main")

Imports are lazy, so that test sessions without fairtrial tests are not slowed down.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest

if TYPE_CHECKING:
    from fairtrial.analyse import Run
    from fairtrial.analyse.comparison import Comparison
    from fairtrial.core.score import Score, Unscored

_RUNS: pytest.StashKey[dict[tuple[str, str], Run]] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option for the store."""
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
    config.stash[_RUNS] = {}


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
        from fairtrial.analyse.score_table import find_sources, sources_of
        from fairtrial.core.errors import FairtrialError

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
            reference = find_sources([against], checked.store)[0] if against else None
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

    def _store_url(self) -> str | None:
        import os

        option: str | None = self._request.config.getoption("--fairtrial-store")
        if option or os.environ.get("FAIRTRIAL_STORE"):
            return option or os.environ["FAIRTRIAL_STORE"]
        return f"sqlite:///{self._request.config.rootpath}/.fairtrial/fairtrial.db"
