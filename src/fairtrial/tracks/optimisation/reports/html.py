"""HTML: the report as one page that needs nothing else; what models wrote is not in it, and every name is escaped."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from fairtrial.present.charts.svg import safe
from fairtrial.present.figures import Links, leaders
from fairtrial.reports.html_render import render as render_page
from fairtrial.tracks.optimisation.analysis import OptimisationReport
from fairtrial.tracks.optimisation.figures import answers_figure, effect_figure, style_figures, style_kinds
from fairtrial.tracks.optimisation.methods import bibtex, citation, methods
from fairtrial.tracks.optimisation.style_tables import differences, format_table, style_table
from fairtrial.tracks.optimisation.words import (
    composite_words,
    difference_note,
    gap_words,
    headline,
    headline_of,
    interaction_lines,
    leaderboard_of,
    length_lines,
    measured_tables,
    second_opinion,
    warnings,
)

KINDS = (("difficulty", "By difficulty"), ("n", "By size"))
_MORE = (("n", "By size"), ("family", "By family"))  # tables in addition to that by difficulty


def render(report: OptimisationReport) -> str:
    """Return the whole page."""
    shown = report.shown()
    return render_page("styles.html.j2", title=f"{report.suite}: {headline(shown)}", styles=view(report, Links()))


def body(report: OptimisationReport, links: Links) -> Markup:
    """Return the part of the page below its head, which the web page shows too."""
    return safe(render_page("styles_body.html.j2", styles=view(report, links)))


def view(report: OptimisationReport, links: Links) -> dict[str, Any]:
    """Return what a page shows of a report; `links` say where arms lead."""
    links = _by_shown_names(links, report)
    report = report.shown()
    leaderboard = leaderboard_of(report)
    measured, gaps = measured_tables(report)
    order = [one.label for one in leaderboard.places] if leaderboard else [arm.arm for arm in report.arms]
    return {
        "report": report,
        "arm_href": links.arm,
        "headline": headline_of(report),
        "composite": composite_words(report),
        "second": second_opinion(report),
        "warnings": warnings(report),
        "leaders": leaders(leaderboard, {}, links) if leaderboard else "",
        "measured": measured,
        "gaps": gaps,
        "gap": gap_words(report),
        "differences": differences(report),
        "difference_note": difference_note(report),
        "interactions": interaction_lines(report),
        "figures": style_figures(report, order, links.arm),
        "kinds": [(title, figures) for by, title in KINDS if (figures := style_kinds(report, by, order))],
        "kind_tables": [(title, groups) for by, title in _MORE if (groups := style_table(report, by)[1:])],
        "effect": "" if report.one_instance else effect_figure(report),
        "answers": answers_figure(report, order, lambda _: ""),
        "steps": format_table(report),
        "lengths": length_lines(report),
        "methods": methods(report),
        "citation": citation(report),
        "bibtex": bibtex(report),
        "problems": report.setup.problems,
        "answer_count": sum(arm.overall.trials for arm in report.arms),
    }


def _by_shown_names(links: Links, report: OptimisationReport) -> Links:
    """Return links that know arms by their display names."""
    whole = {shown: name for name, shown in report.names.items()}
    return links._replace(
        arm=lambda name: links.arm(whole.get(name, name)),
        pair=lambda a, b: links.pair(whole.get(a, a), whole.get(b, b)),
    )
