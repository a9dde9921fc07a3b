"""Prompt styles from the first command to the report: the tutorial as it stands, its files, wordings, lengths."""

import csv
import json
import re
import shlex
from html import unescape
from io import StringIO
from pathlib import Path

import msgspec
import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from fairtrial.analyse.run import Run
from fairtrial.cli.main import cli
from fairtrial.config.styles import added_words, confounded, find_styles, matched, padded, styles
from fairtrial.core.errors import FairtrialError
from fairtrial.stats.crossed import Between, CrossedMean, between_columns, sum_of
from fairtrial.stats.mean import Mean
from fairtrial.store import Store
from fairtrial.tracks.optimisation.analysis import optimisation_report
from fairtrial.tracks.optimisation.commands.options import _one_by_one
from fairtrial.tracks.optimisation.reports import render_styles, write_styles
from fairtrial.tracks.optimisation.reports.tex import escaped
from fairtrial.tracks.optimisation.words import headline

REPO = Path(__file__).parents[3]
TUTORIAL = (REPO / "docs" / "tutorial-optimisation.md").read_text("utf-8")
STAND_IN = '''
"""The optimum with some noise, more of it in the strict style, and now and then prose."""
import hashlib, json, re
import numpy as np
from fairtrial.tracks.optimisation.catalogue import baselines, by_name

def answer(prompt, system, servers):
    problem = by_name(re.search(r"Problem (\\S+)\\.", prompt).group(1))
    best = baselines([problem])[0]
    rng = np.random.default_rng(int(hashlib.sha256(prompt.encode()).hexdigest()[:8], 16))
    strict = any(word in prompt for word in ("You must", "No mistakes", "Get it done", "do it right", "nothing less"))
    if rng.random() < (0.3 if strict else 0.02):
        return "All of them are 0."
    if best.x is None:
        return json.dumps({"x": None, "objective_value": None, "status": "infeasible"})
    low, high = problem.box
    x = np.asarray(best.x) + (0.5 if strict else 0.05) * rng.random() * (rng.uniform(low, high) - np.asarray(best.x))
    return json.dumps({"x": x.tolist(), "objective_value": problem.value(x)})
'''


def sections(page):
    """Return the numbered sections of the tutorial, each with its one command."""
    pairs = re.findall(r"^## (\d+)\. (.*?)(?=^## |\Z)", page, re.DOTALL | re.MULTILINE)
    return {int(number): re.findall(r"```sh\n(.*?)```", text, re.DOTALL) for number, text in pairs}


@pytest.fixture(scope="module")
def followed(tmp_path_factory):
    """The tutorial's commands, run one after another, with a stand-in for the embedded model."""
    folder = tmp_path_factory.mktemp("tutorial")
    (folder / "stand_in.py").write_text(STAND_IN)
    outputs = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for number, (block, *more) in sections(TUTORIAL).items():
            assert not more, f"section {number} has more than one command"
            (line,) = block.strip().splitlines()
            program, *arguments = shlex.split(line.replace("local:smollm2", "python:stand_in.py:answer"))
            assert program == "fairtrial"
            found = CliRunner().invoke(cli, arguments, standalone_mode=False)
            assert found.exception is None, (line, found.exception)
            outputs[number] = found.output
    return folder, outputs


def test_the_tutorial_has_ten_sections_with_a_command_each():
    assert list(sections(TUTORIAL)) == list(range(1, 11))


@pytest.mark.slow
def test_the_tutorial_runs_as_it_stands(followed):
    folder, said = followed
    assert "Minimise f(x)" in said[1] and "original-10" in said[2]
    assert json.loads((folder / "baseline.json").read_text())["status"] == "optimal"
    assert "nothing was run" in said[4] and "90 trials" in said[4]
    assert "compares the styles" in said[5]
    assert "on composite" in said[6] and "quality composite" in said[6] and re.search(r"sd 0\.\d\d", said[6])
    assert "n = " not in said[7] and "nothing else" in said[7] and "wordings are a sample" in " ".join(said[7].split())
    assert (folder / "answers" / "original-2" / "polite_5.json").is_file()
    assert "the problem is known" in said[10]
    assert {path.suffix for path in folder.glob("report.*")} == {".html", ".md", ".tex", ".csv"}


@pytest.fixture(scope="module")
def report(followed):
    folder, _ = followed
    store = Store(str(folder / ".fairtrial" / "fairtrial.db"), create=False)
    runs = [record.id for record in store.runs() if record.suite_name == "optimisation"]
    return optimisation_report(Run.find(runs[0], store))


@pytest.mark.slow
def test_the_report_is_the_guides_table(followed, report):
    folder, _ = followed
    page = (folder / "report.md").read_text()
    assert headline(report.shown()).replace("_", "\\_") in page
    for words in ("composite: the guide's", "quality composite: ours", "p (Holm)", "Methods", "Citation", "seeds 1"):
        assert words in page, words
    assert re.search(r"\| \d+ \(sd \d+\) \\\[\d+, \d+\\\] \|", page)  # mean and deviation with the interval
    rows = list(csv.DictReader(StringIO((folder / "report.csv").read_text())))
    means = {(row["style"], row["measure"]): row for row in rows if row["row"] == "mean" and row["by"] == "all"}
    for arm in report.arms:
        for measure, cell in arm.overall.cells.items():
            row = means[arm.style, measure]
            assert float(row["mean"]) == pytest.approx(cell.mean)
            assert float(row["sd_within_problems"]) == pytest.approx(cell.within)
            assert float(row["ci95_low"]) <= cell.mean <= float(row["ci95_high"])
    pair = next(row for row in rows if row["row"] == "difference" and row["measure"] == "composite")
    (compared,) = report.comparisons.pairs
    assert (float(pair["ci95_low"]), float(pair["ci95_high"])) == pytest.approx(compared.ci95)
    assert float(pair["p_holm"]) == pytest.approx(compared.p_adjusted) and pair["verdict"] == compared.verdict
    assert compared.wordings == 10 and compared.difference > 0.2


@pytest.mark.slow
def test_html_needs_nothing_and_shows_every_figure(followed):
    folder, _ = followed
    page = unescape((folder / "report.html").read_text())
    for words in (
        "Which style leads",
        "Effect by difficulty",
        "Answers against the optimum",
        "Methods, ready to paste",
    ):
        assert words in page
    assert "default-src 'none'" in page and not re.search(r"(?:src|href)=\"https?:", page)


COMMANDS = {
    "documentclass", "usepackage", "begin", "end", "section", "subsection", "textbf", "emph", "centering", "footnotesize", "scriptsize",
    "setlength", "tabcolsep", "toprule", "midrule", "bottomrule", "multicolumn", "caption", "label", "textbackslash",
    "textasciicircum", "textasciitilde", "textless", "textgreater", "textbar", "textquotedbl", "textasciigrave",
    "textquotesingle", "ensuremath", "pm", "times", "geq", "leq", "textendash", "textemdash", "ldots",
    "textperiodcentered", "textonehalf", "textquoteright", "textquotedblleft", "textquotedblright",
    "IfFileExists", "newcommand", "hline", "sloppy", "allowbreak", "parbox", "raggedright", "shortstack",
}  # fmt: skip


def check_latex(text):
    """Read LaTeX strictly: known commands, balanced braces and environments, as many cells in a row as columns."""
    body = "\n".join(line for line in text.splitlines() if not line.startswith("%"))
    assert set(re.findall(r"\\([A-Za-z]+)", body)) <= COMMANDS
    plain = re.sub(r"\\[\\{}$&#%_]", "", body)  # escaped characters
    depth = 0
    for letter in plain:
        depth += (letter == "{") - (letter == "}")
        assert depth >= 0
    assert depth == 0 and not re.search(r"[$#%^~]", plain.replace("\\\\", ""))
    assert re.findall(r"\\begin\{(\w+)\}", body) and sorted(re.findall(r"\\begin\{(\w+)\}", body)) == sorted(
        re.findall(r"\\end\{(\w+)\}", body)
    )
    for columns, rows in re.findall(r"\\begin\{tabular\}\{([lr]+)\}(.*?)\\end\{tabular\}", body, re.DOTALL):
        for row in rows.split("\n"):
            if row.endswith("\\\\") and "multicolumn" not in row:
                assert len(re.findall(r"(?<!\\)&", row)) == len(columns) - 1, row
    outside = re.sub(r"\\begin\{tabular\}.*?\\end\{tabular\}", "", body, flags=re.DOTALL)
    assert not re.search(r"(?<!\\)&", outside)


HOSTILE = "\\input{/etc/passwd} <script>alert(1)</script> & 100% $x$ #1 ~^_ {} `id` | =cmd() 模型 [x]"


@pytest.mark.slow
def test_no_name_becomes_markup(report):
    check_latex(render_styles(report, "tex"))
    encoded = msgspec.json.encode(report)
    for old in (report.arms[0].arm, report.arms[0].style):
        encoded = encoded.replace(json.dumps(old).encode(), msgspec.json.encode(HOSTILE))
    renamed = msgspec.json.decode(encoded, type=type(report))
    assert renamed.shown().arms[0].arm == HOSTILE
    check_latex(render_styles(renamed, "tex"))
    assert "<script>alert" not in render_styles(renamed, "html")
    markdown = render_styles(renamed, "md")
    assert "<script" not in markdown.replace("\\<", "") and "\\|" in markdown
    cells = [cell for row in csv.reader(StringIO(render_styles(renamed, "csv"))) for cell in row]
    assert HOSTILE in cells and not any(cell.startswith(("=", "@")) for cell in cells)


@given(st.text(max_size=60))
def test_any_text_is_harmless_in_latex(text):
    check_latex(f"\\begin{{document}}{escaped(text)}\\end{{document}}")


def test_files_that_cannot_be_written(report, tmp_path):
    for name, says in {"report.docx": "must end in one of", "nowhere/report.md": "does not exist"}.items():
        with pytest.raises(FairtrialError, match=says):
            write_styles(report, tmp_path / name)


class TestWordings:
    def test_a_random_effect_widens_the_interval_and_p_agrees_with_it(self):
        rng = np.random.default_rng(3)
        for count in (8, 40):
            mean = Mean(rng.normal(0.5, 0.2, count), bounds=(-1.0, 1.0))
            narrow, wide = (CrossedMean(mean, Between(variance, 4.0, 5)) for variance in (0.0, 0.01))
            assert narrow.interval() == mean.interval() and narrow.p_value() == mean.p_value()
            assert wide.interval()[0] < mean.interval()[0] and wide.p_value() > mean.p_value()
            at = wide.interval(wide.p_value())
            assert at[0] == pytest.approx(0, abs=1e-6)
            assert wide.p_within(0.95) < wide.p_within(0.6) <= 1

    def test_the_variance_between_wordings_is_found(self):
        rng = np.random.default_rng(5)
        found = []
        for _ in range(200):
            table = rng.normal(0, 0.1, (30, 1)) + rng.normal(0, 0.2, 5) + rng.normal(0, 0.3, (30, 5))
            table[rng.random((30, 5)) < 0.1] = np.nan
            found.append(between_columns(table).variance)
        assert np.mean(found) == pytest.approx(0.2**2 / 5, rel=0.15)
        assert between_columns(np.ones((5, 1))) is None and between_columns(np.full((3, 2), np.nan)) is None

    @pytest.mark.simulation
    def test_wordings_that_vary_are_not_called_a_style(self):
        """Without an effect: at most 6 % are called one, where leaving the wordings out calls every third one."""
        rng = np.random.default_rng(11)
        families = np.arange(30) % 12
        wrong, fixed = 0, 0
        for _ in range(400):
            a, b = (0.5 + rng.normal(0, 0.06, 5) + rng.normal(0, 0.15, (30, 5)) for _ in range(2))
            mean = Mean(a.mean(axis=1) - b.mean(axis=1), clusters=families, bounds=(-np.inf, np.inf))
            crossed = CrossedMean(mean, sum_of([between_columns(a), between_columns(b)]))
            wrong += crossed.p_value() < 0.05
            fixed += mean.p_value() < 0.05
        assert wrong / 400 <= 0.07 and fixed / 400 > 0.25


class TestStyleFiles:
    def test_the_example_of_the_documentation(self, tmp_path):
        (block,) = [text for text in re.findall(r"```yaml\n(.*?)```", TUTORIAL, re.DOTALL) if "# pirates.yaml" in text]
        (tmp_path / "pirates.yaml").write_text(block)
        assert {name: len(texts) for name, texts in find_styles(["pirates.yaml"], tmp_path).items()} == {
            "pirate": 2,
            "captain": 2,
        }

    def test_tables_texts_and_names(self, tmp_path):
        (tmp_path / "own.yaml").write_text('pirate: ["Arr! {{problem}}", "Ahoy! {{ problem }}"]\nplain: "{{input}}"\n')
        (tmp_path / "kind.md").write_text("Be kind.\n\n{{problem}}\n---\nSmile!\n{{problem}}\n")
        found = find_styles(["own.yaml", "kind.md", "terse"], tmp_path)
        assert {name: len(texts) for name, texts in found.items()} == {"pirate": 2, "plain": 1, "kind": 2, "terse": 5}
        assert list(find_styles(["own.yaml:pirate"], tmp_path)) == ["pirate"]

    @pytest.mark.parametrize(
        ("text", "says"),
        [
            ("- a", "has no styles"),
            ("a: [1]", "needs a text or a list"),
            ("a: no place", "has no {{problem}}"),
            ("{", "neither valid YAML nor valid JSON"),
            ("a/b: '{{problem}}'", "cannot be the name of a style"),
        ],
    )
    def test_mistakes(self, tmp_path, text, says):
        (tmp_path / "own.yaml").write_text(text)
        with pytest.raises(FairtrialError, match=re.escape(says)):
            find_styles(["own.yaml"], tmp_path)
        with pytest.raises(FairtrialError, match="cannot be read"):
            find_styles(["missing.yaml"], tmp_path)

    def test_in_a_suite(self, write_suite, tmp_path):
        from fairtrial import pipeline

        (tmp_path / "own.yaml").write_text('pirate: ["Arr! {{problem}}"]\nplain: "{{problem}}"\n')
        selection = {"kind": "optimisation", "ids": ["original-2"], "styles": ["own.yaml", "polite"]}
        suite = pipeline.load(write_suite(suite={**selection, "match_length": True}))
        assert [arm.condition.name for arm in suite.arms] == ["pirate", "plain", "polite"]
        lengths = [added_words(text) for arm in suite.arms for text in arm.condition.prompts]
        assert max(lengths) - min(lengths) <= 1 and tmp_path / "own.yaml" in suite.files_used()
        with pytest.raises(FairtrialError, match="has several styles"):
            pipeline.load(write_suite(suite=selection, conditions={"a": {"style": "own.yaml"}}))


def test_styles_made_equally_long_keep_their_tone():
    found = matched(styles())
    lengths = {added_words(text) for texts in found.values() for text in texts}
    assert max(lengths) - min(lengths) <= 1
    for name, texts in found.items():
        for text, short in zip(texts, styles()[name], strict=True):
            assert confounded(text) is None and text.count("{{problem}}") == 1
            assert text.split("{{problem}}")[1] == short.split("{{problem}}")[1]
    assert [added_words(padded("{{problem}}", count)) for count in range(2, 40)] == list(range(2, 40))


@pytest.mark.parametrize(
    ("given", "means"),
    [
        (["m", "--n", "2", "5"], ["m", "--n", "2", "--n", "5"]),
        (["--n", "2", "5", "10", "m"], ["--n", "2", "--n", "5", "--n", "10", "m"]),
        (["--repeats", "2", "m", "--n", "5"], ["--repeats", "2", "m", "--n", "5"]),
        (["--n", "2", "m", "--count", "3"], ["--n", "2", "m", "--count", "3"]),
    ],
)
def test_several_sizes_in_a_row(given, means):
    assert _one_by_one(given) == means


def test_every_option_of_run_is_one_of_optim_run():
    from fairtrial.cli.commands.running import run
    from fairtrial.tracks.optimisation.commands.options import run as optim_run

    def names(command):
        return {name for parameter in command.params for name in parameter.opts if name.startswith("-")}

    assert names(run) - names(optim_run) == {"--watch"}  # which watches a suite file
