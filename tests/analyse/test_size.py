"""Memory does not grow with trials: sums are made by the database, and what must be read trial by trial is streamed."""

import gc
import io
import tracemalloc

import pytest

from benchmarks.size import fill, suite
from fairtrial.analyse.compare import compared
from fairtrial.analyse.items import analyse_cases
from fairtrial.analyse.kind_means import by_kind
from fairtrial.analyse.overview import run_overview
from fairtrial.analyse.planning import plan_power
from fairtrial.analyse.rank import rank
from fairtrial.analyse.run import Run
from fairtrial.analyse.score_table import choose, read_scores, sources_of
from fairtrial.analyse.variance import arm_variances
from fairtrial.reports.export import write
from fairtrial.reports.formats import format_named
from fairtrial.store import Store
from fairtrial.store import store as stores

ARMS, CASES = 2, 20
COLUMNS = (200, 400)  # repeats: more trials than are read at once, where numbers are read
ROWS = (5, 25)  # and where whole trials are, of which fewer are read at once than usual
LIMIT = 40  # bytes a trial: a column of numbers takes 8, one Python object per trial more than 100


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """The same cases and arms with few and with many repeats: a store and its run, by repeats.

    Nothing fails, so that the means of cases, by which resampling is planned, are the same numbers in both.
    """
    with pytest.MonkeyPatch.context() as patch:
        for module in (suite, fill):
            patch.setattr(module, "ARMS", ARMS)
            patch.setattr(module, "FAILING", 0)
        made = {repeats: filled(tmp_path_factory.mktemp("store"), repeats) for repeats in COLUMNS + ROWS}
    yield made
    for store, _ in made.values():
        store.close()


def filled(folder, repeats):
    store = Store(str(folder / "store.db"))
    return store, store.find_run(fill.fill(store, suite.write_suite(folder, CASES, repeats)))


def growth(work, stored, repeats):
    """How many bytes more Python held at once for each trial more."""
    for number in repeats:
        work(Run(*stored[number]))  # imports and caches of the store
    few, many = (peak(work, Run(*stored[number])) for number in repeats)
    return (many - few) / (ARMS * CASES * (repeats[1] - repeats[0]))


def peak(work, run):
    gc.collect(1)  # what is younger than this test: the rest of a long session is none of its business
    tracemalloc.start()
    try:
        work(run)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def scores_of(run):
    return read_scores(sources_of(run))


def exported(form):
    def work(run):
        class Nowhere(io.RawIOBase):
            def writable(self):
                return True

            def write(self, data):
                return len(data)

        write(run, format_named(form), io.BufferedWriter(Nowhere()))

    return work


WORK = {
    "summary": lambda run: run.summary(),
    "overview": run_overview,
    "by kind": by_kind,
    "compare": compared,
    "rank": lambda run: rank(scores_of(run)),
    "power": lambda run: plan_power(scores_of(run), choose(scores_of(run))[:1], deltas=[0.1]),
    "variance": arm_variances,
    "cases": lambda run: analyse_cases(scores_of(run)),
    "latency and cost": lambda run: [arm.means(name) for arm in scores_of(run).arms for name in arm.values],
}


@pytest.mark.slow
@pytest.mark.parametrize("work", WORK.values(), ids=WORK)
def test_an_analysis_needs_no_more_memory_for_more_trials(stored, work):
    assert growth(work, stored, COLUMNS) < LIMIT


@pytest.mark.slow
@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_an_export_is_streamed(stored, form, monkeypatch):
    monkeypatch.setattr(stores, "_AT_ONCE", 50)
    assert growth(exported(form), stored, ROWS) < LIMIT


def test_what_was_made_up_is_what_the_suite_gives(tmp_path):
    """The generator stands in for the engine: the same arms, scores and failures."""
    store, run = filled(tmp_path, 40)
    summary = Run(store, run).summary()
    store.close()
    means = [arm.aggregate.mean for arm in summary.arms]
    assert means == sorted(means) and 0.8 < means[0] < means[-1] < 1
    assert all(0 < arm.failed < 0.03 * arm.trials and arm.scored + arm.failed == arm.trials for arm in summary.arms)
