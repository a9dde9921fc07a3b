"""The GitHub Action: pull requests against a bare repository, a model that counts its calls, a fake of GitHub's API."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests import forks
from tests.action_runner import HERE, run_action
from tests.scripted import Say
from tests.servers.forge import Forge

pytestmark = pytest.mark.slow
NASTY = "@everyone ![x](https://evil.example/x.png)\n\n</pre><script>alert(1)</script>\n```\n| a |"
SUITE = {
    "name": "refunds",
    "targets": [{"id": "bot", "target": "openai:gpt-5-mini"}],
    "system_file": "prompt.md",
    "gate": {"margin": 20, "must_pass": ["refund-0"]},
    "cases": [
        {"id": f"refund-{n}", "input": f"Question {n}?", "expected": "42", "scorer": "contains"} for n in range(40)
    ],
}


@pytest.fixture
def forge():
    server = Forge()
    yield server
    server.close()


@pytest.fixture
def repository(tmp_path):
    """A bare repository: how its branches are changed, and how a job checks one out."""
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main")

    def git(*args, cwd=tmp_path):
        subprocess.run(["git", *identity, *args], cwd=cwd, capture_output=True, text=True, check=True)

    git("init", "-q", "--bare", "origin.git")
    git("clone", "-q", "origin.git", "desk")
    desk = tmp_path / "desk"

    def change(branch, **files):
        git("checkout", "-q", "-B", branch, cwd=desk)
        for name, text in files.items():
            (desk / name.replace("_", ".")).write_text(text)
        git("add", "-A", cwd=desk)
        git("commit", "-qm", branch, "--allow-empty", cwd=desk)
        git("push", "-q", "-f", "origin", branch, cwd=desk)

    def checkout(branch):
        """As a runner has it: an empty folder, a commit, no history."""
        shutil.rmtree(tmp_path / "work", ignore_errors=True)
        git("clone", "-q", "--depth", "1", f"file://{tmp_path}/origin.git", "-b", branch, "work")
        git("checkout", "-q", "--detach", cwd=tmp_path / "work")
        return tmp_path / "work"

    return change, checkout


async def test_the_life_of_a_pull_request(model, forge, repository, tmp_path):
    served = await model(lambda turn: Say(NASTY if "bad" in turn.system else "It is 42."))
    change, checkout = repository
    keys = {"OPENAI_BASE_URL": f"{served.url}/v1", "OPENAI_API_KEY": "sk-test-key-0001"}
    api = {"GITHUB_API_URL": forge.url, "GITHUB_REPOSITORY": "o/r"}

    real = str(Path(sys.executable).parent)
    quick = forks.first_in(real)

    async def job(branch, merge_to=None, args="", path=quick, **more):
        reference = {"GITHUB_REF_TYPE": "branch", "GITHUB_REF_NAME": "12/merge" if merge_to else branch}
        into = {"GITHUB_BASE_REF": merge_to} if merge_to else {}
        event = {"pull_request": {"number": 12}} if merge_to else {}
        calls = len(served.bodies)
        done = await run_action(
            checkout(branch),
            tmp_path / "cache",
            inputs={"suite": "suite.yaml", "install": "false", "args": args},
            environment={**keys, **api, **reference, **into, **more},
            event=event,
            path=path,
        )
        return done, len(served.bodies) - calls

    # A pull request before there is anything to compare with is not passed.
    change("main", suite_yaml=yaml.safe_dump(SUITE), prompt_md="Be kind.")
    done, _ = await job("main", merge_to="main")
    assert done.code == 101 and "no baseline: there is no run for branch:main" in done.printed, done.printed
    assert done.result == "result=cannot tell" and "Run the suite on `main` first" in done.printed
    assert "cannot tell: there is no baseline" in forge.comments[1]["body"]
    assert "no baseline: there is no run for branch:main" in forge.comments[1]["body"]
    (tmp_path / "cache" / "store").unlink()

    # Nor is the first push: its run is what later ones are compared with. Who starts may let it through.
    done, calls = await job("main")
    assert (done.code, calls) == (101, 40) and "From now on this run of `main` is one" in done.printed, done.printed
    assert done.artefacts == ["gate.json", "gate.junit.xml", "report.html"] and done.result == "result=cannot tell"
    done, calls = await job("main", args="--unsure pass")
    assert (done.code, calls) == (0, 0) and done.result == "result=cannot tell", done.printed

    # An unchanged merge costs nothing and passes; its comment says so, in place of the first one.
    change("same", README_md="Only words.")
    done, calls = await job("same", merge_to="main")
    assert (done.code, calls) == (0, 0), done.printed
    assert len(forge.comments) == 1 and "goes: main (GITHUB_BASE_REF)" in forge.comments[1]["body"]
    assert "Nothing was asked: all 40 answers are stored and were reused." in forge.comments[1]["body"]

    # One that breaks something is blocked, with both answers side by side, as text.
    change("worse", prompt_md="Be bad.")
    done, calls = await job("worse", merge_to="main", path=real)
    assert (done.code, calls) == (100, 40) and done.result == "result=failed", done.printed
    (comment,) = forge.comments.values()
    assert comment["id"] == 1 and "❌" in comment["body"] and "prompt" in comment["body"]
    assert "&lt;script&gt;" in comment["body"] and "<script>" not in comment["body"]
    assert "https://github.example/o/r/actions/runs/7#artifacts" in comment["body"]
    assert "::error title=fairtrial%3A must_pass of bot::" in done.printed
    assert "must\\_pass" in done.summary and "sk-test-key" not in done.printed + comment["body"]

    # Every line of `args` is read; the result is the verdict, whatever --unsure makes of it.
    done, calls = await job("same", merge_to="main", args="--margin 1\n--unsure pass\n--min-score 99\n")
    assert (done.code, calls) == (0, 0) and done.result == "result=cannot tell", done.printed

    # A fork has no keys: what is stored is used, and what is not stored is not run.
    keys.clear()
    keys["OPENAI_BASE_URL"] = f"{served.url}/v1"
    change("fork", README_md="More words.", prompt_md="Be kind.")
    done, calls = await job("fork", merge_to="main")
    assert (done.code, calls) == (0, 0) and "only stored answers are used" in done.printed, done.printed
    change("fork", prompt_md="Be new.")
    forge.read_only = True
    done, calls = await job("fork", merge_to="main")
    assert (done.code, calls) == (101, 0) and "not run: 40 of 40 answers are not stored" in done.printed, done.printed
    assert "no comment: " in done.printed and "may not write comments" in done.printed


def test_every_action_is_pinned_and_nothing_people_write_becomes_code():
    action = yaml.safe_load((HERE / "action.yml").read_text("utf-8"))
    for step in action["runs"]["steps"]:
        assert "${{" not in step.get("run", "")
        assert "uses" not in step or len(step["uses"].split("@")[1]) == 40
    template = yaml.safe_load((HERE / "ci" / "gitlab.yml").read_text("utf-8"))
    assert template[".fairtrial-gate"]["artifacts"]["reports"]["junit"] == "fairtrial-gate/gate.junit.xml"
    (hook,) = yaml.safe_load((HERE / ".pre-commit-hooks.yaml").read_text("utf-8"))
    assert hook["entry"].startswith("fairtrial gate")
