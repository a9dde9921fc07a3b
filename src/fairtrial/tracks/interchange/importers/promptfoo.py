"""Import from `promptfoo`: prompts become conditions, providers targets, tests cases, assertions scorers."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import yaml

from fairtrial.core.errors import FairtrialError
from fairtrial.core.secrets import is_private
from fairtrial.foreign.suites import FileRef, Imported, expecting, read_text
from fairtrial.text.printable import name_problem
from fairtrial.text.yaml_text import reason_of
from fairtrial.tracks.interchange.importers._promptfoo import tests, transforms
from fairtrial.tracks.interchange.importers._promptfoo.assertions import Assertions
from fairtrial.tracks.interchange.importers._promptfoo.cases import Cases
from fairtrial.tracks.interchange.importers._promptfoo.chosen_arms import ChosenArms, prompt_fits
from fairtrial.tracks.interchange.importers._promptfoo.code import CodeFile
from fairtrial.tracks.interchange.importers._promptfoo.conversion import Conversion, Notes, dict_of
from fairtrial.tracks.interchange.importers._promptfoo.files import Folder, dereferenced
from fairtrial.tracks.interchange.importers._promptfoo.nunjucks import finish
from fairtrial.tracks.interchange.importers._promptfoo.prompts import Prompts
from fairtrial.tracks.interchange.importers._promptfoo.providers import Providers, target_id
from fairtrial.tracks.interchange.importers._promptfoo.rows import INSTRUCTIONS
from fairtrial.tracks.interchange.importers._promptfoo.runtime import node
from fairtrial.tracks.interchange.importers._promptfoo.tests import Test
from fairtrial.tracks.interchange.importers._promptfoo.yaml12 import parse

_PROGRAMS = (".js", ".cjs", ".mjs", ".ts", ".mts", ".cts")

_READ = {
    "description", "prompts", "providers", "targets", "tests", "defaultTest", "scenarios", "env", "evaluateOptions",
    "commandLineOptions", "$schema", "version", "providerPromptMap", "nunjucksFilters",
}  # fmt: skip
_UNUSED = {  # of no consequence for what is asked and how it is scored
    "writeLatestResults", "metadata", "assertionTemplates", "definitions", "$defs", "anchors", "templates",
}  # fmt: skip
_COUNTS = {"maxConcurrency": "concurrency", "repeat": "repeats"}
_SHOWN = ("showProgressBar", "verbose", "share", "table", "write", "progressBar", "generateSuggestions", "delay")
_ELSEWHERE = {  # what is not part of a suite here
    "outputPath": "give it to the command: `fairtrial run SUITE -o FILE`",
    "sharing": "`fairtrial report RUN -o report.html` makes a page to share",
    "tags": "`fairtrial tag` puts them on a run",
    "tracing": "agents report their tool calls by themselves (docs/targets.md)",
    "derivedMetrics": "computed from other scores: `fairtrial export` has the parts of the scores",
    "basePath": "files are looked for next to the configuration",
}
_KEYS = {
    "extensions": "start and stop what is needed around `fairtrial run`; an agent with a `workspace` has a new folder "
    "for each trial",
    "redteam": "red-team plug-ins make their own tests: write those that they made into a file and import again",
}
# promptfoo 0.121 grades with a model of this family where a configuration names no grader and OpenAI's key is set.
_DEFAULT_JUDGE = "openai:gpt-5.5"
_MAX_NAME = 60


class Promptfoo:
    """Imports promptfooconfig.yaml files; `run_code`: also by running programs of theirs that make tests."""

    run_code: bool = False
    output: Path = Path("suite.yaml")  # where the suite will stand; its code is named after it

    def read(self, file: Path) -> Imported:
        """Convert a promptfoo configuration into a suite."""
        with expecting(file, "a promptfoo configuration"):
            return self._read(file)

    def _read(self, file: Path) -> Imported:
        config = self._program(file) if file.suffix in _PROGRAMS else _parsed(file)
        keys = set(config) if isinstance(config, dict) else set()
        if not keys & {"prompts", "tests", "scenarios"} or not keys & _READ - {"prompts", "description", "version"}:
            raise FairtrialError(f"{file} is not a promptfoo configuration: it needs `prompts` and `tests`")
        code = CodeFile(f"{'promptfoo' if self.output.stem == 'suite' else self.output.stem}_code.py")
        return _Suite(dereferenced(config, config), file.parent, code, run_code=self.run_code).read(file)

    def _program(self, file: Path) -> Any:
        """Return what a configuration in JavaScript or TypeScript exports, if it may be run."""
        if not self.run_code:
            raise FairtrialError(f"{file} is a program: import it with --run-code, which runs it with `node`")
        read_text(file)  # says what is wrong with the file itself
        try:
            return node(str(file.resolve()), "", [], kind="config")
        except (OSError, RuntimeError, ValueError, subprocess.SubprocessError) as error:
            raise FairtrialError(f"{file} cannot be run: {' '.join(str(error).split())[-300:]}") from None


def _parsed(file: Path) -> Any:
    try:
        return parse(read_text(file))
    except yaml.YAMLError as error:
        raise FairtrialError(f"{file} is not valid YAML: {reason_of(error)}") from None


class _Suite:
    """The suite that a configuration becomes."""

    def __init__(self, config: dict[str, Any], path: Path, code: CodeFile, *, run_code: bool) -> None:
        self.config, self.notes, self.code = config, Notes(), code
        self.code.tracing = _port(config)
        environment = self._environment(dict_of(config.get("env")))
        self.at = Conversion(Folder(path), self.notes, code, environment, run_code)
        self.providers = Providers(self.at)

    def _environment(self, values: dict[str, Any]) -> dict[str, Any]:
        """Return the values that the configuration sets; keys stay in the environment."""
        if secret := sorted(name for name, value in values.items() if is_private(str(name), str(value))):
            self.notes.differs(
                f"`env`: keys are not copied; set {', '.join(secret)} in the environment or in a .env file"
            )
        return {str(name): value for name, value in values.items() if name not in secret}

    def read(self, file: Path) -> Imported:
        targets = self.providers.targets(self.config.get("providers") or self.config.get("targets") or [])
        if not targets:
            self.notes.lost("the providers", "none could be carried over: replace `mock:echo` under targets")
        suite: dict[str, Any] = {**self._name(file), "targets": targets or ["mock:echo"]}
        prompts = Prompts(self.at, self._filters()).read(self.config.get("prompts") or ["{{prompt}}"])
        asked, user = self._simulated_user(tests.read(self.at, self.config))
        arms = ChosenArms(self.providers, targets, prompts, asked, self.notes)
        keep = any(word in repr(targets) for word in (self.code.name, "vars."))  # functions may look at any variable
        assertions = Assertions(self.at, self.providers)
        cases = Cases(self.at, assertions, arms, keep_all=keep, simulated=bool(user))
        body = cases.build(prompts, asked)
        suite |= self._judge(body, assertions.graders) | user | self._options() | body
        if self.providers.servers:
            suite["providers"] = self.providers.servers
        self._settings_of_prompts(suite, prompts)
        self._by_target(suite, prompts)
        self._prompts_as_conditions(suite, prompts)
        self._note_keys()
        ordered = {**{key: value for key, value in suite.items() if key != "cases"}, "cases": suite["cases"]}
        pieces = self.code.pieces()
        files: dict[str, Any] = {**cases.files, **({self.code.name: pieces} if pieces else {})}
        return Imported(_finished(ordered), self.notes.findings(), self.notes.differences(), files)

    def _name(self, file: Path) -> dict[str, str]:
        text = str(self.config.get("description") or "").strip()
        short = text and len(text) <= _MAX_NAME and name_problem(text) is None
        stem = file.parent.resolve().name if file.stem == "promptfooconfig" else file.stem
        return {"name": text if short else stem or "suite", **({"description": text} if text and not short else {})}

    def _filters(self) -> dict[str, Path]:
        found: dict[str, Path] = {}
        for name, file in dict_of(self.config.get("nunjucksFilters")).items():
            with self.notes.missing(f"filter `{name}`"):
                found[str(name)] = self.at.folder.find(str(file))[0]
        return found

    def _simulated_user(self, tests: list[Test]) -> tuple[list[Test], dict[str, Any]]:
        """Return the tests without the simulated user that all of them name, and that user."""
        found = [_simulation(test.get("provider")) for test in tests]
        if not tests or any(config is None for config in found):
            return tests, {}
        made = []
        for test, config in zip(tests, found, strict=True):
            own = (config or {}).get("instructions")
            values = test["vars"] if isinstance(test.get("vars"), dict) else {}
            told = {INSTRUCTIONS: own} if own and own != "{{instructions}}" else {}
            made.append({**{k: v for k, v in test.items() if k != "provider"}, "vars": {**values, **told}})
            known = ("maxTurns", "instructions", "userProvider", "stateful")
            advice = "write what it does into the instructions"
            self.notes.lost_keys(config or {}, known, "`{}` of the simulated user", advice)
        models = [config["userProvider"] for config in found if config and config.get("userProvider")]
        target = self.providers.target(models[0]) if models else None
        name = target if isinstance(target, str) else (target or {}).get("target", _DEFAULT_JUDGE)
        turns = max(int((config or {}).get("maxTurns") or 10) for config in found)
        self.notes.differs(
            f"the simulated user is played by {name}, learns when to stop, and begins with a greeting; "
            f"`max_turns` is {turns} for all cases"
        )
        return made, {"user": {"target": name, "persona": f"{{{{ {INSTRUCTIONS} }}}}", "max_turns": turns}}

    def _judge(self, body: dict[str, Any], graders: list[Any]) -> dict[str, Any]:
        """Return the judge, or the judges of whom every scorer names its own."""
        if "llm_judge" not in repr(body["cases"]):
            return {}
        judges: list[Any] = []
        names: list[str] = []  # of the judge of every grader
        for grader in graders:
            judge = self.providers.target(grader) if grader else None
            if judge is None:
                judge = _DEFAULT_JUDGE
            if not grader:
                self.notes.differs(
                    f"the configuration names no grader, and promptfoo's own is a model of OpenAI's: {_DEFAULT_JUDGE} "
                    "judges here; change `judge` to have another"
                )
            same = next((one for one in judges if target_id(one) == target_id(judge) and one != judge), None)
            if same is not None:
                details = judge if isinstance(judge, dict) else {"target": judge}
                judge = {**details, "id": f"{target_id(judge)}-{len(judges) + 1}"}
            judges += [judge] if judge not in judges else []
            names.append(target_id(judge))
        several = len(judges) > 1
        body["cases"] = _with_judges(body["cases"], names if several else [])
        return {"judges": judges} if several else {"judge": judges[0] if judges else _DEFAULT_JUDGE}

    def _options(self) -> dict[str, Any]:
        """Return the suite's settings, from `evaluateOptions` and `commandLineOptions`."""
        given: dict[str, Any] = {}
        for key in ("commandLineOptions", "evaluateOptions"):
            given |= self.config.get(key) or {}
        options: dict[str, Any] = {}
        for key, value in given.items():
            if key in _COUNTS and value:
                options[_COUNTS[key]] = int(value)
            elif key == "timeoutMs" and value:
                options["timeout"] = float(value) / 1000
            elif key == "cache":
                options |= {"cache": True} if value is True else {}
            elif key == "delay" and value:
                self.notes.lost("`delay`", "set `concurrency: 1`; rate limits of providers are kept to by themselves")
            elif key not in _SHOWN:
                self.notes.lost(f"option `{key}`", "give it to `fairtrial run`, if it has it")
        return options

    def _settings_of_prompts(self, suite: dict[str, Any], prompts: dict[str, Any]) -> None:
        """Add the settings that come with prompts to the targets, if all prompts have the same."""
        configs = [prompt.config for prompt in prompts.values()]
        if not any(configs):
            return
        if any(config != configs[0] for config in configs):
            return  # they become conditions, once it is known which targets get them
        params = self.providers.settings(configs[0])
        for index, target in enumerate(suite["targets"]):
            details = dict(target) if isinstance(target, dict) else {"id": target, "target": target}
            if not str(details["target"]).startswith(("mock:", "python:", "command")) and "options" not in details:
                own = details.get("params", {})
                extra = {**own.get("extra", {}), **params.get("extra", {})}
                suite["targets"][index] = {
                    **details, "params": {**own, **params, **({"extra": extra} if extra else {})}
                }  # fmt: skip

    def _prompts_as_conditions(self, suite: dict[str, Any], prompts: dict[str, Any]) -> None:
        """Write prompts with settings that differ as conditions, which can have `params`."""
        configs = {label: prompt.config for label, prompt in prompts.items()}
        written = suite.get("prompts") or {}
        if all(config == next(iter(configs.values())) for config in configs.values()) or not written:
            return
        made = {label: _condition(written[label]) for label in written}
        if suite.get("conditions") or any(condition is None for condition in made.values()):
            self.notes.lost("`config` of some prompts", "set it as `params` of a condition for each prompt")
            return
        del suite["prompts"]
        suite["conditions"] = {
            label: {**(made[label] or {}), **({"params": params} if params else {})}
            for label in made
            for params in [self.providers.settings(configs.get(label))]
        }

    def _by_target(self, suite: dict[str, Any], prompts: dict[str, Any]) -> None:
        """Add to the targets what is not for all of them: transforms, prompts and tools."""
        tools = {name: servers for name, servers in self.providers.tools.items() if servers}
        mixed = bool(tools) and len(tools) < len(suite["targets"])
        for index, target in enumerate(suite["targets"]):
            name = target_id(target)
            details = dict(target) if isinstance(target, dict) else {"id": target, "target": target}
            if name in self.providers.transforms:
                extract = transforms.extraction(self.at, self.providers.transforms[name], name)
                details |= {"extract": extract} if extract else {}
            chosen = self._prompts_of(name, prompts, suite)
            if mixed:
                kind = "with-tools" if name in tools else "without-tools"
                listed = chosen or list(suite.get("prompts") or [""])
                chosen = [f"{kind}/{prompt}" if prompt else kind for prompt in listed]
            elif tools and chosen:
                chosen = [f"with-tools/{prompt}" for prompt in chosen]
            details |= {"conditions": chosen} if chosen else {}
            suite["targets"][index] = details if len(details) > 2 else target
        if tools:
            self._tools(suite, tools, mixed=mixed)

    def _prompts_of(self, name: str, prompts: dict[str, Any], suite: dict[str, Any]) -> list[str]:
        """Return the prompts that a target gets; none if it gets all."""
        wanted = self.providers.prompts.get(name) or dict_of(self.config.get("providerPromptMap")).get(name)
        if not wanted or not suite.get("prompts"):
            return []
        chosen = [
            label for label in suite["prompts"] if any(prompt_fits(label, prompts.get(label), one) for one in wanted)
        ]
        if not chosen:
            self.notes.lost(f"`prompts` of provider {name}", "no prompt has one of these labels; correct them")
        return chosen if len(chosen) < len(suite["prompts"]) else []

    def _tools(self, suite: dict[str, Any], tools: dict[str, Any], *, mixed: bool) -> None:
        """Describe the MCP servers of providers, and the condition in which they are there."""
        servers = {key: value for named in tools.values() for key, value in named.items()}
        suite["mcp_servers"] = servers
        only = {"mcp_tools": self.providers.only} if self.providers.only else {}
        suite["conditions"] = {
            **({"without-tools": {}} if mixed else {}), "with-tools": {"mcp": list(servers), **only}
        }  # fmt: skip
        for case in suite["cases"]:
            if labels := case.get("conditions"):
                case["conditions"] = [f"{kind}/{label}" for kind in suite["conditions"] for label in labels]
        self.notes.differs("providers with `mcp` are agents: the model is asked in a loop, and its tools are called")

    def _note_keys(self) -> None:
        for key in sorted(set(self.config) - _READ - _UNUSED, key=str):
            if str(key).startswith(("x-", ".")):  # a place for what is referred to elsewhere
                continue
            if key in _ELSEWHERE:
                self.notes.differs(f"`{key}`: {_ELSEWHERE[key]}")
            else:
                self.notes.lost(f"key `{key}`", _KEYS.get(key, "set it by hand, if fairtrial has it"))


def _condition(prompt: Any) -> dict[str, Any] | None:
    """Return a prompt as a condition; None if it has more than a system prompt and a question."""
    if isinstance(prompt, str):
        return {"prompt": prompt}
    roles = [message["role"] for message in prompt] if isinstance(prompt, list) else []
    if roles == ["system", "user"]:
        return {"system": prompt[0]["content"], "prompt": prompt[1]["content"]}
    return {"prompt": prompt[0]["content"]} if roles == ["user"] else None


def _simulation(provider: Any) -> dict[str, Any] | None:
    """Return the settings of a simulated user; None if the provider of a test is none."""
    name = provider.get("id") if isinstance(provider, dict) else provider
    if name != "promptfoo:simulated-user":
        return None
    return dict_of(dict_of(provider).get("config"))


def _port(config: dict[str, Any]) -> int:
    """Return the port at which providers send spans; 0 if no check looks at them."""
    tracing = dict_of(config.get("tracing"))
    tests = repr([config.get(key) for key in ("tests", "defaultTest", "scenarios")])
    if not tracing.get("enabled") or not re.search(r"'(not-)?(trace|trajectory)", tests):
        return 0
    http = (tracing.get("otlp") or {}).get("http") or {}
    return int(http.get("port") or 4318)


def _with_judges(value: Any, names: list[str]) -> Any:
    """Return scorers with the names of their judges for the numbers of graders; without names, with none."""
    if isinstance(value, list):
        return [_with_judges(item, names) for item in value]
    if not isinstance(value, dict):
        return value
    made = {key: _with_judges(item, names) for key, item in value.items()}
    if value.get("type") == "llm_judge" and "by" in value:
        del made["by"]
        made |= {"by": [names[number] for number in value["by"]]} if names else {}
    return made


def _finished(value: Any) -> Any:
    """Return a value with every text as it is written in a suite."""
    if isinstance(value, FileRef):
        return value
    if isinstance(value, str):
        return finish(value)
    if isinstance(value, dict):
        return {finish(str(key)): _finished(item) for key, item in value.items()}
    return [_finished(item) for item in value] if isinstance(value, list | tuple) else value
