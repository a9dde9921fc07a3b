"""Stories: the same mathematics told with other things, names and order, as the document of a problem file."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from fairtrial.core.templates import fill
from fairtrial.tracks.optimisation.domains.model import Model, Variable
from fairtrial.tracks.optimisation.draws import Draws


class Cast(msgspec.Struct, frozen=True, kw_only=True):
    """Names for things of one kind; if there are too few of them, they are numbered: `parcel 1`."""

    one: str
    names: tuple[str, ...] = ()
    in_order: bool = False  # as days of a week are

    def chosen(self, count: int, draws: Draws) -> list[str]:
        """Return a name for each thing."""
        if count > len(self.names):
            return [f"{self.one} {number}" for number in range(1, count + 1)]
        return list(self.names[:count]) if self.in_order else draws.shuffled(self.names)[:count]


class Story(msgspec.Struct, frozen=True, kw_only=True):
    """A story in templates: an opening, facts in any order, and the question, which names the variables."""

    cast: dict[str, Cast]
    variables: dict[str, str]  # names of the model's variables in this story
    opening: str
    facts: list[str]
    question: str


def tell(story: Story, model: Model, draws: Draws, *, mixed: bool) -> dict[str, Any]:
    """Return the document of a problem file, without its id.

    Args:
        mixed: Whether the facts come in another order.
    """
    names = {kind: story.cast[kind].chosen(things.count, draws) for kind, things in model.things.items()}
    facts = draws.shuffled(story.facts) if mixed else story.facts
    template = "\n\n".join((story.opening, " ".join(facts), story.question))
    told = {
        **{kind: list(enumerate(own)) for kind, own in names.items()},
        **{name: numbers.values for name, numbers in model.data.items()},
        **model.shown,
        "name": story.variables,
    }
    return {
        "sense": model.sense,
        "variables": [_variable(story.variables[name], one, model) for name, one in model.variables.items()],
        "data": {name: numbers.values for name, numbers in model.data.items()},
        "objective": _renamed(model.objective, story),
        "constraints": [_renamed(text, story) for text in model.constraints],
        "text": "\n\n".join(" ".join(part.split()) for part in fill(template, told).split("\n\n")),
    }


def _variable(name: str, variable: Variable, model: Model) -> dict[str, Any]:
    sizes = model.sizes(variable)
    entry: dict[str, Any] = {"name": name}
    if sizes:
        entry["size"] = sizes[0] if len(sizes) == 1 else sizes
    entry |= {key: value for key in ("lower", "upper") if (value := getattr(variable, key)) is not None}
    return {**entry, "integer": True} if variable.integer else entry


def _renamed(text: str, story: Story) -> str:
    names = "|".join(map(re.escape, story.variables))
    return re.sub(rf"\b({names})\b", lambda match: story.variables[match[1]], text)
