"""Which providers and prompts a test is for: `providers`, `provider` and `prompts` of a test, and of a provider."""

from __future__ import annotations

from typing import Any

from fairtrial.tracks.interchange.importers._promptfoo.conversion import Notes
from fairtrial.tracks.interchange.importers._promptfoo.prompts import Prompt
from fairtrial.tracks.interchange.importers._promptfoo.providers import Providers, target_id
from fairtrial.tracks.interchange.importers._promptfoo.tests import Test

KEYS = {"provider", "providers", "prompts"}  # of a test


class ChosenArms:
    """Says which targets and conditions the case of a test is for; a provider of its own becomes another target."""

    def __init__(
        self, providers: Providers, targets: list[Any], prompts: dict[str, Prompt], tests: list[Test], notes: Notes
    ) -> None:
        self._providers, self._prompts, self._notes = providers, prompts, notes
        self._for_all = [target_id(target) for target in targets]
        self._own: dict[str, str] = {}  # the targets of tests that name a provider of their own
        for number, test in enumerate(tests, 1):
            if test.get("provider"):
                self._add(test["provider"], targets, f"test {number}")

    def _add(self, provider: Any, targets: list[Any], where: str) -> None:
        """Add the provider of a test to the targets, unless one of them is the same."""
        if repr(provider) in self._own:
            return
        target = self._providers.target(provider)
        if target is None:
            self._notes.lost(
                "`provider` of a test", "every target is asked instead: give the case its `targets`", where
            )
            return
        if target not in targets:
            target = self._providers.add(target, provider, targets)
        self._own[repr(provider)] = target_id(target)

    def of(self, test: Test, where: str) -> dict[str, list[str]]:
        """Return the `targets` and `conditions` of a test's case, where it is not for all."""
        found: dict[str, list[str]] = {}
        if own := self._own.get(repr(test.get("provider"))):
            found["targets"] = [own]
        elif targets := self._chosen("providers", test, where):
            found["targets"] = targets
        elif len(self._providers.called) > len(self._for_all):
            found["targets"] = list(self._for_all)
        if conditions := self._chosen("prompts", test, where):
            found["conditions"] = conditions
        return found

    def _chosen(self, key: str, test: Test, where: str) -> list[str]:
        """Return the names of the targets or prompts that a test lists; none if it is for all."""
        wanted = test.get(key)
        if not isinstance(wanted, list) or not wanted:
            return []
        known = self._for_all if key == "providers" else list(self._prompts)
        chosen = [name for name in known if any(self._fits(key, name, str(one)) for one in wanted)]
        if not chosen:
            advice = "none has one of these names, so that all are asked; correct them and import again"
            self._notes.lost(f"`{key}` of a test", advice, where)
        return chosen if len(chosen) < len(known) else []

    def _fits(self, key: str, name: str, wanted: str) -> bool:
        if key == "prompts":
            return prompt_fits(name, self._prompts[name], wanted)
        return any(_fits(one, wanted) for one in (name, *self._providers.called.get(name, ())))


def prompt_fits(label: str, prompt: Prompt | None, wanted: str) -> bool:
    """Return whether a prompt is one that a provider or a test asks for by label, id, file or text."""
    names = (label, *((prompt.id, prompt.source) if prompt else ()))
    in_file = label.startswith(f"{wanted}-") or wanted.endswith(f"/{label}") or wanted == f"file://{label}"
    return in_file or any(_fits(name, wanted) for name in names)


def _fits(name: str, wanted: str) -> bool:
    """Return whether a name is the one that is wanted: the same, `name:…`, or any that begins as before a `*`."""
    if wanted.endswith("*"):
        return name.startswith(wanted[:-1])
    return name == wanted or name.startswith(f"{wanted}:")
