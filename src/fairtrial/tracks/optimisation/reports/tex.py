"""LaTeX: a document that compiles as it is, with tables for booktabs. Every text is escaped."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from fairtrial.text.printable import printable
from fairtrial.tracks.optimisation.analysis import OptimisationReport
from fairtrial.tracks.optimisation.methods import bibtex, citation, methods
from fairtrial.tracks.optimisation.style_tables import (
    DIFFERENCE_COLUMNS,
    Difference,
    StyleRow,
    differences,
    format_table,
)
from fairtrial.tracks.optimisation.words import (
    MeasuredTable,
    composite_words,
    difference_note,
    headline,
    interaction_lines,
    length_lines,
    measured_tables,
    second_opinion,
    warnings,
)

_HEAD = r"""\documentclass[a4paper,10pt]{article}
\usepackage[T1]{fontenc}
\usepackage[utf8]{inputenc}
\usepackage{textcomp}
\IfFileExists{booktabs.sty}{\usepackage{booktabs}}
{\newcommand{\toprule}{\hline}\newcommand{\midrule}{\hline}\newcommand{\bottomrule}{\hline}}
\usepackage[margin=2cm]{geometry}
\begin{document}
\sloppy
"""
_NAME_WIDTH, _TITLE_WIDTH = "3.2cm", "12cm"
_LONG_TITLE = 70  # characters that fit on a line
_LONG_WORD, _PIECE, _LONG_HEAD = 20, 12, 10  # characters
_TEXTS = ("style", "problems", "by", "verdict", "arm")  # columns that begin at the left
_SPECIAL = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "`": r"\textasciigrave{}",
    "'": r"\textquotesingle{}",
    "-": r"{-}",  # no ligatures: a name with two dashes keeps them
    "−": r"\ensuremath{-}",
    "±": r"\ensuremath{\pm}",
    "×": r"\ensuremath{\times}",
    "≥": r"\ensuremath{\geq}",
    "≤": r"\ensuremath{\leq}",
    "–": r"\textendash{}",
    "—": r"\textemdash{}",
    "…": r"\ldots{}",
    "·": r"\textperiodcentered{}",
    "½": r"\textonehalf{}",
    "’": r"\textquoteright{}",
    "“": r"\textquotedblleft{}",
    "”": r"\textquotedblright{}",
}
_PLAIN = re.compile(r"[A-Za-z0-9 .,:;!?()\[\]/*+=@]")


def escaped(text: str) -> str:
    """Return a text as LaTeX that prints it and does nothing else: no command, no end of a line, no ligature.

    Letters beyond Latin are written by their code, since a document with T1 fonts cannot print them.
    """
    return "".join(map(_letter, " ".join(printable(text).split())))


def _letter(letter: str) -> str:
    if _PLAIN.match(letter):
        return letter
    if letter in _SPECIAL:
        return _SPECIAL[letter]
    if "À" <= letter <= "ÿ":
        return letter
    base = unicodedata.normalize("NFKD", letter)
    plain = "".join(one for one in base if one.isascii() and one.isalnum())
    return plain or f"[U+{ord(letter):04X}]"


def render(report: OptimisationReport) -> str:
    """Return the document."""
    report = report.shown()
    parts = [
        _HEAD,
        rf"\section*{{{_wrapped(report.suite)}}}",
        rf"\textbf{{{_wrapped(headline(report))}}}",
        "",
        _wrapped(f"{composite_words(report)} {second_opinion(report)}"),
        *(f"\n{_wrapped(line)}" for line in warnings(report)),
        "",
        *map(_measured, measured_tables(report)),
        _difference_table(report),
        _format_table(report),
        r"\subsection*{Methods}",
        *(f"{_wrapped(part)}\n" for part in (*methods(report), *interaction_lines(report), *length_lines(report))),
        r"\subsection*{Citation}",
        _wrapped(citation(report)),
        "",
        *(f"% {line}" for line in bibtex(report).splitlines()),
        r"\end{document}",
        "",
    ]
    return "\n".join(parts)


def _wrapped(text: str) -> str:
    """Return escaped text in which names and checksums that are too long for a line may be broken."""
    return " ".join(
        r"\allowbreak{}".join(escaped(word[at : at + _PIECE]) for at in range(0, len(word), _PIECE))
        if len(word) > _LONG_WORD
        else escaped(word)
        for word in printable(text).split()
    )


def _name(text: str) -> str:
    """Return a name for the first column, on several lines if it is long."""
    return rf"\parbox[t]{{{_NAME_WIDTH}}}{{\raggedright {_wrapped(text)}}}"


def _measured(one: MeasuredTable) -> str:
    names = ["style", "answers", *one.columns]
    lines = []
    for group in one.groups:
        lines += [_title(group.title, len(names)), *(line for row in group.rows for line in _row(row))]
    note = " ".join([one.note, *(f"{line}." for line in one.notes)])
    return _table(names, lines, f"{one.caption}. {note}", one.label) if lines else ""


def _title(title: str, columns: int) -> str:
    shown = rf"\emph{{{_wrapped(title)}}}"
    if len(title) > _LONG_TITLE:
        shown = rf"\parbox[t]{{{_TITLE_WIDTH}}}{{\raggedright {shown}}}"
    return rf"\midrule \multicolumn{{{columns}}}{{l}}{{{shown}}} \\"


def _row(row: StyleRow) -> list[str]:
    """Return the mean, and below it the deviation and the interval or median, each on a line of its own."""
    last = [row.median_gap] if row.median_gap else []
    lines = [_line([_name(row.arm), escaped(row.answers), *(escaped(one.mean) for one in row.cells), *last])]
    for texts in ([one.deviation for one in row.cells], [one.interval for one in row.cells]):
        if any(texts):
            lines.append(_line(["", "", *map(_small, texts), *("" for _ in last)]))
    return lines


def _small(text: str) -> str:
    return rf"{{\scriptsize {escaped(text)}}}" if text else ""


def _difference_table(report: OptimisationReport) -> str:
    """Return the differences, the pairs of arms one after another: their names may be long."""
    rows = differences(report)
    names = [name for name in DIFFERENCE_COLUMNS if name not in ("style", "against")]
    pairs = dict.fromkeys((row.a, row.b) for row in rows)
    lines = [line for a, b in pairs for line in _pair(a, b, rows, len(names))]
    caption = f"Differences between styles. {difference_note(report)}"
    return _table(names, lines, caption, "differences") if rows else ""


def _pair(a: str, b: str, rows: Sequence[Difference], columns: int) -> list[str]:
    own = [row for row in rows if (row.a, row.b) == (a, b)]
    shown = [[*row[:2], *row[4:]] for row in own]
    return [
        _title(f"{a} against {b}", columns),
        *(_line([_name(first), *map(escaped, rest)]) for first, *rest in shown),
    ]


def _format_table(report: OptimisationReport) -> str:
    names, rows = format_table(report)
    if not rows:
        return ""
    lines = [r"\midrule", *(_line([_name(first), *map(escaped, rest)]) for first, *rest in rows)]
    caption = "Answers that kept the format up to each step; each step requires the ones before it."
    return _table(names, lines, caption, "format")


def _table(names: Sequence[str], lines: Sequence[str], caption: str, label: str) -> str:
    columns = "".join("l" if name in _TEXTS else "r" for name in names)
    heads = [_head(name) for name in names[1:]]
    return "\n".join(
        [
            r"\begin{table}[htbp]",
            r"\centering\footnotesize\setlength{\tabcolsep}{3pt}",
            rf"\begin{{tabular}}{{{columns}}}",
            r"\toprule",
            _line([escaped(names[0]), *heads]),
            *lines,
            r"\bottomrule",
            r"\end{tabular}",
            rf"\caption{{{_wrapped(caption)}}}\label{{tab:{label}}}",
            r"\end{table}",
        ]
    )


def _head(name: str) -> str:
    """Return the name of a column, on several lines if it is long."""
    lines = name.split() if len(name) > _LONG_HEAD else [name]
    return r"\shortstack[r]{" + r"\\ ".join(map(escaped, lines)) + "}" if len(lines) > 1 else escaped(name)


def _line(cells: Sequence[str]) -> str:
    # A bracket or a star at the start of a row would be read as part of the line break before it.
    cells = [rf"{{}}{cell}" if cell.startswith(("[", "*")) else cell for cell in cells]
    return " & ".join(cells) + r" \\"
