"""Solvers work in processes of their own: whatever a problem is, it ends in time, and nothing of it is left behind."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

from fairtrial.core.errors import FairtrialError, ProblemsError
from fairtrial.tracks.optimisation import solving
from fairtrial.tracks.optimisation.arrays import MAX_WORK, limited_work
from fairtrial.tracks.optimisation.catalogue import baselines
from fairtrial.tracks.optimisation.certify import check_solved
from fairtrial.tracks.optimisation.multistart import search
from fairtrial.tracks.optimisation.problem_file import parse_problem
from fairtrial.tracks.optimisation.solving import NotSolvedError, StoppedError, later
from tests.lazily import Library
from tests.tracks.optimisation.random_problems import problems, second_opinion

psutil = Library("psutil")
_PATIENCE = 120.0
HOPELESS = """\
variables: [{name: x, size: 60, lower: -9, upper: 9}]
objective: sum(sin(3*x[i])*x[7*i + 3] for i in range(8)) + sum(cos(x[i]*x[i+1])*x[i] for i in range(59))
constraints: ['sum(x[i]**2 for i in range(60)) == 77']
"""
# SCIP prints so much about it that it used to fill a pipe which nobody emptied.
TALKATIVE = """\
variables: [{name: x, lower: -3, upper: 3}, {name: y, lower: -3, upper: 3}]
objective: sin(5*x)*cos(4*y) + abs(x - y)
constraints: ['x**2 + y**2 == 4']
"""
WYNDOR = "sense: max\nvariables: [{name: x, lower: 0, upper: 4}, {name: y, lower: 0}]\nobjective: 3*x + 5*y\nconstraints: ['3*x + 2*y <= 18', 2*y <= 12]"  # fmt: skip


def problem(text: str, name: str = "p") -> Any:
    return parse_problem(text, default_id=name)


def workers(parent: int | None = None) -> list[Any]:
    """The processes that solve for a process, itself or a child of this one."""
    found = []
    for child in psutil.Process(parent).children(recursive=True):
        try:
            found += [child] if "fairtrial.tracks.optimisation.worker" in " ".join(child.cmdline()) else []
        except psutil.Error:  # it has just ended
            continue
    return found


def until(true: Any) -> Any:
    """Wait until something is true, and return it."""
    deadline = time.monotonic() + _PATIENCE
    while not (value := true()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return value


def gone(processes: list[Any]) -> bool:
    return all(not one.is_running() or one.status() == psutil.STATUS_ZOMBIE for one in processes)


class TestHopeless:
    @pytest.mark.slow
    def test_what_a_solver_prints_stops_nothing(self):
        found = baselines([problem(TALKATIVE)], time_limit=10)[0]
        assert found.status in ("feasible", "optimal") and found.objective == pytest.approx(-0.574308, abs=1e-3)
        assert found.bound is not None and not workers()

    def test_whole_numbers_without_end_end_in_a_sentence(self):
        endless = problem("variables: [{name: y, lower: 0, integer: true}]\nobjective: -y**3")
        with pytest.raises(FairtrialError, match=r"no optimum was found.*still improves at y = .*bound its variables"):
            baselines([endless], time_limit=600)  # and long before that

    @pytest.mark.parametrize("more", ["", "\nconstraints: [x <= 5]", "\nconstraints: [x**2 + y**2 >= 1, x <= 5]"])
    def test_whole_numbers_that_improve_without_end_are_not_infeasible(self, more):
        endless = problem(
            f"variables: [{{name: x, integer: true}}, {{name: y, lower: 0, upper: 1}}]\nobjective: x + y{more}"
        )
        with pytest.raises(FairtrialError, match=r"improves without end|still improves"):
            baselines([endless], time_limit=5)

    def test_no_whole_number_between_the_bounds_is_infeasible(self):
        empty = problem("variables: [{name: x, integer: true, lower: 0.2, upper: 0.8}, {name: y}]\nobjective: x + y")
        assert baselines([empty], time_limit=5)[0].status == "infeasible"

    def test_an_objective_that_grows_to_one_side_only_has_its_optimum(self):
        both = problem("variables: [{name: x}, {name: y, lower: 0}]\nobjective: x**4 - 3*x + exp(-y)*0 + y**3")
        found = baselines([both], time_limit=30)[0]
        assert found.objective == pytest.approx(-2.0443, abs=1e-3)

    def test_a_part_without_a_point_makes_the_whole_infeasible(self):
        """Also beside another part that improves without end."""
        both = "variables: [{name: x}, {name: y, lower: 0, upper: 1}]\nobjective: x + y\nconstraints: [y >= 2]"
        assert baselines([problem(both)], time_limit=5)[0].status == "infeasible"

    def test_a_search_climbs_quickly_and_looks_at_the_clock(self):
        endless = problem("variables: [{name: y, lower: 0, integer: true}]\nobjective: -y")
        assert search(endless, 0.5, [0.0])[0] > 1e15
        found: list[Any] = []
        wide = problem(
            "variables: [{name: x, size: 40, lower: -9, upper: 9}]\nobjective: sum(sin(9*x[i])*x[i] for i in range(40))"
        )
        assert search(wide, 0.0, None, found.append) is not None or not found

    @pytest.mark.slow
    def test_one_that_is_killed_leaves_the_best_that_it_found(self, monkeypatch):
        monkeypatch.setattr(solving, "hard_limit", lambda _: 6.0)  # long before its time limit
        found = baselines([problem(TALKATIVE)], time_limit=600)[0]
        assert found.status == "feasible" and not found.certified and found.time_limit == 600
        assert found.objective == problem(TALKATIVE).value(np.asarray(found.x)) and not workers()

    @pytest.mark.slow
    def test_where_points_are_easy_to_find_one_is_known_before_the_solver_begins(self, monkeypatch):
        monkeypatch.setattr(solving, "hard_limit", lambda _: 6.0)
        vast = problem("variables: [{name: x, size: 2000, lower: -4, upper: 9}]\nobjective: sum(x)**2 + prod(x[0:9])")
        assert baselines([vast], time_limit=600)[0].status == "feasible"

    def test_one_that_is_killed_at_once_has_found_nothing(self, monkeypatch):
        monkeypatch.setattr(solving, "hard_limit", lambda _: 0.0)
        found = baselines([problem(HOPELESS)], time_limit=600)[0]
        assert found.status == "unknown" and not workers()
        with pytest.raises(FairtrialError, match="no optimum was found within 600 s, and no feasible point"):
            check_solved(found)

    def test_a_worker_that_is_killed_is_replaced(self, monkeypatch):
        monkeypatch.setattr("os.cpu_count", lambda: 1)
        limits = iter([0.0, 600.0])
        monkeypatch.setattr(solving, "hard_limit", lambda _: next(limits))
        found = baselines([problem(HOPELESS), problem(WYNDOR)], time_limit=60)
        assert [one.status for one in found] == ["unknown", "optimal"] and found[1].objective == pytest.approx(36)

    def test_too_little_memory_is_said(self, monkeypatch):
        monkeypatch.setattr(solving, "MEMORY_MB", 400)
        large = "variables: [{name: x, size: 4000, lower: 0, upper: 1}]\nobjective: sum(x)**2 + sum(x)\nconstraints: [sum(x) == 7.5]"
        with pytest.raises(FairtrialError, match=r"p cannot be solved: .*needs more than 400 MB of memory"):
            baselines([problem(large)], time_limit=60)

    def test_what_nobody_wants_any_more_is_stopped(self):
        with pytest.raises(StoppedError, match="what was solved until then is kept"):
            baselines([problem(HOPELESS)], time_limit=600, stopped=lambda: bool(workers()))
        assert not workers()

    def test_where_somebody_waits_nothing_is_solved(self):
        token = later.set(True)
        try:
            with pytest.raises(NotSolvedError, match=r"not solved yet: p1, p2, p3 and 1 more"):
                baselines([problem(WYNDOR.replace("18", str(18 + n)), f"p{n}") for n in range(1, 5)])
        finally:
            later.reset(token)


class TestWithItsParent:
    @contextmanager
    def solving(self, folder: Path) -> Iterator[Any]:
        """A command that solves a hopeless problem, and the process that does it."""
        (folder / "p.yaml").write_text(HOPELESS)
        command = [sys.executable, "-m", "fairtrial", "baseline", "p.yaml", "--time-limit", "600"]
        with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            try:
                yield process, until(lambda: workers(process.pid))
            finally:
                process.kill()

    def test_a_killed_parent_takes_its_workers_with_it(self, tmp_path):
        with self.solving(tmp_path) as (process, own):
            process.send_signal(signal.SIGKILL)
            until(lambda: gone(own))

    def test_ctrl_c_ends_everything_with_a_word(self, tmp_path):
        with self.solving(tmp_path) as (process, own):
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=_PATIENCE)
            assert process.returncode == 130 and errors.decode().strip() == "interrupted"
            until(lambda: gone(own))

    def test_closing_the_input_is_enough(self):
        """Where the kernel does not tell us that the parent has ended, the end of our input does."""
        worker = solving._Worker()
        process = psutil.Process(worker._process.pid)
        try:
            worker._process.stdin.close()
            until(lambda: gone([process]))
        finally:
            worker.kill()

    def test_a_script_needs_no_main_guard(self, tmp_path):
        (tmp_path / "random.py").write_text("raise SystemExit('a file of the folder, not the library')\n")
        script = f"""\
from fairtrial.tracks.optimisation.problem_file import parse_problem
from fairtrial.tracks.optimisation.catalogue import baselines
texts = [{WYNDOR!r}, {WYNDOR.replace("18", "20")!r}]
print([round(one.objective, 6) for one in baselines([parse_problem(text, default_id="p") for text in texts])])
"""
        folder = tmp_path / "scripts"
        folder.mkdir()
        (folder / "plain.py").write_text(script)
        ran = subprocess.run(
            [sys.executable, "scripts/plain.py"], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert (ran.stdout.strip(), ran.stderr) == ("[36.0, 38.0]", "")

    def test_from_a_thread_that_ends(self):
        """The kernel ties a worker to the thread that started it, which may be any of a pool."""
        results: list[Any] = []
        thread = threading.Thread(target=lambda: results.append(baselines([problem(WYNDOR)], time_limit=60)[0]))
        thread.start()
        thread.join()
        assert results[0].certified


class TestReading:
    """Reading a problem takes place in the process of whoever asks, so that it must be cheap."""

    @pytest.mark.parametrize(
        "text",
        [
            "variables: [{name: x}]\nobjective: prod(sin(i*x) for i in range(1, 20000))",
            "variables: [{name: X, size: [100, 100]}]\nobjective: sum(X*sum(X))",
            "variables: [{name: x, size: 1000}]\nobjective: sum(x[i]*x[j] + sum(x) for i in range(999) for j in range(999))",
        ],
    )
    def test_texts_that_mean_endless_terms_are_refused(self, text):
        """With a twentieth of the work that is allowed: it is counted in the same way, and each would take ten seconds."""
        with pytest.raises(ProblemsError, match="too many terms to be read"), limited_work(MAX_WORK // 20):
            problem(text)

    def test_there_is_a_limit_to_the_work_of_reading(self):
        text = (
            "variables: [{name: x, size: 1000}]\nobjective: sum(x[i] + sum(x) for i in range(999) for j in range(999))"
        )
        with pytest.raises(ProblemsError, match="too many terms to be read"):
            problem(text)

    @pytest.mark.parametrize("power", ["9**9**9", "prod(i for i in range(1, 300000))"])
    def test_numbers_of_endless_length_are_not_computed(self, power):
        with pytest.raises(ProblemsError, match="a number is too large"):
            problem(f"variables: [{{name: x}}]\nobjective: x*{power}")

    def test_a_power_of_a_billion_is_read_and_evaluated(self):
        steep = problem("variables: [{name: x, lower: 0, upper: 3}]\nobjective: x**(10**9)")
        assert steep.value([1.0]) == 1 and not steep.value([2.0]) < 1e300  # too large for a number

    def test_objectives_that_are_too_large_are_not_numbers(self):
        cube = problem("variables: [{name: x}]\nobjective: x**3")
        value = cube.value([1e200])
        assert value != value and all(slope != slope for slope in cube.objective.gradient([1e200]))


@pytest.mark.slow
@seed(38)
@settings(
    max_examples=8, deadline=None, database=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate]
)  # fmt: skip
@given(problems())
def test_random_problems_end_and_their_certificates_are_true(document):
    """Two hundred of them: `python -m tests.tracks.optimisation.random_problems 200`."""
    try:
        made = problem(json.dumps(document))
        found = baselines([made], time_limit=2)[0]
    except FairtrialError as error:
        assert str(error)
        return
    assert not workers()
    answer = {**found.as_answer(), "status": found.status, "certified": found.certified}
    assert not second_opinion(document, answer)


def test_a_constraint_that_only_just_holds_at_the_minimum_is_no_obstacle():
    """HiGHS ends there without a solution."""
    text = "variables: [{name: x, size: 10, lower: -10, upper: 10}]\nobjective: sum((x - 3)**2) - 7\nconstraints: [sum(x) >= 30]"
    (found,) = baselines([problem(text)], time_limit=60.0)
    assert found.certified and found.objective == pytest.approx(-7, abs=1e-5)
