"""A user's script that uses every verb; mypy checks it as strictly as possible, and the tests run it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import fairtrial as ft

JUDGED = {
    "name": "judged",
    "targets": ["mock:echo", {"target": "mock:other", "options": {"answer": "y"}}],
    "cases": [ft.Case("x", expected="x")],
}

SPAN = """{"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "1", "spanId": "2", "name": "chat", "attributes": [
{"key": "gen_ai.request.model", "value": {"stringValue": "m"}},
{"key": "gen_ai.prompt.0.role", "value": {"stringValue": "user"}},
{"key": "gen_ai.prompt.0.content", "value": {"stringValue": "Hi"}},
{"key": "gen_ai.completion.0.content", "value": {"stringValue": "Hello"}}]}]}]}]}"""


def answer(question: str) -> str:
    return "Paris" if "France" in question else "no idea"


async def slow_answer(input: str, system: str) -> str:
    return input + system


def right(response: str, expected: str) -> dict[str, float]:
    return {"score": float(response == expected), "length": float(len(response))}


def suite() -> ft.Suite:
    cases = [
        ft.Case(f"Capital of {land}, number {n}?", expected="Paris", id=f"{land}-{n}", category=land)
        for land in ("France", "Spain")
        for n in range(6)
    ]
    return ft.Suite(
        name="capitals",
        targets=[answer, {"target": slow_answer, "id": "slow", "params": {"temperature": 0}}, "mock:echo"],
        scorer=right,
        cases=[*cases, {"input": "Capital of France?", "expected": ["Paris", "Lutetia"], "category": "France"}],
        repeats=2,
    )


def main(folder: Path) -> None:
    made = suite()
    run: ft.Run = ft.run(made)
    series: ft.RunSeries = ft.run(made, runs=2, progress=False)
    first: float | None = ft.aggregate(run)["answer"].mean
    assert first is not None and 0 <= first <= 1
    assert ft.multi_run(series)["answer"].mean == first
    assert ft.compare_models(series, "answer", "slow") is not None
    pair: ft.Comparison = ft.compare(run, "answer", "slow", margin=0.05)
    every: ft.Comparisons = ft.compare(run)
    assert pair.difference is not None and len(every.pairs) == 3
    ranking: ft.Ranking = ft.rank(run, by="scores")
    assert ranking.places[0].label == "answer"
    plan: ft.Power = ft.power(run, delta=3)
    assert plan.pairs[0].cases_needed[0][0] == 0.03
    used: ft.ToolReport = ft.tools(run)
    assert not used.gains
    audit: ft.Audit = ft.audit(JUDGED, skip=["date"])
    assert audit.sound and audit.findings == ()
    try:
        ft.styles(run)
    except ft.FairtrialError as error:  # its cases are no problems
        assert "optimisation" in str(error)
    sources: ft.Variance = ft.variance(run)
    assert sources.arms[0].label == "answer"
    gate: ft.Gate = ft.gate(run, min_score=10, arms=["answer"])
    assert gate.result == "passed" and gate
    assert ft.gate(series, against=run, margin=5, these_cases=True)
    worth: ft.CaseAnalysis = ft.cases(run)
    ids: list[str] = ft.cases(run, subset=3)
    assert len(worth.cases) == 13 and len(ids) == 3
    kinds: ft.KindMeans = run.by("category")
    assert kinds.means["category"]["Spain"]["answer"].mean == 0
    sample: ft.Labels = ft.label(run, sample=2, to=folder / "marks.csv", seed=1)
    assert sample.answers > 0
    trial = next(run.trials())
    assert ft.label(run, {trial.trial_id: True}).answers == 1
    written: Path = ft.report(run, folder / "report.html")
    assert written.exists() and ft.export(run, folder / "trials.jsonl").exists()
    again: ft.Run = ft.rescore(run, lambda response: len(response) > 3)
    assert ft.resume(again).status == "completed" == ft.retry(again.id).status
    finished: ft.RunSeries = ft.resume(series)
    assert len(finished) == len(series) and isinstance(ft.resume(finished.id), ft.RunSeries)
    assert ft.open_run(run.id[:12]).id == run.id
    one = ft.score(right, response="Paris", expected="Paris")
    assert isinstance(one, ft.Score) and one.value == 1
    pairs: ft.PairsSummary = ft.pairwise(ft.run(JUDGED), judge="mock:echo")
    assert pairs.run_id
    calibration: ft.Calibration = ft.calibrate("mock:echo")
    assert (
        calibration.rating
        and ft.calibrate(suite={**JUDGED, "judge": "mock:echo"}).rating
        and ft.calibrate(answer).rating
    )
    assert ft.pairwise(ft.run(JUDGED), judge=answer).run_id
    marks = [{"id": n, "model": model, "mark": n % 2} for n in range(4) for model in ("a", "b")]
    table = ft.import_results(marks, case="id", arm="model", score="mark")
    assert isinstance(table, ft.Run) and len(ft.compare(table).pairs) == 1
    (folder / "spans.jsonl").write_text(SPAN)
    assert ft.import_traces(folder / "spans.jsonl", folder / "asked.yaml", target="mock:echo").cases == 1
    ft.export(run, folder / "spans.otlp.json")
    logged = ft.import_log(folder / "spans.otlp.json", store=str(folder / "logged.db"))
    assert isinstance(logged, ft.Run) and logged.status == "completed"
    asyncio.run(twins(made, run, folder))


async def twins(made: ft.Suite, run: ft.Run, folder: Path) -> None:
    again = await ft.arun(made, options=None)
    series = await ft.arun(made, runs=2)
    assert (await ft.aaggregate(again))["answer"].mean == (await ft.amulti_run(series))["answer"].mean
    assert (await ft.acompare(again, "answer", "slow")).count == 13 and (await ft.acompare(again)).pairs
    assert await ft.acompare_models(series, "answer", "slow") is not None
    assert (await ft.arank(again)).places and (await ft.apower(again, delta=[3, 5])).pairs
    assert (
        (await ft.avariance(again)).arms
        and not (await ft.atools(again)).gains
        and await ft.agate(again, min_score=10, arms=["answer"])
    )
    assert (await ft.aaudit(made, probes=["answers"])).sound
    try:
        await ft.astyles(again)
    except ft.FairtrialError as error:
        assert "optimisation" in str(error)
    assert (await ft.acases(again)).cases and await ft.acases(again, subset=2)
    assert (await ft.alabel(again)).answers == 0
    assert (await ft.areport(again, folder / "two.html")).exists()
    assert (await ft.aexport(again, folder / "two.csv")).exists()
    assert (await ft.arescore(again)).status == "completed"
    assert (await ft.aresume(again)).status == (await ft.aretry(again)).status
    assert (await ft.aopen_run(run.id)).id == run.id
    assert (await ft.ascore("match", response="a", expected="a")) is not None
    assert (await ft.apairwise(await ft.arun(JUDGED), judge="mock:echo")).run_id
    assert (await ft.acalibrate("mock:echo")).rating
    table = await ft.aimport_results([{"case": "a", "arm": "m", "score": 1}])
    assert isinstance(table, ft.Run)
    logged = await ft.aimport_log(folder / "spans.otlp.json", store=str(folder / "logged.db"))
    assert isinstance(logged, ft.Run)
    assert (await ft.aimport_traces(folder / "spans.jsonl", folder / "again.yaml", sample=1)).path.exists()
    try:
        await ft.arun("nothing.yaml")
    except ft.errors.FairtrialError as error:
        assert "there is no file" in str(error)
    assert ft.plugins.Scorer is not None


if __name__ == "__main__":
    main(Path())
