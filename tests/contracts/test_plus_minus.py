"""One meaning of ± wherever it is read: half of the 95 % interval of the number before it. A deviation is `sd 20.5`.

One suite and one study of prompt styles are run once; everything that people read of them is searched for the sign, and
what is found is held against the published documents.
"""

import json
import random
import re
from html import unescape
from itertools import pairwise
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner
from starlette.testclient import TestClient

from fairtrial.analyse.compare import compared
from fairtrial.analyse.kind_means import by_kind
from fairtrial.analyse.run import Run, RunSeries
from fairtrial.cli.main import cli
from fairtrial.present.words.runs import reporting_line
from fairtrial.reports.export import export
from fairtrial.reports.site import write_site
from fairtrial.store import Store
from fairtrial.tracks.optimisation.analysis import optimisation_report
from fairtrial.tracks.optimisation.reports import render_styles
from fairtrial.web.app import make_app
from fairtrial.web.site import Site
from tests.test_pytest_plugin import plain_session
from tests.tracks.optimisation.test_style_report import STAND_IN

REPO = Path(__file__).parents[2]
ESTIMATE = re.compile(r"(−?\d+(?:\.\d+)?) ± (\d+(?:\.\d+)?)")
# What else may have the sign where results are shown.
LEGENDS = ["± is half of the 95 % interval; where it reaches further on one side, go by its limits."]
OPTIM_RUN = (
    "optim", "run", "python:stand_in.py:answer", "--style", "polite", "--style", "strict", "--n", "2", "5", "--difficulty",
    "easy", "--repeats", "2",
)  # fmt: skip
MARKS = {"good": 5, "fair": 3, "poor": 1}
WORTH = {"first": (7, 2, 1), "middle": (4, 3, 3), "last": (2, 3, 5)}  # how often an arm is good, fair and poor
CASES = [
    {
        "id": f"q{n:02}",
        "input": f"Question {n:02}?",
        "expected": "an answer",
        "category": "even" if n % 2 == 0 else "odd",
        "difficulty": "easy" if n < 12 else "hard",
    }
    for n in range(24)
]


def suite():
    rng = random.Random(7)
    targets = [
        {
            "id": name,
            "target": "mock:m",
            "options": {"answers": {case["id"]: rng.choices([*MARKS], weights, k=2) for case in CASES}},
        }
        for name, weights in WORTH.items()
    ]
    judge = {"target": "mock:judge", "options": {"verdict": {"marks": MARKS, "otherwise": 2}}}
    return {
        "name": "marks",
        "targets": targets,
        "judge": judge,
        "scorer": "golden_judge",
        "repeats": 2,
        "panel": {"judgements": 2},
        "cases": CASES,
    }


def told(store, *args):
    """What a command prints, of which lines may be joined: no number is looked for across columns."""
    found = CliRunner().invoke(cli, [*args, "--store", store.address], standalone_mode=False)
    if found.exception:
        raise found.exception
    return found.output


def read(page):
    """The text of a page, and what its pictures say to those who do not see them."""
    labels = re.findall(r"(?:title|aria-label|data-tip|alt)=\"([^\"]*)\"", page)
    return unescape("\n".join([re.sub(r"<[^>]*>", " ", page), *labels]))


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """The documents, and every surface that can be had without a browser."""
    folder = tmp_path_factory.mktemp("surfaces")
    (folder / "marks.yaml").write_text(yaml.safe_dump(suite()))
    (folder / "stand_in.py").write_text(STAND_IN)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("COLUMNS", "80")
        store = Store(f"sqlite:///{folder}/test.db")
        surfaces = {
            "run": told(store, "run", "marks.yaml", "--runs", "9"),
            "calibrate": told(store, "calibrate", "--suite", "marks.yaml", "--runs", "2"),
            "optim run": told(store, *OPTIM_RUN),
            "scorers": CliRunner().invoke(cli, ["scorers"]).output,
        }
        styles, *runs = [Run(store, record) for record in store.runs()]
        run = runs[-1]
        series = run.record.series_id
        documents = {
            "run": json.loads(told(store, "show", run.id, "--json")),
            "series": json.loads(told(store, "show", series, "--json")),
        }
        return documents, {
            **surfaces,
            **_terminal(store, runs, styles),
            **_files(run, styles, folder),
            **_notebook(run, RunSeries(runs)),
            **_pages(store, folder, run, styles),
            "pytest": plain_session(folder, "fairtrial_min_score = 50\n").stdout,
            "lines to quote": "\n".join(map(reporting_line, run.summary().arms)),
        }


def _terminal(store, runs, styles):
    run = runs[-1]
    commands = [
        ("show", run.id), ("show", run.id, "--details"), ("show", run.id, "--cases"), ("show", run.id, "--trials"),
        ("show", run.id, "--by", "category"), ("show", run.record.series_id), ("compare", run.id, "--details"),
        ("compare", run.id, "--arms", "first", "middle", "--margin", "40", "--details"), ("rank", run.id), ("variance", run.id),
        ("power", run.id, "--margin", "5"), ("cases", run.id), ("drift", *(one.id for one in runs)), ("list",),
        ("gate", run.id, "--min-score", "20"), ("optim", "report", styles.id),
        ("optim", "report", styles.id, "--by", "n", "--details"), ("replicate", "--demo", "--runs", "3", "--limit", "4"),
    ]  # fmt: skip
    return {
        " ".join(args).replace(run.id, "RUN").replace(run.record.series_id, "SERIES"): told(store, *args)
        for args in commands
    }


def _files(run, styles, folder):
    for name in ("run.html", "run.md", "run.junit.xml"):
        export(run, folder / name)
    written = {name: (folder / name).read_text("utf-8") for name in ("run.html", "run.md", "run.junit.xml")}
    write_site([run], folder / "site")
    pages = {f"site/{path.name}": path.read_text("utf-8") for path in (folder / "site").rglob("*.[hs][tv]*")}
    assert {"site/index.html", "site/badge.svg"} <= pages.keys()
    report = optimisation_report(styles)
    reports = {f"styles.{form}": render_styles(report, form) for form in ("html", "md", "tex", "csv")}
    return {
        name: read(text) if name.endswith(("html", "svg")) else text.replace("\\ensuremath{\\pm}", "±")
        for name, text in (written | pages | reports).items()
    }


def _notebook(run, series):
    found = compared(run)
    shapes = [run, series, found, found.pairs[0], by_kind(run)]
    return {f"notebook: {type(one).__name__}": read(one._repr_html_()) for one in shapes}


def _pages(store, folder, run, styles):
    addresses = [
        "/", "/home/suites", "/runs", "/board", "/board/standings", "/judges", "/judges/in-runs", f"/series/{run.record.series_id}",
        *(f"/runs/{run.id}{part}" for part in ("", "/brief", "/result", "/details", "/variance", "/share", "/badge.svg")),
        f"/runs/{run.id}/cases/1", f"/compare?runs={run.id}", f"/compare?runs={run.id}&a=last&b=first&margin=5",
        f"/plan?run={run.id}", f"/runs/{styles.id}/styles", f"/runs/{styles.id}/styles/result", "/optimisation",
        f"/optimisation/runs/{styles.id}",
    ]  # fmt: skip
    with store.reading() as connection:
        (calibration,) = {row[0] for row in connection.exec_driver_sql("select id from calibrations limit 1")}
    site = Site(store, folder)
    client = TestClient(make_app(site), headers={"origin": "http://testserver"})
    pages = {}
    for address in [*addresses, f"/judges/{calibration}"]:
        reply = client.get(address + ("&" if "?" in address else "?") + "wait=1")
        assert reply.status_code == 200, (address, reply.status_code)
        pages[address.replace(run.id, "RUN").replace(styles.id, "STYLES")] = read(reply.text)
    site.close()
    return pages


def known(documents):
    """Every number with an interval: its mean, half of the interval and its deviation."""
    numbers = [*documents["run"]["arms"], *documents["run"]["groups"]]
    numbers += [metric for arm in documents["run"]["arms"] for metric in arm["metrics"].values()]
    numbers += [*documents["series"]["arms"].values()]
    return [(one["mean"], (one["ci95"][1] - one["ci95"][0]) / 2, one["std_dev"]) for one in numbers if one["ci95"]]


def rounds_to(value, written):
    return abs(value - float(written.replace("−", "-"))) <= 0.5 * 10 ** -len(written.partition(".")[2]) + 1e-9


@pytest.mark.slow
def test_it_is_half_of_the_interval_of_the_number_before_it(shown):
    documents, surfaces = shown
    numbers = known(documents)
    arms = [(arm["mean"], arm["ci95"], arm["std_dev"]) for arm in documents["run"]["arms"]]
    # The test can tell: no deviation looks like half of an interval, and no two arms have the same score.
    assert all(abs((ci[1] - ci[0]) / 2 - sd) > 1 for _, ci, sd in arms)
    assert all(abs(one - other) > 1 for one, other in pairwise(sorted(mean for mean, _, _ in arms)))
    found, strange = {}, []
    for where, text in surfaces.items():
        assert text.strip(), where
        for mean, half in ESTIMATE.findall(text):
            candidates = [own for value, own, _ in numbers if rounds_to(value, mean)]
            found.setdefault(where, []).append((mean, half))
            if not any(rounds_to(own, half) for own in candidates):
                strange.append(f"{where}: {mean} ± {half}, where half of the interval is {candidates}")
        rest = ESTIMATE.sub("", text)
        for legend in LEGENDS:
            rest = rest.replace(legend, "")
        strange += [f"{where}: {rest[max(0, at.start() - 40) : at.end() + 40]!r}" for at in re.finditer("±", rest)]
        strange += [f"{where}: a column called `{name}`" for name in ("± sd", "~ sd") if name in text]
    assert not strange, "\n".join(strange)
    assert {"lines to quote", "/runs/RUN/share", "run.md"} <= found.keys()
    for legend in LEGENDS:
        assert any(legend in text for text in surfaces.values()), f"nobody needs {legend!r}"


@pytest.mark.slow
def test_the_line_to_quote_agrees_with_its_own_bounds(shown):
    """Whoever halves the printed interval gets the printed number, however it was rounded."""
    _, surfaces = shown
    lines = surfaces["lines to quote"].splitlines()
    assert len(lines) == 3
    for line in lines:
        name, _, half, low, high = re.fullmatch(
            r"(\w+): ([\d.]+) ± ([\d.]+) \(95% CI: \[([\d.]+), ([\d.]+)\]\)", line
        ).groups()
        assert abs((float(high) - float(low)) / 2 - float(half)) < 0.0501, line
        assert line in surfaces["/runs/RUN/share"] and name in WORTH


@pytest.mark.slow
def test_a_deviation_is_called_one(shown):
    documents, surfaces = shown
    for arm in documents["run"]["arms"]:
        deviation = f"{arm['std_dev']:.1f}"
        rows = [line for line in surfaces["show RUN --details"].splitlines() if line.split()[:1] == [arm["arm"]]]
        assert any(deviation in row for row in rows)
        assert re.search(
            rf"\| {arm['arm']} \| [\d.]+ \| [\d.]+ to [\d.]+ \| {re.escape(deviation)} \|", surfaces["run.md"]
        )
        within = f"{arm['metrics']['completeness']['repeat_sd']:.2f}"
        assert f"sd {within} within a case" in surfaces["run.md"]
    assert re.search(r"\bsd\b", surfaces["show SERIES"]) and re.search(
        r"\bsd\b", surfaces["replicate --demo --runs 3 --limit 4"]
    )
    assert re.search(r"\d+\.\d \(sd \d+\.\d\)", surfaces["show RUN --cases"])
    for form in ("html", "md"):
        assert re.search(r"0\.\d+ \(sd 0\.\d+\)", surfaces[f"styles.{form}"]), form
    assert re.search(r"\{\\scriptsize \(?sd 0\.\d+", surfaces["styles.tex"])
    assert re.search(r"sd 0\.\d\d", next(text for name, text in surfaces.items() if name.startswith("optim report")))


def test_pages_of_the_manual_use_it_as_the_product_does():
    """Documentation may show an estimate, or say what the sign means; nothing else."""
    pages = [
        REPO / "README.md",
        *(REPO / "docs").rglob("*.md"),
        *(REPO / "docs").rglob("*.svg"),
        *(REPO / "examples").rglob("*.md"),
    ]
    for page in pages:
        rest = ESTIMATE.sub("", page.read_text("utf-8")).replace("± is half of the 95 % interval", "")
        assert "±" not in rest, page


def test_the_sign_is_written_in_one_place():
    """Surfaces that no test renders cannot have another meaning either: they do not have the sign."""
    one_place = {"core/formatting.py"}
    not_about_results = {
        "cli/console.py",
        "tracks/optimisation/reports/tex.py",
        "web/pages/share.html.j2",
    }  # ± as a character
    written = {
        path.relative_to(REPO / "src/fairtrial").as_posix()
        for path in (REPO / "src/fairtrial").rglob("*")
        if path.suffix in (".py", ".j2", ".js", ".css", ".yaml") and "±" in _without_comments(path)
    }
    assert written == one_place | not_about_results


def _without_comments(path):
    text = path.read_text("utf-8")
    return re.sub(r'"""(?s:.*?)"""|(?m:\s#\s.*$)', "", text) if path.suffix == ".py" else text
