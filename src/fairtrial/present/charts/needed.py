"""Cases needed by the size of the difference that they shall show."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from fairtrial.present.charts.axis import linear_axis, log_axis
from fairtrial.present.charts.marks import drawing, rules
from fairtrial.present.charts.svg import dot, label, line, percent, tag, words

_HEIGHT = 240


def needed_chart(points: Sequence[tuple[float, int]], *, chosen: tuple[float, int], now: int, unit: str) -> str:
    """Return a curve: the difference to the right, the cases it takes upwards. The dashed line is what there is now."""
    y_axis = log_axis([*(count for _, count in points), max(1, now)])
    x_axis = linear_axis([size for size, _ in points], include=(0.0,))
    parts = [rules(y_axis)]
    parts += [label(x_axis.at(tick), _HEIGHT + 18, x_axis.words(tick)) for tick in x_axis.ticks]
    for (x1, n1), (x2, n2) in pairwise(sorted(points)):
        y1, y2 = (percent(100 - y_axis.at(count)) for count in (n1, n2))
        parts.append(line(x_axis.at(x1), x_axis.at(x2), y1, y2, "cv lead"))
    here = percent(100 - y_axis.at(max(1, now)))
    parts.append(tag("line", class_="ref", x1="0%", x2="100%", y1=here, y2=here))
    parts.append(tag("text", f"{now:,} cases now", x="100%", y=here, dy="-6", text_anchor="end"))
    size, count = chosen
    parts.append(dot(x_axis.at(size), percent(100 - y_axis.at(count)), 6, "pt lead"))
    says = f"A difference of {size:g} {unit} takes about {count:,} cases; there are {now:,} now."
    axis = tag("p", words(f"difference to see, in {unit}"), class_="xname")
    return tag("div", drawing(_HEIGHT, *parts, says=says), axis, class_="plotbox chart")
