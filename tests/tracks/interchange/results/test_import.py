"""`fairtrial import results` and `ft.import_results`: what users see, and what must never happen."""

import asyncio
import csv
import io
import json
import shlex
import struct
import zipfile
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fairtrial as ft
from fairtrial.core.errors import FairtrialError
from fairtrial.foreign import source
from fairtrial.foreign.results import Columns
from fairtrial.store import Store
from fairtrial.store.imports import ImportedRun
from fairtrial.tables import jsonl
from fairtrial.tracks.interchange import import_log
from fairtrial.tracks.interchange.results._zip import Zip, ZipError
from fairtrial.tracks.interchange.results.table import Rows
from fairtrial.tracks.interchange.values import mark_of, name_of, params_of, scrub, tidy
from tests.e2e.conftest import cli  # noqa: F401 - a fixture
from tests.tracks.interchange.results.conftest import DATA

A, B = DATA / "inspect/a.eval", DATA / "inspect/b.eval"


@pytest.fixture(autouse=True)
def _own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def rows(path, *records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def log(samples, **changes):
    """Return a small `.json` log of inspect."""
    evaluation = {"task": "t", "task_id": "T", "model": "m/a", "created": "2026-11-16T06:00:00+00:00", **changes}
    evaluation = {"config": {"epochs": 1}, "scorers": [{"name": "exact"}], **evaluation}
    return json.dumps({"version": 2, "status": "success", "eval": evaluation, "plan": {}, "samples": samples})


def sample(number=1, value="C", **changes):
    scores = {"exact": {"value": value}}
    base = {"id": number, "epoch": 1, "input": f"q{number}", "target": "x", "output": {"completion": "x"}}
    return {**base, "scores": scores, **changes}


class TestTwoLogs:
    def test_import_says_what_to_do_next_and_that_gives_a_verdict(self, cli):  # noqa: F811
        code, out, err = cli("import", "results", A, B)
        assert code == 0 and not err
        command = next(line for line in out.splitlines() if line.startswith("next: fairtrial compare "))
        code, out, _ = cli(*command.split()[2:], "--json")
        document = json.loads(out)
        (pair,) = document["pairs"]
        assert code == 0 and pair["count"] == 30
        assert pair["difference"] == pytest.approx(100 * (0.8666666666666667 - 0.7083333333333334))
        assert any("imported from inspect-ai 0.3.285" in note for note in document["notes"])

    def test_the_same_in_three_lines_of_python(self):
        a, b = ft.import_results([A, B])
        verdict = ft.compare([a, b]).pairs[0]
        assert verdict.count == 30 and verdict.verdict == "cannot tell"

    @pytest.mark.slow
    def test_everything_else_works_on_them(self, cli, tmp_path):  # noqa: F811
        run = ft.import_results(A)
        for command in (
            ["show", run.id],
            ["rank", run.id, ft.import_results(B).id],
            ["variance", run.id],
            ["cases", run.id],
            ["list"],
        ):
            code, out, _ = cli(*command)
            assert code == 0 and out
        assert cli("gate", run.id, "--min-score", "10")[0] == 0
        assert cli("report", run.id, "-o", "r.html")[0] == 0
        assert cli("export", run.id, "-o", "t.csv")[0] == 0
        text = (tmp_path / "r.html").read_text()
        assert "Imported from a.eval (inspect-ai 0.3.285)" in text and str(DATA) not in text

    def test_an_answer_can_be_scored_again_and_nothing_can_be_asked_again(self, cli):  # noqa: F811
        run = ft.import_results(A)
        again = ft.rescore(run, "contains")
        assert again.status == "completed" and again.arms[0].scored == 58
        for command in ("resume", "retry"):
            code, _, err = cli(command, run.id)
            assert code == 1 and "was imported from inspect-ai and cannot be continued here" in err
        assert "choose a scorer of fairtrial with --scorer NAME" in cli("rescore", run.id)[2]

    def test_its_context_is_what_is_known_of_it(self, cli):  # noqa: F811
        ft.import_results(A)
        code, out, err = cli("show", "--context")
        assert code == 0 and "imported by fairtrial" in out, err

    def test_json(self, cli):  # noqa: F811
        code, out, _ = cli("import", "results", A, "--json")
        document = json.loads(out)
        assert code == 0 and document["runs"][0]["happened"] == "imported" and document["next"]
        assert json.loads(cli("import", "results", A, "--json")[1])["runs"][0]["happened"] == "already there"

    def test_in_an_event_loop(self):
        async def work():
            return await ft.aimport_results(A)

        assert asyncio.run(work()).id == ft.import_results(A).id


class TestAttempts:
    def test_a_retried_log_replaces_the_earlier_one(self, cli):  # noqa: F811
        first = ft.import_results(DATA / "inspect/err.eval")
        code, out, _ = cli("import", "results", DATA / "inspect/retry.eval")
        assert code == 0 and f"replaces run {first.id}" in out
        assert "newer attempt at the same task" in cli("import", "results", DATA / "inspect/err.eval")[1]
        assert [run.status for run in Store().runs()] == ["completed"]

    @pytest.mark.parametrize("files", [("err.eval", "retry.eval"), ("retry.eval", "err.eval"), ()])
    def test_attempts_that_are_imported_together_are_one_run(self, cli, files, tmp_path):  # noqa: F811
        logs = tmp_path / "logs"
        logs.mkdir()
        for name in ("err.eval", "retry.eval"):
            (logs / name).write_bytes((DATA / "inspect" / name).read_bytes())
        code, out, err = cli("import", "results", *([logs / name for name in files] or [logs]))
        (run,) = Store().runs()
        assert (code, err) == (0, "") and run.status == "completed" and run.number == 1
        assert f"err.eval: run {run.id} is a newer attempt at the same task; nothing was added" in out
        assert out.endswith(f"next: fairtrial show {run.id}\n")
        assert ft.import_results(logs).id == run.id

    def test_what_people_added_to_a_run_is_kept(self, cli):  # noqa: F811
        first = ft.import_results(DATA / "inspect/err.eval")
        assert cli("tag", first.id, "mine")[0] == 0
        cli("import", "results", DATA / "inspect/retry.eval")
        assert len(Store().runs()) == 2

    def test_an_unfinished_log_says_so(self, cli):  # noqa: F811
        _, out, _ = cli("import", "results", DATA / "inspect/unfinished.eval")
        assert "unfinished: the log has no end" in out
        assert Store().runs()[0].status == "incomplete"


class TestMatching:
    @pytest.mark.slow
    def test_an_inspect_log_and_an_lm_eval_log_of_the_same_questions_are_paired(self, cli):  # noqa: F811
        one = ft.import_results(A)
        groups = {run.record.suite_name: run for run in ft.import_results(DATA / "lm-eval/b")}
        pair = ft.compare([one, groups["arith"]]).pairs[0]
        assert pair.count == 30
        few_shot = ft.import_results(DATA / "lm-eval/mc")
        assert ft.compare([one, few_shot]).pairs[0].count == 30

    def test_other_wordings_of_the_expected_answer_do_not_keep_cases_apart(self, tmp_path):
        records = [{"id": n, "model": "a", "score": n % 2, "input": f"q {n}", "expected": "yes"} for n in range(5)]
        others = [{**r, "model": "b", "id": f"x{r['id']}", "input": f"q  {r['id']}", "expected": "Y"} for r in records]
        a, b = (
            ft.import_results(rows(tmp_path / "a.jsonl", *records)),
            ft.import_results(rows(tmp_path / "b.jsonl", *others)),
        )
        assert ft.compare([a, b]).pairs[0].count == 5

    def test_ids_count_only_where_the_question_is_not_recorded(self, tmp_path):
        records = [{"id": n, "model": "a", "score": n % 2, "input": f"q {n}"} for n in range(5)]
        blind = [{"id": n, "model": "b", "score": 1} for n in range(5)]
        other = [{"id": n, "model": "c", "score": 1, "input": f"something else {n}"} for n in range(5)]
        a = ft.import_results(rows(tmp_path / "a.jsonl", *records))
        assert ft.compare([a, ft.import_results(rows(tmp_path / "b.jsonl", *blind))]).pairs[0].count == 5
        with pytest.raises(FairtrialError, match="no cases in common"):
            ft.compare([a, ft.import_results(rows(tmp_path / "c.jsonl", *other))])


class TestTables:
    RECORDS = [
        {"qid": f"q{n}", "system": arm, "grade": 1 + (n + k) % 5, "topic": "x", "usd": 0.5, "ms": 20, "junk": None}
        for n in range(6)
        for arm in ("a", "b")
        for k in range(2)
    ]
    NAMES = {"case": "qid", "arm": "system", "score": "grade", "category": "topic", "cost": "usd", "latency": "ms"}

    def check(self, run):
        a, b = run.plan_arms
        assert (a.name, b.name, a.repeats, run.plan.case_count) == ("a", "b", 2, 6)
        trial = next(iter(run.trials()))
        assert (trial.score, trial.metrics, trial.cost_usd, trial.latency_ms) == (0.0, {"grade": 1.0}, 0.5, 20.0)
        assert "the answers" in run.record.origin["missing"]

    def test_a_csv_with_a_scale_of_its_own(self, tmp_path):
        with (tmp_path / "t.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, list(self.RECORDS[0]))
            writer.writeheader()
            writer.writerows(self.RECORDS)
        self.check(ft.import_results("t.csv", **self.NAMES, scale=(1, 5)))

    def test_a_data_frame(self):
        pandas = pytest.importorskip("pandas")
        run = ft.import_results(pandas.DataFrame(self.RECORDS), **self.NAMES, scale=(1, 5))
        self.check(run)
        assert ft.import_results(pandas.DataFrame(self.RECORDS), **self.NAMES, scale=(1, 5)).id == run.id

    def test_an_arrow_table(self):
        pyarrow = pytest.importorskip("pyarrow")
        self.check(ft.import_results(pyarrow.Table.from_pylist(self.RECORDS), **self.NAMES, scale=(1, 5)))

    def test_rows(self):
        self.check(ft.import_results(self.RECORDS, **self.NAMES, scale=(1, 5)))

    def test_values_outside_0_to_1_need_a_scale(self, cli, tmp_path):  # noqa: F811
        rows(tmp_path / "t.jsonl", *self.RECORDS)
        options = [f"--{name}={value}" for name, value in self.NAMES.items()]
        code, _, err = cli("import", "results", "t.jsonl", *options)
        assert code == 1 and "say its worst and best value with --scale" in err and not Store().runs()
        assert cli("import", "results", "t.jsonl", *options, "--scale", "1..5")[0] == 0
        assert "is not a scale" in cli("import", "results", "t.jsonl", *options, "--scale", "5")[2]

    def test_a_missing_column_is_named_with_the_nearest(self, cli, tmp_path):  # noqa: F811
        rows(tmp_path / "t.jsonl", {"case": 1, "model": "a", "score": 1})
        assert "did you mean `score`" in cli("import", "results", "t.jsonl", "--score", "scor")[2]
        rows(tmp_path / "u.jsonl", {"x": 1})
        assert "not recognised" in cli("import", "results", "u.jsonl")[2]
        assert (
            "no column for the case: say which one it is" in cli("import", "results", "u.jsonl", "--format", "table")[2]
        )

    def test_empty_cells_are_no_scores_and_errors_are_failures(self, tmp_path):
        records = [
            {"case": 1, "model": "a", "score": None, "error": "503 server error"},
            {"case": 2, "model": "a", "score": "", "error": None},
            {"case": 3, "model": "a", "score": True, "error": None},
        ]
        run = ft.import_results(rows(tmp_path / "t.jsonl", *records))
        assert [(trial.status, trial.failure_kind, trial.score) for trial in run.trials()] == [
            ("failed", "server", None),
            ("unscored", None, None),
            ("scored", None, 1.0),
        ]


class TestMetrics:
    def test_another_metric_can_be_the_score(self, cli):  # noqa: F811
        path = DATA / "inspect/shapes.eval"
        assert "it has: exact, includes" in cli("import", "results", path, "--score", "nope")[2]
        run = ft.import_results(path, score="length")
        assert run.record.origin["metric"] == "length" and "exact" in run.arms[0].metrics
        assert run.arms[0].aggregate.mean == pytest.approx(0.475)

    def test_nan_is_no_score(self, tmp_path):
        (tmp_path / "t.json").write_text(log([sample(1), sample(2, float("nan")), sample(3, float("inf"))]))
        run = ft.import_results("t.json")
        assert [trial.status for trial in run.trials()] == ["scored", "unscored", "unscored"]


@pytest.fixture(scope="module")
def bomb():
    """A small log that becomes 300 MB."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as file:
        file.writestr("_journal/start.json", log([]))
        file.writestr("samples/1_epoch_1.json", b"0" * (300 * 2**20))
    return packed.getvalue()


class TestHostileFiles:
    def test_keys_in_foreign_logs_never_reach_the_store(self, tmp_path):
        key = "sk-" + "a1B2c3D4e5F6g7H8"
        document = json.loads(json.dumps({"results": {"results": [], "prompts": []}, "config": {}, "evalId": "e"}))
        document["config"] = {
            "providers": [{"id": "openai:m", "config": {"apiKey": key, "headers": {"Authorization": key}}}]
        }
        document["results"]["prompts"] = [{"provider": "openai:m", "raw": "{{q}}", "label": "p"}]
        headers = {"http": {"headers": {"authorization": f"Bearer {key}", "set-cookie": "session=abcdef0123456789"}}}
        document["results"]["results"] = [
            {"promptIdx": 0, "testIdx": 0, "success": True, "score": 1, "provider": {"id": "openai:m"}, "metadata": headers,
             "testCase": {"vars": {"q": f"my key is {key}"}, "metadata": {"api_key": key, "x": {"token": key}, "ok": 1}},
             "response": {"output": f"Authorization: Bearer {key}", "metadata": headers}, "failureReason": 0},
            {"promptIdx": 0, "testIdx": 1, "success": False, "score": 0, "error": f"401 for api_key={key}",
             "testCase": {"vars": {"q": "b"}}, "failureReason": 2},
        ]  # fmt: skip
        (tmp_path / "r.json").write_text(json.dumps(document))
        ft.import_results("r.json").store.close()
        stored = b"".join(path.read_bytes() for path in (tmp_path / ".fairtrial").iterdir() if path.is_file())
        assert key.encode() not in stored and b"abcdef0123456789" not in stored and b"[key hidden]" in stored

    def test_names_from_foreign_logs_are_one_harmless_line(self, tmp_path, cli):  # noqa: F811
        bad = "\x1b[31mred\u202e\n../../etc/passwd" + "x" * 500
        (tmp_path / "t.json").write_text(log([sample(bad), sample("ok")], model=bad, task=bad))
        code, out, _ = cli("import", "results", "t.json")
        assert code == 0 and "\x1b" not in out and "\u202e" not in out
        assert all(len(arm.name) <= 200 for arm in ft.open_run().plan_arms)

    @pytest.mark.slow
    def test_a_bomb_is_refused_before_it_fills_the_memory(self, tmp_path, bomb):
        (tmp_path / "b.eval").write_bytes(bomb)
        with pytest.raises(FairtrialError, match="larger than 256 MB"):
            ft.import_results("b.eval")
        assert not Store().runs()

    @pytest.mark.slow
    def test_a_size_that_lies_does_not_help_a_bomb(self, tmp_path, bomb):
        (tmp_path / "b.eval").write_bytes(bomb.replace(struct.pack("<I", 300 * 2**20), struct.pack("<I", 10)))
        with pytest.raises(FairtrialError, match="larger than 256 MB"):
            ft.import_results("b.eval")

    def test_a_log_without_its_directory_gives_what_is_there(self, tmp_path):
        whole = A.read_bytes()
        (tmp_path / "cut.eval").write_bytes(whole[: len(whole) // 2])
        run = ft.import_results("cut.eval")
        assert run.status == "incomplete" and 10 < len(list(run.trials())) < 60

    @pytest.mark.parametrize("body", [b"PK\x03\x04", b"PK\x03\x04" + b"\0" * 40, A.read_bytes()[:-30] + b"\0" * 30])
    def test_a_damaged_log_is_one_sentence_or_what_is_there(self, body, tmp_path):
        (tmp_path / "d.eval").write_bytes(body)
        try:
            ft.import_results("d.eval")
        except FairtrialError as error:
            assert "d.eval" in str(error) and "\n" not in str(error)

    @given(st.binary(max_size=200), st.integers(0, 200))
    def test_any_bytes_in_a_zip_file_are_an_error_in_words(self, noise, at):
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
            file.writestr("a", "some text" * 10)
        content = bytearray(buffer.getvalue())
        content[at : at + len(noise)] = noise
        try:
            archive = Zip(io.BytesIO(bytes(content)))
            for member in archive.members():
                archive.read(member)
        except (ZipError, zlib.error) as error:
            assert str(error)

    @given(st.text(), st.text())
    def test_scrubbing_keeps_ordinary_text(self, one, other):
        assert scrub(f"{one} 12 {other}"[:11]) == f"{one} 12 {other}"[:11]
        assert "sk-" not in scrub(f"x sk-{'a1' * 10} y")

    @pytest.mark.slow
    @given(st.recursive(st.none() | st.floats() | st.text(), lambda s: st.lists(s) | st.dictionaries(st.text(), s)))
    def test_metadata_is_always_json(self, value):
        json.dumps(tidy(value), allow_nan=False)

    @given(st.text() | st.integers() | st.none() | st.floats())
    def test_names_are_one_line(self, value):
        assert len(name_of(value).splitlines()) <= 1
        assert mark_of(value) is None or isinstance(mark_of(value), float)


def test_the_next_command_names_the_store_that_was_given(cli, monkeypatch):  # noqa: F811
    _, out, _ = cli("import", "results", A, B, "--store", "my runs.db")
    (line,) = [line for line in out.splitlines() if line.startswith("next: ")]
    assert line.endswith(" --store 'my runs.db'")
    assert cli(*shlex.split(line.removeprefix("next: fairtrial ")))[0] == 0
    document = json.loads(cli("import", "results", A, B, "--store", "my runs.db", "--json")[1])
    assert document["next"] == [line.removeprefix("next: ")]
    monkeypatch.setenv("FAIRTRIAL_STORE", "my runs.db")  # then every command finds it
    assert "--store" not in cli("import", "results", A)[1]


class TestRepeats:
    def table(self, *records):
        with open("t.csv", "w", newline="") as file:
            csv.writer(file).writerows([("q", "who", "ok", "round"), *records])
        return "import", "results", "t.csv", "--case", "q", "--arm", "who", "--score", "ok", "--repeat", "round"

    def test_a_column_tells_repeats_apart(self, cli):  # noqa: F811
        """Rows in any order, one of them missing and one twice: every score stands at its repeat."""
        records = [("a", "x", 1, 3), ("a", "y", 0, 10), ("a", "x", 0, 10), ("a", "y", 1, 3), ("b", "x", 1, 3),
                   ("b", "y", 0, 3), ("b", "y", 1, 10), ("b", "y", 0, 10)]  # fmt: skip
        code, out, err = cli(*self.table(*records))
        assert code == 0 and not err and "order of rows" not in out
        assert "duplicates of the same sample" in out  # of the row that is there twice
        code, out, _ = cli("show", "latest", "--trials", "--json")
        trials = {(t["case_id"], t["arm"], t["repeat"]): t["score"] for t in json.loads(out)["trials"]}
        assert trials == {
            ("a", "x", 1): 100, ("a", "x", 2): 0, ("a", "y", 1): 100, ("a", "y", 2): 0,
            ("b", "x", 1): 100, ("b", "y", 1): 0, ("b", "y", 2): 100,
        }  # fmt: skip
        assert cli("compare", "latest")[0] == 0 and cli("variance", "latest")[0] == 0

    def test_values_of_their_own_in_every_row_are_no_repeats(self, cli):  # noqa: F811
        records = [(case, "x", 1, f"{case}{n}") for case in "abc" for n in (1, 2)]
        code, out, _ = cli(*self.table(*records))
        assert code == 0 and "`round` has other values from case to case" in out
        assert sorted(trial.repeat for trial in ft.open_run().trials()) == [1, 1, 1, 2, 2, 2]

    @given(st.permutations([(case, arm, repeat) for case in "abc" for arm in "xy" for repeat in ("p", "q")]))
    def test_the_order_of_rows_does_not_matter(self, order):
        rows = [{"case": c, "arm": a, "score": (ord(c) + ord(a) + ord(r)) % 3 / 2, "repeat": r} for c, a, r in order]
        (log,) = [Rows("t", lambda: iter(rows), Columns()).log()]
        places = {(s.question.id, s.arm, s.repeat): s.scores["score"] for s in log.samples()}
        assert len(places) == 12 and all(
            value == (ord(c) + ord(a) + ord("pq"[r])) % 3 / 2 for (c, a, r), value in places.items()
        )


def test_limits_of_tokens_are_no_secrets():
    given = {"max_tokens": 2048, "maxTokens": 1024, "token": 123456, "api_token": "x", "tokens": "sk-abc", "top_p": 1}
    assert params_of(given) == {"max_tokens": 2048, "maxTokens": 1024, "top_p": 1}


def test_long_answers_are_written_before_many_are_held(tmp_path, monkeypatch):
    monkeypatch.setattr(import_log, "_HELD", 10_000)
    written = []
    write = ImportedRun.write
    monkeypatch.setattr(
        ImportedRun,
        "write",
        lambda run, cases, trials, *more: written.append(len(trials)) or write(run, cases, trials, *more),
    )
    file = rows(tmp_path / "r.jsonl", *({"id": n, "model": "m", "answer": "a" * 4000, "score": 1} for n in range(10)))
    found = ft.import_results(file, store="s.db")
    assert written == [3, 3, 3, 1] and len(list(found.trials())) == 10


def test_a_line_that_is_too_long_is_named(tmp_path, monkeypatch):
    for module in (source, jsonl):
        monkeypatch.setattr(module, "MAX_LINE", 2**17)
    sample = {"doc_id": 0, "doc": {}, "resps": [["a" * 2**17]], "target": "x"}
    file = rows(tmp_path / "samples_task_2025-01-01T00-00-00.jsonl", sample)
    said = r"samples_.*, line 1 is longer than 0 MB: export fewer answers or shorter ones, or give a table with columns"
    with pytest.raises(FairtrialError, match=said):
        ft.import_results(file, store="s.db")


@pytest.mark.parametrize(("lines", "length"), [(1, 5), (1, 2**17), (3, 5), (3, 2**17)])
def test_lines_are_told_from_a_document_without_reading_all_of_them(tmp_path, monkeypatch, lines, length):
    read = []
    content = source.Source._content
    monkeypatch.setattr(source.Source, "_content", lambda self: read.append(self.name) or content(self))
    file = rows(tmp_path / "r.json", *({"id": n, "answer": "a" * length} for n in range(lines)))
    assert source.Source(file).keys == ({"id", "answer"} if lines == 1 else set())
    assert len(read) == (lines == 1)
