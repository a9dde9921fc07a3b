"""Suites of a stranger, each of which would have something run, read or fetched that only a run may.

A suite is a mapping of files to texts. CANARY is a path that only code can create; OUTSIDE is a folder beside that of the
suite, with a file that nobody who only looks may open.
"""

from __future__ import annotations

import json
from typing import Any

_CODE = """\
import pathlib
pathlib.Path("CANARY").write_text("ran")
def answer(input):
    return "x"
def score(response):
    return True
def combine(parts):
    return 1.0
def cut(text):
    return text
def ask(values):
    return "What?"
def make():
    pass
model = answer
"""
_CASES = [{"id": "a", "input": "What?", "expected": "x"}]


def _suite(**keys: Any) -> str:
    return json.dumps({"name": "s", "targets": ["mock:echo"], "scorer": "contains", "cases": _CASES} | keys)


def _with_code(name: str = "evil.py", **keys: Any) -> dict[str, str]:
    return {"suite.yaml": _suite(**keys), name: _CODE}


def _reading(**keys: Any) -> dict[str, str]:
    return {"suite.yaml": _suite(**keys)}


_SECRET = "../outside/secret"
_BOUND = "@link:../outside/secret"  # a link to a file outside
RUNNING: dict[str, dict[str, str]] = {
    "a target in a file": _with_code(targets=["python:evil.py:answer"]),
    "a target in a module": _with_code(targets=["python:evil:answer"]),
    "a target in a package": _with_code("pack/__init__.py", targets=["python:pack:answer"]),
    "a target in a module of a package": {
        **_with_code("pack/__init__.py", targets=["python:pack.evil:answer"]),
        "pack/evil.py": _CODE,
    },
    "a target that shadows a module": _with_code("json.py", targets=["python:json.py:answer"]),
    "a scorer": _with_code(scorer={"type": "python", "function": "evil.py:score"}),
    "a scorer in a module": _with_code(scorer={"type": "python", "function": "evil:score"}),
    "a scorer of a case": _with_code(cases=[_CASES[0] | {"scorer": {"type": "python", "function": "evil.py:score"}}]),
    "a function of a weighted scorer": _with_code(
        scorer={"type": "weighted", "scorers": [{"scorer": "contains"}], "function": "evil.py:combine"}
    ),
    "a part of a weighted scorer": _with_code(
        scorer={"type": "weighted", "scorers": [{"scorer": {"type": "python", "function": "evil.py:score"}}]}
    ),
    "an extraction": _with_code(extract={"python": "evil.py:cut"}),
    "an extraction of a case": _with_code(cases=[_CASES[0] | {"extract": {"python": "evil.py:cut"}}]),
    "a prompt": _with_code(prompts={"a": {"python": "evil.py:ask"}}),
    "a prompt of two": _with_code(prompts={"a": "{{input}}", "b": {"python": "evil.py:ask"}}),
    "a judge": _with_code(judge="python:evil.py:answer", scorer="llm_judge"),
    "a user": _with_code(user={"target": "python:evil.py:answer", "goal": "x"}, turns=2),
    "a problem": {
        **_with_code("evil.py"),
        "suite.yaml": json.dumps(
            {"name": "s", "targets": ["mock:echo"], "suite": {"kind": "optimisation", "problems": ["evil.py:model"]}}
        ),
    },
    "a program": _reading(targets=[{"target": "command:x", "options": {"command": ["sh", "-c", "echo > CANARY"]}}]),
    "a set-up": _reading(workspace={"setup": ["echo > CANARY"]}),
    "a server": _reading(mcp_servers={"evil": {"command": "sh", "args": ["-c", "echo > CANARY"]}}),
    "a sandbox": _reading(
        workspace={"sandbox": "bubblewrap", "setup": ["echo > CANARY"]},
        targets=[{"target": "command:x", "options": {"command": ["sh", "-c", "echo > CANARY"]}}],
    ),
    "a check": {**_reading(scorer={"type": "check", "command": "sh check.sh"}), "check.sh": "echo > CANARY"},
    "JavaScript that leaves its function": _reading(
        scorer={"type": "javascript", "code": "1 }); while (true) {} (function () { return 1"}
    ),
    "JavaScript that never ends": _reading(scorer={"type": "javascript", "code": "while (true) {}"}),
    "a decorator": {**_with_code(targets=["python:deco.py:answer"]), "deco.py": f"{_CODE}\n@make()\ndef f(x): pass\n"},
    "a site customisation": _with_code("sitecustomize.py", targets=["mock:echo"]),
    "a conftest": _with_code("conftest.py", targets=["mock:echo"]),
}
READING: dict[str, dict[str, str]] = {
    "a dataset": _reading(cases=[], dataset=f"{_SECRET}.csv"),
    "a dataset by an absolute path": _reading(cases=[], dataset="OUTSIDE/secret.csv"),
    "a dataset by a pattern": _reading(cases=[], dataset="../outside/*.csv"),
    "a dataset that is a link": {**_reading(cases=[], dataset="d.csv"), "d.csv": f"{_BOUND}.csv"},
    "a folder that is a link": {**_reading(cases=[], dataset="d/secret.csv"), "d": "@link:../outside"},
    "a pattern over a link": {**_reading(cases=[], dataset="d/*.csv"), "d": "@link:../outside"},
    "a dataset of the Hub": _reading(cases=[], dataset="hf://owner/name"),
    "a prompt": _reading(prompts={"a": {"file": f"{_SECRET}.txt"}}),
    "a prompt that is a link": {**_reading(prompts={"a": {"file": "p.txt"}}), "p.txt": f"{_BOUND}.txt"},
    "a system prompt": _reading(conditions={"a": {"system_file": f"{_SECRET}.txt"}}),
    "a prompt of a condition": _reading(conditions={"a": {"prompt_file": f"{_SECRET}.txt"}}),
    "a style": _reading(conditions={"a": {"style": f"{_SECRET}.txt"}}),
    "a skill": _reading(conditions={"a": {"skills": ["../outside"]}}),
    "a schema": _reading(scorer={"type": "json_schema", "schema_file": f"{_SECRET}.json"}),
    "JavaScript": _reading(scorer={"type": "javascript", "file": f"{_SECRET}.txt"}),
    "an attachment": _reading(cases=[_CASES[0] | {"attach": f"{_SECRET}.txt"}]),
    "an attachment that is a link": {
        **_reading(cases=[_CASES[0] | {"attach": "a.txt"}]),
        "a.txt": f"{_BOUND}.txt",
    },
    "an attachment at an address": _reading(cases=[_CASES[0] | {"attach": "http://127.0.0.1:9/a.png"}]),
    "files of a workspace": _reading(workspace={"files": ["../outside"]}),
    "a workspace that is a link": {**_reading(workspace={"files": ["w"]}), "w": "@link:../outside"},
    "answers": _reading(suite={"kind": "optimisation", "answers": "../outside"}, cases=[]),
    "a function": _reading(targets=["python:../outside/secret.py:answer"]),
    "a function that is a link": {**_reading(targets=["python:e.py:answer"]), "e.py": f"{_BOUND}.py"},
    "a repository at an address": _reading(workspace={"git": {"url": "http://127.0.0.1:9/x.git"}}),
    "a repository that is an option": _reading(workspace={"git": {"url": "--upload-pack=echo > CANARY"}}),
    "a repository of a program": _reading(workspace={"git": {"url": "ext::sh -c 'echo > CANARY'"}}),
}
SECRETS = {
    "secret.csv": "id,input,expected\na,top secret,x\n",
    "secret.txt": "top secret {{input}}",
    "secret.json": '{"type": "string", "title": "top secret"}',
    "secret.py": _CODE,
    "SKILL.md": "---\nname: s\ndescription: top secret\n---\ntop secret",
    "polite_1.json": '{"x": [1], "objective_value": 1}',
    "baseline.json": '{"x": [1], "objective_value": 1}',
}
