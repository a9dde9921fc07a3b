"""The terminal in the README: its screen does what terminals do, and its picture moves without a script."""

import io
import re
import xml.etree.ElementTree as ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.live import Live
from rich.table import Table

from docs import record
from docs.terminal import Cell, Screen, Style

WRITTEN = st.lists(
    st.one_of(
        st.text(max_size=30),
        st.builds(
            "\x1b[{}{}".format,
            st.lists(st.integers(0, 300), max_size=4).map(lambda numbers: ";".join(map(str, numbers))),
            st.sampled_from("ABCDEFGHJKdfmsux"),
        ),
        st.sampled_from(["\r", "\n", "\t", "\b", "\x1b[?25l", "\x1b]8;;https://a.b\x1b\\", "日本", "\x1b"]),
    ),
    max_size=20,
)


def screen(*written, columns=20, rows=4) -> Screen:
    made = Screen(columns, rows)
    for text in written:
        made.feed(text)
    return made


class TestScreen:
    @pytest.mark.slow
    @given(WRITTEN)
    def test_whatever_is_written_it_keeps_its_size(self, written):
        shown = screen(*written).rows
        assert len(shown) == 4 and all(len(row) == 20 for row in shown)

    def test_text_goes_on_in_the_next_line_and_the_first_scrolls_away(self):
        assert screen("a" * 25).lines == ["a" * 20, "a" * 5, "", ""]
        assert screen("1\r\n2\r\n3\r\n4\r\n5").lines == ["2", "3", "4", "5"]

    def test_a_full_line_and_its_end_are_one_line(self):
        assert screen("a" * 20 + "\r\nb").lines[:2] == ["a" * 20, "b"]

    def test_progress_is_drawn_over(self):
        assert screen("one\r\ntwo", "\r\x1b[2K\x1b[1A\x1b[2K", "done").lines == ["done", "", "", ""]
        assert screen("12345\b\b\x1b[K").lines[0] == "123"
        assert screen("a\r\nb\r\nc\x1b[H\x1b[J!").lines == ["!", "", "", ""]

    @pytest.mark.parametrize(
        ("codes", "style"),
        [
            ("1;34", Style(colour=4, bold=True)),
            ("92", Style(colour=10)),
            ("2;41", Style(background=1, dim=True)),
            ("38;5;196", Style(colour="#ff0000")),
            ("38;5;244", Style(colour="#808080")),
            ("48;2;1;2;3", Style(background="#010203")),
            ("1;2;3;4;7;22;23;24;27", Style()),
            ("31;39;44;49", Style()),
            ("31;0", Style()),
        ],
    )
    def test_colours(self, codes, style):
        assert screen(f"\x1b[{codes}mx").rows[0][0] == Cell("x", style)

    def test_wide_characters_take_two_cells(self):
        assert [cell.text for cell in screen("日本").rows[0][:5]] == ["日", "", "本", "", " "]

    def test_it_shows_what_rich_draws(self):
        file = io.StringIO()
        console = Console(file=file, force_terminal=True, width=40, color_system="truecolor", legacy_windows=False)

        def table(done: int) -> Table:
            made = Table("arm", "done")
            made.add_row("[blue]large[/]", str(done))
            return made

        with Live(table(0), console=console, auto_refresh=False, transient=True) as live:
            live.update(table(50), refresh=True)
        console.print(table(100))
        plain = Console(file=io.StringIO(), width=40)
        plain.print(table(100))
        written = file.getvalue().replace("\n", "\r\n")  # as a terminal does
        assert screen(written, columns=40, rows=12).lines[:5] == [
            line.rstrip() for line in plain.file.getvalue().splitlines()
        ]


class TestPicture:
    def test_a_recording_is_a_picture_without_a_script(self, tmp_path):
        (tmp_path / "hello.txt").write_text("<b>&\n")
        frames, seconds = record.record([("cat hello.txt; printf '\\033[1;34mblue\\033[0m'", 1.0)], tmp_path)
        picture = record.draw(frames, seconds)
        root = ElementTree.fromstring(picture)
        texts = [element.text for element in root.iter() if element.tag.endswith("text")]
        assert "<b>&" in texts and "blue" in texts
        assert "<script" not in picture and "href" not in picture

    def test_a_line_is_there_from_its_first_to_its_last_moment(self):
        first, second = screen("one", columns=80, rows=record.ROWS), screen("two", columns=80, rows=record.ROWS)
        frames = [record.Frame(0.0, first.rows), record.Frame(1.0, first.rows), record.Frame(2.0, second.rows)]
        spans = [(line, row[0].text, start, end) for line, row, start, end in record._spans(frames, 4.0)]
        assert spans == [(0, "o", 0.0, 2.0), (0, "t", 2.0, 4.0)]
        style = re.findall(r"@keyframes t\d\{(.*?)\}\.", record.draw(frames, 4.0))
        assert style == [
            "0.00%{visibility:visible}50.00%{visibility:hidden}",
            "0%{visibility:hidden}50.00%{visibility:visible}",
        ]

    def test_a_command_that_fails_is_not_recorded(self, tmp_path):
        with pytest.raises(SystemExit, match="ended with 3"):
            record.record([("exit 3", 1.0)], tmp_path)

    def test_the_picture_of_the_readme_shows_today_s_commands(self):
        picture = record.PICTURE.read_text("utf-8")
        for command, _ in record.SCRIPT:
            assert command in picture
        (seconds,) = re.findall(r"animation:([\d.]+)s step-end", picture)
        assert 15 <= float(seconds) <= 25 and len(picture) < 150_000
