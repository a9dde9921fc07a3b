"""What `benchmarks.web` looks at: a store with one large run and small ones of every kind, and every page of them."""

from __future__ import annotations

import json
from pathlib import Path

from docs import showcase
from fairtrial import pipeline
from fairtrial.store import Store, browsing

_KINDS = ("math", "logic", "geo", "history")
_LEVELS = ("easy", "medium", "hard")
_WORDS = "First I look at what is given, then I add both numbers digit by digit and check the sum once more. "
PAGED = ("", "?page=100", "?show=failed", "?show=unscored", "?show=differing", "?show=low", "?show=claims",
         "?show=disagreeing", "?sort=spread&descending=True", "?sort=2", "?text=777", "?category=geo&difficulty=hard")  # fmt: skip
OWN = ("/cases/500", "/cases/500/3/2", "/cases/500/3/2?show=failed", "/share", "/label", "/vote?by=ada", "/vote?by=ben",
       "/board", "/pages", "/brief")  # fmt: skip


def suite(folder: Path, trials: int) -> str:
    """Five arms, two repeats, answers of about 500 characters, and as many cases as it takes to come to these trials.

    The last arm is right on five cases of nine, the others on one of them each.
    """
    with (folder / "cases.jsonl").open("w") as file:
        for number in range(trials // 10):
            case = {"id": f"c{number}", "q": f"Question {number}: how much is {number} and {number % 97}?"}
            case |= {"a": str(7 * min(number % 9, 4)), "cat": _KINDS[number % 4], "level": _LEVELS[number % 3]}
            file.write(json.dumps(case) + "\n")
    arms = "\n".join(
        f"  - {{id: arm-{n}, target: mock:arm-{n}, options: {{answer: '{_WORDS * 5} So it is {n}, or perhaps {n * 7}.', "
        f"seed: {n}, faults: {{refused: 0.02}}}}}}"
        for n in range(5)
    )
    columns = "id: id, input: q, expected: a, category: cat, difficulty: level"
    return (
        f"name: large\ntargets:\n{arms}\nscorer: numeric\nrepeats: 2\nconcurrency: 50\n"
        f"dataset: {{path: cases.jsonl, {columns}}}\n"
    )


async def fill(folder: Path, trials: int) -> dict[str, str]:
    """Fill a folder with suites and its store with runs; return the ids of the runs by name."""
    runs = await showcase.build(folder)
    (folder / "large.yaml").write_text(suite(folder, trials))
    store = Store(str(folder / ".fairtrial/fairtrial.db"))
    runs["large"] = (await pipeline.arun(pipeline.load(folder / "large.yaml"), store=store)).id
    runs["calibration"] = str(browsing.calibrations_page(store, 0, 1)[0][0]["id"])
    return runs


def addresses_of_one(run: str, file: str = "large.yaml") -> list[str]:
    """Every page that one large run with its suite is enough for."""
    rest = [
        "/",
        "/suites",
        f"/suites/edit?file={file}",
        "/new",
        f"/new?file={file}",
        "/runs",
        "/plan",
        f"/plan?run={run}",
    ]
    rest += ["/compare", f"/compare?runs={run}", f"/compare?runs={run}&a=arm-0&b=arm-1", "/board", "/arena", "/judges"]
    return [*rest, "/optimisation", *(f"/runs/{run}{end}" for end in (*PAGED, *OWN))]


def addresses(runs: dict[str, str]) -> list[str]:
    """Every page, those about runs for the large one, and those that it has nothing for, for a small one."""
    rest = ["/suites/edit?file=support-qa.yaml", f"/judges/{runs['calibration']}"]
    rest += ["/optimisation/box_qp-10", f"/runs/{runs['styles']}/styles", f"/runs/{runs['agent']}", "/series/nightly"]
    rest += [f"/runs/{runs['panel']}", f"/runs/{runs['advice']}/label", f"/runs/{runs['advice']}/vote?by=eve"]
    rest += [f"/runs/{runs['advice']}/board", f"/runs/{runs['support']}", "/board?suite=support-qa"]
    return [*addresses_of_one(runs["large"]), *rest]


def waited_for(runs: dict[str, str]) -> list[str]:
    """What is worked out beside the pages: the requests by which pages wait for it."""
    run = f"/runs/{runs['large']}"
    ends = ("/result", "/details", "/variance", "/label/result?wait=1", "/vote/board?wait=1", "/board?wait=1")
    rest = [f"/compare?runs={runs['large']}&wait=1", f"/compare?runs={runs['large']}&a=arm-0&b=arm-1&wait=1"]
    rest += ["/board?wait=1", f"/plan?run={runs['large']}&wait=1", "/arena/votes", "/judges/in-runs", "/home/suites"]
    rest += [f"/runs/{runs['styles']}/styles/result", "/board?suite=support-qa&wait=1"]
    return [*(f"{run}{end}" for end in ends), *rest]
