"""Gates are closed unless they know: without a baseline nobody can tell, in every CI service and in none.

The variables are those that the services document, for a pull request of a fork whose branch is called main, too.
"""

import json
import subprocess
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

import fairtrial as ft
from fairtrial.cli.main import cli
from fairtrial.forges.ci import ci_job
from fairtrial.workflows.baselines import baseline_for
from tests.analyse.test_compare import arm, cases

# For each: a pull request to main, a push to main, and the variable that names the target.
JOBS = {
    "GitHub Actions": (
        {"GITHUB_ACTIONS": "true", "GITHUB_REF": "refs/pull/12/merge", "GITHUB_REF_NAME": "12/merge",
         "GITHUB_REF_TYPE": "branch", "GITHUB_BASE_REF": "main", "GITHUB_HEAD_REF": "main"},
        {"GITHUB_ACTIONS": "true", "GITHUB_REF": "refs/heads/main", "GITHUB_REF_NAME": "main",
         "GITHUB_REF_TYPE": "branch", "GITHUB_BASE_REF": "", "GITHUB_HEAD_REF": ""},
        "GITHUB_BASE_REF",
    ),
    "GitHub's merge queue": (
        {"GITHUB_ACTIONS": "true", "GITHUB_REF": "refs/heads/gh-readonly-queue/main/pr-12-83a20ec058e2",
         "GITHUB_REF_NAME": "gh-readonly-queue/main/pr-12-83a20ec058e2", "GITHUB_REF_TYPE": "branch"},
        {"GITHUB_ACTIONS": "true", "GITHUB_REF_NAME": "main", "GITHUB_REF_TYPE": "branch"},
        "GITHUB_REF_NAME",
    ),
    "GitLab CI": (
        {"GITLAB_CI": "true", "CI_MERGE_REQUEST_IID": "12", "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main",
         "CI_MERGE_REQUEST_SOURCE_BRANCH_NAME": "main", "CI_DEFAULT_BRANCH": "main"},
        {"GITLAB_CI": "true", "CI_COMMIT_BRANCH": "main", "CI_DEFAULT_BRANCH": "main"},
        "CI_MERGE_REQUEST_TARGET_BRANCH_NAME",
    ),
    "Jenkins": (
        {"JENKINS_URL": "https://ci.example/", "BRANCH_NAME": "PR-12", "CHANGE_ID": "12", "CHANGE_TARGET": "main",
         "CHANGE_BRANCH": "main", "GIT_BRANCH": "PR-12"},
        {"JENKINS_URL": "https://ci.example/", "BRANCH_NAME": "main", "BRANCH_IS_PRIMARY": "true"},
        "CHANGE_TARGET",
    ),
    "Jenkins without multibranch": (
        {"JENKINS_URL": "https://ci.example/", "ghprbPullId": "12", "ghprbTargetBranch": "main",
         "GIT_BRANCH": "origin/main"},
        {"JENKINS_URL": "https://ci.example/", "GIT_BRANCH": "origin/main"},
        "ghprbTargetBranch",
    ),
    "CircleCI": (
        {"CIRCLECI": "true", "CIRCLE_BRANCH": "pull/12", "CIRCLE_PULL_REQUEST": "https://github.com/o/r/pull/12",
         "CIRCLE_PR_NUMBER": "12"},
        {"CIRCLECI": "true", "CIRCLE_BRANCH": "main"},
        "a branch of that name, and no origin/HEAD",  # the service names no target
    ),
    "Buildkite": (
        {"BUILDKITE": "true", "BUILDKITE_BRANCH": "main", "BUILDKITE_PULL_REQUEST": "12",
         "BUILDKITE_PULL_REQUEST_BASE_BRANCH": "main", "BUILDKITE_PIPELINE_DEFAULT_BRANCH": "main"},
        {"BUILDKITE": "true", "BUILDKITE_BRANCH": "main", "BUILDKITE_PULL_REQUEST": "false",
         "BUILDKITE_PULL_REQUEST_BASE_BRANCH": "", "BUILDKITE_PIPELINE_DEFAULT_BRANCH": "main"},
        "BUILDKITE_PULL_REQUEST_BASE_BRANCH",
    ),
    "Azure Pipelines": (
        {"TF_BUILD": "True", "BUILD_SOURCEBRANCH": "refs/pull/12/merge", "SYSTEM_PULLREQUEST_PULLREQUESTID": "12",
         "SYSTEM_PULLREQUEST_TARGETBRANCH": "refs/heads/main"},
        {"TF_BUILD": "True", "BUILD_SOURCEBRANCH": "refs/heads/main", "BUILD_SOURCEBRANCHNAME": "main"},
        "SYSTEM_PULLREQUEST_TARGETBRANCH",
    ),
    "Bitbucket Pipelines": (
        {"BITBUCKET_BUILD_NUMBER": "7", "BITBUCKET_BRANCH": "main", "BITBUCKET_PR_ID": "12",
         "BITBUCKET_PR_DESTINATION_BRANCH": "main"},
        {"BITBUCKET_BUILD_NUMBER": "7", "BITBUCKET_BRANCH": "main"},
        "BITBUCKET_PR_DESTINATION_BRANCH",
    ),
    "Woodpecker": (
        {"CI": "woodpecker", "CI_COMMIT_BRANCH": "main", "CI_COMMIT_PULL_REQUEST": "12",
         "CI_COMMIT_TARGET_BRANCH": "main", "CI_REPO_DEFAULT_BRANCH": "main"},
        {"CI": "woodpecker", "CI_COMMIT_BRANCH": "main", "CI_COMMIT_PULL_REQUEST": "",
         "CI_REPO_DEFAULT_BRANCH": "main"},
        "CI_COMMIT_TARGET_BRANCH",
    ),
    "Drone": (
        {"DRONE": "true", "DRONE_BRANCH": "main", "DRONE_PULL_REQUEST": "12", "DRONE_TARGET_BRANCH": "main",
         "DRONE_REPO_BRANCH": "main"},
        {"DRONE": "true", "DRONE_BRANCH": "main", "DRONE_TARGET_BRANCH": "main", "DRONE_REPO_BRANCH": "main"},
        "DRONE_TARGET_BRANCH",
    ),
    "Travis CI": (
        {"TRAVIS": "true", "TRAVIS_BRANCH": "main", "TRAVIS_PULL_REQUEST": "12", "TRAVIS_PULL_REQUEST_BRANCH": "main"},
        {"TRAVIS": "true", "TRAVIS_BRANCH": "main", "TRAVIS_PULL_REQUEST": "false"},
        "TRAVIS_BRANCH",
    ),
    "AppVeyor": (
        {"APPVEYOR": "True", "APPVEYOR_REPO_BRANCH": "main", "APPVEYOR_PULL_REQUEST_NUMBER": "12"},
        {"APPVEYOR": "True", "APPVEYOR_REPO_BRANCH": "main"},
        "APPVEYOR_REPO_BRANCH",
    ),
    "Cirrus CI": (
        {"CIRRUS_CI": "true", "CIRRUS_BRANCH": "pull/12", "CIRRUS_PR": "12", "CIRRUS_BASE_BRANCH": "main",
         "CIRRUS_DEFAULT_BRANCH": "main"},
        {"CIRRUS_CI": "true", "CIRRUS_BRANCH": "main", "CIRRUS_DEFAULT_BRANCH": "main"},
        "CIRRUS_BASE_BRANCH",
    ),
    "Semaphore": (
        {"SEMAPHORE": "true", "SEMAPHORE_GIT_BRANCH": "main", "SEMAPHORE_GIT_PR_NUMBER": "12"},
        {"SEMAPHORE": "true", "SEMAPHORE_GIT_BRANCH": "main"},
        "SEMAPHORE_GIT_BRANCH",
    ),
    "AWS CodeBuild": (
        {"CODEBUILD_BUILD_ID": "b:1", "CODEBUILD_WEBHOOK_TRIGGER": "pr/12", "CODEBUILD_WEBHOOK_BASE_REF":
         "refs/heads/main", "CODEBUILD_WEBHOOK_HEAD_REF": "refs/heads/main"},
        {"CODEBUILD_BUILD_ID": "b:1", "CODEBUILD_WEBHOOK_HEAD_REF": "refs/heads/main"},
        "CODEBUILD_WEBHOOK_BASE_REF",
    ),
    "TeamCity": (
        {"TEAMCITY_VERSION": "2026.1", "BUILD_NUMBER": "7"},
        {"TEAMCITY_VERSION": "2026.1", "BUILD_NUMBER": "7"},
        "a branch of that name, and no origin/HEAD",  # variables name no branch at all
    ),
    "no service": ({}, {}, "a branch of that name, and no origin/HEAD"),
}  # fmt: skip


@pytest.fixture
def in_job(monkeypatch):
    """Make this process a job: of the service whose variables these are, and of no other."""
    known = {name for pull, push, _ in JOBS.values() for name in (*pull, *push)}

    def enter(**variables):
        for name in known:
            monkeypatch.delenv(name, raising=False)
        for name, value in variables.items():
            monkeypatch.setenv(name, value)

    return enter


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """An empty repository with a branch main, in the working folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")

    def git(*args):
        identity = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main")
        return subprocess.run(["git", *identity, *args], capture_output=True, text=True, check=True).stdout.strip()

    git("init", "-q")
    git("commit", "-qm", "one", "--allow-empty")
    return git


@pytest.fixture
def gated(store):
    """Call the command as people do, and return its exit code and all that it printed."""

    def call(*args):
        found = CliRunner().invoke(cli, ["gate", *args, "--store", store.address], standalone_mode=False)
        if found.exception is not None:
            raise found.exception
        return found.return_value, " ".join(found.stdout.split())

    return call


def answers(run_suite, right, **keys):
    return run_suite(targets=[arm("bot", right)], cases=cases(), **keys)


@pytest.mark.slow
@pytest.mark.parametrize("service", JOBS)
async def test_auto_in_every_service(service, in_job, repository, run_suite, store, gated):
    pull, push, named_by = JOBS[service]
    in_job(**push)
    before = await answers(run_suite, 40)
    assert before.context["git"]["branch"] == "main"
    code, said = gated("--against", "auto")
    assert code == 101 and "no baseline: there is no run for branch:main" in said, said
    assert "From now on this run of `main` is one" in said

    repository("checkout", "-q", "-b", "feature")
    repository("commit", "-qm", "two", "--allow-empty")
    in_job(**pull)
    worse = await answers(run_suite, 27)
    assert worse.context["git"]["branch"] != "main"  # else the next change would be compared with this one
    code, said = gated("--against", "auto")
    assert code == 100 and f"Baseline: run {before.id} (main, " in said and f"main ({named_by})" in said, said

    store.delete_run(before.id)
    code, said = gated("--against", "auto")
    assert code == 101 and "no run for branch:main; this store has no other run of `test`" in said, said
    assert "Run the suite on `main` first" in said and named_by in said


NO_BASELINE = "no baseline: there is no run for branch:main"
UNNAMED = "no baseline: the margin cannot be checked without one"


@pytest.mark.parametrize(
    ("args", "gate", "code", "says"),
    [
        (["--against", "auto"], {}, 101, NO_BASELINE),
        (["--against", "branch:main"], {}, 101, NO_BASELINE),
        (["--against", "auto", "--min-score", "10"], {}, 101, NO_BASELINE),
        (["--against", "auto", "--min-score", "10", "--these-cases"], {}, 101, NO_BASELINE),
        (["--against", "auto", "--min-coverage", "10"], {}, 101, NO_BASELINE),
        (["--against", "auto", "--unsure", "101"], {}, 101, NO_BASELINE),
        (["--against", "auto", "--unsure", "fail"], {}, 100, NO_BASELINE),
        (["--against", "auto", "--unsure", "pass"], {}, 0, NO_BASELINE),
        (["--against", "auto", "--until-sure", "--budget-usd", "1"], {}, 101, NO_BASELINE),
        (["--against", "auto"], {"must_pass": ["c00"]}, 101, NO_BASELINE),
        (["--against", "auto"], {"guards": {"cost": 10}, "categories": {"a": 5}}, 101, NO_BASELINE),
        ([], {"against": "auto", "must_pass": ["c00"]}, 101, NO_BASELINE),
        ([], {"against": "auto", "unsure": "pass"}, 0, NO_BASELINE),
        (["--against", "golden"], {}, 101, "no baseline: there is no run `golden` and no tag with that name"),
        (["--against", "file:none.db.gz"], {}, 101, "no baseline: there is no file none.db.gz"),
        (["--against", "notes:"], {}, 101, "no baseline: no earlier commit up to HEAD has a note"),
        # What fails without any baseline has failed, and --unsure says nothing about it.
        (["--against", "auto", "--min-score", "99.9", "--unsure", "pass"], {}, 100, "failed: minimum of bot"),
        (["--against", "auto", "--unsure", "pass"], {"must_pass": ["c39"]}, 100, "failed: must_pass of bot"),
        # A baseline that the terms need and nobody named.
        ([], {}, 101, "no baseline: only coverage was checked, and no minimum"),
        (["--margin", "3"], {}, 101, UNNAMED),
        (["--min-score", "10"], {"margin": 3}, 101, UNNAMED),
        ([], {"must_pass": ["c00"], "guards": {"cost": 10}}, 101, "no baseline: guards cannot be checked without one"),
        # None is needed.
        (["--min-score", "10"], {}, 0, "gate passed"),
        (["--min-coverage", "90"], {}, 0, "gate passed"),
        ([], {"must_pass": ["c00"]}, 0, "gate passed"),
        (["--min-score", "99.9"], {}, 100, "gate failed"),
    ],
)  # fmt: skip
async def test_without_a_baseline(args, gate, code, says, in_job, repository, run_suite, gated):
    in_job(**JOBS["Jenkins"][0])
    await answers(run_suite, 36, **({"gate": gate} if gate else {}))
    found, said = gated(*args)
    assert (found, says in said) == (code, True), said
    found, document = gated(*args, "--json")
    written = json.loads(document)
    assert found == written["exit_code"] == code
    if "no baseline" in says:
        assert written["result"] == "cannot tell" and says in written["baseline"] and written["against"] == []


async def test_every_surface_says_the_same(in_job, repository, run_suite, gated, tmp_path, store):
    in_job(GITHUB_ACTIONS="true", GITHUB_BASE_REF="main", GITHUB_STEP_SUMMARY=str(tmp_path / "summary.md"))
    run = await answers(run_suite, 36)
    files = [tmp_path / name for name in ("gate.md", "gate.junit.xml", "gate.json")]
    code, said = gated("--against", "auto", *(part for file in files for part in ("-o", str(file))))
    markdown, junit, document = (file.read_text() for file in files)
    found = ft.gate(run, against="auto")
    (check,) = (one for one in found.checks if one.result == "cannot tell")
    assert code == found.exit_code == json.loads(document)["exit_code"] == 101 and not found
    assert check.message == found.baseline == json.loads(document)["baseline"]
    assert check.message.startswith(NO_BASELINE) and check.message.endswith("main (GITHUB_BASE_REF)")
    assert f"cannot tell: regression of all arms: {check.message}" in said and "gate cannot tell" in said
    assert "fairtrial gate: cannot tell" in markdown and NO_BASELINE in markdown
    assert (tmp_path / "summary.md").read_text() == markdown
    suite = ElementTree.fromstring(junit)
    assert (suite.get("failures"), suite.get("errors")) == ("0", "1") and NO_BASELINE in junit
    assert NO_BASELINE in found._repr_html_() and NO_BASELINE in repr(found)


def test_a_branch_that_is_not_merged_is_compared_with_the_default_branch(in_job, tmp_path):
    (tmp_path / "event.json").write_text(json.dumps({"repository": {"default_branch": "trunk"}}))
    push = {"GITHUB_ACTIONS": "true", "GITHUB_REF_NAME": "feature", "GITHUB_REF_TYPE": "branch"}
    job = ci_job({**push, "GITHUB_EVENT_PATH": str(tmp_path / "event.json")})
    assert (job.branch, job.default.branch) == ("feature", "trunk")
    for unreadable in ("none.json", "."):
        assert ci_job({**push, "GITHUB_EVENT_PATH": str(tmp_path / unreadable)}).default.branch == ""
    assert ci_job({**push, "GITHUB_REF_TYPE": "tag"}).branch == ""
    # With the rights of the target: the reference is the target's, and the run is still the pull request's.
    theirs = ci_job({"GITHUB_REF": "refs/heads/main", "GITHUB_REF_NAME": "main", "GITHUB_BASE_REF": "main",
                     "GITHUB_HEAD_REF": "patch-1"})  # fmt: skip
    assert (theirs.pull, theirs.branch, theirs.target.branch) == ("patch-1", "", "main")
    assert ci_job({"GITLAB_CI": "true", "CI_COMMIT_BRANCH": "x", "CI_DEFAULT_BRANCH": "main"}).default.branch == "main"
    assert ci_job({"TF_BUILD": "True", "BUILD_SOURCEBRANCH": "refs/tags/v1"}).branch == ""
    assert ci_job({"TF_BUILD": "True", "BUILD_SOURCEBRANCH": "refs/heads/fix/it"}).branch == "fix/it"


async def test_what_git_knows(in_job, repository, run_suite, store, tmp_path):
    in_job()
    run = await answers(run_suite, 36)

    def words(**variables):
        return baseline_for("auto", store, run, tmp_path, variables).words

    repository("branch", "-m", "stem")
    said = words()
    assert "`auto` found no branch, because no variable of a CI service is set" in said
    assert "git knows no default branch here. Name it: --against branch:main" in said
    assert "because CircleCI names no branch that this job is merged into" in words(CIRCLECI="true")
    repository("branch", "master")
    assert "there is no run for branch:master" in words()
    repository("config", "init.defaultBranch", "stem")
    assert "there is no run for branch:stem" in words()
    repository("update-ref", "refs/remotes/origin/dev", "HEAD")
    repository("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/dev")
    assert "`auto` is the default branch: dev (origin/HEAD)" in words()
    assert "This job of CircleCI names no pull request, so `auto`" in words(CIRCLECI="true")
    assert "This job of Jenkins names no target branch, so `auto`" in words(JENKINS_URL="x", CHANGE_ID="7")
    (tmp_path / ".git").rename(tmp_path / "gone")
    assert "this folder is in no git repository" in words()


async def test_where_no_comment_can_be_written_that_is_said(in_job, run_suite, store):
    await answers(run_suite, 36)
    for service, says in {
        "Jenkins": "comments are written by jobs of GitHub Actions and GitLab CI, and this is one of Jenkins",
        "no service": "this job is not about a pull request",
    }.items():
        in_job(**JOBS[service][0])
        args = ["gate", "--min-score", "10", "--comment", "auto", "--store", store.address]
        assert f"no comment: {says}" in CliRunner().invoke(cli, args, standalone_mode=False).stderr


async def test_a_run_of_changed_files_does_not_become_the_baseline(in_job, repository, run_suite, gated, tmp_path):
    in_job()
    (tmp_path / "prompt.md").write_text("one")
    repository("add", "prompt.md")
    repository("commit", "-qm", "two")
    (tmp_path / "prompt.md").write_text("two")
    await answers(run_suite, 36)
    code, said = gated("--against", "auto")
    assert code == 101 and "Commit the changed files and run the suite on `main`" in said, said


async def test_the_first_baseline_is_kept_on_demand(in_job, repository, run_suite, store, gated, tmp_path):
    in_job()
    await answers(run_suite, 36, gate={"margin": 5})
    file = tmp_path / "base.db.gz"
    code, _ = gated("--against", f"file:{file}", "--keep", str(file))
    assert code == 101 and not file.exists()
    code, _ = gated("--against", f"file:{file}", "--keep", str(file), "--unsure", "pass")
    assert code == 0 and file.exists()
    file.unlink()
    code, _ = gated("--keep", str(file))  # who keeps a run and names none to compare with makes the first
    assert code == 0 and file.exists()
