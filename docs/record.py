"""Records the terminal for the README: `python -m docs.record` (`make recording`) writes docs/pictures/terminal.svg.

The commands are real and run in a terminal of their own; what they ask are functions that stand in for models. The
picture is one SVG with CSS animation, without a script, so that it also moves as an image. It is drawn line by line: a
line is there from the moment it appears until it changes.
"""

from __future__ import annotations

import fcntl
import os
import pty
import select
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterator
from html import escape
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from docs.terminal import Row, Screen, Style

DOCS = Path(__file__).parent
PICTURE = DOCS / "pictures" / "terminal.svg"
FILES = DOCS / "recording"
COLUMNS, ROWS = 80, 30  # the picture is as high as what is shown
# Each command with the seconds that its result stays.
SCRIPT = [("cat suite.yaml", 2.5), ("fairtrial run suite.yaml", 4.0), ("fairtrial compare", 5.5)]
_KEY = 0.05  # seconds to type a character
_START = 0.4  # a command starts this long after it was typed, however slow the machine
_STEP = 0.1  # seconds between two pictures of progress
_QUIET = 0.03  # seconds without a word: what was written is whole
_LONGEST_STEP = 0.25
_WIDTH, _HEIGHT, _SIZE = 8.4, 18, 14  # of a cell and of the letters in it
_EDGE, _BAR = 16, 34
_FONT = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
_INK, _PAPER, _FRAME = "#d5dce5", "#11161d", "#1c232d"
_DARK = ("#3b4451", "#f08a6c", "#8fce8b", "#e3bd6c", "#74b6f4", "#bda9ea", "#7ccfd3", "#d5dce5")
_BRIGHT = ("#6f7b8a", "#f7a68e", "#a9dea5", "#f0d28f", "#9ccbf8", "#d0c2f2", "#9fe0e3", "#ffffff")
_PALETTE = (*_DARK, *_BRIGHT)  # each from black to white


class Frame(NamedTuple):
    """What the terminal shows from this second on."""

    at: float
    rows: tuple[Row, ...]


def record(script: list[tuple[str, float]] = SCRIPT, files: Path = FILES) -> tuple[list[Frame], float]:
    """Type the commands and run them on a copy of the files; return what the terminal shows, and for how long."""
    folder = Path(tempfile.mkdtemp(prefix="recording-"))
    try:
        shutil.copytree(files, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__", ".*"))
        frames: list[Frame] = []
        now = 0.0
        for command, stays in script:
            screen = Screen(COLUMNS, ROWS)
            for at, text in _typed_and_run(command, folder):
                screen.feed(text)
                frames.append(Frame(now + at, screen.rows))
            now = frames[-1].at + stays
        return frames, now
    finally:
        shutil.rmtree(folder)


def _typed_and_run(command: str, folder: Path) -> Iterator[tuple[float, str]]:
    """Yield what appears in the terminal, each piece with its second."""
    cursor, at = "\x1b[7m \x1b[27m\b", _KEY
    yield 0.0, f"\x1b[32m$\x1b[0m {cursor}"
    for letter in command:
        at += _KEY
        yield at, f"\x1b[1m{letter}\x1b[0m{cursor}"
    at += _START
    before: float | None = None
    for second, text in _run(command, folder):
        at += 0 if before is None else min(second - before, _LONGEST_STEP)
        yield at, f" \r\n{text}" if before is None else text
        before = second


def _run(command: str, folder: Path) -> Iterator[tuple[float, str]]:
    """Run a command in a terminal; yield what it writes, whenever it rests, at most every `_STEP`."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    with subprocess.Popen(  # noqa: S602  # the commands above
        command, shell=True, cwd=folder, env=_environment(), stdin=theirs, stdout=theirs, stderr=theirs
    ) as process:
        os.close(theirs)
        waiting, last = b"", time.monotonic()
        while (read := _read(ours, _QUIET if waiting else None)) != b"":
            waiting += read or b""
            if read is None and time.monotonic() - last >= _STEP:
                yield time.monotonic(), waiting.decode("utf-8", "replace")
                waiting, last = b"", time.monotonic()
        yield time.monotonic(), waiting.decode("utf-8", "replace")
    os.close(ours)
    if process.returncode:
        raise SystemExit(f"`{command}` ended with {process.returncode}: {waiting.decode('utf-8', 'replace')}")


def _environment() -> dict[str, str]:
    dropped = ("COLUMNS", "LINES", "NO_COLOR", "CI", "GITHUB_ACTIONS", "FORCE_COLOR")
    kept = {name: value for name, value in os.environ.items() if name not in dropped}
    path = f"{Path(sys.executable).parent}{os.pathsep}{kept['PATH']}"
    return {**kept, "PATH": path, "TERM": "xterm-256color", "LANG": "C.UTF-8"}


def _read(terminal: int, patience: float | None) -> bytes | None:
    """Return what was written: nothing if that was all, None if nothing came for so long."""
    if not select.select([terminal], [], [], patience)[0]:
        return None
    try:
        return os.read(terminal, 65536)
    except OSError:  # how Linux says that nobody writes any more
        return b""


def draw(frames: list[Frame], seconds: float) -> str:
    """Return frames as one animated SVG. Who wants no motion sees the last one."""
    spans = list(_spans(frames, seconds))
    times = sorted({(start, end) for _, _, start, end in spans})
    names = {span: f"t{number}" for number, span in enumerate(times)}
    lines = 1 + max((line for line, *_ in spans), default=0)
    width, height = COLUMNS * _WIDTH + 2 * _EDGE, (lines + 1) * _HEIGHT + _BAR + _EDGE
    said = " · ".join(command for command, _ in SCRIPT)
    dots = "".join(
        f'<circle cx="{_EDGE + 5 + 18 * place}" cy="{_BAR / 2}" r="5" fill="#3a4452"/>' for place in range(3)
    )
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
            f'height="{height:g}" role="img" aria-label="A terminal: {escape(said)}">',
            f"<style>{_style(names, seconds)}</style>",
            f'<rect width="100%" height="100%" rx="8" fill="{_PAPER}"/>',
            f'<path d="M0 {_BAR}V8a8 8 0 0 1 8-8h{width - 16:g}a8 8 0 0 1 8 8v{_BAR - 8}z" fill="{_FRAME}"/>{dots}',
            *(
                f'<g class="{names[start, end]}">{_row(row, _BAR + 8 + line * _HEIGHT)}</g>'
                for line, row, start, end in spans
            ),
            "</svg>\n",
        ]
    )


def _spans(frames: list[Frame], seconds: float) -> Iterator[tuple[int, Row, float, float]]:
    """Yield every line that is not blank, with the time in which it stays the same."""
    ends = [frame.at for frame in frames[1:]] + [seconds]
    for line in range(ROWS):
        shown = [(frame.rows[line], frame.at, end) for frame, end in zip(frames, ends, strict=True)]
        for row, same in groupby(shown, key=lambda one: one[0]):
            stays = list(same)
            if any(cell.text.strip() or _painted(cell.style) for cell in row):
                yield line, row, round(stays[0][1], 2), round(stays[-1][2], 2)


def _painted(style: Style) -> bool:
    return style.background is not None or style.reverse


def _style(names: dict[tuple[float, float], str], seconds: float) -> str:
    lines = [
        f"text{{font:{_SIZE}px {_FONT};white-space:pre;fill:{_INK}}}",
        f"g{{visibility:hidden;animation:{seconds:.2f}s step-end infinite}}",
        ".b{font-weight:700}.d{opacity:.6}.i{font-style:italic}.u{text-decoration:underline}",
    ]
    last = seconds - 0.01
    for (start, end), name in names.items():
        off = f"{100 * end / seconds:.2f}%{{visibility:hidden}}" if end < last else ""
        first = "0%{visibility:hidden}" if start > 0 else ""
        lines.append(
            f"@keyframes {name}{{{first}{100 * start / seconds:.2f}%{{visibility:visible}}{off}}}"
            f".{name}{{animation-name:{name}{'' if end < last else ';visibility:visible'}}}"
        )
    lines.append("@media(prefers-reduced-motion:reduce){g{animation:none}}")
    return "\n".join(lines)


def _row(row: Row, top: float) -> str:
    """Return one line: runs of cells that look alike, each as wide as its cells, whatever the reader's font."""
    parts, column = [], 0
    for style, cells in groupby(row, key=lambda cell: cell.style):
        run = list(cells)
        text = "".join(cell.text for cell in run)
        x, width = _EDGE + column * _WIDTH, len(run) * _WIDTH
        column += len(run)
        ink, paper = _colours(style)
        if paper:
            parts.append(f'<rect x="{x:.1f}" y="{top}" width="{width:.1f}" height="{_HEIGHT}" fill="{paper}"/>')
        if text.strip():
            parts.append(_text(text, x, top, style, ink, len(run)))
    return "".join(parts)


def _text(text: str, x: float, top: float, style: Style, ink: str, cells: int) -> str:
    lead, bare = len(text) - len(text.lstrip()), text.strip()
    width = (cells - lead - (len(text) - len(text.rstrip()))) * _WIDTH
    marks = "".join(
        mark for mark, on in zip("bdiu", (style.bold, style.dim, style.italic, style.underline), strict=True) if on
    )
    looks = (f' class="{" ".join(marks)}"' if marks else "") + (f' style="fill:{ink}"' if ink else "")
    return (
        f'<text x="{x + lead * _WIDTH:.1f}" y="{top + 13}" textLength="{width:.1f}" '
        f'lengthAdjust="spacingAndGlyphs"{looks}>{escape(bare, quote=False)}</text>'
    )


def _colours(style: Style) -> tuple[str, str]:
    """Return the colours of letters and of what is behind them; empty where they are the terminal's own."""
    ink, paper = _colour(style.colour), _colour(style.background)
    return (paper or _PAPER, ink or _INK) if style.reverse else (ink, paper)


def _colour(value: int | str | None) -> str:
    return "" if value is None else _PALETTE[value] if isinstance(value, int) else value


def main() -> None:
    frames, seconds = record()
    PICTURE.write_text(draw(frames, seconds), "utf-8")
    sys.stdout.write(f"{PICTURE.relative_to(DOCS.parent)}: {seconds:.1f} s, {PICTURE.stat().st_size / 1000:.0f} kB\n")


if __name__ == "__main__":
    main()
