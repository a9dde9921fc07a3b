"""Names of models in documentation, examples, templates, pages and messages: of one table, current, and not about to end."""

import fnmatch
import re
from datetime import date
from types import SimpleNamespace

import pytest

from docs import names
from docs.names import NamedModel, named_models
from fairtrial.cli.main import _run
from fairtrial.core.experiment import TargetSpec
from fairtrial.core.providers import known_providers
from fairtrial.providers.prices import find_price
from fairtrial.providers.sheet import cheapest_of, sheet_of
from fairtrial.suites import KINDS
from fairtrial.web.starting import STARTS, start_text

TABLE = list(named_models().values())
LUNA = NamedModel("openai:gpt-6-luna", before=("gpt-5-mini", "gpt-5-nano"))
SOL = NamedModel("openai:gpt-6.1-sol", before=("gpt-5",))


@pytest.fixture(scope="module")
def places():
    return names.places()


def listed(lines):
    return "\n" + "\n".join(map(str, lines))


def test_no_file_has_an_old_name():
    assert not names.outdated(), f"run `python -m docs.generate`: {listed(names.outdated())}"


def test_every_name_is_in_the_table(places):
    strangers = names.unknown(places, TABLE)
    assert not strangers, f"name models of {names.TABLE.relative_to(names.REPO)}, or add these: {listed(strangers)}"


def test_no_model_that_is_named_ends_within_60_days(places):
    ending = names.ending(places, TABLE, sheet_of, names.today())
    assert not ending, listed(ending)


def test_no_model_that_doctor_asks_ends_within_60_days():
    asked = [NamedModel(f"{name}:{cheapest_of(name)}") for name in known_providers() if cheapest_of(name)]
    assert len(asked) >= 5
    assert not names.ending([], asked, sheet_of, names.today())


def test_every_model_of_the_table_is_named(places):
    named = {place.name for place in places}
    assert not [one.target for one in TABLE if one.short not in named]


def test_nothing_is_old_and_current():
    current = {one.model for one in TABLE}
    assert not [old for one in TABLE for old in one.before if old in current]
    older = [old for one in TABLE for old in one.before]
    assert len(older) == len(set(older))


def test_no_name_moves_on_by_itself():
    assert not [one.target for one in TABLE if "latest" in one.target]


@pytest.mark.parametrize("exempt", names.EXEMPT, ids=lambda exempt: f"{exempt.files}-{exempt.lines}")
def test_every_exemption_is_needed(exempt, monkeypatch):
    monkeypatch.setattr(names, "EXEMPT", ())
    texts = {names._inside(path, names.REPO): path for path in names.files()}
    meant = [path for path in texts if fnmatch.fnmatchcase(path, exempt.files)]
    lines = [line for path in meant for line in texts[path].read_text("utf-8").split("\n")]
    assert any(re.search(exempt.lines, line) and names.NAME.search(line) for line in lines), "remove it"


@pytest.mark.parametrize("one", TABLE, ids=lambda one: one.target)
def test_the_prices_of_what_is_named_are_known(one):
    """Of what is paid for; weights on one's own machine have no price, and a price list of ours follows new names."""
    spec = TargetSpec(id="x", kind="openai_api", provider=one.provider, model=one.model)
    assert one.provider == "lab" or find_price(spec, {})


@pytest.mark.parametrize("start", STARTS)
def test_what_the_page_starts_from_is_valid(start, tmp_path):
    (tmp_path / "suite.yaml").write_text(start_text(start, "mine"), "utf-8")
    assert _run(["validate", "--no-keys", str(tmp_path / "suite.yaml")]) == 0


@pytest.mark.parametrize("kind", KINDS)
def test_what_init_writes_is_valid(kind, tmp_path):
    assert _run(["init", "--kind", kind, str(tmp_path / "mine")]) == 0
    assert _run(["validate", "--no-keys", str(tmp_path / "mine" / "suite.yaml")]) == 0


class TestRenaming:
    """Whole names only, and columns stay."""

    @pytest.mark.parametrize(
        ("before", "after"),
        [
            ("targets: [openai:gpt-5-mini]", "targets: [openai:gpt-6-luna]"),
            ("openai:gpt-5.", "openai:gpt-6.1-sol."),
            ("gpt-5, gpt-5-mini and gpt-5-nano", "gpt-6.1-sol, gpt-6-luna and gpt-6-luna"),
            ("gpt-5.1 gpt-5-pro gpt-5_x my-gpt-5 gpt-5@2 gpt-5:free", "gpt-5.1 gpt-5-pro gpt-5_x my-gpt-5 gpt-5@2 gpt-5:free"),
            ("calibrate openai:gpt-5        # why", "calibrate openai:gpt-6.1-sol  # why"),
            ("calibrate openai:gpt-5   # why", "calibrate openai:gpt-6.1-sol  # why"),
            ("| gpt-5 | 5 |", "| gpt-6.1-sol | 5 |"),
        ],
    )  # fmt: skip
    def test_lines(self, before, after):
        assert names.current("docs/page.md", f"one\n{before}\n", [LUNA, SOL]) == f"one\n{after}\n"

    def test_what_is_exempt_stays(self):
        assert names.current("CHANGELOG.md", "gpt-5", [SOL]) == "gpt-5"
        code = 'patches = "gpt-5" in model\nopenai:gpt-5\n'
        changed = names.current("src/fairtrial/targets/opencode.py", code, [SOL])
        assert changed == code.replace("openai:gpt-5", "openai:gpt-6.1-sol")

    def test_it_is_done_once(self):
        once = names.current(
            "a.md", "claude-opus-5", [NamedModel("anthropic:claude-opus-5-5", before=("claude-opus-5",))]
        )
        assert once == "claude-opus-5-5"

    def test_a_table_without_old_names_changes_nothing(self):
        assert names.current("a.md", "gpt-5", [NamedModel("openai:gpt-6-luna")]) == "gpt-5"


class TestFinding:
    @pytest.mark.parametrize(
        ("text", "found"),
        [
            ("openai:gpt-5-mini, `o3` and o4-mini.", ["gpt-5-mini", "o3", "o4-mini"]),
            ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", ["claude-sonnet-4-5-20250929-v1"]),
            ("openrouter:meta-llama/llama-3.3-70b-instruct", ["llama-3.3-70b-instruct"]),
            ("vertex_ai/gemini-2.5-pro, mistral:codestral-2508, mistral-small-latest", ["gemini-2.5-pro", "codestral-2508", "mistral-small-latest"]),
            ("perplexity:sonar-2 xai:grok-4.7 text-embedding-3-small", ["sonar-2", "grok-4.7", "text-embedding-3-small"]),
            ("openai:MODEL, llama.cpp, claude-code:, gpt-oss, a no1 o3d, openai:my-model, mock:gpt, llama-70b", []),
        ],
    )  # fmt: skip
    def test_names(self, text, found):
        assert [place.name for place in names.names_in("docs/page.md", text)] == found

    def test_file_and_line(self):
        (place,) = names.names_in("docs/page.md", "one\ntwo gpt-5\n")
        assert str(place) == "docs/page.md:2: gpt-5"
        assert names.unknown([place], [SOL]) == [place]
        assert not names.unknown([place], [NamedModel("openai:gpt-5")])

    def test_files_of_every_kind(self, tmp_path):
        for path in ("README.md", "docs/a/b.md", "src/x/page.html.j2", "examples/suite.yaml", "src/x/help.py"):
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text("openai:gpt-9\n")
        (tmp_path / "docs/picture.png").write_bytes(b"\xff gpt-9")
        assert len(names.places(tmp_path)) == 5


class TestEnding:
    FOUND = (names.Place("README.md", 7, "gpt-6-luna"), names.Place("docs/a.md", 1, "gpt-6.1-sol"))

    def ending(self, day, ends=date(2027, 3, 2), successor="gpt-7-luna"):
        known = {"gpt-6-luna": SimpleNamespace(ends=ends, successor=successor)}
        never = SimpleNamespace(ends=None, successor="")
        return names.ending(self.FOUND, [LUNA, SOL], lambda _, model: known.get(model, never), day)

    def test_60_days_before_it_is_time(self):
        assert not self.ending(date(2026, 12, 31))
        assert self.ending(date(2027, 1, 1)) == [
            "openai:gpt-6-luna ends on 2027-03-02 (gpt-7-luna comes after it): put another one into docs/names.yaml",
            "  README.md:7",
        ]

    def test_after_its_end_it_is_late(self):
        assert self.ending(date(2028, 1, 1))
        assert not self.ending(date(2028, 1, 1), ends=None)

    def test_of_clouds_and_routers(self):
        one = NamedModel("bedrock:us.anthropic.claude-sonnet-5-5")
        ended = SimpleNamespace(ends=date(2026, 1, 1), successor="")
        found = [names.Place("docs/targets.md", 9, "claude-sonnet-5-5")]
        lines = names.ending(found, [one], lambda *_: ended, date(2026, 1, 1))
        assert lines[1:] == ["  docs/targets.md:9"] and "comes after" not in lines[0]

    def test_the_sheet_is_asked(self):
        assert names.ending([], [NamedModel("openai:gpt-5-mini")], sheet_of, date(2026, 11, 18))
