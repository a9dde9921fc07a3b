"""The library as a Python user meets it."""

import subprocess
import sys

import pytest

import fairtrial as ft


def test_importing_fairtrial_imports_nothing_else():
    code = (
        "import sys, fairtrial; print([m for m in ('msgspec', 'numpy', 'aiohttp', 'sqlalchemy') if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_every_public_name_is_there():
    for name in ft.__all__:
        assert getattr(ft, name) is not None
    with pytest.raises(AttributeError):
        ft.no_such_name  # noqa: B018


def test_a_run_from_python(write_suite):
    path = write_suite(
        targets=[{"id": "a", "target": "mock:x", "options": {"answer": "Paris"}}, {"id": "b", "target": "mock:echo"}],
        cases=[{"id": str(n), "input": "Paris?", "expected": "Paris"} for n in range(4)],
        repeats=2,
    )
    run = ft.run(ft.load_suite(path))
    assert run.status == "completed" and run.id
    numbers = ft.aggregate(run)
    assert list(numbers) == ["a", "b"]
    assert (numbers["a"].mean, numbers["a"].count, numbers["a"].total_weight) == (1.0, 4, 4.0)
    assert [arm.arm for arm in run.arms] == ["a", "b"]
    assert len(list(run.trials())) == 16
    frame = run.frame()
    assert frame.groupby("arm")["score"].mean()["a"] == 1.0 and len(frame) == 16
    assert ft.open_run().id == run.id
    assert ft.rescore(run, "boolean").arms[1].aggregate.mean == 1.0
    assert ft.resume(run).status == "completed" and ft.retry(run).status == "completed"


async def test_a_run_inside_a_running_loop(write_suite):
    assert (await ft.arun(write_suite())).status == "completed"
    assert ft.run(str(write_suite())).status == "completed"  # as in a notebook


def test_scores_from_python():
    assert ft.score("numeric", response="about 42", expected="42", tolerance=0.01).value == 1.0
    with pytest.raises(ft.FairtrialError, match="did you mean `numeric`"):
        ft.score("numerik", response="x")
    with pytest.raises(ft.FairtrialError, match="did you mean `tolerance`"):
        ft.score("numeric", response="1", expected="1", tolerence=1)
