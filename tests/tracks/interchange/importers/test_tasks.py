"""Tasks of other tools run as cases: Harbor, mcp-eval, mcpchecker, the evals of skills. All written for these tests."""

import json
import sys
from pathlib import Path

import pytest
import yaml

from fairtrial import pipeline
from fairtrial.cli.main import _run
from fairtrial.core.errors import FairtrialError
from fairtrial.tracks.interchange.importers._tasks import as_shell
from fairtrial.tracks.interchange.importers.harbor import Harbor
from fairtrial.tracks.interchange.importers.mcp_eval import McpEval
from fairtrial.tracks.interchange.importers.mcpchecker import Mcpchecker, _name, _seconds
from fairtrial.tracks.interchange.importers.skill import Skill

FACTS = str(Path(__file__).parents[3] / "servers" / "facts.py")


def write(folder, **files):
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_DOT_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def changed(path, **keys):
    """An imported suite with other targets: those of the original need a key."""
    suite = yaml.safe_load(path.read_text())
    path.write_text(yaml.safe_dump({**suite, **keys}))
    return path


def agent(folder, answer):
    """Write an agent that looks the code up and gives this answer."""
    (folder / "agent.py").write_text(
        "def ask(input, workspace):\n"
        "    call = {'server': 'facts', 'tool': 'lookup', 'arguments': {'topic': 'code'}, 'result': '4711'}\n"
        f"    return {{'text': {answer!r}, 'tool_calls': [call], 'cost_usd': 0}}\n"
    )


@pytest.fixture
def tasks(tmp_path):
    """Two tasks in the format of Harbor: one with a file and half a reward, one that nobody solves."""
    write(
        tmp_path / "tasks" / "count",
        task_DOT_toml='version = "1.0"\n[metadata]\ndifficulty = "easy"\ncategory = "files"\ntags = ["text"]\n'
        "[verifier]\ntimeout_sec = 300.0\n[agent]\ntimeout_sec = 300.0\n"
        '[environment]\ndocker_image = "x/y"\nallow_internet = false\ncpus = 1\n',
        instruction_DOT_md="Count the lines of /app/data/words.txt into /app/count.txt; /application is no path here.",
        environment__Dockerfile="FROM debian\nRUN apt-get update && \\\n  apt-get install -y jq\nWORKDIR /app\n"
        "COPY words.txt data/words.txt\n",
        environment__words_DOT_txt="a\nb\nc\n",
        tests__test_DOT_sh="#!/bin/bash\npython3 /tests/state.py\n",
        tests__state_DOT_py="import json, pathlib\nn = int(pathlib.Path('/app/count.txt').read_text())\n"
        "pathlib.Path('/logs/verifier/reward.json').write_text(json.dumps({'right': n == 3, 'a': 1.0, 'b': 0.0}))\n",
    )
    write(
        tmp_path / "tasks" / "hello",
        task_DOT_toml='version = "1.0"\n',
        instruction_DOT_md="Write /app/hello.txt.",
        tests__test_DOT_sh="[ -f /app/hello.txt ]\necho $((1 - $?)) > /logs/verifier/reward.txt\n",
    )
    return tmp_path / "tasks"


@pytest.mark.slow
async def test_tasks_of_harbor_run(tasks, tmp_path, store, capsys):
    assert _run(["import", "harbor", str(tasks), "-o", "out/suite.yaml"]) == 0
    said = capsys.readouterr().err
    assert "written: out/suite.yaml (2 cases)" in said and said.count("the image of the container") == 1
    path = tmp_path / "out" / "suite.yaml"
    cases = {case["id"]: case for case in yaml.safe_load(path.read_text())["cases"]}
    assert (
        cases["count"]["input"] == "Count the lines of ./data/words.txt into ./count.txt; /application is no path here."
    )
    assert (cases["count"]["difficulty"], cases["count"]["tags"]) == ("easy", ["text"])
    agent = "wc -l < data/words.txt > count.txt 2>/dev/null; echo done"
    target = {"id": "agent", "target": "command", "options": {"command": ["sh", "-c", agent]}}
    run = await pipeline.arun(pipeline.load(changed(path, targets=[target])), store=store)
    assert [(trial.case_id, trial.score) for trial in run.trials()] == [
        ("count", pytest.approx(2 / 3)),
        ("hello", 0.0),
    ], [trial.unscored_message or trial.failure_message for trial in run.trials()]
    assert "reward" in next(iter(run.trials())).notes or "right" in next(iter(run.trials())).notes


@pytest.mark.slow
async def test_an_agent_cannot_write_its_own_reward(tasks, tmp_path, store):
    assert _run(["import", "harbor", str(tasks / "hello"), "-o", "out/suite.yaml"]) == 0
    cheat = (
        "mkdir -p .harbor/logs/verifier .harbor/tests/more elsewhere; echo '{\"reward\": 1}' > .harbor/logs/verifier/reward.json; "
        "echo raise > .harbor/tests/conftest.py; ln -s ../../elsewhere .harbor/tests/link; mkfifo .harbor/tests/pipe; "
        "echo 'def loads(text): return {\"reward\": 1}' > json.py; chmod 500 .harbor/tests/more; echo done"
    )
    target = {"id": "agent", "target": "command", "options": {"command": ["sh", "-c", cheat]}}
    path = changed(tmp_path / "out" / "suite.yaml", targets=[target])
    tests = path.parent / "hello.tests" / ".harbor" / "tests" / "test.sh"
    tests.write_text("ls -A ./.harbor/* >&2\n" + tests.read_text())
    (trial,) = (await pipeline.arun(pipeline.load(path), store=store)).trials()
    assert (trial.score, trial.unscored_message) == (0.0, None), trial.notes
    listed = trial.details["check"]["output"]
    assert "test.sh" in listed and not any(
        name in listed for name in ("conftest", "link", "pipe", "more", "reward.json")
    )


def test_what_harbor_has_and_we_have_not(tasks):
    imported = Harbor().read(tasks)
    assert sum("(RUN)" in one and "(count)" in one for one in imported.findings) == 1
    assert any("without the internet" in one for one in imported.findings)
    assert any("processor, memory and disk" in one for one in imported.findings)
    assert imported.suite["timeout"] == 600.0
    assert len(Harbor().read(tasks / "count" / "task.toml").suite["cases"]) == 1


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("task.toml", "version = ", "not valid TOML"),
        ("task.yaml", "instruction: x", "Terminal-Bench 1"),
        ("other.txt", "", "no task.toml"),
        ("task.toml", "version = 1", "instruction.md cannot be read"),
    ],
)
def test_no_task_of_harbor(tmp_path, name, text, reason):
    write(tmp_path / "t", **{name.replace(".", "_DOT_"): text})
    with pytest.raises(FairtrialError, match=reason):
        Harbor().read(tmp_path / "t")


async def test_a_dataset_of_mcp_eval_runs(tmp_path, store):
    server = {"command": sys.executable, "args": [FACTS]}
    write(
        tmp_path,
        mcpeval_DOT_yaml=yaml.safe_dump({"mcp": {"servers": {"facts": server, "other": {"command": "x"}}}}),
        data_DOT_yaml=yaml.safe_dump(
            {
                "name": "facts",
                "server_name": "facts",
                "agent_spec": "helper",
                "cases": [
                    {
                        "name": "code",
                        "inputs": "What is the code?",
                        "metadata": {"difficulty": "easy"},
                        "evaluators": [
                            {"ToolWasCalled": {"tool_name": "lookup", "min_times": 1}},
                            {"ResponseContains": {"text": "4711"}},
                            {"NotContains": {"text": "sorry"}},
                            {"MaxIterations": {"max_iterations": 3}},
                            {"ToolCalledWith": {"tool_name": "lookup", "expected_args": {"topic": "code"}}},
                        ],
                    },
                    {"name": "equal", "inputs": "Say 4711", "expected_output": "4711"},
                    {"name": "judged", "inputs": "Hi", "evaluators": [{"LLMJudge": {"rubric": "Is it kind?"}}]},
                ],
                "evaluators": [{"ResponseTimeCheck": {"max_ms": 60000}}],
            }
        ),
    )
    assert _run(["import", "mcp-eval", "data.yaml", "-o", "suite.yaml"]) == 0
    suite = yaml.safe_load((tmp_path / "suite.yaml").read_text())
    assert list(suite["mcp_servers"]) == ["facts"] and suite["conditions"] == {"with-server": {"mcp": ["facts"]}}
    text = (tmp_path / "suite.yaml").read_text()
    assert "evaluator `MaxIterations` (code)" in text and "the agent `helper`" in text
    agent(tmp_path, "4711")
    mock = {"id": "m", "target": "python:agent.py:ask"}
    judge = {"target": "mock:j", "options": {"verdict": {"otherwise": 10}}}
    run = await pipeline.arun(pipeline.load(changed(tmp_path / "suite.yaml", targets=[mock], judge=judge)), store=store)
    assert [trial.score for trial in run.trials()] == [1.0, 1.0, 1.0], [t.notes for t in run.trials()]


def test_no_dataset_of_mcp_eval(tmp_path):
    (tmp_path / "x.yaml").write_text("name: x")
    with pytest.raises(FairtrialError, match="Tests in Python are not imported"):
        McpEval().read(tmp_path / "x.yaml")


@pytest.fixture
def checker(tmp_path):
    """An eval of mcpchecker with a task in each of its two formats."""
    write(
        tmp_path,
        eval_DOT_yaml=yaml.safe_dump(
            {
                "kind": "Eval",
                "metadata": {"name": "facts-test"},
                "config": {
                    "agent": {"type": "builtin.claude-code"},
                    "mcpConfigFile": "mcp.yaml",
                    "taskSets": [
                        {
                            "path": "tasks/new.yaml",
                            "assertions": {
                                "toolsUsed": [{"server": "facts", "tool": "lookup"}],
                                "toolsNotUsed": [{"server": "facts", "toolPattern": "add.*"}],
                                "maxToolCalls": 2,
                                "callOrder": [{"type": "tool", "server": "facts", "name": "lookup"}],
                                "noDuplicateCalls": True,
                            },
                        },
                        {"glob": "tasks/old*.yaml"},
                    ],
                },
            }
        ),
        mcp_DOT_yaml=yaml.safe_dump(
            {"mcpServers": {"facts": {"command": sys.executable, "args": [FACTS], "enableAllTools": True}}}
        ),
        tasks__new_DOT_yaml=yaml.safe_dump(
            {
                "kind": "Task",
                "apiVersion": "mcpchecker/v1alpha2",
                "metadata": {"name": "new", "difficulty": "easy", "runs": 2, "labels": {"area": "facts"}},
                "spec": {
                    "requires": [{"extension": "kubernetes"}],
                    "setup": [{"script": {"inline": "echo 4711 > code"}}, {"kubernetes.create": {"kind": "Pod"}}],
                    "verify": [
                        {"script": {"inline": "#!/usr/bin/env python3\nassert open('code').read() == '4711\\n'\n", "timeout": "1m30s"}},
                        {"llmJudge": {"contains": "the code"}},
                    ],
                    "cleanup": [{"script": {"inline": "true"}}],
                    "prompt": {"inline": "What is the code?"},
                },
            }
        ),
        tasks__old_DOT_yaml="kind: Task\nmetadata: {name: old}\nsteps:\n  prompt: {file: ask.txt}\n  verify: {file: no.sh}\n",
        tasks__ask_DOT_txt="Make nothing.\n",
        tasks__no_DOT_sh="test -e something\n",
    )  # fmt: skip
    return tmp_path / "eval.yaml"


@pytest.mark.slow
async def test_an_eval_of_mcpchecker_runs(checker, tmp_path, store):
    assert _run(["import", "mcpchecker", str(checker), "-o", "suite.yaml"]) == 0
    text = (tmp_path / "suite.yaml").read_text()
    for finding in (
        "assertion `noDuplicateCalls` (new)",
        "`kubernetes.create`: write them as scripts (new)",
        "`cleanup`",
    ):
        assert finding in text
    new, old = yaml.safe_load(text)["cases"]
    assert (new["repeats"], new["tags"], new["tools"]) == (2, ["area=facts"], ["facts.lookup"])
    assert old["input"] == "Make nothing." and old["scorer"]["command"] == "test -e something"
    agent(tmp_path, "the code is 4711")
    keys = {"targets": [{"id": "a", "target": "python:agent.py:ask"}]}
    keys["judge"] = {"target": "mock:j", "options": {"verdict": {"otherwise": 10}}}
    run = await pipeline.arun(pipeline.load(changed(tmp_path / "suite.yaml", **keys)), store=store)
    assert [trial.score for trial in run.trials()] == [1.0, 1.0, 0.0], [
        trial.notes or trial.unscored_message for trial in run.trials()
    ]


def test_single_tasks_of_mcpchecker(checker, tmp_path):
    assert [case["id"] for case in Mcpchecker().read(tmp_path / "tasks").suite["cases"]] == ["new", "old"]
    imported = Mcpchecker().read(tmp_path / "tasks" / "old.yaml")
    assert any("the MCP servers, which an eval names" in one for one in imported.findings)
    (tmp_path / "x.yaml").write_text("kind: Pod")
    with pytest.raises(FairtrialError, match="neither an eval nor a task"):
        Mcpchecker().read(tmp_path / "x.yaml")
    (tmp_path / "none").mkdir()
    with pytest.raises(FairtrialError, match="has no tasks"):
        Mcpchecker().read(tmp_path / "none")


@pytest.mark.parametrize(
    ("entry", "name"),
    [
        ({"server": "k", "tool": "pods_create"}, "k.pods_create"),
        ({"server": "k", "toolPattern": "^pods_.*$"}, "k.pods_*"),
        ({"tool": "x"}, "x"),
        ({"server": "k"}, "k.*"),
    ],
)
def test_names_of_tools(entry, name):
    assert _name(entry) == name


def test_durations_and_scripts():
    assert [_seconds(text) for text in ("30s", "1m30s", "2m", "500ms", 4)] == [30, 90, 120, 0.5, 4]
    assert as_shell("#!/bin/bash\ntrue\n") == "#!/bin/bash\ntrue"
    assert "FAIRTRIAL_END" in as_shell("#!/usr/bin/env python3\nprint(1)")


def test_the_evals_of_a_skill(tmp_path):
    folder = tmp_path / "greeting"
    evals = [
        {"id": 1, "prompt": "Greet Ann", "expected_output": "A greeting", "expectations": ["It names Ann", {"text": "Kind"}]},
        {"query": "What is 2+2?", "should_trigger": False},
        {"query": "Say hello", "should_trigger": True, "colour": "red", "files": ["evals/a.txt"]},
    ]  # fmt: skip
    write(folder, SKILL_DOT_md="---\nname: greeting\ndescription: How to greet.\n---\nHi", evals__a_DOT_txt="x")
    write(folder, evals__evals_DOT_json=json.dumps({"skill_name": "greeting", "evals": evals}))
    assert _run(["import", "skill", str(folder), "-o", "suite.yaml"]) == 0
    suite = yaml.safe_load((tmp_path / "suite.yaml").read_text())
    assert suite["conditions"] == {"without": {}, "with": {"skills": ["greeting"]}}
    first, second, third = suite["cases"]
    assert [one["description"] for one in first["scorer"]["criteria"]] == ["It names Ann", "Kind"]
    assert second["tools"] == [] and third["tools"][0]["name"] == "Skill"
    assert third["workspace"]["files"] == ["greeting/evals/a.txt"]
    assert "`colour` of evals (eval-3)" in (tmp_path / "suite.yaml").read_text()
    loaded = pipeline.load(changed(tmp_path / "suite.yaml", targets=["mock:echo"], judge={"target": "mock:echo"}))
    assert len(loaded.arms) == 2
    assert len(Skill().read(folder / "evals" / "evals.json").suite["cases"]) == 3
    with pytest.raises(FairtrialError, match="belongs to no skill"):
        Skill().read(tmp_path / "suite.yaml")


def test_texts_of_others_name_no_variables(checker, tasks, tmp_path, monkeypatch):
    """An instruction could have a key sent to a model; a script with variables of its own could not be loaded."""
    monkeypatch.setenv("HIDDEN_KEY", "sk-of-this-machine")
    text = "${HIDDEN_KEY} ${NAMESPACE} ${x#y} ${NO:-yes}"
    (tasks / "count" / "instruction.md").write_text(text)
    evaluators = [{"ResponseContains": {"text": text}}]
    dataset = {
        "name": text,
        "cases": [{"name": "a", "inputs": text, "expected_output": text, "evaluators": evaluators}],
    }
    settings = {"mcp": {"servers": {"facts": {"command": sys.executable, "env": {"KEY": "${HIDDEN_KEY}"}}}}}
    write(tmp_path, data_DOT_yaml=yaml.safe_dump(dataset), mcpeval_DOT_yaml=yaml.safe_dump(settings))
    task = {"kind": "Task", "metadata": {"name": "new"}, "spec": {"prompt": {"inline": text}}}
    task["spec"] |= {"setup": [{"script": {"inline": text}}], "verify": [{"script": {"inline": text}}]}
    write(tmp_path, tasks__new_DOT_yaml=yaml.safe_dump(task))
    evals = [{"prompt": text, "expected_output": text, "expectations": [text], "files": ["${NO:-a}.txt"]}]
    write(tmp_path / "s", SKILL_DOT_md="---\nname: s\ndescription: d\n---\nx", evals__evals_DOT_json=json.dumps(evals))
    (tmp_path / "s" / "${NO:-a}.txt").write_text("x")
    for tool, file in (
        ("harbor", "tasks/count"),
        ("mcp-eval", "data.yaml"),
        ("mcpchecker", "tasks/new.yaml"),
        ("skill", "s"),
    ):
        assert _run(["import", tool, file, "-o", f"{tool}.yaml"]) == 0
        target = {"target": "command", "options": {"command": ["true"]}}
        keys = {"targets": [target], "judge": {"target": "mock:echo"}}
        suite = pipeline.load(changed(tmp_path / f"{tool}.yaml", **keys))
        (case,) = suite.cases()
        assert case.input == text
        assert "sk-of-this-machine" not in str(case)
    assert yaml.safe_load((tmp_path / "mcp-eval.yaml").read_text())["mcp_servers"]["facts"]["env"] == {
        "KEY": "${HIDDEN_KEY}"
    }


def test_files_outside_of_a_task_are_not_read(tasks, tmp_path):
    (tmp_path / "secret").write_text("secret")
    outside = "files outside of the folder of a task are not read"
    dockerfile = tasks / "count" / "environment" / "Dockerfile"
    dockerfile.write_text("WORKDIR /app\nCOPY ../../../secret .\nCOPY link .\nCOPY words.txt .\n")
    (dockerfile.parent / "link").symlink_to(tmp_path / "secret")
    (tasks / "count" / "tests" / "more.py").symlink_to(tmp_path / "secret")
    imported = Harbor().read(tasks / "count")
    assert [one.path.name for one in imported.suite["cases"][0]["workspace"]["files"]] == ["words.txt"]
    assert any(outside in one for one in imported.findings) and "secret" not in str(imported.files)
    (tasks / "count" / "instruction.md").unlink()
    (tasks / "count" / "instruction.md").symlink_to(tmp_path / "secret")
    with pytest.raises(FairtrialError, match="outside of the task"):
        Harbor().read(tasks / "count")

    evals = [{"prompt": "q", "files": [str(tmp_path / "secret"), "../secret", "a.txt"]}]
    write(tmp_path / "s", SKILL_DOT_md="---\nname: s\ndescription: d\n---\nx", a_DOT_txt="a")
    write(tmp_path / "s", evals__evals_DOT_json=json.dumps(evals))
    imported = Skill().read(tmp_path / "s")
    assert [one.path.name for one in imported.suite["cases"][0]["workspace"]["files"]] == ["a.txt"]
    assert any(outside in one for one in imported.findings)

    good = {"kind": "Task", "metadata": {"name": "good"}, "spec": {"prompt": {"inline": "q"}}}
    good["spec"]["setup"] = [{"script": {"file": "../secret"}}]
    bad = {"kind": "Task", "metadata": {"name": "bad"}, "spec": {"prompt": {"file": str(tmp_path / "secret")}}}
    write(tmp_path / "c", good_DOT_yaml=yaml.safe_dump(good), bad_DOT_yaml=yaml.safe_dump(bad))
    imported = Mcpchecker().read(tmp_path / "c")
    assert [case["id"] for case in imported.suite["cases"]] == ["good"] and "secret" not in str(imported.suite)
    assert f"{outside}: copy into it what you trust (bad, good)" in imported.findings
    with pytest.raises(FairtrialError, match=outside):
        Mcpchecker().read(tmp_path / "c" / "bad.yaml")
