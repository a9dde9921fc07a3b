"""Elements of HTML and SVG as text, with everything escaped."""

from __future__ import annotations

from html import escape

from markupsafe import Markup

from fairtrial.text.printable import printable

Text = str | float | int


def tag(name: str, *children: str, **attributes: Text | None) -> str:
    """Return an element. Children are HTML already; attributes that are None are left out.

    A trailing underscore is removed from an attribute's name, and other underscores become hyphens.
    """
    shown = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{words(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    body = "".join(children)
    return f"<{name}{shown}/>" if not body and name in _EMPTY else f"<{name}{shown}>{body}</{name}>"


_EMPTY = {"line", "rect", "circle", "polyline", "img"}


def words(value: Text) -> str:
    """Return a text escaped, without control characters."""
    return escape(printable(str(value)))


def percent(position: float) -> str:
    """Format a position."""
    return f"{position:.2f}%".replace(".00%", "%")


def line(x1: float, x2: float, y1: Text, y2: Text, kind: str) -> str:
    """Return a line between positions in percent."""
    return tag("line", class_=kind, x1=percent(x1), x2=percent(x2), y1=y1, y2=y2)


def rect(x: float, width: float, y: int, height: int, kind: str, *, tip: str = "") -> str:
    """Return a bar between positions in percent; one with a tooltip can be focused."""
    return tag(
        "rect",
        class_=kind,
        x=percent(x),
        width=percent(width),
        y=y,
        height=height,
        data_tip=tip or None,
        tabindex="0" if tip else None,
    )


def dot(x: float, y: Text, r: float, kind: str) -> str:
    """Return a circle."""
    return tag("circle", class_=kind, cx=percent(x), cy=y, r=f"{r:g}")


def label(x: float, y: Text, text: str, *, anchor: str = "middle", kind: str | None = None, dx: float = 0) -> str:
    """Return a text at a position."""
    return tag("text", words(text), class_=kind, x=percent(x), y=y, dx=f"{dx:g}" if dx else None, text_anchor=anchor)


def link(href: str, *children: str, tip: str = "", kind: str | None = None) -> str:
    """Return children that lead to a page, or that can be focused if they lead nowhere."""
    if href:
        said = tip.replace("|", ", ") or None  # marks have no text of their own
        return tag("a", *children, href=href, class_=kind, data_tip=tip or None, aria_label=said)
    return tag("g", *children, class_=kind, data_tip=tip or None, tabindex="0" if tip else None)


def named(label: str, href: str = "", tip: str = "") -> str:
    """Return a name, which leads to its page if it has one."""
    return tag("a", words(label), href=href, data_tip=tip or None) if href else words(label)


def safe(html: str) -> Markup:
    """Mark HTML that was made here as safe, so that a template does not escape it again."""
    return Markup(html)  # noqa: S704  # made of escaped parts
