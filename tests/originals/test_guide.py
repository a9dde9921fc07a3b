"""The guide's own folders through our workflow, each number held against the guide's own definitions."""

from __future__ import annotations

import csv
import json
import math
import re
import shutil
import subprocess
from html import unescape
from io import StringIO
from pathlib import Path
from statistics import fmean
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

import fairtrial as ft
from fairtrial.cli.main import cli
from fairtrial.stats import bootstrap_ci
from fairtrial.tracks.optimisation.reports import render_styles
from tests.originals import definitions_guide as guide
from tests.originals.agreement import agree
from tests.originals.definitions_guide import INSTANCES, Evaluated

FILES = Path(__file__).parent / "files" / "guide"
STYLES = ("polite", "strict")
WEIGHTS = (0.7, 0.3)
GAPS = {
    "relative_gap": "relative_gap",
    "absolute_gap": "absolute_gap",
    "violation": "violation",
    "l2_distance": "distance",
}


def said(*args: str) -> str:
    """Return what a command prints; it must succeed."""
    found = CliRunner().invoke(cli, args, standalone_mode=False)
    if found.exception:
        raise found.exception
    return found.stdout


def flat(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()


class Workflow:
    """A folder of the guide, evaluated and reported as a user would, and what the guide makes of it."""

    def __init__(self, home: Path, name: str, *options: str) -> None:
        self.home = home
        shutil.copytree(FILES / name, home / name)
        self.document = json.loads(self.said("optim", "evaluate", name, "--json", *options))
        self.run = ft.open_run(self.document["run_id"], store=str(home / ".fairtrial" / "fairtrial.db"))
        self.files = [f"report.{form}" for form in ("csv", "md", "tex", "html", "json")]
        self.printed = self.said(
            "optim", "report", "--by", "difficulty", *(part for file in self.files for part in ("-o", file))
        )
        self.arms = {arm["arm"]: arm for arm in self.document["arms"]}
        self.pair = self.document["comparisons"]["pairs"][0]

    def said(self, *args: str) -> str:
        """Return what a command prints in the folder of this workflow, in a terminal of 80 columns."""
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(self.home)
            patch.setenv("COLUMNS", "80")
            return said(*args)

    def text(self, form: str) -> str:
        return (self.home / f"report.{form}").read_text("utf-8")

    def rows(self) -> list[dict[str, str]]:
        return list(csv.DictReader(StringIO(self.text("csv"))))

    def trials(self, style: str, instance: str) -> list[Any]:
        return [one for one in self.run.trials() if (one.arm, one.case_id) == (style, instance)]


@pytest.fixture(scope="module")
def suite(tmp_path_factory):
    """Eight instances with their problems, three answers for each style; some infeasible, some without the format."""
    return Workflow(tmp_path_factory.mktemp("suite"), "suite", "--partial-credit")


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """The guide's instance as its folder has it: baseline.json and five answers in each style, and nothing else."""
    return Workflow(tmp_path_factory.mktemp("alone"), "one-instance")


def evaluated(style: str, instance: str) -> list[Evaluated]:
    """Every answer of the suite in one style, as the guide evaluates it."""
    return [guide.evaluate(FILES / "suite" / instance / f"{style}_{k}.json", INSTANCES[instance]) for k in (1, 2, 3)]


def evaluated_alone(style: str) -> list[Evaluated]:
    folder = FILES / "one-instance"
    baseline = json.loads((folder / "baseline.json").read_text("utf-8"))
    return [guide.evaluate_alone(folder / f"{style}_{k}.json", baseline) for k in range(1, 6)]


def chance(suite: Workflow, instance: str) -> float:
    """The mean objective of random feasible points, which is stored with the baseline."""
    file = suite.home / f"{instance}.json"
    suite.said("baseline", f"suite/{instance}/problem.yaml", str(file))
    return float(json.loads(file.read_text("utf-8"))["random_objective"])


@pytest.fixture(scope="module")
def gaps(suite) -> dict[tuple[str, str], list[float]]:
    """The normalised gap of every answer by the guide, by style and instance."""
    best = {name: chance(suite, name) for name in INSTANCES}
    return {
        (style, name): [
            guide.normalised(one.objective, INSTANCES[name].best, best[name]) for one in evaluated(style, name)
        ]
        for style in STYLES
        for name in INSTANCES
    }


def composites(gaps: dict[tuple[str, str], list[float]], style: str, weights: tuple[float, float]) -> list[float]:
    """The composite of a style on every instance."""
    return [
        fmean(
            guide.composite(one.followed, gap, weights)
            for one, gap in zip(evaluated(style, name), gaps[style, name], strict=True)
        )
        for name in INSTANCES
    ]


# One answer


@pytest.mark.parametrize("instance", INSTANCES)
@pytest.mark.parametrize("style", STYLES)
def test_every_metric_of_every_answer(suite, gaps, style, instance):
    for trial, theirs, gap in zip(
        suite.trials(style, instance), evaluated(style, instance), gaps[style, instance], strict=True
    ):
        where, ours = f"{instance}/{style}_{trial.repeat}", trial.metrics
        agree(f"{where}: followed", ours["instruction_following"], float(theirs.followed))
        agree(f"{where}: feasible", ours["feasible"], float(bool(theirs.feasible)))
        for name, field in GAPS.items():
            agree(f"{where}: {name}", ours.get(name), getattr(theirs, field), 2e-6)
        agree(f"{where}: normalised gap", ours["normalised_gap"], gap, 1e-6)
        quality = 0.0 if theirs.violation is None else guide.partial_credit(gap, theirs.violation)
        agree(f"{where}: quality", ours["quality"], quality, 1e-5)


@pytest.mark.parametrize("instance", INSTANCES)
def test_partial_credit_by_reported_violations_stands_beside_ours(suite, gaps, instance):
    for style in STYLES:
        for trial, theirs, gap in zip(
            suite.trials(style, instance), evaluated(style, instance), gaps[style, instance], strict=True
        ):
            where = f"{instance}/{style}_{trial.repeat}"
            agree(f"{where}: reported violation", trial.metrics.get("reported_violation"), theirs.reported)
            credit = guide.partial_credit(gap, theirs.reported) if theirs.reported is not None else None
            credit = 0.0 if theirs.objective is None else credit
            agree(f"{where}: reported credit", trial.metrics.get("reported_credit"), credit, 1e-5)
            agree(f"{where}: the score is ours", 100 * trial.score, trial.metrics["quality"], 1e-9)


def test_optima_are_those_of_the_closed_form(suite):
    for name, instance in INSTANCES.items():
        found = json.loads(suite.said("baseline", f"suite/{name}/problem.yaml", "--json"))
        agree(f"{name}: f*", found["objective_value"], instance.best, 1e-6)
        agree(f"{name}: x*", found["x"], instance.best_x, 1e-3)
        agree(f"{name}: status", found["status"], "optimal")


def test_chance_is_the_mean_of_random_feasible_points(suite):
    """Of Σ x² over a box of ±10, whatever the sign of Σ x: n · 100 / 3."""
    agree("chance of the guide's instance", chance(suite, "easy-1"), 1000 / 3, 0.05)


# One style


@pytest.mark.parametrize("style", STYLES)
def test_rates_means_and_medians_of_a_style(suite, gaps, style):
    check_slice(suite.arms[style]["overall"], gaps, style, list(INSTANCES))


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("level", ["easy", "medium", "hard"])
def test_the_same_by_difficulty(suite, gaps, style, level):
    names = [name for name, one in INSTANCES.items() if one.difficulty == level]
    check_slice(suite.arms[style]["by"]["difficulty"][level], gaps, style, names)


@pytest.mark.parametrize("style", STYLES)
def test_the_same_by_size(suite, gaps, style):
    for size in {one.n for one in INSTANCES.values()}:
        names = [name for name, one in INSTANCES.items() if one.n == size]
        check_slice(suite.arms[style]["by"]["n"][f"n{size}"], gaps, style, names)


def check_slice(ours: dict[str, Any], gaps: Any, style: str, names: list[str]) -> None:
    """Following and feasibility rate, mean and median gaps, composite, each with its deviation between instances."""
    answers = {name: evaluated(style, name) for name in names}
    every = [one for own in answers.values() for one in own]
    agree("answers", ours["trials"], len(every))
    check_cell(ours, "instruction_following", [[float(one.followed) for one in own] for own in answers.values()])
    check_cell(ours, "feasible", [[float(bool(one.feasible)) for one in own] for own in answers.values()])
    check_cell(ours, "normalised_gap", [gaps[style, name] for name in names])
    for name, field in GAPS.items():
        there = [[value for one in own if (value := getattr(one, field)) is not None] for own in answers.values()]
        check_cell(ours, name, [own for own in there if own])
    every_gap = [gap for name in names for gap in gaps[style, name]]
    agree("median gap", ours["median_normalised_gap"], guide.middle(every_gap), 1e-6)
    rate, gap = fmean(one.followed for one in every), fmean(every_gap)
    agree("composite of the rates", ours["composite"], guide.composite(rate, gap), 1e-6)


def check_cell(ours: dict[str, Any], measure: str, values: list[list[float]]) -> None:
    """Mean over instances, deviation between them, and the median over answers."""
    means = [fmean(own) for own in values]
    cell = ours["cells"][measure]
    agree(f"mean {measure}", cell["mean"], fmean(means), 2e-6)
    agree(f"median {measure}", cell["median"], guide.middle([one for own in values for one in own]), 2e-6)
    if len(means) > 1:
        agree(f"sd of {measure}", cell["std_dev"], guide.mean_and_deviation(means)[1], 2e-6)


def test_the_composite_with_other_weights(suite, gaps):
    document = json.loads(suite.said("optim", "report", "--weights", *map(str, WEIGHTS), "--json"))
    report = ft.styles(suite.run, weights=WEIGHTS)
    for place, style in enumerate(STYLES):
        theirs = composites(gaps, style, WEIGHTS)
        agree(f"{style} in JSON", document["arms"][place]["overall"]["composite"], fmean(theirs), 1e-6)
        agree(f"{style} in Python", report.arms[place].overall.mean("composite"), fmean(theirs), 1e-6)


# Two styles


def test_the_paired_t_test_and_its_interval(suite, gaps):
    a, b = (composites(gaps, style, (0.5, 0.5)) for style in STYLES)
    t, p = guide.paired_t(a, b)
    agree("difference", suite.pair["difference"], fmean(a) - fmean(b), 1e-6)
    agree("t", suite.pair["paired_t"]["t_statistic"], t, 1e-5)
    agree("p", suite.pair["paired_t"]["p_value"], p, 1e-5)
    agree("interval", suite.pair["paired_t"]["ci95"], guide.paired_t_interval(a, b), 1e-5)
    assert suite.pair["method"] == "bounded" and suite.pair["p_value"] != pytest.approx(p)  # ours is the verdict


def test_the_bootstrap_interval(suite, gaps):
    a, b = (composites(gaps, style, (0.5, 0.5)) for style in STYLES)
    theirs = guide.bootstrap(a, b)
    agree(
        "bootstrap interval", bootstrap_ci([x - y for x, y in zip(a, b, strict=True)], expand=False).ci, theirs, 0.005
    )
    (ours,) = [one["ci95"] for one in suite.pair["robustness"] if one["method"].startswith("bootstrap")]
    assert ours[0] < theirs[0] and ours[1] > theirs[1]  # for few instances, ours is wider as Student's t is


def test_the_difference_by_difficulty_has_every_difficulty(suite, gaps):
    a, b = (composites(gaps, style, (0.5, 0.5)) for style in STYLES)
    groups = {one["value"]: one for one in suite.pair["groups"] if one["by"] == "difficulty"}
    agree("difficulties", list(groups), ["easy", "medium", "hard"])
    for level, group in groups.items():
        own = [place for place, one in enumerate(INSTANCES.values()) if one.difficulty == level]
        agree(f"{level}: instances", group["count"], len(own))
        agree(f"{level}: difference", group["difference"], fmean(a[k] - b[k] for k in own), 1e-6)
        agree(f"{level}: t", group["paired_t"]["p_value"], guide.paired_t([a[k] for k in own], [b[k] for k in own])[1],
              1e-5)  # fmt: skip


@pytest.mark.parametrize("form", ["printed", "md", "tex", "html"])
def test_every_difficulty_is_in_every_table(suite, form):
    text = suite.printed if form == "printed" else suite.text(form)
    tables = {
        "printed": re.split(r"\n(?=\n)", text),
        "md": re.split(r"\n## ", text),
        "tex": re.findall(r"\\begin\{tabular\}.*?\\end\{tabular\}", text, re.DOTALL),
        "html": re.findall(r"<table class=\"tbl styles\">.*?</table>", text, re.DOTALL),
    }[form]
    if form == "printed":  # a table for each of them, twice, and one with the differences
        assert [len(re.findall(rf"^ ?{level}\b", text, re.MULTILINE)) for level in ("easy", "medium", "hard")] == [
            3
        ] * 3
        return
    levels = [table for table in tables if re.search("easy", table, re.IGNORECASE)]
    assert len(levels) >= 3  # styles, gaps, differences
    for table in levels:
        assert all(re.search(level, table, re.IGNORECASE) for level in ("easy", "medium", "hard")), table[:200]


def test_the_headline_is_the_verdict_and_the_t_test_is_beside_it(suite):
    assert suite.pair["verdict"] == "cannot tell"
    sentence = "polite and strict are too close to call on composite: polite is ahead by"
    for text in (suite.printed, suite.text("md"), unescape(suite.text("html")), suite.text("json")):
        assert sentence in flat(re.sub(r"<[^>]*>", "", text).replace("\\", "")), text[:300]
    p, t = suite.pair["p_value"], suite.pair["paired_t"]["p_value"]
    assert f"Paired t over 8 cases: p {t:.3f}; the verdict's p is {p:.3f}" in flat(suite.printed)
    for form in ("md", "html", "tex"):
        assert f"{t:.3f}" in suite.text(form) and re.search(r"[Pp]aired (\S+ )?t", suite.text(form)), form


# One instance


def test_absolute_and_relative_gaps_where_the_optimum_is_0(alone):
    for style in STYLES:
        theirs, cells = evaluated_alone(style), alone.arms[style]["overall"]["cells"]
        for trial, one in zip(alone.trials(style, "one-instance"), theirs, strict=True):
            agree(f"{style}_{trial.repeat}: relative", trial.metrics["relative_gap"], one.relative_gap)
            agree(f"{style}_{trial.repeat}: absolute", trial.metrics["absolute_gap"], one.absolute_gap)
            agree(f"{style}_{trial.repeat}: distance", trial.metrics["l2_distance"], one.distance)
            agree(f"{style}_{trial.repeat}: gap of 0–1", trial.metrics["normalised_gap"], one.absolute_gap)
        for name in ("relative_gap", "absolute_gap", "l2_distance"):
            values = [getattr(one, GAPS[name]) for one in theirs]
            mean, spread = guide.mean_and_deviation(values)
            agree(f"{style}: {name}", [cells[name]["mean"], cells[name]["within"]], [mean, spread])
            agree(f"{style}: median {name}", cells[name]["median"], guide.middle(values))


def test_the_scale_of_the_gap_is_said_in_true_words(alone, suite):
    """`1 is chance` only where it is."""
    for form in ("printed", "md", "tex", "html", "json"):
        there = flat(unescape(alone.printed if form == "printed" else alone.text(form)))
        assert not re.search(r"1 (is |at )?(chance|no better than random)|f_random is the mean", there), form
        assert "absolute gap" in there, form
        other = flat(suite.printed if form == "printed" else unescape(suite.text(form)))
        if form != "json":
            assert "no better than random feasible points" in other and "absolute gap of the claimed" not in other, form


def test_five_runs_of_one_instance_give_mean_deviation_and_tests_over_runs(alone):
    values = {
        style: [guide.composite(one.followed, min(1.0, one.absolute_gap)) for one in evaluated_alone(style)]
        for style in STYLES
    }
    for style, own in values.items():
        mean, spread = guide.mean_and_deviation(own)
        cell = alone.arms[style]["overall"]["cells"]["composite"]
        agree(f"{style}: mean and deviation", [cell["mean"], cell["within"]], [mean, spread])
        half = (cell["ci95"][1] - cell["ci95"][0]) / 2
        agree(f"{style}: half of the interval", half, 2.7764451051977987 * spread / math.sqrt(5), 1e-6)
    here = alone.pair["on_this_case"]
    p, interval = guide.two_sample_t(*values.values())
    agree("two-sample t", [here["test"]["p_value"], *here["test"]["ci95"]], [p, *interval], 1e-8)
    agree("paired by run", here["test"]["paired_p_value"], guide.paired_t(*values.values())[1], 1e-8)
    assert here["verdict"] == "better" and alone.pair["verdict"] == "cannot tell"  # about other instances


@pytest.mark.parametrize("form", ["printed", "md", "tex", "html", "json"])
def test_what_holds_on_this_instance_is_said_everywhere(alone, form):
    text = alone.printed if form == "printed" else alone.text(form)
    plain = flat(unescape(re.sub(r"<[^>]*>", "", text)).replace("\\", "").replace("{-}", "-"))
    test = alone.pair["on_this_case"]["test"]
    assert f"On this instance, polite is better by {test['difference']:.3f} (95 % CI " in plain.replace("{}", ""), form
    assert "there is only one instance" in plain and ("sd" in plain or form == "json"), form


async def test_other_surfaces_say_it_too(alone, tmp_path):
    """`compare` and `show` in the terminal, the page, the run's report and the notebook."""
    compared = flat(alone.said("compare", alone.run.id))
    assert "there is only one case. On this case, polite is better by" in compared
    assert "two-sample t p" in compared and "paired by repeat p" in compared
    assert "On this case, polite is better by" in flat(alone.said("show", alone.run.id))
    assert "On this case, polite is better by" in ft.compare(alone.run)._repr_html_()
    ft.report(alone.run, tmp_path / "run.html")
    assert "On this case, polite is better by" in flat(
        re.sub(r"<[^>]*>", "", unescape((tmp_path / "run.html").read_text("utf-8")))
    )


# The files


@pytest.mark.parametrize("name", ["suite", "alone"])
def test_the_csv_file_has_every_number(name, request):
    workflow = request.getfixturevalue(name)
    means = {
        (row["arm"], row["by"], row["problems"], row["measure"]): row for row in workflow.rows() if row["row"] == "mean"
    }
    for style, arm in workflow.arms.items():
        parts = {("all", "all"): arm["overall"]}
        parts |= {(by, kind): part for by, kinds in arm["by"].items() for kind, part in kinds.items()}
        for where, part in parts.items():
            for measure, cell in part["cells"].items():
                row = means[style, *where, measure]
                for column, value in {
                    "mean": cell["mean"],
                    "sd_between_problems": cell["std_dev"],
                    "sd_within_problems": cell["within"],
                    "median": cell["median"],
                }.items():
                    agree(f"{style} {where} {measure} {column}", float(row[column]) if row[column] else None, value)
    (pair,) = [
        row for row in workflow.rows() if row["measure"] == "composite" and row["by"] == "all" and row["against"]
    ]
    agree("difference", float(pair["mean"]), workflow.pair["difference"])
    agree("verdict", pair["verdict"], workflow.pair["verdict"])
    if name == "suite":
        agree("paired t", float(pair["p_paired_t"]), workflow.pair["paired_t"]["p_value"])


@pytest.mark.parametrize("name", ["suite", "alone"])
def test_every_table_has_the_relative_and_the_absolute_gap(name, request):
    workflow = request.getfixturevalue(name)
    for style in STYLES:
        cells = workflow.arms[style]["overall"]["cells"]
        for measure in ("relative_gap", "absolute_gap"):
            shown = f"{cells[measure]['mean']:.3g}"
            assert re.search(rf"{re.escape(shown)}(?!\d)", workflow.printed), (style, measure)
            for form in ("md", "html", "tex"):
                text = workflow.text(form).replace("{}", "").replace("{-}", "-")
                assert shown in text, (form, style, measure)


def compiled(text: str, folder: Path) -> str:
    """Return the log of LaTeX."""
    program = shutil.which("pdflatex")
    if program is None:
        pytest.skip("there is no pdflatex here: install texlive-latex-base to compile the report")
    (folder / "report.tex").write_text(text, "utf-8")
    command = [program, "-draftmode", "-interaction=nonstopmode", "-halt-on-error", "report.tex"]
    done = subprocess.run(command, cwd=folder, capture_output=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout[-2000:]
    return (folder / "report.log").read_text("utf-8", errors="replace")


@pytest.mark.parametrize("name", ["suite", "alone"])
def test_the_latex_fits_the_page(name, request, tmp_path):
    log = compiled(request.getfixturevalue(name).text("tex"), tmp_path)
    assert not re.findall(r"^Overfull.*$", log, re.MULTILINE)


def test_the_latex_fits_the_page_with_long_names(suite, tmp_path):
    report = ft.styles(suite.run)
    names = {one: f"openrouter:some-vendor/a-model-with-a-long-name-2026-11-18/{one}" for one in STYLES}
    replace = msgspec.structs.replace
    renamed = replace(
        report,
        arms=[replace(arm, arm=names[arm.arm], target=arm.arm) for arm in report.arms],
        comparisons=report.comparisons.renamed(names),
    )
    text = render_styles(renamed, "tex")
    assert "polite" in text and "openrouter" in text
    assert not re.findall(r"^Overfull.*$", compiled(text, tmp_path), re.MULTILINE)


def test_both_names_of_the_baseline_are_known(suite, tmp_path, monkeypatch):
    names = {path.name for path in (FILES / "suite").glob("*/baseline*")}
    agree("names", names == {"baseline.json", "baseline_solution.json"}, True)
    monkeypatch.chdir(tmp_path)
    shutil.copytree(FILES / "one-instance", "one")
    before = json.loads(said("optim", "evaluate", "one", "--json"))
    Path("one/baseline.json").rename("one/baseline_solution.json")
    after = json.loads(said("optim", "evaluate", "one", "--json"))
    agree("the same numbers", after["arms"], before["arms"])
    shutil.copy("one/baseline_solution.json", "one/baseline.json")
    with pytest.raises(ft.FairtrialError, match="two baselines"):
        said("optim", "evaluate", "one")


def test_the_folder_is_written_as_it_is_read(suite, tmp_path):
    suite.said("optim", "export", suite.run.id, str(tmp_path / "again"))
    for name in INSTANCES:
        for path in sorted((FILES / "suite" / name).glob("*_?.json")):
            agree(
                f"{name}/{path.name}",
                (tmp_path / "again" / name / path.name).read_text("utf-8"),
                path.read_text("utf-8"),
            )
        written = json.loads((tmp_path / "again" / name / "baseline.json").read_text("utf-8"))
        agree(f"{name}: objective_value", written["objective_value"], INSTANCES[name].best, 1e-6)


def test_claimed_objective_and_violations_are_compared_with_what_is_so(suite):
    for trial in suite.run.trials():
        theirs = guide.evaluate(
            FILES / "suite" / trial.case_id / f"{trial.arm}_{trial.repeat}.json", INSTANCES[trial.case_id]
        )
        lies = (trial.case_id, trial.arm, trial.repeat) == ("hard-1", "polite", 2)
        if "misreported_objective" in trial.metrics:
            agree(f"{trial.trial_id}: misreported", trial.metrics["misreported_objective"], float(lies))
        if theirs.reported is not None and theirs.violation is not None:
            agree(f"{trial.trial_id}: reported", trial.metrics["misreported_violations"],
                  float(abs(theirs.reported - theirs.violation) > 1e-3))  # fmt: skip


# From a prompt to the table


@pytest.fixture
def asked(tmp_path, monkeypatch):
    """The guide's whole experiment with a function as the model: both styles on two instances, five times."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    Path("model.py").write_text(
        "import json, zlib\n"
        "def query(user_query, system_prompt='', mcp_servers=None):\n"
        "    n = 2 if '-2.' in user_query.split('Problem', 1)[1][:12] else 5\n"
        "    far = (zlib.crc32(user_query.encode()) % 100) / (1000 if 'lease' in user_query else 100)\n"
        "    return json.dumps({'x': [far] * n, 'objective_value': n * far**2})\n"
    )
    return tmp_path


def test_a_run_ends_with_the_guides_table_and_names_styles_alone(asked):
    printed = said("optim", "run", "python:model.py:query", "--family", "original", "--n", "2", "5", "--repeats", "5")
    assert "python:model.py:query/" not in printed
    assert re.search(r"^ arm +followed % +feasible % +gap +composite", printed, re.MULTILINE)
    assert re.search(r"^ arm +relative gap +absolute gap", printed, re.MULTILINE)
    assert printed.count("\n") < 45
    for name in ("report.md", "report.html", "report.tex"):
        said("optim", "report", "-o", name)
        assert "query/polite" not in Path(name).read_text("utf-8"), name
    document = json.loads(said("optim", "report", "--json"))
    agree("arms in JSON", [arm["arm"] for arm in document["arms"]], [f"python:model.py:query/{one}" for one in STYLES])
    rows = list(csv.DictReader(StringIO(said_csv())))
    assert {row["arm"] for row in rows} == {f"python:model.py:query/{one}" for one in STYLES}
    agree("styles are names of arms", said("compare", "--arms", *STYLES), said("compare"))
    assert said("show", "--trials", "--arm", "polite").count("model.py:query/polite") >= 10
    shown = said("show", "latest")
    assert "quality over" not in shown  # it is the score, whose difference is given already


def said_csv() -> str:
    said("optim", "report", "-o", "report.csv")
    return Path("report.csv").read_text("utf-8")


def test_numbers_that_only_rounding_left_are_0(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "tiny"
    folder.mkdir()
    (folder / "baseline.json").write_text(json.dumps({"x": [0, 0], "objective_value": 0.0}))
    for style in STYLES:
        for k in (1, 2):
            (folder / f"{style}_{k}.json").write_text(json.dumps({"x": [0, 2e-15], "objective_value": 8.04e-30}))
    printed = said("optim", "evaluate", "tiny")
    assert "e-30" not in printed and "e-22" not in printed
    said("optim", "report", "-o", "report.md")
    assert "e-30" not in Path("report.md").read_text("utf-8")
