"""A store with realistic results, for the pictures of the documentation: everything in it is made up and runs offline.

`python -m docs.showcase FOLDER` writes suites and runs into a folder; `fairtrial serve` there shows them.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
from itertools import cycle
from pathlib import Path
from typing import Any

import yaml

from fairtrial import pipeline
from fairtrial.analyse.run import Run
from fairtrial.config.suite import RunOptions
from fairtrial.core.place import COLUMNS
from fairtrial.store import Store, opinions
from fairtrial.workflows.calibrate import acalibrate
from fairtrial.workflows.vote import Poll

SERVER = Path(__file__).parent.parent / "examples" / "agents" / "graph_server.py"
ITEMS = ("headphones", "desk lamp", "keyboard", "backpack", "coffee grinder", "monitor", "router", "camera")
# category: (question, the facts that a right answer has, a right answer, a half-right one, a wrong one)
QUESTIONS = {
    "returns": [
        ("I opened the box of the {item}. Can I still send it back?", "14 days; 15 % fee",
         "Yes, within 14 days and with all parts. A 15 % fee for restocking applies.",
         "Yes, within 14 days if it is complete.", "Unfortunately, an opened {item} cannot be returned for hygiene reasons."),
        ("The {item} was a gift and I have no receipt. Can I return it?", "order number; voucher",
         "With the giver’s order number you can; the value comes back as a voucher.",
         "Please ask for the order number, then we can look it up.", "Sorry, no return without a receipt."),
    ],
    "billing": [
        ("Put our VAT number on last month’s invoice for the {item}, please.", "corrected invoice; cancelled",
         "Done: a corrected invoice is on its way, and the old one is cancelled.",
         "I can send a corrected invoice for the {item}.", "Invoices cannot be changed once they are issued."),
        ("Why was I charged twice for the {item}?", "reservation; 3 days",
         "The second line is a reservation by your bank; it disappears within 3 days.",
         "One of them is a reservation, not a charge.", "You ordered the {item} twice."),
    ],
    "delivery": [
        ("Tracking says that the {item} was delivered, but nothing is here.", "neighbours; trace",
         "Please look at your neighbours’ first. I have opened a trace with the carrier as well.",
         "Please ask your neighbours, and write to us tomorrow.", "Then it was delivered. Please wait."),
        ("Can the {item} still come this week?", "express; before noon",
         "Yes: choose express and order before noon today.", "Yes, with express delivery.", "Delivery takes five working days."),
    ],
    "account": [
        ("Delete my account but keep the invoice of the {item}.", "deleted; 10 years",
         "Your account is deleted; invoices stay in the archive for 10 years, as the law says.",
         "I have deleted your account.", "I have deleted your account and all invoices."),
    ],
    "technical": [
        ("How do I reset the {item}?", "hold; ten seconds",
         "Hold the button on the back for ten seconds until the light blinks.",
         "Hold the button on the back until it restarts.", "The {item} cannot be reset."),
    ],
}  # fmt: skip
# name: (share of right answers, share of half-right ones, milliseconds, dollars for a million tokens, weak category)
MODELS = {
    "claude-haiku": (0.79, 0.12, 19, (0.1, 0.5), "account"),
    "gpt-6-luna": (0.78, 0.13, 26, (0.1, 0.5), ""),
    "llama-70b": (0.66, 0.16, 14, (0.3, 0.5), "returns"),
    "mistral-small": (0.62, 0.2, 12, (0.15, 0.6), "billing"),
    "qwen3-8b": (0.36, 0.25, 7, (0.05, 0.1), ""),
}
FACTS = '''\
"""Score an answer by the share of the expected facts that it contains."""


def facts(response, expected):
    wanted = [fact.strip() for fact in expected.split(";")]
    found = [fact for fact in wanted if fact.lower() in response.lower()]
    missing = [fact for fact in wanted if fact not in found]
    return {"score": len(found) / len(wanted), "notes": f"missing: {', '.join(missing)}" if missing else "every fact"}
'''


def cases(count: int) -> list[dict[str, Any]]:
    """Questions of customers, each with its facts."""
    kinds = [(category, question) for category, questions in QUESTIONS.items() for question in questions]
    made = []
    numbers: dict[str, int] = {}
    for number, (category, question) in zip(range(count), cycle(kinds), strict=False):
        item = ITEMS[(number // len(kinds)) % len(ITEMS)]
        numbers[category] = numbers.get(category, 0) + 1
        made.append(
            {
                "id": f"{category}-{numbers[category]:03}",
                "input": question[0].format(item=item),
                "expected": question[1],
                "category": category,
                "difficulty": ("easy", "medium", "hard")[number % 3],
                "answers": [text.format(item=item) for text in question[2:]],
            }
        )
    return made


def target(name: str, questions: list[dict[str, Any]], seed: int, faults: float = 0.0) -> dict[str, Any]:
    """A mock of a model that answers with its own share of right answers."""
    right, half, latency, _, weak = MODELS[name]
    place = list(MODELS).index(name)
    answers = {}
    for case in questions:
        common = random.Random(case["id"]).random()  # what is hard for one model is hard for the others
        own = random.Random(f"{seed}/{place}/{case['id']}").random()  # by its place: a new name changes no result
        roll = 0.55 * common + 0.45 * own
        worse = 0.14 if case["category"] == weak else 0.0
        answers[case["id"]] = case["answers"][
            0 if roll < right - worse - 0.05 else 1 if roll < right + half - worse else 2
        ]
    options: dict[str, Any] = {"answers": answers, "latency_ms": latency, "jitter_ms": latency, "seed": seed}
    if faults:
        options["faults"] = {"refused": faults}
    return {"id": name, "target": f"mock:{name}", "options": options}


def support_suite(folder: Path, *, seed: int, count: int = 200, models: int = 5) -> Path:
    """Write the suite of support questions."""
    questions = cases(count)
    names = list(MODELS)[:models]
    document = {
        "name": "support-qa",
        "description": "Questions of customers, answered from the shop's rules",
        "system": "You answer customers of a shop. Be brief, and say only what the rules say.",
        "targets": [target(name, questions, seed, 0.02 if name == "qwen3-8b" else 0.0) for name in names],
        "prices": {name: dict(zip(("input", "output"), MODELS[name][3], strict=True)) for name in names},
        "scorer": {"type": "python", "function": "facts.py:facts"},
        "concurrency": 40,
        "cases": [{key: value for key, value in case.items() if key != "answers"} for case in questions],
    }
    (folder / "facts.py").write_text(FACTS)
    path = folder / "support-qa.yaml"
    path.write_text(yaml.safe_dump(document, sort_keys=False, allow_unicode=True))
    return path


def agent_suite(folder: Path) -> Path:
    """Write a suite of an agent with and without tools, judged on three metrics."""
    questions = cases(40)
    memory = "\n(Answer from memory.)"  # without tools, more answers are half right
    right: dict[str, str] = {}
    for share, ending in ((0.5, memory), (0.85, "")):
        for case in questions:
            known = random.Random(f"{case['id']}{ending}").random() < share
            right[f"{case['input']}{ending}"] = case["answers"][0 if known else 1]
    marks = {case["answers"][number][:30]: mark for case in questions for number, mark in ((0, 5), (1, 3))}
    document = {
        "name": "refund-agent",
        "targets": [
            {
                "id": "agent",
                "target": "mock:agent",
                "options": {
                    "answers": right,
                    "latency_ms": 15,
                    "tool_calls": [{"server": "policy", "tool": "search"}, {"server": "policy", "tool": "fee", "share": 0.5}, {"server": "policy", "tool": "order", "share": 0.2, "error": True}],
                },
            }
        ],
        "mcp_servers": {"policy": {"command": sys.executable, "args": [str(SERVER)]}},
        "conditions": {
            "plain": {"system": "Answer.", "prompt": f"{{{{input}}}}{memory}"},
            "policy-tools": {"system": "Use the tools.", "mcp": ["policy"]},
        },
        "judge": {
            "target": "mock:judge",
            "options": {"verdict": {"marks": marks, "otherwise": 1, "noise": 0.4}},
        },
        "scorer": "golden_judge",
        "repeats": 2,
        "cases": [{key: value for key, value in case.items() if key != "answers"} for case in questions],
    }  # fmt: skip
    path = folder / "refund-agent.yaml"
    path.write_text(yaml.safe_dump(document, sort_keys=False, allow_unicode=True))
    return path


ADVICE = {
    "thorough": "You have **two years of warranty**, and the shop has to prove that the fault is yours.\n\n"
    "1. Write to the shop, with a photo of the {item}, and ask for a repair within 14 days.\n"
    "2. Mention the order number; you need *no* original box.\n3. If they refuse, I can open a case for you.\n\n"
    "Shall I draft the message?",
    "friendly": "Sorry to hear that! Let us get your {item} sorted out.\n\n- Send us a photo and the order number.\n"
    "- We repair it within 14 days, or you get a new one.\n\nYou need no original box.",
    "plain": "A fault within two years is covered by the warranty. Send the {item} back and it will be repaired.",
    "evasive": "Faults of the {item} can have many causes. Please try the following:\n\n- Switch it off and on\n"
    "- Read the manual\n\nIf that does not help, you may contact the manufacturer.",
}  # the longer, the likelier to be chosen


def advice_suite(folder: Path, count: int = 24) -> Path:
    """Write a suite of questions whose answers are a matter of opinion, with a judge: for votes and labels."""
    asked = "My {item} broke after {weeks} weeks. The shop says that it is my fault. What can I do?"
    questions = [
        {"id": f"warranty-{n + 1:03}", "item": item, "input": asked.format(item=item, weeks=n + 2)}
        for n, item in zip(range(count), cycle(ITEMS), strict=False)
    ]
    marks = {"two years of warranty": 9, "order number": 7, "two years": 6}
    document = {
        "name": "warranty-advice",
        "targets": [
            {
                "id": model,
                "target": f"mock:{model}",
                "options": {"answers": {case["id"]: ADVICE[style].format(item=case["item"]) for case in questions}},
            }
            for model, style in zip(MODELS, ADVICE, strict=False)
        ],
        "judge": {"target": "mock:judge", "options": {"verdict": {"marks": marks, "otherwise": 3, "noise": 1.5}}},
        "scorer": "llm_judge",
        "concurrency": 40,
        "cases": [{"id": case["id"], "input": case["input"]} for case in questions],
    }  # fmt: skip
    path = folder / "warranty-advice.yaml"
    path.write_text(yaml.safe_dump(document, sort_keys=False, allow_unicode=True))
    return path


def vote(run: Run, voters: dict[str, int]) -> None:
    """Let people vote, so many times each: they like long answers, and not always the same."""
    chance = random.Random(7)
    for voter, count in voters.items():
        poll = Poll(run, voter, seed=len(voter))
        for _ in range(count):
            if ballot := poll.next():
                gap = (len(ballot.left) - len(ballot.right)) / 160 + chance.gauss(0, 1)
                poll.cast(ballot, "tie" if abs(gap) < 0.25 else "left" if gap > 0 else "right")


def label(run: Run, count: int) -> None:
    """Label answers a little more strictly than the judge."""
    chance = random.Random(5)
    rows = []
    for place, trial in run.placed_trials(0, count):
        if trial.score is not None:
            value = min(1.0, max(0.0, trial.score - 0.06 + chance.gauss(0, 0.08)))
            rows.append(
                {**dict(zip(COLUMNS, place, strict=True)), "labeller": "ada", "value": round(value, 1), "note": None}
            )
    opinions.add_labels(run.store, run.id, run.record.scoring, rows)


SOLVER = '''\
"""A stand-in for a model that solves problems better where it is asked to think."""

import json
import random
from pathlib import Path

KNOWN = json.loads((Path(__file__).parent / "solutions.json").read_text())


def solve(input):
    text, solution = next((text, solution) for text, solution in KNOWN.items() if text in input)
    dice = random.Random(input)
    care = 0.8 if "step" in input else 0.35 if len(input) - len(text) < 30 else 0.6
    if dice.random() < 0.05:
        return "I think that x is about zero."
    solution = json.loads(solution)
    if solution.get("x") and dice.random() > care:
        solution["x"] = [round(value * dice.uniform(0.3, 1.0), 3) for value in solution["x"]]
    return json.dumps(solution)
'''


STYLES = ["polite", "strict", "terse", "chain_of_thought"]


def styles_suite(folder: Path) -> Path:
    """Write a suite that compares prompt styles on optimisation problems."""
    from fairtrial.tracks.optimisation.catalogue import ProblemSelection, baselines, select
    from fairtrial.tracks.optimisation.text import statement

    problems = [problem for problem in select(ProblemSelection()) if problem.n == 10]
    solutions = {
        statement(problem): json.dumps(baseline.as_answer())
        for problem, baseline in zip(problems, baselines(problems), strict=True)
    }
    (folder / "solutions.json").write_text(json.dumps(solutions))
    (folder / "solver.py").write_text(SOLVER)
    document = {
        "name": "prompt-styles",
        "targets": [{"id": "m", "target": "python:solver.py:solve"}],
        "suite": {"kind": "optimisation", "ids": [problem.id for problem in problems], "styles": STYLES},
        "repeats": 3,
    }
    path = folder / "prompt-styles.yaml"
    path.write_text(yaml.safe_dump(document))
    return path


# A text in each of the built-in samples, and the mark that three judges give it, 0 to 10.
SAMPLES = {
    "Sydney": (0, 2, 5), "Canberra": (10, 9, 6), "add the two together": (7, 8, 7), "lovely question": (8, 9, 9),
    "boil an egg": (0, 2, 4), "Mona Lisa": (0, 1, 3), "hexagonal": (10, 10, 9), "physical properties": (3, 6, 7),
}  # fmt: skip
JUDGES = {"gpt-6.1-sol": 0.3, "claude-haiku": 0.8, "qwen3-8b": 2.0}  # with the noise of their marks


def judge_suite(folder: Path) -> Path:
    """Write a suite that is scored by a panel: one judge can be relied on, one is lenient, one guesses."""
    questions = cases(24)
    answers = {case["id"]: case["answers"][number % 3] for number, case in enumerate(questions)}
    facts = {"15 %": 9, "voucher": 9, "cancelled": 8, "3 days": 9, "trace": 8, "noon": 7}
    judges = []
    for number, (name, noise) in enumerate(JUDGES.items()):
        marks = {text: given[number] for text, given in SAMPLES.items()} | (facts if noise < 1 else {})
        options = {"verdict": {"marks": marks, "otherwise": 4, "noise": noise}}
        judges.append({"id": name, "target": f"mock:{name}", "options": options})
    document = {
        "name": "tone-of-support",
        "targets": [
            {"id": name, "target": f"mock:{name}", "options": {"answers": answers}} for name in ("formal", "warm")
        ],
        "judges": judges,
        "panel": {"judgements": 2},
        "scorer": "llm_judge",
        "repeats": 2,
        "cases": [{key: value for key, value in case.items() if key != "answers"} for case in questions],
    }
    path = folder / "tone-of-support.yaml"
    path.write_text(yaml.safe_dump(document, sort_keys=False, allow_unicode=True))
    return path


async def build(folder: Path) -> dict[str, str]:
    """Fill a folder with suites and its store with runs; return the ids of the runs by name."""
    folder.mkdir(parents=True, exist_ok=True)
    store = Store(f"sqlite:///{folder / '.fairtrial' / 'fairtrial.db'}")
    runs: dict[str, str] = {}
    for seed in (1, 2, 3):
        suite = pipeline.load(support_suite(folder, seed=seed, models=5 if seed == 3 else 3))
        runs["support"] = (await pipeline.arun(suite, store=store)).id
    small = pipeline.load(support_suite(folder, seed=3), RunOptions(limit=60))
    for number in range(3):
        del number
        runs["series"] = (await pipeline.arun(small, store=store, series=pipeline.SeriesPlan("nightly", 3))).id
    runs["styles"] = (await pipeline.arun(pipeline.load(styles_suite(folder)), store=store)).id
    runs["agent"] = (await pipeline.arun(pipeline.load(agent_suite(folder)), store=store)).id
    advice = await pipeline.arun(pipeline.load(advice_suite(folder)), store=store)
    runs["advice"] = advice.id
    vote(advice, {"ada": 42, "ben": 27})
    label(advice, 21)
    runs["panel"] = (await pipeline.arun(panel := pipeline.load(judge_suite(folder)), store=store)).id
    for judge in panel.settings.judges:
        await acalibrate(judge, runs=3, store=store)
    store.set_tag("baseline", runs["support"])
    return runs


if __name__ == "__main__":
    print(json.dumps(asyncio.run(build(Path(sys.argv[1]))), indent=2))
