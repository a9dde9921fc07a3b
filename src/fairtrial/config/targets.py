"""Resolving names like `openai:gpt-6.1-sol` into targets, with their addresses, keys and options."""

from __future__ import annotations

import msgspec

from fairtrial.config.document import JudgeEntry, SuiteDocument, TargetEntry, UserEntry
from fairtrial.config.source import SuiteSource
from fairtrial.core import registry
from fairtrial.core.errors import FairtrialError
from fairtrial.core.experiment import TargetSpec
from fairtrial.core.options import Path as KeyPath
from fairtrial.core.options import Problems, read
from fairtrial.core.providers import (
    AROUND_A_MODEL,
    CHOOSE_A_MODEL,
    TO_CHOOSE,
    Provider,
    api_kinds,
    find_provider,
    known_providers,
    plain_name,
    plugged_in,
    split_name,
)
from fairtrial.core.variables import Variables, escape
from fairtrial.providers.endpoints import api_for
from fairtrial.providers.models import with_provider


class TargetResolver:
    """Resolves names like `openai:gpt-6.1-sol` into target specs."""

    def __init__(self, source: SuiteSource, document: SuiteDocument) -> None:
        self._source, self._folder, self._variables = source, source.folder, source.variables
        self._own = {
            name: Provider(kind=e.kind, base_url=e.base_url, api_key=e.api_key, headers=e.headers)
            for name, e in document.providers.items()
        }

    def resolve(self, path: KeyPath, entry: TargetEntry | JudgeEntry | UserEntry) -> TargetSpec | None:
        if not entry.target:
            return None  # already reported as missing
        provider_name, model = split_name(entry.target)
        if provider_name in AROUND_A_MODEL:
            return self._around_a_model(path, entry, provider_name, model)
        provider_name = provider_name if provider_name in self._own else plain_name(provider_name)
        provider = find_provider(provider_name, self._own, self._variables.environment)
        if provider is None:
            self._source.problem((*path, "target"), self._unknown(provider_name, model))
            return None
        if provider.ended:
            self._source.problem(
                (*path, "target"), f"{provider_name} was switched off on {provider.ended}: name another"
            )
            return None
        if provider.kind == "litellm" and provider.litellm:  # `sagemaker:endpoint` is `litellm:sagemaker/endpoint`
            provider_name, model = "litellm", f"{provider.litellm}/{model}"
        if self._variables.placeholders and provider.usual:
            provider = self._needing_usual(provider_name, provider, entry, model)
        spec = TargetSpec(
            id=getattr(entry, "id", None) or entry.target,
            kind=provider.kind,
            provider=provider_name,
            model=model,
            base_url=self._live(path, entry.target, provider_name, provider.base_url),
            api_key=self._live(path, entry.target, provider_name, provider.api_key),
            headers=provider.headers,
            options=entry.options,
            concurrency=getattr(entry, "concurrency", None),
            resources=getattr(entry, "resources", None) or msgspec.UNSET,
            batch=getattr(entry, "batch", False) or msgspec.UNSET,
            folder=self._folder_of(provider.kind),
        )
        return self._checked(path, msgspec.structs.replace(spec, kind=api_for(spec)))

    def _unknown(self, provider: str, model: str) -> str:
        """Return the problem of a name whose provider is not known, or that has none."""
        if f"{provider}:{model}" == TO_CHOOSE:
            return CHOOSE_A_MODEL
        # A name that comes from a variable is hidden in messages, but its upper-case form would not be.
        secret = self._variables.hide(provider) != provider
        full = None if model or secret else with_provider(provider)
        if full:
            return f"`{provider}` is a model without its provider; did you mean `{full}`?"
        variable = "NAME" if secret else provider.upper().replace("-", "_")
        hint = registry.nearest(provider, sorted({*known_providers(), *self._own, *plugged_in()}))
        return (
            f"unknown provider `{provider}`{hint} (for your own server, add it under `providers:` "
            f"or set {variable}_BASE_URL)"
        )

    def _folder_of(self, kind: str) -> str:
        """Return the suite's folder for targets that run programs from there; it is part of their identity."""
        runs_own_code = kind in registry.names("targets") and registry.load("targets", kind).runs_own_code
        return str(self._folder.resolve()) if runs_own_code else ""

    def _around_a_model(
        self, path: KeyPath, entry: TargetEntry | JudgeEntry | UserEntry, agent: str, model: str
    ) -> TargetSpec | None:
        """Resolve an agent with its model: `tool-agent:openai:gpt-6-luna`."""
        named = str(entry.options.get("model") or "")
        behind = {"model": named} if model and named and agent == "tool-agent" else {}  # a deployment
        model = model or named
        article = "an" if agent[0] in "aeiou" else "a"
        if not model:
            self._source.problem((*path, "target"), f"{article} {agent} needs a model: `{agent}:openai:gpt-6-luna`")
            return None
        model_entry = msgspec.structs.replace(entry, target=model, options=behind)
        model_spec = self.resolve(path, model_entry)
        if model_spec is None:
            return None
        if model_spec.kind not in api_kinds():
            self._source.problem((*path, "target"), f"{article} {agent} needs a model behind an API, not `{model}`")
            return None
        options = {name: value for name, value in entry.options.items() if name != "model"}
        options |= behind
        api = api_for(model_spec, tools=agent == "tool-agent")
        spec = msgspec.structs.replace(
            model_spec,
            id=getattr(entry, "id", None) or entry.target,
            kind=known_providers()[agent].kind,
            api=api,
            options=options,
        )
        return self._checked(path, spec)

    def _needing_usual(
        self, name: str, provider: Provider, entry: TargetEntry | JudgeEntry | UserEntry, model: str
    ) -> Provider:
        """Return a provider that needs its usual variables; if the target can be used with what is set, just that."""
        cls = registry.load("targets", provider.kind)
        options = read(cls.options_type, entry.options, [])
        known = Variables(self._variables.environment)
        spec = TargetSpec(
            id=entry.target,
            kind=provider.kind,
            provider=name,
            model=model,
            base_url=known.reveal(provider.base_url),
            api_key=known.reveal(provider.api_key),
        )
        if options is None or not list(cls.check(spec, options, self._folder)):
            return msgspec.structs.replace(provider, base_url=escape(spec.base_url), api_key=escape(spec.api_key))

        def needed(template: str) -> str:
            for variable in provider.usual:
                template = template.replace(f"${{{variable}:-}}", f"${{{variable}}}")
            return template

        return msgspec.structs.replace(provider, base_url=needed(provider.base_url), api_key=needed(provider.api_key))

    def _live(self, path: KeyPath, target: str, provider: str, template: str) -> str:
        if provider in self._own:  # values from the suite were filled in during parsing
            return template
        missing = set(self._variables.missing)
        live = self._variables.fill(template)
        for variable in sorted(self._variables.missing - missing):
            self._source.problem(
                (*path, "target"), f"{target} needs {variable}: set it in the environment or in a .env file"
            )
        return live

    def _checked(self, path: KeyPath, spec: TargetSpec) -> TargetSpec | None:
        """Return the spec with the hash of its code; None if the target cannot be used."""
        try:
            cls = registry.load("targets", spec.kind)
        except FairtrialError as error:
            self._source.problem((*path, "target"), str(error))
            return None
        problems: Problems = []
        options = read(cls.options_type, spec.options, problems)
        for inner, message in problems:
            self._source.problem((*path, "options", *inner), message)
        if options is None or problems:
            return None
        given = spec.model in self._source.functions  # checked where it was given
        reasons = [] if given else list(cls.check(spec, options, self._folder))
        for reason in reasons:
            self._source.problem((*path, "target"), reason)
        if reasons:
            return None
        if spec.batch and (problem := cls.batch_problem(spec)):
            self._source.problem((*path, "batch"), f"{spec.id} cannot be asked in batches: {problem}; remove `batch`")
            return None
        code = "" if given else cls.code(spec, options, self._folder)
        return msgspec.structs.replace(spec, code=code) if code else spec
