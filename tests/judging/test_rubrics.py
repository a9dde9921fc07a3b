"""`golden_judge` with our rubric and with k-eval's: what the judge is told, and what people are told about it."""

from __future__ import annotations

import json

import pytest

from fairtrial.cli.main import _run
from fairtrial.present.words.arm_notes import notes
from fairtrial.present.words.variables import variables
from fairtrial.reports.json import document
from fairtrial.scorers.golden_judge import _TASKS, METRICS, GoldenJudge
from fairtrial.workflows.resume import arescore

K_EVAL = {"type": "golden_judge", "rubric": "k-eval"}
REPLY = json.dumps({**{name: {"reasoning": "r", "score": 5} for name in METRICS}, "unverified_claims": []})

# Grade by grade, what k-eval's own descriptions say; each element of meaning is one word or more of ours.
MEANING = {
    "factual_adherence": {
        0: [
            "facts",
            "commands",
            "right and safe",
            "fit the space of solutions",
            "without contradicting",
            "do not exist",
        ],
        1: ["directly contradicts", "harm", "destructive commands", "wrong flags", "wrong order", "critical"],
        2: ["major factual errors", "need not be plainly dangerous", "failure or confusion", "largely wrong"],
        3: ["core", "rightly", "context or commands", "noticeably wrong", "confusing"],
        4: ["every core component", "safe", "plausible", "imprecise in minor ways", "no consequence"],
        5: ["every core component", "right in every fact", "safe", "not contradict", "in any way"],
    },
    "completeness": {
        0: ["essential facts", "commands, parameters and steps", "only", "Additional context costs nothing"],
        1: ["none of the facts", "commands", "concepts"],
        2: ["one or two minor details", "lacks the primary answer", "core command"],
        3: ["has the primary answer", "critical parameters", "flags", "important facts of the context", "explicitly"],
        4: ["primary answer", "almost all key facts", "minor detail", "not essential"],
        5: ["all key facts", "primary commands", "essential details", "still a 5", "additional, helpful content"],
    },
    "helpfulness_and_clarity": {
        0: [
            "clear",
            "easy to take in",
            "acted on",
            "formatting that fits",
            "code blocks",
            "burying the primary answer",
        ],
        1: ["wall of text", "no formatting", "filler", "irrelevant information", "obscured"],
        2: ["buried deep", "needless prose", "inconsistent"],
        3: ["helpful", "right answer", "repeats itself", "fluff", "Better formatting", "scan"],
        4: ["direct", "easy to scan", "easy to read", "introduction or conclusion", "plain to see"],
        5: ["perfectly fitted", "excellent", "scan", "Every sentence", "critical context", "no useless fluff"],
    },
}


def grades(task: str, metric: str) -> dict[int, str]:
    """Return what is said about a metric (0), and about each of its grades."""
    part = " ".join(task.split(f"{metric} — ")[1].split("\n\n")[0].split())
    for grade in range(1, 6):
        part = part.replace(f" {grade}: ", f"\n{grade}: ")
    first, *others = part.split("\n")
    return {0: first, **{int(line[0]): line[3:] for line in others}}


@pytest.mark.parametrize("metric", METRICS)
def test_every_element_of_k_evals_grades_is_there(metric):
    found = grades(_TASKS["k-eval"], metric)
    assert list(found) == [0, 1, 2, 3, 4, 5]
    for grade, elements in MEANING[metric].items():
        assert not [element for element in elements if element not in found[grade]], (grade, found[grade])


def test_what_cannot_be_verified_is_listed_and_not_failed():
    told = " ".join(_TASKS["k-eval"].split())
    assert "cannot tell whether something additional is right" in told and "do not fail it for that" in told
    assert "list it under unverified_claims, and mark how right the core facts of the golden answer are" in told


def test_the_rubric_is_part_of_the_judges_prompt():
    """Ours stays the default, and verdicts that were given with it before there was another one still count."""
    ours, theirs = GoldenJudge().prompt_hash(""), GoldenJudge(rubric="k-eval").prompt_hash("")
    assert ours == GoldenJudge(rubric="fairtrial").prompt_hash("") == "31238ff2f4cdc0a1"
    assert theirs != ours


async def test_another_rubric_is_asked_for_and_the_first_is_not_bought_again(run_suite, model_server):
    state = await model_server(answer=REPLY)
    target = {"id": "t", "target": "mock:t", "options": {"answer": "right"}}
    run = await run_suite(
        targets=[target], scorer="golden_judge", judge="openai:m", cases=[{"input": "q", "expected": "a"}]
    )

    def systems():
        return [" ".join(body["messages"][0]["content"].split()) for body in state.bodies]

    assert len([text for text in systems() if "made up" in text]) == 1
    assert not [text for text in systems() if "wrong flags" in text]
    asked = len(state.bodies)
    run = await arescore(run.id, scorer=K_EVAL, store=run.store)
    assert len([text for text in systems()[asked:] if "wrong flags" in text]) == 1
    (judgement,) = run.judgements(next(run.trials()).trial_id)
    assert judgement["prompt_hash"] == GoldenJudge(rubric="k-eval").prompt_hash("")
    asked = len([text for text in systems() if "golden answer" in text])
    await arescore(run.id, scorer={"type": "golden_judge"}, store=run.store)
    await arescore(run.id, scorer=K_EVAL, store=run.store)
    assert len([text for text in systems() if "golden answer" in text]) == asked


async def test_marks_are_k_evals_only_where_its_rubric_was_used(run_suite, capsys):
    cases = [{"input": f"Say {n}", "expected": f"Say {n}"} for n in range(3)]
    judge = {"target": "mock:judge", "options": {"verdict": {"otherwise": 4}}}
    ours = await run_suite(judge=judge, scorer="golden_judge", cases=cases)
    theirs = await run_suite(judge=judge, scorer=K_EVAL, cases=cases)
    parts = [{"scorer": "golden_judge"}, {"scorer": K_EVAL}]
    both = await run_suite(judge=judge, scorer={"type": "weighted", "scorers": parts}, cases=cases)
    said = {run.id: " ".join(notes(run.summary())) for run in (ours, theirs, both)}
    assert "k-eval" not in said[ours.id] and document(ours.summary())["judging"]["rubrics"] == ["fairtrial"]
    assert "Judged by a model with k-eval's rubric (" in said[theirs.id]
    assert document(theirs.summary())["judging"]["rubrics"] == ["k-eval"]
    assert "with k-eval's rubric, where the scorer says so" in said[both.id]
    assert document(both.summary())["judging"]["rubrics"] == ["fairtrial", "k-eval"]
    tables = [{one.name: one.value for one in variables(run)}["scorers"] for run in (ours, theirs)]
    assert tables == ["golden_judge", "golden_judge (rubric: k-eval)"]
    assert _run(["show", theirs.id, "--store", str(theirs.store.path)]) == 0
    assert "judged by mock:judge with k-eval's rubric" in " ".join(capsys.readouterr().out.split())
    await arescore(ours.id, scorer=K_EVAL, store=ours.store)
    assert _run(["show", ours.id, "--context", "--store", str(ours.store.path)]) == 0
    assert "golden_judge (rubric: k-eval)  (current)" in capsys.readouterr().out


def test_no_other_rubric_is_known(write_suite, capsys):
    path = write_suite(judge="mock:echo", scorer={"type": "golden_judge", "rubric": "k_eval"})
    assert _run(["validate", str(path)]) == 1
    assert "rubric" in capsys.readouterr().err
