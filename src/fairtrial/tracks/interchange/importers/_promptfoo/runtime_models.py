"""Models behind APIs that fairtrial has no target for, in the form in which it calls functions."""

from __future__ import annotations

import json
import os
import time
from typing import Any

from fairtrial.tracks.interchange.importers._promptfoo.runtime import (
    as_text,
    expanded,
    javascript,
    load,
    node,
    post,
    prompt_text,
)

_OPENAI = "https://api.openai.com/v1"


def _post(path: str, body: Any, key: str, base_url: str = "") -> Any:
    """Send JSON to OpenAI's API, or to another one of its kind."""
    address = expanded(base_url) or os.environ.get("OPENAI_BASE_URL", _OPENAI)
    return post(f"{address.rstrip('/')}/{path}", body, {"Authorization": f"Bearer {os.environ[key]}"})


def _session(options: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Return a session at AWS, and the options with what the environment says."""
    import boto3

    given = expanded(options)
    return boto3.Session(region_name=given.get("region"), profile_name=given.get("profile")), given


def call_responses(
    model: str,
    params: dict[str, Any],
    messages: list[Any],
    *,
    base_url: str = "",
    key: str = "OPENAI_API_KEY",
    callbacks: dict[str, Any] | None = None,
    rounds: int = 0,
) -> dict[str, Any]:
    """Ask a model through the responses API, and call the functions of the user's that it asks for.

    Without `rounds`, what the functions return is the answer; with them, the model gets it, at most that many times.
    """
    given = {"max_output_tokens" if name == "max_tokens" else name: v for name, v in expanded(params).items()}
    asked: list[Any] = [{**message, "content": _responses_content(message)} for message in messages]
    made: list[Any] = []
    for left in range(rounds, -1, -1):
        data = _post("responses", {"model": model, "input": asked, **given}, key, base_url)
        calls = [item for item in data["output"] if item["type"].endswith("_call")]
        made += [{"tool": call.get("name") or call["type"], "arguments": call.get("arguments")} for call in calls]
        functions = [call for call in calls if call["type"] == "function_call" and call["name"] in (callbacks or {})]
        texts = [
            part.get("text", "") for item in data["output"] if item["type"] == "message" for part in item["content"]
        ]
        results = [called((callbacks or {})[call["name"]], call["arguments"]) for call in functions]
        if not functions or not left:
            break
        asked += data["output"]
        asked += [
            {"type": "function_call_output", "call_id": call["call_id"], "output": result}
            for call, result in zip(functions, results, strict=True)
        ]
    usage = data.get("usage") or {}
    return {
        "text": "\n".join(results) if results else "".join(texts),
        "usage": {"prompt_tokens": usage.get("input_tokens"), "completion_tokens": usage.get("output_tokens")},
        "tool_calls": made,
        "trace": {"raw": {"output": data["output"]}},
    }


def _responses_content(message: dict[str, Any]) -> Any:
    """Return the content of a message as the responses API names its parts."""
    if isinstance(message["content"], str):
        return message["content"]
    parts = []
    for part in message["content"]:
        if part["type"] == "text":
            parts.append({"type": "input_text", "text": part["text"]})
        elif part["type"] == "image_url":
            parts.append({"type": "input_image", "image_url": part["image_url"]["url"]})
        else:
            parts.append({"type": "input_file", **part["file"]})
    return parts


def call_chat(
    model: str,
    params: dict[str, Any],
    messages: list[Any],
    *,
    base_url: str = "",
    key: str = "OPENAI_API_KEY",
    callbacks: dict[str, Any] | None = None,
    rounds: int = 0,
) -> dict[str, Any]:
    """Ask a model with OpenAI's chat API (or through LiteLLM, without a `key`), and call the functions it asks for.

    Without `rounds`, what the functions return is the answer; with them, the model gets it, at most that many times.
    """
    asked, made = list(messages), []
    for left in range(rounds, -1, -1):
        message, usage = _chat_message(model, params, asked, base_url, key)
        calls = [call["function"] for call in message.get("tool_calls") or []]
        made += [{"tool": call["name"], "arguments": call["arguments"]} for call in calls]
        known = bool(calls) and all(call["name"] in (callbacks or {}) for call in calls)
        results = [called((callbacks or {})[call["name"]], call["arguments"]) for call in calls] if known else []
        if not known or not left:
            break
        asked.append(message)
        asked += [
            {"role": "tool", "tool_call_id": call["id"], "content": result}
            for call, result in zip(message["tool_calls"], results, strict=True)
        ]
    text = "\n".join(results) if results else message.get("content") or ""
    return {"text": text, "usage": usage, "tool_calls": made}


def _chat_message(model: str, params: dict[str, Any], messages: list[Any], base_url: str, key: str) -> Any:
    if not key:
        import litellm

        reply = litellm.completion(model=model, messages=messages, drop_params=True, **expanded(params)).model_dump()
    else:
        reply = _post("chat/completions", {"model": model, "messages": messages, **expanded(params)}, key, base_url)
    return reply["choices"][0]["message"], reply.get("usage") or {}


def called(callback: Any, arguments: str) -> str:
    """Call a function behind a tool: code in JavaScript, or a function of a file."""
    if isinstance(callback, str):
        result = node(None, "", [arguments, {}], code=f"return await ({callback})(output, context);")
    elif callback[0].endswith(".py"):
        result = load(*callback)(arguments)
    else:
        result = node(callback[0], callback[1], [arguments, {}])
    return result if isinstance(result, str) else json.dumps(result)


def call_assistant(
    assistant: str,
    params: dict[str, Any],
    messages: list[Any],
    *,
    base_url: str = "",
    key: str = "OPENAI_API_KEY",
    version: str = "",
    callbacks: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Let an assistant of OpenAI's or Azure's work on a thread of its own, and call the functions it asks for."""
    root = expanded(base_url) or os.environ.get("OPENAI_BASE_URL", _OPENAI)
    query = f"?api-version={version}" if version else ""
    secret = os.environ[key]
    headers = {
        "OpenAI-Beta": "assistants=v2",
        **({"api-key": secret} if version else {"Authorization": f"Bearer {secret}"}),
    }
    thread = {"messages": [message for message in messages if message["role"] != "system"]}
    system = [message["content"] for message in messages if message["role"] == "system"]
    extra = {"additional_instructions": "\n".join(system)} if system else {}
    body = {"assistant_id": assistant, "thread": thread, **extra, **expanded(params)}
    run = post(f"{root}/threads/runs{query}", body, headers)
    place, made = f"{root}/threads/{run['thread_id']}", []
    while run["status"] in ("queued", "in_progress", "requires_action"):
        if run["status"] == "requires_action":
            calls = run["required_action"]["submit_tool_outputs"]["tool_calls"]
            functions = [call["function"] for call in calls]
            made += [{"tool": one["name"], "arguments": one["arguments"]} for one in functions]
            if any(one["name"] not in (callbacks or {}) for one in functions):
                return {"text": json.dumps(calls), "tool_calls": made}
            outputs = [
                {"tool_call_id": call["id"], "output": called((callbacks or {})[one["name"]], one["arguments"])}
                for call, one in zip(calls, functions, strict=True)
            ]
            run = post(f"{place}/runs/{run['id']}/submit_tool_outputs{query}", {"tool_outputs": outputs}, headers)
        else:
            time.sleep(1)
            run = post(f"{place}/runs/{run['id']}{query}", None, headers)
    if run["status"] != "completed":
        raise RuntimeError(f"the run is {run['status']}: {run.get('last_error')}")
    replies = post(f"{place}/messages{query}", None, headers)["data"]
    parts = [p for reply in reversed(replies) if reply["role"] == "assistant" for p in reply["content"]]
    text = "\n\n".join(part["text"]["value"] for part in parts if part["type"] == "text")
    return {"text": text, "usage": run.get("usage") or {}, "tool_calls": made}


def call_foundry_agent(agent: str, project: str, params: dict[str, Any], messages: list[Any]) -> dict[str, Any]:
    """Ask an agent of Azure AI Foundry (`pip install azure-identity`, and sign in)."""
    from azure.identity import DefaultAzureCredential

    token = DefaultAzureCredential().get_token("https://ai.azure.com/.default").token
    address = expanded(project) if "://" in expanded(project) else f"https://{expanded(project)}"
    given = {"max_output_tokens" if name == "max_tokens" else name: v for name, v in expanded(params).items()}
    body = {"input": messages, "agent": {"name": agent, "type": "agent_reference"}, **given}
    data = post(
        f"{address}/openai/responses?api-version=2025-11-15-preview", body, {"Authorization": f"Bearer {token}"}
    )
    parts = [part for item in data["output"] if item["type"] == "message" for part in item["content"]]
    return {"text": "".join(part.get("text", "") for part in parts)}


def call_bedrock_agent(agent: str, alias: str, options: dict[str, Any], messages: list[Any]) -> dict[str, Any]:
    """Ask an agent of Amazon Bedrock in a session of its own (`pip install boto3`, and AWS credentials)."""
    import uuid

    session, given = _session(options)
    extra = {"memoryId": given["memoryId"]} if given.get("memoryId") else {}
    reply = session.client("bedrock-agent-runtime").invoke_agent(
        agentId=agent,
        agentAliasId=alias,
        sessionId=str(uuid.uuid4()),
        enableTrace=bool(given.get("enableTrace")),
        inputText=prompt_text(messages),
        **extra,
    )
    text, steps = "", []
    for event in reply["completion"]:
        text += event["chunk"]["bytes"].decode() if "chunk" in event else ""
        steps += [event["trace"].get("trace")] if "trace" in event else []
    calls = [
        step["orchestrationTrace"].get("invocationInput") for step in steps if "orchestrationTrace" in (step or {})
    ]
    tools = [call.get("actionGroupInvocationInput") for call in calls if call]
    made = [{"tool": tool.get("function") or tool.get("apiPath"), "arguments": {}} for tool in tools if tool]
    return {"text": text, "tool_calls": made, "trace": {"steps": json.loads(json.dumps(steps, default=str))}}


def call_bedrock_knowledge(model: str, options: dict[str, Any], messages: list[Any]) -> dict[str, Any]:
    """Ask a knowledge base of Amazon Bedrock (`pip install boto3`, and AWS credentials)."""
    session, given = _session(options)
    arn = model if model.startswith("arn:") else f"arn:aws:bedrock:{session.region_name}::foundation-model/{model}"
    if model.split(".", 1)[0] in ("us", "eu", "apac", "global"):  # a profile of several regions, of this account
        account = session.client("sts").get_caller_identity()["Account"]
        arn = f"arn:aws:bedrock:{session.region_name}:{account}:inference-profile/{model}"
    found = {"knowledgeBaseId": given["knowledgeBaseId"], "modelArn": arn}
    settings = {"type": "KNOWLEDGE_BASE", "knowledgeBaseConfiguration": found}
    reply = session.client("bedrock-agent-runtime").retrieve_and_generate(
        input={"text": prompt_text(messages)}, retrieveAndGenerateConfiguration=settings
    )
    citations = json.loads(json.dumps(reply.get("citations") or [], default=str))
    return {"text": reply["output"]["text"], "trace": {"citations": citations}}


def call_sagemaker(endpoint: str, kind: str, options: dict[str, Any], messages: list[Any]) -> dict[str, Any]:
    """Ask an endpoint of SageMaker as promptfoo does (`pip install boto3`, and AWS credentials).

    A `transform` makes the prompt that is sent, and `path` takes the answer out of the reply: code or files.
    """
    session, given = _session(options)
    prompt = prompt_text(messages)
    if given.get("transform"):
        prompt = as_text(_applied(given["transform"], prompt, "prompt")) or prompt
    reply = session.client("sagemaker-runtime").invoke_endpoint(
        EndpointName=endpoint,
        ContentType=given.get("contentType") or "application/json",
        Accept=given.get("acceptType") or "application/json",
        Body=json.dumps(_sagemaker_body(kind, prompt, given)),
    )
    body = reply["Body"].read().decode()
    try:
        data = json.loads(body)
    except ValueError:
        return {"text": body}
    path = given.get("path")
    found = _applied(path, data, "json") if path else _sagemaker_answer(data)
    return {"text": as_text(data if found is None else found)}


def _sagemaker_body(kind: str, prompt: str, given: dict[str, Any]) -> Any:
    """Return a request in the words of a kind of model."""
    try:
        parsed = json.loads(prompt)
    except ValueError:
        parsed = None
    chat = parsed if isinstance(parsed, list) else None
    settings = {"temperature": given.get("temperature", 0.7), "top_p": given.get("topP", 1.0)}
    stop = {"stop": given["stopSequences"]} if given.get("stopSequences") else {}
    length = given.get("maxTokens", 1024)
    if kind == "openai":
        asked = {"messages": chat} if chat else {"prompt": prompt}
        return {**asked, "max_tokens": length, **settings, **stop}
    if kind == "llama":
        return {"inputs": chat or prompt, "parameters": {"max_new_tokens": length, **settings, **stop}}
    if kind in ("jumpstart", "huggingface"):
        more = {"return_full_text": False} if kind == "huggingface" else {}
        sampled = {"do_sample": settings["temperature"] > 0}
        return {"inputs": prompt, "parameters": {"max_new_tokens": length, **settings, **sampled, **more}}
    return {"prompt": prompt} if parsed is None else parsed


def _sagemaker_answer(data: Any) -> Any:
    """Return the answer in a reply, wherever models put it; None if it is nowhere."""
    found = data[0] if isinstance(data, list) and data else data
    if not isinstance(found, dict):
        return None
    first = (found.get("choices") or [{}])[0]
    places = [found.get(name) for name in ("generated_text", "output", "generation", "response", "text")]
    return next((one for one in (*places, (first.get("message") or {}).get("content"), first.get("text")) if one), None)


def _applied(code: Any, value: Any, name: str) -> Any:
    """Return what code makes of a value: JavaScript that knows it by name, or a function of a file."""
    if not isinstance(code, str):
        file, function = code
        if file.endswith(".py"):
            return load(file, function or "get_transform")(value, {"vars": {}})
        return node(file, function, [value, {"vars": {}}])
    body = code if "return" in code else f"try {{ return ({code}); }} catch (error) {{ return null; }}"
    if "=>" in code:
        body = f"return ({code})({name}, context);"
    return javascript(f"({name}, context) => {{ const $ = {name}; {body} }}", value)


def similarity(response: str, model: str, reference: str, threshold: float = 0.75) -> Any:
    """Return the cosine of the embeddings of an answer and a text, by LiteLLM (`pip install litellm`)."""
    import litellm

    one, other = (row["embedding"] for row in litellm.embedding(model=model, input=[response, reference]).data)
    return _cosine(one, other, threshold)


def similar_by_code(response: str, file: str, reference: str, threshold: float = 0.75) -> Any:
    """Return the cosine of the embeddings of an answer and a text, by a provider of the user's."""
    texts = (response, reference)
    options: dict[str, Any] = {"config": {}}
    if file.endswith(".py"):
        made = [load(file, "call_embedding_api")(text, options, {}) for text in texts]
    else:
        made = [node(file, "", [text, options, {}], kind="embedding") for text in texts]
    return _cosine(made[0]["embedding"], made[1]["embedding"], threshold)


def _cosine(one: Any, other: Any, threshold: float) -> dict[str, Any]:
    import math

    lengths = math.hypot(*one) * math.hypot(*other)
    score = max(0.0, sum(x * y for x, y in zip(one, other, strict=True)) / lengths) if lengths else 0.0
    return {"pass": score >= threshold, "score": min(1.0, score), "reason": f"cosine {score:.3f}"}
