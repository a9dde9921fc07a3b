"""Providers that are services around models: assistants, agents and knowledge bases of vendors, and browsers."""

from __future__ import annotations

from typing import Any

from fairtrial.tracks.interchange.importers._promptfoo import settings
from fairtrial.tracks.interchange.importers._promptfoo.addresses import ADVICE
from fairtrial.tracks.interchange.importers._promptfoo.conversion import OWN_SESSION, Conversion, dict_of
from fairtrial.tracks.interchange.importers._promptfoo.files import PREFIX, resolve
from fairtrial.tracks.interchange.importers._promptfoo.nunjucks import all_to_jinja, variable
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
_BOTO = "agents and knowledge bases of Bedrock need `pip install boto3`"
_SAGEMAKER = ("region", "profile", "maxTokens", "temperature", "topP", "stopSequences", "contentType", "acceptType")
_KEYS = ("accessKeyId", "secretAccessKey", "sessionToken")  # stay in the environment
_BROWSER = {"steps", "headless", "transformResponse", "responseParser", "cookies", "connectOptions", "timeoutMs"}


def target(at: Conversion, name: str, config: dict[str, Any]) -> dict[str, Any] | None:
    """Return the target of a service; None if the name is not one that is known."""
    first, _, rest = name.partition(":")
    kind, _, model = rest.partition(":")
    if first == "bedrock-agent":
        kind, model = "agents", rest
    service = {
        ("browser", ""): _browser,
        ("bedrock-agent", "agents"): _bedrock_agent,
        ("bedrock", "agents"): _bedrock_agent,
        ("bedrock", "kb"): _knowledge,
        ("openai", "assistant"): _assistant,
        ("azure", "assistant"): _assistant,
        ("azureopenai", "assistant"): _assistant,
        ("azure", "foundry-agent"): _foundry,
        ("openclaw", "tools"): _openclaw_tool,
    }.get((first, kind))
    if first == "sagemaker" and kind != "embedding" and (config.get("transform") or config.get("responseFormat")):
        service = _sagemaker
    return service(at, name, model, config) if service else None


def _called(at: Conversion, name: str, note: str, function: str, *values: Any, **options: Any) -> dict[str, Any]:
    at.notes.differs(note)
    return {"target": f"python:{at.code.call(function, *values, **options)}", "id": name}


def _note(at: Conversion, name: str, config: dict[str, Any], known: set[str]) -> None:
    at.notes.lost_keys(config, known, f"config `{{}}` of provider {name}", ADVICE.format(at.code.name))


def _assistant(at: Conversion, name: str, model: str, config: dict[str, Any]) -> dict[str, Any]:
    _note(at, name, config, {*_ASSISTANT, *_ASSISTANT_OTHER})
    params = resolve({key: config[key] for key in _ASSISTANT if config.get(key) is not None}, at.folder)
    if config.get("max_tokens"):
        params["max_completion_tokens"] = config["max_tokens"]
    where: dict[str, Any] = {"callbacks": settings.callbacks(at, name, config)}
    if name.startswith("azure"):
        host = config.get("apiHost") or variable("AZURE_API_HOST")
        where |= {"base_url": f"https://{host}/openai", "key": "AZURE_API_KEY",
                  "version": str(config.get("apiVersion") or "2024-05-01-preview")}  # fmt: skip
    note = f"assistants are called by a function in {at.code.name}; each trial is a thread"
    return _called(at, name, note, "call_assistant", model, params, **where)


def _foundry(at: Conversion, name: str, model: str, config: dict[str, Any]) -> dict[str, Any]:
    _note(at, name, config, {"projectUrl", "temperature", "max_tokens", "instructions", "top_p", "apiVersion"})
    given = {key: config[key] for key in ("temperature", "max_tokens", "instructions", "top_p") if key in config}
    project = str(config.get("projectUrl") or variable("AZURE_AI_PROJECT_URL"))
    note = "agents of Azure AI Foundry need `pip install azure-identity`"
    return _called(at, name, note, "call_foundry_agent", model, project, given)


def _bedrock_agent(at: Conversion, name: str, agent: str, config: dict[str, Any]) -> dict[str, Any]:
    _note(at, name, config, {*_BEDROCK, *_BEDROCK_OTHER})
    agent, _, alias = agent.partition(":")
    options = {key: config[key] for key in _BEDROCK if config.get(key) is not None}
    alias = str(config.get("agentAliasId") or alias or "TSTALIASID")
    if config.get("sessionId"):
        at.notes.differs(OWN_SESSION.format(name))
    agent = str(config.get("agentId") or agent)
    return _called(at, name, _BOTO, "call_bedrock_agent", agent, alias, options)


def _knowledge(at: Conversion, name: str, model: str, config: dict[str, Any]) -> dict[str, Any]:
    _note(at, name, config, {*_BEDROCK, *_BEDROCK_OTHER})
    options = {key: config[key] for key in _BEDROCK if config.get(key) is not None}
    return _called(at, name, _BOTO, "call_bedrock_knowledge", str(config.get("modelArn") or model), options)


def _sagemaker(at: Conversion, name: str, model: str, config: dict[str, Any]) -> dict[str, Any]:
    """Return an endpoint whose requests or replies are not as LiteLLM makes and reads them."""
    _note(at, name, config, {*_SAGEMAKER, "modelType", "endpoint", "transform", "responseFormat", "delay", *_KEYS})
    settings.note_secrets(at, config)
    kind = name.split(":")[1] if model else str(config.get("modelType") or "custom")
    options = {key: config[key] for key in _SAGEMAKER if config.get(key) is not None}
    path = dict_of(config.get("responseFormat")).get("path")
    for key, given in (("transform", config.get("transform")), ("path", path)):
        if given:
            options[key] = _code_or_file(at, str(given))
    endpoint = str(config.get("endpoint") or model or name.partition(":")[2])
    note = "endpoints of SageMaker with a `transform` or a `path` need `pip install boto3`"
    return _called(at, name, note, "call_sagemaker", endpoint, kind, options)


def _code_or_file(at: Conversion, given: str) -> Any:
    if not given.startswith(PREFIX):
        return given.strip().rstrip(";") if "=>" in given else given.strip()
    file, _, function = given.removeprefix(PREFIX).partition(":")
    return (at.folder.find(file)[0], function)


def _openclaw_tool(at: Conversion, name: str, model: str, config: dict[str, Any]) -> dict[str, Any]:
    """Return a tool of an OpenClaw gateway; its agents are models behind a server."""
    note = "tools of OpenClaw are called at its gateway (OPENCLAW_GATEWAY_URL and _TOKEN)"
    return _called(at, name, note, "call_openclaw_tool", model, config)


def _browser(at: Conversion, name: str, model: str, config: dict[str, Any]) -> dict[str, Any]:
    _note(at, name, config, _BROWSER)
    answer = str(config.get("transformResponse") or config.get("responseParser") or "").strip().rstrip(";")
    if answer and not is_body(answer):
        call = f"({answer})(extracted, finalHtml)" if "=>" in answer else f"({answer})"
        answer = f"return {call};"
    given = dict_of(config.get("connectOptions"))
    connect = f"http://127.0.0.1:{given.get('debuggingPort', 9222)}" if given else ""
    options = {"headless": config.get("headless", True) is not False, "connect": connect}
    if isinstance(config.get("cookies"), list):
        options["cookies"] = config["cookies"]
    steps, note = (
        all_to_jinja(config.get("steps") or []),
        "browsers are driven by Playwright: `pip install 'fairtrial[arena]'`",
    )
    return _called(at, name, note, "call_browser", where="vars", steps=steps, answer=answer, **options)
