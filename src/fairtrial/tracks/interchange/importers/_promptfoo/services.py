"""Providers that are services around models: assistants, agents and knowledge bases of vendors, and browsers."""

from __future__ import annotations

from typing import Any

from fairtrial.tracks.interchange.importers._promptfoo.code import CodeFile
from fairtrial.tracks.interchange.importers._promptfoo.files import PREFIX, Folder, resolve
from fairtrial.tracks.interchange.importers._promptfoo.notes import Notes
from fairtrial.tracks.interchange.importers._promptfoo.nunjucks import all_to_jinja, variable
from fairtrial.tracks.interchange.importers._promptfoo.settings import Settings
from fairtrial.tracks.interchange.importers._promptfoo.transforms import is_body

_ASSISTANT = (
    "tools", "tool_choice", "tool_resources", "temperature", "top_p", "instructions", "model", "metadata",
    "response_format", "additional_instructions",
)  # fmt: skip
_ASSISTANT_OTHER = {
    "apiHost", "apiBaseUrl", "apiKey", "apiKeyEnvar", "apiVersion", "debug", "functionToolCallbacks", "timeoutMs",
    "maxPollTimeMs", "retryOptions", "max_tokens", "attachments", "modelName", "organization",
}  # fmt: skip
_BEDROCK = ("region", "profile", "memoryId", "enableTrace", "knowledgeBaseId")
_BEDROCK_OTHER = {
    "agentId", "agentAliasId", "sessionId", "max_tokens", "temperature", "modelArn", "inferenceConfig", "accessKeyId",
    "secretAccessKey", "sessionToken", "top_p",
}  # fmt: skip
_SAGEMAKER = ("region", "profile", "maxTokens", "temperature", "topP", "stopSequences", "contentType", "acceptType")
_KEYS = ("accessKeyId", "secretAccessKey", "sessionToken")  # stay in the environment
_BROWSER = {"steps", "headless", "transformResponse", "responseParser", "cookies", "connectOptions", "timeoutMs"}
_ADVICE = "add it to the function in {}"


class Services:
    """Turns services into targets: functions next to the suite."""

    def __init__(self, folder: Folder, notes: Notes, code: CodeFile, settings: Settings) -> None:
        self._folder, self._notes, self._code, self._settings = folder, notes, code, settings

    def target(self, name: str, config: dict[str, Any]) -> dict[str, Any] | None:
        """Return the target of a service; None if the name is not one that is known."""
        first, _, rest = name.partition(":")
        kind, _, model = rest.partition(":")
        if first == "bedrock-agent":
            kind, model = "agents", rest
        service = {
            ("browser", ""): self._browser,
            ("bedrock-agent", "agents"): self._bedrock_agent,
            ("bedrock", "agents"): self._bedrock_agent,
            ("bedrock", "kb"): self._knowledge,
            ("openai", "assistant"): self._assistant,
            ("azure", "assistant"): self._assistant,
            ("azureopenai", "assistant"): self._assistant,
            ("azure", "foundry-agent"): self._foundry,
            ("openclaw", "tools"): self._openclaw_tool,
        }.get((first, kind))
        if first == "sagemaker" and kind != "embedding" and (config.get("transform") or config.get("responseFormat")):
            service = self._sagemaker
        return service(name, model, config) if service else None

    def _made(self, name: str, made: str, note: str) -> dict[str, Any]:
        self._notes.differs(note)
        return {"target": f"python:{made}", "id": name}

    def _note(self, name: str, config: dict[str, Any], known: set[str]) -> None:
        for key in sorted(set(config) - known):
            self._notes.lost(f"config `{key}` of provider {name}", _ADVICE.format(self._code.name))

    def _assistant(self, name: str, model: str, config: dict[str, Any]) -> dict[str, Any]:
        self._note(name, config, {*_ASSISTANT, *_ASSISTANT_OTHER})
        params = resolve({key: config[key] for key in _ASSISTANT if config.get(key) is not None}, self._folder)
        if config.get("max_tokens"):
            params["max_completion_tokens"] = config["max_tokens"]
        where: dict[str, Any] = {"callbacks": self._settings.callbacks(name, config)}
        if name.startswith("azure"):
            host = config.get("apiHost") or variable("AZURE_API_HOST")
            where |= {"base_url": f"https://{host}/openai", "key": "AZURE_API_KEY",
                      "version": str(config.get("apiVersion") or "2024-05-01-preview")}  # fmt: skip
        made = self._code.call("call_assistant", model, params, **where)
        return self._made(
            name, made, f"assistants are called by a function in {self._code.name}; each trial is a thread"
        )

    def _foundry(self, name: str, model: str, config: dict[str, Any]) -> dict[str, Any]:
        self._note(name, config, {"projectUrl", "temperature", "max_tokens", "instructions", "top_p", "apiVersion"})
        given = {key: config[key] for key in ("temperature", "max_tokens", "instructions", "top_p") if key in config}
        project = str(config.get("projectUrl") or variable("AZURE_AI_PROJECT_URL"))
        made = self._code.call("call_foundry_agent", model, project, given)
        return self._made(name, made, "agents of Azure AI Foundry need `pip install azure-identity`")

    def _bedrock_agent(self, name: str, agent: str, config: dict[str, Any]) -> dict[str, Any]:
        self._note(name, config, {*_BEDROCK, *_BEDROCK_OTHER})
        agent, _, alias = agent.partition(":")
        options = {key: config[key] for key in _BEDROCK if config.get(key) is not None}
        alias = str(config.get("agentAliasId") or alias or "TSTALIASID")
        made = self._code.call("call_bedrock_agent", str(config.get("agentId") or agent), alias, options)
        if config.get("sessionId"):
            self._notes.differs(
                f"{name}: each trial is a session of its own, so that none depends on another; write tests that go on "
                "from each other as one case with `turns`"
            )
        return self._made(name, made, "agents and knowledge bases of Bedrock need `pip install boto3`")

    def _knowledge(self, name: str, model: str, config: dict[str, Any]) -> dict[str, Any]:
        self._note(name, config, {*_BEDROCK, *_BEDROCK_OTHER})
        options = {key: config[key] for key in _BEDROCK if config.get(key) is not None}
        made = self._code.call("call_bedrock_knowledge", str(config.get("modelArn") or model), options)
        return self._made(name, made, "agents and knowledge bases of Bedrock need `pip install boto3`")

    def _sagemaker(self, name: str, model: str, config: dict[str, Any]) -> dict[str, Any]:
        """Return an endpoint whose requests or replies are not as LiteLLM makes and reads them."""
        self._note(name, config, {*_SAGEMAKER, "modelType", "endpoint", "transform", "responseFormat", "delay", *_KEYS})
        self._settings.note_secrets(config)
        kind = name.split(":")[1] if model else str(config.get("modelType") or "custom")
        options = {key: config[key] for key in _SAGEMAKER if config.get(key) is not None}
        form = config.get("responseFormat") if isinstance(config.get("responseFormat"), dict) else {}
        for key, given in (("transform", config.get("transform")), ("path", (form or {}).get("path"))):
            if given:
                options[key] = self._code_or_file(str(given))
        endpoint = str(config.get("endpoint") or model or name.partition(":")[2])
        made = self._code.call("call_sagemaker", endpoint, kind, options)
        return self._made(name, made, "endpoints of SageMaker with a `transform` or a `path` need `pip install boto3`")

    def _code_or_file(self, given: str) -> Any:
        if not given.startswith(PREFIX):
            return given.strip().rstrip(";") if "=>" in given else given.strip()
        file, _, function = given.removeprefix(PREFIX).partition(":")
        return (self._folder.find(file)[0], function)

    def _openclaw_tool(self, name: str, model: str, config: dict[str, Any]) -> dict[str, Any]:
        """Return a tool of an OpenClaw gateway; its agents are models behind a server."""
        made = self._code.call("call_openclaw_tool", model, config)
        return self._made(name, made, "tools of OpenClaw are called at its gateway (OPENCLAW_GATEWAY_URL and _TOKEN)")

    def _browser(self, name: str, model: str, config: dict[str, Any]) -> dict[str, Any]:
        self._note(name, config, _BROWSER)
        answer = str(config.get("transformResponse") or config.get("responseParser") or "").strip().rstrip(";")
        if answer and not is_body(answer):
            call = f"({answer})(extracted, finalHtml)" if "=>" in answer else f"({answer})"
            answer = f"return {call};"
        given = config.get("connectOptions") if isinstance(config.get("connectOptions"), dict) else {}
        connect = f"http://127.0.0.1:{(given or {}).get('debuggingPort', 9222)}" if given else ""
        options = {"headless": config.get("headless", True) is not False, "connect": connect}
        if isinstance(config.get("cookies"), list):
            options["cookies"] = config["cookies"]
        made = self._code.call(
            "call_browser", where="vars", steps=all_to_jinja(config.get("steps") or []), answer=answer, **options
        )
        return self._made(name, made, "browsers are driven by Playwright: `pip install 'fairtrial[arena]'`")
