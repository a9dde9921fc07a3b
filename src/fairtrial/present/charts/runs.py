"""A series: one dot per run, how much these cases vary when asked again, and what cases like these would show."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from fairtrial.present.charts.axis import linear_axis
from fairtrial.present.charts.marks import Interval, drawing, grid_lines, tick_labels
from fairtrial.present.charts.svg import dot, line, link, rect, tag, words

_ROW = 56


class RunDots(NamedTuple):
    """One arm: its score in every run, the interval over runs and the one over cases."""

    label: str
    mean: float
    shown: str
    runs: Sequence[tuple[float, str, str]]  # score, tooltip, address
    again: Interval | None  # these cases, asked again
    like: Interval | None  # cases like these
    again_words: str = ""
    like_words: str = ""
    lead: bool = False


def runs_chart(rows: Sequence[RunDots], *, within: tuple[float, float] | None = (0.0, 100.0)) -> str:
    """Return the table."""
    ends = [
        end for row in rows for end in (*(row.again or ()), *(row.like or ()), *(score for score, _, _ in row.runs))
    ]
    axis = linear_axis(ends, within=within, least=10 if within else 0)
    head = tag(
        "tr",
        tag("th", "Arm", scope="col"),
        tag("td", drawing(22, tick_labels(axis)), class_="plot sp"),
        tag("th", "Mean", class_="num", scope="col"),
        tag("th", "These cases, asked again", class_="num", scope="col"),
        tag("th", "Cases like these", class_="num", scope="col"),
    )
    body = []
    for row in rows:
        tone = "lead" if row.lead else ""
        band = ""
        if row.again is not None:
            low, high = (axis.at(end) for end in row.again)
            band = rect(low, max(0.3, high - low), 6, 24, f"band {tone}".strip())
        dots = "".join(
            link(href, dot(axis.at(score), 18, 4, f"pt open {tone}".strip()), tip=tip) for score, tip, href in row.runs
        )
        like = line(axis.at(row.like[0]), axis.at(row.like[1]), 42, 42, f"iv {tone}".strip()) if row.like else ""
        centre = dot(axis.at(row.mean), 42, 5, f"pt {tone}".strip())
        says = f"{row.label}: {row.shown}; these cases asked again {row.again_words}; cases like these {row.like_words}"
        picture = drawing(_ROW, grid_lines(axis, _ROW), band, dots, like, centre, says=says, interactive=True)
        body.append(
            tag(
                "tr",
                tag("th", words(row.label), class_="arm", scope="row"),
                tag("td", picture, class_="plot sp"),
                tag("td", words(row.shown), class_="score"),
                tag("td", words(row.again_words), class_="num ivt"),
                tag("td", words(row.like_words), class_="num ivt"),
            )
        )
    return tag("table", tag("thead", head), tag("tbody", *body), class_="forest series")
