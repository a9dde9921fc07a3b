"""LaTeX: a document that compiles as it is, with tables for booktabs. Every text is escaped."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from fairtrial.analyse.optimisation import OptimisationReport
from fairtrial.analyse.wording.methods import bibtex, citation, methods
from fairtrial.analyse.wording.optimisation import (
    DIFFERENCE_NOTE,
    MEASURES,
    TABLE_NOTE,
    Group,
    Row,
    composite_words,
    differences,
    format_table,
    headline,
    interaction_lines,
    length_lines,
    measure_notes,
    second_opinion,
    style_table,
    warnings,
)
from fairtrial.core.text import printable

_HEAD = r"""\documentclass[a4paper,10pt]{article}
\usepackage[T1]{fontenc}
\usepackage[utf8]{inputenc}
\usepackage{textcomp}
\usepackage{booktabs}
\usepackage[margin=2cm]{geometry}
\begin{document}
"""
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
    parts = [
        _HEAD,
        rf"\section*{{{escaped(report.suite)}}}",
        rf"\textbf{{{escaped(headline(report))}}}",
        "",
        escaped(f"{composite_words(report)} {second_opinion(report)}"),
        *(f"\n{escaped(line)}" for line in warnings(report)),
        "",
        _style_table(report),
        _difference_table(report),
        _format_table(report),
        r"\subsection*{Methods}",
        *(f"{escaped(part)}\n" for part in (*methods(report), *interaction_lines(report), *length_lines(report))),
        r"\subsection*{Citation}",
        escaped(citation(report)),
        "",
        *(f"% {line}" for line in bibtex(report).splitlines()),
        r"\end{document}",
        "",
    ]
    return "\n".join(parts)


def _style_table(report: OptimisationReport) -> str:
    names = ["style", "answers", *(measure.name for measure in MEASURES), "median gap"]
    lines = [line for group in style_table(report) for line in _group(group, len(names))]
    note = " ".join([TABLE_NOTE, *(f"{line}." for line in measure_notes(report))])
    return _table("l" + "r" * (len(names) - 1), names, lines, f"Prompt styles. {note}", "styles")


def _group(group: Group, columns: int) -> list[str]:
    title = rf"\midrule \multicolumn{{{columns}}}{{l}}{{\emph{{{escaped(group.title)}}}}} \\"
    return [title, *(line for row in group.rows for line in _row(row))]


def _row(row: Row) -> list[str]:
    main = [f"{escaped(one.mean)} {_small(f'({one.deviation})' if one.deviation else '')}".strip() for one in row.cells]
    below = [_small(one.interval) for one in row.cells]
    return [
        _line([escaped(row.arm), escaped(row.answers), *main, escaped(row.median_gap)]),
        _line(["", "", *below, ""]),
    ]


def _small(text: str) -> str:
    return rf"{{\scriptsize {escaped(text)}}}" if text else ""


def _difference_table(report: OptimisationReport) -> str:
    rows = differences(report)
    if not rows:
        return ""
    names = ["problems", "by", "style", "against", "difference", "95 % CI", "p (Holm)", "count", "verdict"]
    lines = [r"\midrule", *(_line([escaped(text) for text in row]) for row in rows)]
    return _table("llllrrrrl", names, lines, f"Differences between styles. {DIFFERENCE_NOTE}", "differences")


def _format_table(report: OptimisationReport) -> str:
    names, rows = format_table(report)
    if not rows:
        return ""
    lines = [r"\midrule", *(_line([escaped(text) for text in row]) for row in rows)]
    caption = "Answers that kept the format up to each step; each step needs those before it."
    return _table("l" + "r" * (len(names) - 1), names, lines, caption, "format")


def _table(columns: str, names: Sequence[str], lines: Sequence[str], caption: str, label: str) -> str:
    return "\n".join(
        [
            r"\begin{table}[htbp]",
            r"\centering\footnotesize\setlength{\tabcolsep}{3pt}",
            rf"\begin{{tabular}}{{{columns}}}",
            r"\toprule",
            _line([escaped(name) for name in names]),
            *lines,
            r"\bottomrule",
            r"\end{tabular}",
            rf"\caption{{{escaped(caption)}}}\label{{tab:{label}}}",
            r"\end{table}",
        ]
    )


def _line(cells: Sequence[str]) -> str:
    # A bracket or a star at the start of a row would be read as part of the line break before it.
    cells = [rf"{{}}{cell}" if cell.startswith(("[", "*")) else cell for cell in cells]
    return " & ".join(cells) + r" \\"
