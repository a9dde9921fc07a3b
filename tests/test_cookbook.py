"""The cookbook: every recipe is followed literally, and prints what its page says."""

import pytest

from docs import recipes, site
from tests import forks

REAL = ("pytest-gate", "two-models")  # followed with the real programs, which start anew for every command


def test_the_start_page_lists_every_recipe_under_its_title():
    listed = (recipes.DOCS / "cookbook/README.md").read_text("utf-8")
    assert len(recipes.PAGES) >= 20
    for page in recipes.PAGES:
        assert f"- [{site._title(page)}]({page.name})\n" in listed


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_their_number_is_right(page):
    assert f"{len(recipes.PAGES)} questions" in (recipes.REPO / page).read_text("utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("page", [*recipes.PAGES, *recipes.GUIDES], ids=lambda page: page.stem)
def test_recipes_print_what_they_say(page, tmp_path):
    programs = recipes.PROGRAMS if page.stem in REAL else forks.programs()
    assert recipes.follow(page, tmp_path, programs) == page.read_text("utf-8"), "run `python -m docs.recipes`"


class TestFollowing:
    """What the pages rest on."""

    def follow(self, text, tmp_path):
        (tmp_path / "page.md").write_text(text)
        (tmp_path / "folder").mkdir()
        return recipes.follow(tmp_path / "page.md", tmp_path / "folder")

    def test_files_are_written_and_outputs_filled_in(self, tmp_path):
        page = '```text title="a.txt"\none\ntwo\n```\n\n```sh\ncat a.txt\n```\n\n```\n{}```\n\nText.\n'
        assert self.follow(page.format(""), tmp_path) == page.format("one\ntwo\n")

    def test_other_blocks_stay_as_they_are(self, tmp_path):
        page = "```sh\necho one\n```\n\n```\none\n```\n\n```yaml\na: 1\n```\n\nText.\n\n```sh\necho two\n```\n\n```\ntwo\n```\n"
        assert self.follow(page, tmp_path) == page

    def test_long_outputs_are_cut(self, tmp_path):
        page = "```sh\nseq 9\n```\n\n<!-- output: the first 2 lines -->\n```\n{}```\n"
        assert self.follow(page.format(""), tmp_path) == page.format("1\n2\n…\n")

    def test_times_and_names_of_runs_may_differ(self, tmp_path):
        page = "```sh\necho run 1m7kv1ctz''-c348y took 12 ms\n```\n\n```\nrun {} took 5 ms\n```\n"
        assert self.follow(page.format(recipes._NAMES[0]), tmp_path) == page.format(recipes._NAMES[0])
        assert not recipes.same("score 70", "score 71")
        assert recipes.same("1 passed in 2.01s", "1 passed in 62.93s (0:01:02)")  # as pytest says it from a minute on

    @pytest.mark.parametrize("command", ["false", "exit 3  # exit 2", "true  # exit 2: never"])
    def test_a_command_that_ends_otherwise_is_an_error(self, command, tmp_path):
        with pytest.raises(recipes.RecipeError, match="ended with"):
            self.follow(f"```sh\n{command}\n```\n", tmp_path)
