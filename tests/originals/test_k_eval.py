"""k-eval's own configuration and result files through our workflow; every number held against its own definitions."""

from __future__ import annotations

import asyncio
import csv
import json
import re
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from aiohttp import web

from fairtrial import pipeline
from fairtrial.analyse.run import Run
from fairtrial.present.words.variables import variables
from fairtrial.store import Store
from tests import forks
from tests.originals import definitions_k_eval as k_eval
from tests.originals.agreement import agree
from tests.scripted import Say, Turn, look_up

FILES = Path(__file__).parent / "files" / "k_eval"
FACTS = Path(__file__).parents[1] / "servers" / "facts.py"
CONFIG = yaml.safe_load((FILES / "config.yaml").read_text("utf-8"))
CONDITIONS = ["baseline", "with-graph", "with-graph-and-rag"]
SEARCH_KEY = "search-test-key-0001"
TRIED = Say('{"reasoning": "It is.", "score": 10}')  # what a judge says to the question with which it is tried


class Ended(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str


@pytest.fixture
def folder(tmp_path):
    """A fresh folder with k-eval's files."""
    place = tmp_path / "study"
    shutil.copytree(FILES, place)
    return place


@pytest.fixture
def fairtrial(folder, monkeypatch):
    """Type a command in that folder, at 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("FAIRTRIAL_STORE", str(folder / "runs.db"))
    monkeypatch.setenv("FACTS_SERVER", str(FACTS))
    monkeypatch.setenv("SEARCH_API_KEY", SEARCH_KEY)

    async def type_in(*words: Any) -> Ended:
        process = forks.start(*words, folder=folder)
        out, err = await asyncio.to_thread(process.communicate)
        return Ended(process.wait(), out.decode(), err.decode())

    return type_in


@pytest.fixture
async def rag(monkeypatch) -> AsyncIterator[list[str]]:
    """An MCP server behind HTTP; yields the `Authorization` of every request."""
    seen: list[str] = []
    tool = {"name": "search", "description": "Search the documents.", "inputSchema": {"type": "object"}}

    async def answer(request: web.Request) -> web.Response:
        seen.append(request.headers.get("Authorization", ""))
        asked = await request.json()
        if "id" not in asked:
            return web.Response(status=202)
        results = {
            "initialize": {
                "protocolVersion": asked.get("params", {}).get("protocolVersion"),
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "rag", "version": "1"},
            },
            "tools/list": {"tools": [tool]},
            "tools/call": {"content": [{"type": "text", "text": "nothing found"}]},
        }
        return web.json_response({"jsonrpc": "2.0", "id": asked["id"], "result": results.get(asked["method"], {})})

    app = web.Application()
    app.router.add_post("/mcp", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    monkeypatch.setenv("RAG_PORT", str(runner.addresses[0][1]))
    yield seen
    await runner.cleanup()


def latest(folder: Path) -> Run:
    """Return the latest run of a folder."""
    return Run.find(store=Store(str(folder / "runs.db")))


def said_of(response: str) -> tuple[dict[str, int], tuple[str, ...]]:
    """Return the marks that an answer deserves, and the claim in it that nobody can verify."""
    marks = [int(mark) for mark in re.search(r"<(\d)(\d)(\d)>", response).groups()]
    claims = re.findall(r"It also holds on line \d\.", response)
    return dict(zip(k_eval.METRICS, marks, strict=True)), tuple(claims)


def judge(turn: Turn) -> Say:
    """The judge of a run: it sees the answer between its marks, and says what that answer deserves."""
    if "<<ANSWER TO JUDGE" not in turn.question:
        return TRIED
    marks, claims = said_of(turn.question.split("<<ANSWER TO JUDGE", 1)[1])
    verdict = {name: {"reasoning": f"{name} deserves {mark}", "score": mark} for name, mark in marks.items()}
    return Say(json.dumps({**verdict, "unverified_claims": list(claims)}))


# -- the configuration, as it is -----------------------------------------------------------------


@pytest.mark.slow
async def test_the_example_runs_as_it_is(folder, fairtrial, rag, model, monkeypatch):
    """With the real Claude Code and a judge on Vertex AI, which k-eval's documentation uses; two questions of fifty."""
    judged: list[Turn] = []

    def script(turn: Turn) -> Say:
        if "golden answer" not in turn.system:
            return look_up(turn) if "judge" not in turn.system else TRIED
        judged.append(turn)
        right = "4711" in turn.question.split("<<ANSWER TO JUDGE", 1)[1]
        mark = {"reasoning": "so", "score": 5 if right else 1}
        return Say(json.dumps({**dict.fromkeys(k_eval.METRICS, mark), "unverified_claims": []}))

    served = await model(script)
    for name, value in {
        "VERTEX_BASE_URL": served.url,
        "VERTEX_ACCESS_TOKEN": "tok-0001",
        "VERTEXAI_PROJECT": "p",
        "VERTEXAI_LOCATION": "global",
        "DISABLE_PROMPT_CACHING": "1",
    }.items():
        monkeypatch.setenv(name, value)
    ended = await fairtrial("run", "config.yaml", "--first", "2", "--repeats", "1", "--json")
    assert ended.code == 0, ended.err
    document = json.loads(ended.out)
    agree("conditions", [arm["condition"] for arm in document["arms"]], list(CONFIG["conditions"]))
    assert document["status"] == "completed"
    means = {
        arm["condition"]: {name: arm["metrics"][name]["mean"] for name in k_eval.METRICS} for arm in document["arms"]
    }
    agree("marks", means, {name: dict.fromkeys(k_eval.METRICS, 1 if name == "baseline" else 5) for name in CONDITIONS})
    agents = [body for body in served.bodies if "golden answer" not in json.dumps(body.get("system", ""))]
    judges = [body for body in served.bodies if body not in agents]
    agree("judge calls", len(judges), k_eval.size(2, 3, 1)["judge calls"])
    agree("temperature", {body["temperature"] for body in judges}, {CONFIG["judge"]["temperature"]})
    assert "cache_control" not in json.dumps(agents)
    for name, entry in k_eval.filled(
        CONFIG, {"FACTS_SERVER": str(FACTS), "RAG_PORT": "1", "SEARCH_API_KEY": SEARCH_KEY}
    )["conditions"].items():
        own = [body for body in agents if entry["system_prompt"].strip() in json.dumps(body["system"])]
        offered = {
            tool["name"].split("__")[1] for body in own for tool in body.get("tools") or () if "__" in tool["name"]
        }
        agree(f"servers of {name}", offered, set(entry["mcp_servers"]))
        builtin = {tool["name"] for body in own for tool in body.get("tools") or () if "__" not in tool["name"]}
        assert own and not builtin & {"Bash", "Read", "Write", "Edit", "WebFetch", "WebSearch"}
    assert rag and set(rag) == {f"Bearer {SEARCH_KEY}"}
    stored = (folder / "runs.db").read_bytes()
    assert SEARCH_KEY.encode() not in stored and b"tok-0001" not in stored
    run = latest(folder)
    used = {trial.arm: trial.tool_calls for trial in run.trials()}
    assert used["agent/baseline"] == 0 and used["agent/with-graph"] == used["agent/with-graph-and-rag"] == 1
    assert all("4711" in call["result"] for trial in run.trials() for call in (trial.trace["tool_calls"] or ()))
    assert not any("The code is 4711" in turn.question.split("<<ANSWER TO JUDGE")[0] for turn in judged)


def test_the_configuration_means_what_it_says(folder, fairtrial, monkeypatch):
    for name, value in (("RAG_PORT", "1"), ("GOOGLE_CLOUD_PROJECT", "p"), ("ANTHROPIC_API_KEY", "sk-test-key-0001")):
        monkeypatch.setenv(name, value)
    suite = pipeline.load(folder / "config.yaml")
    agree("name", suite.name, CONFIG["name"])
    agree("version", yaml.safe_load(suite.text)["description"], f"version {CONFIG['version']}")
    agree("conditions", [arm.condition.name for arm in suite.arms], list(CONFIG["conditions"]))
    for arm in suite.arms:
        entry = CONFIG["conditions"][arm.condition.name]
        agree("system prompt", arm.condition.system, entry["system_prompt"])
        agree("servers", [server.name for server in arm.condition.mcp], entry["mcp_servers"])
        agree("tool use", arm.condition.require_tool_use, entry.get("require_mcp_tool_use", False))
        agree("tool success", arm.condition.require_tool_success, entry.get("require_mcp_tool_success", False))
        agree("agent", arm.target.model, CONFIG["agent"]["model"])
        agree("repetitions", arm.repeats, CONFIG["execution"]["num_repetitions"])
    agree("at once", suite.settings.concurrency, CONFIG["execution"]["max_concurrent"])
    agree("attempts", suite.settings.retry.attempts, CONFIG["execution"]["retry"]["max_attempts"])
    agree("first wait", suite.settings.retry.wait, CONFIG["execution"]["retry"]["initial_backoff_seconds"])
    (one,) = suite.settings.judges
    agree("judge", (one.target.model, one.params), ("claude-opus-4-5", {"temperature": 0.0}))
    agree("rubric", suite.arms[0].scorer, {"type": "golden_judge", "rubric": "k-eval"})
    samples, sha256 = k_eval.dataset((folder / "questions.jsonl").read_bytes(), "question", "answer")
    agree("SHA-256", suite.dataset_sha256, sha256)
    agree("samples", [(case.input, case.expected) for case in suite.cases()], [sample[1:] for sample in samples])


def test_what_a_configuration_does_not_say(folder, fairtrial, monkeypatch):
    for name, value in (("GOOGLE_CLOUD_PROJECT", "p"), ("ANTHROPIC_API_KEY", "sk-test-key-0001")):
        monkeypatch.setenv(name, value)
    short = {key: value for key, value in CONFIG.items() if key not in ("execution", "mcp_servers")}
    short["conditions"] = {"baseline": CONFIG["conditions"]["baseline"]}
    (folder / "config.yaml").write_text(yaml.safe_dump(short))
    suite = pipeline.load(folder / "config.yaml")
    agree("repetitions", suite.arms[0].repeats, k_eval.REPETITIONS)
    agree("at once", suite.settings.concurrency, k_eval.AT_ONCE)


async def test_another_factor_between_waits_is_reported(folder, fairtrial, rag):
    retry = {**CONFIG["execution"]["retry"], "backoff_multiplier": 3}
    (folder / "config.yaml").write_text(yaml.safe_dump({**CONFIG, "execution": {"retry": retry}}, sort_keys=False))
    ended = await fairtrial("import", "k-eval", "config.yaml")
    assert ended.code == 0 and "`backoff_multiplier`: waits are always doubled" in ended.err
    agree("doubled", [2 * wait for wait in k_eval.waits(3, 1, 2)[:1]], k_eval.waits(3, 1, 2)[1:])


def test_a_server_that_no_condition_may_name(folder, fairtrial, monkeypatch):
    """As k-eval does: every unknown name at once."""
    for name, value in (("RAG_PORT", "1"), ("GOOGLE_CLOUD_PROJECT", "p"), ("ANTHROPIC_API_KEY", "sk-test-key-0001")):
        monkeypatch.setenv(name, value)
    wrong = {**CONFIG, "conditions": {"a": {"mcp_servers": ["grph"]}, "b": {"mcp_servers": ["nothing"]}}}
    (folder / "config.yaml").write_text(yaml.safe_dump(wrong, sort_keys=False))
    with pytest.raises(pipeline.ProblemsError) as found:
        pipeline.load(folder / "config.yaml")
    text = str(found.value)
    assert "conditions.a.mcp_servers" in text and "grph" in text and "nothing" in text


# -- 50 questions × 3 conditions × 3 repetitions ---------------------------------------------------


@pytest.fixture(scope="module")
def kept(tmp_path_factory) -> Path:
    """Where the run of 450 answers is kept, once it was made: every test looks at a copy of it."""
    return tmp_path_factory.mktemp("kept") / "study"


@pytest.fixture
async def study(folder, fairtrial, rag, model, kept):
    """The configuration as a suite, its agent replaced by a function; run, with everything that it wrote."""
    served = await model(judge)
    if not kept.exists():
        await _run_study(folder, fairtrial)
        (folder / "asked.json").write_text(json.dumps(served.bodies), "utf-8")
        shutil.copytree(folder, kept)
    shutil.copytree(kept, folder, dirs_exist_ok=True)
    return Study(folder)


async def _run_study(folder: Path, fairtrial) -> None:
    ended = await fairtrial("import", "k-eval", "config.yaml", "-o", "suite.yaml")
    assert ended.code == 0, ended.err
    suite = yaml.safe_load((folder / "suite.yaml").read_text("utf-8"))
    suite["targets"] = [{"id": "agent", "target": "python:agent.py:query"}]
    suite["judge"]["target"] = "openai:judge"
    (folder / "suite.yaml").write_text(yaml.safe_dump(suite, sort_keys=False), "utf-8")
    ended = await fairtrial("run", "suite.yaml", "--concurrency", "50", "-o", "run.json")
    assert ended.code == 0, ended.err
    (folder / "printed.txt").write_text(ended.out, "utf-8")


class Study:
    """What our workflow gave, and the same evaluations in k-eval's words, read from the answers alone."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.document = document = json.loads((folder / "run.json").read_text("utf-8"))
        self.bodies = json.loads((folder / "asked.json").read_text("utf-8"))
        self.printed = (folder / "printed.txt").read_text("utf-8")
        self.samples, self.sha256 = k_eval.dataset((folder / "questions.jsonl").read_bytes(), "question", "answer")
        index = {sample.question: sample for sample in self.samples}
        self.ids = {trial["case_id"]: index[trial["input"]].index for trial in document["trials"]}
        self.evaluations = [
            k_eval.Evaluation(
                index[trial["input"]],
                trial["condition"],
                trial["repeat"] - 1,
                trial["answer"],
                *said_of(trial["answer"]),
            )
            for trial in document["trials"]
        ]
        self.pairs = k_eval.pairs(self.evaluations)


@pytest.mark.slow
async def test_every_number_of_450_answers(study, fairtrial):
    document = study.document
    size = k_eval.size(50, 3)
    agree("agent calls", len(document["trials"]), size["agent calls"])
    agree("verdicts", sum(arm["judge_verdicts"] for arm in document["arms"]), size["judge calls"])
    agree(
        "requests to the judge",
        len([body for body in study.bodies if "<<ANSWER TO JUDGE" in json.dumps(body)]),
        450,
    )
    agree("reported", len(document["cases"]), size["reported"])
    agree("SHA-256", document["dataset_sha256"], study.sha256)
    agree("conditions", [arm["condition"] for arm in document["arms"]], CONDITIONS)
    for case in document["cases"]:
        place = (study.ids[case["case_id"]], case["arm"].split("/")[1])
        theirs, name = study.pairs[place], f"question {place[0]} {place[1]}"
        ours = case["metrics"]
        agree(f"{name} means", {metric: ours[metric]["mean"] for metric in ours}, theirs.means)
        agree(f"{name} deviations", {metric: ours[metric]["std_dev"] for metric in ours}, theirs.deviations)
        agree(f"{name} claims", case["claims"], theirs.claims)
    for arm in document["arms"]:
        theirs = k_eval.conditions(study.pairs)[arm["condition"]]
        ours = {f"{metric}_mean": arm["metrics"][metric]["mean"] for metric in k_eval.METRICS}
        ours |= {f"{metric}_stddev": arm["metrics"][metric]["mean_repeat_sd"] for metric in k_eval.METRICS}
        agree(arm["condition"], ours, theirs)
        agree("scale", {tuple(arm["metrics"][metric]["scale"]) for metric in k_eval.METRICS}, {(1.0, 5.0)})


@pytest.mark.slow
async def test_every_answer_is_judged_on_its_own_with_reasons(study):
    """Whole marks from 1 to 5 with a reasoning each; the judge sees the final answer, no tool's result and no reasoning."""
    run = latest(study.folder)
    for trial in run.trials():
        (verdict,) = run.judgements(trial.trial_id)
        marks, claims = said_of(trial.answer)
        agree("marks", verdict["metrics"], {name: float(mark) for name, mark in marks.items()})
        agree("reasons", verdict["reasoning"], {name: f"{name} deserves {mark}" for name, mark in marks.items()})
        agree("claims", list(verdict["claims"] or ()), list(claims))
        agree("temperature", verdict["params"]["temperature"], CONFIG["judge"]["temperature"])
    assert "SECRET RESULT" not in json.dumps(study.bodies) and len({json.dumps(body) for body in study.bodies}) > 300


@pytest.mark.slow
async def test_deviations_in_the_terminal(study, fairtrial):
    """Of every condition and metric, and of every case under --cases."""
    lines = study.printed.splitlines()
    for arm in study.document["arms"]:
        for metric in k_eval.METRICS:
            own = arm["metrics"][metric]
            theirs = k_eval.conditions(study.pairs)[arm["condition"]][f"{metric}_stddev"]
            cell = f"{own['std_dev']:.2f} · {own['repeat_sd']:.2f} · {theirs:.2f}"
            assert any(line.split()[0] == arm["arm"] and cell in line for line in lines if line.strip()), (
                arm["arm"],
                cell,
            )
    assert "as k-eval averages it" in " ".join(study.printed.split())
    ended = await fairtrial("show", "--cases", "--plain")
    assert re.search(r"\d\.\d\s+\(sd\s+\d\.\d\)", ended.out)


@pytest.mark.slow
async def test_conditions_are_the_labels_of_every_output(study, fairtrial):
    outputs = ("report.html", "run.md", "trials.csv", "trials.jsonl", "run.eee.json", "run.junit.xml")
    ended = await fairtrial("export", *(word for name in outputs for word in ("-o", name)))
    assert ended.code == 0, ended.err
    for name in outputs:
        text = (study.folder / name).read_text("utf-8")
        for condition in CONDITIONS:
            assert condition in text, (name, condition)
    shown = await fairtrial("show")
    compared = await fairtrial("compare")
    for condition in CONDITIONS:
        assert condition in study.printed and condition in shown.out and condition in compared.out
    with (study.folder / "trials.csv").open(encoding="utf-8", newline="") as file:
        agree("rows", len(list(csv.DictReader(file))), 450)
    markdown = (study.folder / "run.md").read_text("utf-8")
    assert study.sha256 in markdown and "with k-eval's rubric" in markdown and "as k-eval averages it" in markdown
    record = json.loads((study.folder / "run.eee.json").read_text("utf-8"))
    theirs = k_eval.conditions(study.pairs)
    found = {one["evaluation_name"]: one["score_details"]["score"] for one in record["evaluation_results"]}
    for condition, details in theirs.items():
        for metric in k_eval.METRICS:
            agree(f"{condition} {metric}", found[f"shelf-commands/{condition}/{metric}"], details[f"{metric}_mean"])
    assert study.sha256 in json.dumps(record)


@pytest.mark.slow
async def test_claims_can_be_filtered_for(study, fairtrial):
    ended = await fairtrial("show", "--claims")
    ours = sorted(
        (found[1], found[2], found[3])
        for line in ended.out.splitlines()
        if (found := re.fullmatch(r"\w{8} (\S+) agent/(\S+): (.*)", line))
    )
    back = {index: name for name, index in study.ids.items()}
    theirs = sorted((back[one.sample.index], one.condition, claim) for one in study.evaluations for claim in one.claims)
    agree("claims", ours, theirs)
    from fairtrial.store.browsing import CaseQuery, ordered_cases

    run = latest(study.folder)
    shown = ordered_cases(run.store, run.record, CaseQuery(show="claims"))
    agree("cases", len(shown), len({one.sample.index for one in study.evaluations if one.claims}))


@pytest.mark.slow
async def test_answers_without_the_required_tool_are_marked_and_kept(study):
    """k-eval asks again until a tool is used; here all answers count, with those that used a tool beside them."""
    with_tool = {
        condition: [
            trial for trial in study.document["trials"] if trial["condition"] == condition and trial["tool_calls"]
        ]
        for condition in CONDITIONS
    }
    for arm in study.document["arms"][1:]:
        used = len(with_tool[arm["condition"]])
        agree("used", (arm["tools"]["used"], arm["tools"]["marked"], arm["scored"]), (used, 150 - used, 150))
        assert 0 < used < 150
    assert study.document["arms"][0]["tools"] is None


@pytest.mark.slow
async def test_the_same_file_attempts_a_rerun(study, fairtrial):
    """Same plan, same dataset: two runs that can be compared; agents of two runs too."""
    for _ in range(2):
        again = await fairtrial("run", "suite.yaml", "--concurrency", "50", "--repeats", "1", "--json")
        assert again.code == 0, again.err
        agree("SHA-256", json.loads(again.out)["dataset_sha256"], study.sha256)
    plans = [record.plan_id for record in latest(study.folder).store.runs()]
    agree("plan", plans[0], plans[1])
    suite = yaml.safe_load((study.folder / "suite.yaml").read_text("utf-8"))
    suite["targets"] = [{"id": "other", "target": "python:agent.py:query"}]
    (study.folder / "other.yaml").write_text(yaml.safe_dump(suite, sort_keys=False), "utf-8")
    ended = await fairtrial("run", "other.yaml", "--concurrency", "50", "--repeats", "1")
    assert ended.code == 0, ended.err
    compared = await fairtrial("compare", "1", "4", "--arms", "agent/baseline", "other/baseline", "--json")
    assert compared.code == 0 and json.loads(compared.out)["pairs"][0]["count"] == 50, compared.err


@pytest.mark.slow
async def test_the_table_of_variables(study):
    run = latest(study.folder)
    table = {one.name: one for one in variables(run)}
    agree("dataset", table["dataset"].control, "fixed")
    agree("judge", table["judges"].control, "best effort")
    agree("servers", table["MCP servers"].control, "best effort")
    assert {table[name].control for name in table if name in ("models", "agents", "chance")} == {"uncontrolled"}
    assert study.sha256[:16] in table["dataset"].value and all(one.impact and one.mitigation for one in table.values())


@pytest.mark.slow
async def test_results_of_k_eval_give_the_same_numbers(study, fairtrial):
    """The same evaluations as k-eval writes them to files, imported: every number again, and every claim once."""
    document, rows = k_eval.result_files("shelf-commands", "claude-sonnet-4-5", study.sha256, 0.0, study.evaluations)
    place = study.folder / "results"
    place.mkdir()
    stem = "shelf-commands_20261118_11111111"
    (place / f"{stem}.json").write_text(json.dumps(document), "utf-8")
    (place / f"{stem}.detailed.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    ended = await fairtrial("import", "results", "results")
    assert ended.code == 0, ended.err
    shown = json.loads((await fairtrial("show", "--cases", "--json")).out)
    agree("SHA-256", shown["dataset_sha256"], study.sha256)
    agree("reported", len(shown["cases"]), 150)
    for case in shown["cases"]:
        theirs = study.pairs[case["case_id"], case["arm"]]
        ours = {metric: case["metrics"][metric] for metric in k_eval.METRICS}
        agree("means", {metric: ours[metric]["mean"] for metric in ours}, theirs.means)
        agree("deviations", {metric: ours[metric]["std_dev"] for metric in ours}, theirs.deviations)
        agree("claims", case["claims"], theirs.claims)
    for arm in shown["arms"]:
        details = document["evaluation_results"][CONDITIONS.index(arm["arm"])]["score_details"]["details"]
        ours = {f"{metric}_mean": arm["metrics"][metric]["mean"] for metric in k_eval.METRICS}
        ours |= {f"{metric}_stddev": arm["metrics"][metric]["mean_repeat_sd"] for metric in k_eval.METRICS}
        agree(arm["arm"], ours, details)
    printed = await fairtrial("show")
    assert "as k-eval averages it" in " ".join(printed.out.split())
    run = latest(study.folder)
    trial = next(one for one in run.trials() if one.repeat == 2)
    assert f"completeness of repetition {trial.repeat - 1}" in trial.notes


# -- the judge -----------------------------------------------------------------------------------


async def test_a_failing_judge_is_tried_as_often_as_the_file_says(folder, fairtrial, rag, model):
    """Attempts in all, with waits that double; the answer stays, the run ends, and nothing is a score."""
    calls: list[str] = []

    def script(turn: Turn) -> Say:
        if "<<ANSWER TO JUDGE" not in turn.question:
            return TRIED
        calls.append(turn.question)
        raise ValueError("the server is down")

    await model(script)
    assert (await fairtrial("import", "k-eval", "config.yaml")).code == 0
    suite = yaml.safe_load((folder / "suite.yaml").read_text("utf-8"))
    suite |= {"targets": [{"id": "agent", "target": "python:agent.py:query"}], "judge": "openai:judge"}
    suite["retry"]["wait"] = 0.01  # of a test
    suite["conditions"] = {"baseline": suite["conditions"]["baseline"]}
    (folder / "suite.yaml").write_text(yaml.safe_dump(suite, sort_keys=False), "utf-8")
    ended = await fairtrial("run", "suite.yaml", "--first", "1", "--repeats", "1", "--json")
    agree("attempts", len(calls), CONFIG["execution"]["retry"]["max_attempts"])
    (arm,) = json.loads(ended.out)["arms"]
    assert (ended.code, arm["scored"], arm["unscored"], arm["mean"]) == (2, 0, 1, None)
    agree("waits", len(k_eval.waits(3, 1, 2)), len(calls) - 1)


async def test_a_judge_that_is_the_agents_own_model_or_hot_is_warned_of(folder, fairtrial, rag):
    config = {**CONFIG, "judge": {"model": "anthropic/claude-sonnet-4-5", "temperature": 0.7}}
    (folder / "config.yaml").write_text(yaml.safe_dump(config, sort_keys=False))
    ended = await fairtrial("validate", "--no-keys", "config.yaml")
    assert ended.code == 0, ended.err
    assert "same model family as agent" in ended.err and "temperature" in ended.err
