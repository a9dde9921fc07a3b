"""The vendors' own clients: they work against our strict servers, and send what we send.

A difference in a request is printed as the paths that differ. What is meant to differ is named in `MEANT`.
"""

import asyncio
import base64
import os

import msgspec
import pytest

from benchmarks.strict_vendors import camel
from fairtrial.core import registry
from fairtrial.core.answer import Answer, Request
from fairtrial.core.chat import Message
from fairtrial.core.experiment import TargetSpec
from fairtrial.core.file import File
from fairtrial.providers.tools import Tool, ToolResult
from tests.servers.vendors import SECRET, Say, vendors

PNG = b"\x89PNG\r\n\x1a\n"
PDF = b"%PDF-1.7\n"
SHAPE = {
    "type": "object",
    "properties": {"score": {"type": "integer"}},
    "required": ["score"],
    "additionalProperties": False,
}
SCENES = ("plain", "turns", "schema", "image", "pdf", "reasoning", "stream")
BEFORE = (("user", "one"), ("assistant", "two"))  # turns of a conversation
BEDROCK_MODEL = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"


def data_of(body, media):
    return f"data:{media};base64,{base64.b64encode(body).decode()}"


def before(scene):
    return [{"role": role, "content": text} for role, text in BEFORE] if scene == "turns" else []


def with_file(scene, files, text):
    return [files[scene], text] if scene in files else "hi"


def openai_chat(client, scene, model):
    image = {"type": "image_url", "image_url": {"url": data_of(PNG, "image/png")}}
    pdf = {"type": "file", "file": {"filename": "a.pdf", "file_data": data_of(PDF, "application/pdf")}}
    content = with_file(scene, {"image": image, "pdf": pdf}, {"type": "text", "text": "hi"})
    given = {
        "model": model,
        "messages": [{"role": "system", "content": "s"}, *before(scene), {"role": "user", "content": content}],
        "max_completion_tokens": 100 + (16_384 if scene == "reasoning" else 0),
    }
    if scene == "reasoning":
        given["reasoning_effort"] = "medium"
    else:
        given |= {"temperature": 0.5, "top_p": 0.9, "stop": ["X"], "seed": 7}
    if scene == "schema":
        shape = {"name": "reply", "strict": True, "schema": SHAPE}
        given["response_format"] = {"type": "json_schema", "json_schema": shape}
    if scene == "stream":
        chunks = client.chat.completions.create(**given, stream=True, stream_options={"include_usage": True})
        return "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    return client.chat.completions.create(**given).choices[0].message.content


def openai(url, scene):
    from openai import OpenAI

    return openai_chat(OpenAI(base_url=f"{url}/v1", api_key="k"), scene, "gpt-5.1")


def azure(url, scene):
    from openai import AzureOpenAI

    client = AzureOpenAI(azure_endpoint=url, api_key="k", api_version="2024-10-21")
    return openai_chat(client, scene, "my-dep")


def openai_responses(url, scene):
    from openai import OpenAI

    image = {"type": "input_image", "image_url": data_of(PNG, "image/png")}
    pdf = {"type": "input_file", "filename": "a.pdf", "file_data": data_of(PDF, "application/pdf")}
    content = with_file(scene, {"image": image, "pdf": pdf}, {"type": "input_text", "text": "hi"})
    given = {
        "model": "gpt-5.1",
        "instructions": "s",
        "input": [*before(scene), {"role": "user", "content": content}],
        "max_output_tokens": 100 + (16_384 if scene == "reasoning" else 0),
        "store": False,
    }
    if scene == "reasoning":
        given["reasoning"] = {"effort": "medium"}
    else:
        given |= {"temperature": 0.5, "top_p": 0.9}
    if scene == "schema":
        given["text"] = {"format": {"type": "json_schema", "name": "reply", "strict": True, "schema": SHAPE}}
    client = OpenAI(base_url=f"{url}/v1", api_key="k")
    if scene == "stream":
        events = client.responses.create(**given, stream=True)
        return "".join(event.delta for event in events if event.type == "response.output_text.delta")
    return client.responses.create(**given).output_text


def claude(client, scene, model):
    data, document = base64.b64encode(PNG).decode(), base64.b64encode(PDF).decode()
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}
    pdf = {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": document}}
    content = with_file(scene, {"image": image, "pdf": pdf}, {"type": "text", "text": "hi"})
    given = {
        "model": model,
        "system": "s",
        "messages": [*before(scene), {"role": "user", "content": content}],
        "max_tokens": 100 + (8192 if scene == "reasoning" else 0),
        "stop_sequences": ["X"],
    }
    if scene == "reasoning":
        given["thinking"] = {"type": "enabled", "budget_tokens": 8192}
    if scene == "schema":
        given["output_config"] = {"format": {"type": "json_schema", "schema": SHAPE}}
    if scene == "stream":
        events = client.messages.create(**given, stream=True)
        return "".join(e.delta.text for e in events if e.type == "content_block_delta" and e.delta.type == "text_delta")
    return client.messages.create(**given).content[-1].text


def anthropic(url, scene):
    from anthropic import Anthropic

    return claude(Anthropic(base_url=url, api_key="k"), scene, "claude-sonnet-4-5")


def vertex_claude(url, scene):
    from anthropic import AnthropicVertex

    client = AnthropicVertex(base_url=f"{url}/v1", access_token="tok", project_id="p", region="global")
    return claude(client, scene, "claude-opus-4-5")


def gemini(client, scene, model):
    from google.genai import types

    files = {"image": (PNG, "image/png"), "pdf": (PDF, "application/pdf")}
    parts = [types.Part.from_bytes(data=files[scene][0], mime_type=files[scene][1])] if scene in files else []
    roles = {"user": "user", "assistant": "model"}
    earlier = [types.Content(role=roles[one["role"]], parts=[types.Part(text=one["content"])]) for one in before(scene)]
    config = {
        "system_instruction": "s",
        "max_output_tokens": 100 + (8192 if scene == "reasoning" else 0),
        "temperature": 0.5,
        "top_p": 0.9,
        "stop_sequences": ["X"],
        "seed": 7,
    }
    if scene == "reasoning":
        config["thinking_config"] = {"thinking_budget": 8192, "include_thoughts": True}
    if scene == "schema":
        config |= {"response_mime_type": "application/json", "response_json_schema": SHAPE}
    last = types.Content(role="user", parts=[*parts, types.Part(text="hi")])
    given: dict = {"model": model, "contents": [*earlier, last]}
    given["config"] = types.GenerateContentConfig(**config)
    if scene == "stream":
        return "".join(chunk.text or "" for chunk in client.models.generate_content_stream(**given))
    return client.models.generate_content(**given).text


def google(url, scene):
    from google import genai

    return gemini(genai.Client(api_key="k", http_options={"base_url": url}), scene, "gemini-2.5-flash")


def vertex(url, scene):
    from google import genai
    from google.oauth2.credentials import Credentials

    given = {"project": "p", "location": "global", "credentials": Credentials(token="tok")}
    client = genai.Client(vertexai=True, http_options={"base_url": url}, **given)
    return gemini(client, scene, "gemini-2.5-flash")


def bedrock(url, scene):
    import boto3

    client = boto3.client(
        "bedrock-runtime", endpoint_url=url, region_name="us-east-1", aws_access_key_id="AKID",
        aws_secret_access_key=SECRET,
    )  # fmt: skip
    image = {"image": {"format": "png", "source": {"bytes": PNG}}}
    pdf = {"document": {"format": "pdf", "name": "a-pdf", "source": {"bytes": PDF}}}
    files = [{"image": image, "pdf": pdf}[scene]] if scene in ("image", "pdf") else []
    earlier = [{"role": one["role"], "content": [{"text": one["content"]}]} for one in before(scene)]
    given = {
        "modelId": BEDROCK_MODEL,
        "messages": [*earlier, {"role": "user", "content": [*files, {"text": "hi"}]}],
        "system": [{"text": "s"}],
        "inferenceConfig": {"maxTokens": 100 + (8192 if scene == "reasoning" else 0), "stopSequences": ["X"]},
    }
    if scene == "reasoning":
        given["additionalModelRequestFields"] = {"thinking": {"type": "enabled", "budget_tokens": 8192}}
    else:
        given["inferenceConfig"] |= {"temperature": 0.5}
    if scene == "schema":
        schema = '{"type":"object","properties":{"score":{"type":"integer"}},"required":["score"],"additionalProperties":false}'
        shape = {"type": "json_schema", "structure": {"jsonSchema": {"name": "reply", "schema": schema}}}
        given["outputConfig"] = {"textFormat": shape}
    if scene == "stream":
        events = client.converse_stream(**given)["stream"]
        return "".join(e["contentBlockDelta"]["delta"].get("text", "") for e in events if "contentBlockDelta" in e)
    return client.converse(**given)["output"]["message"]["content"][-1]["text"]


def mistral(url, scene):
    from mistralai.client import Mistral

    image = {"type": "image_url", "image_url": data_of(PNG, "image/png")}
    pdf = {"type": "document_url", "document_url": data_of(PDF, "application/pdf")}
    content = with_file(scene, {"image": image, "pdf": pdf}, {"type": "text", "text": "hi"})
    given = {
        "model": "mistral-medium-latest",
        "messages": [{"role": "system", "content": "s"}, *before(scene), {"role": "user", "content": content}],
        "max_tokens": 100 + (32_768 if scene == "reasoning" else 0),
        "temperature": 0.5,
        "top_p": 0.9,
        "stop": ["X"],
        "random_seed": 7,
    }
    if scene == "reasoning":
        given["reasoning_effort"] = "high"
    if scene == "schema":
        shape = {"name": "reply", "strict": True, "schema": SHAPE}
        given["response_format"] = {"type": "json_schema", "json_schema": shape}
    client = Mistral(api_key="k", server_url=f"{url}/mistral")
    if scene == "stream":
        return "".join(event.data.choices[0].delta.content or "" for event in client.chat.stream(**given))
    return client.chat.complete(**given).choices[0].message.content


# the client, our kind, the model, where below the server's address, options, key
OFFICIAL = {
    "openai": (openai, "openai_api", "gpt-5.1", "/v1", {}, "k"),
    "openai-responses": (openai_responses, "openai_responses_api", "gpt-5.1", "/v1", {}, "k"),
    "azure": (azure, "azure_api", "my-dep", "?api-version=2024-10-21", {"model": "gpt-5.1"}, "k"),
    "anthropic": (anthropic, "anthropic_api", "claude-sonnet-4-5", "", {}, "k"),
    "vertex-claude": (
        vertex_claude, "vertex_api", "claude-opus-4-5", "/v1beta1/projects/p/locations/global", {}, "Bearer tok"
    ),
    "google": (google, "google_api", "gemini-2.5-flash", "", {}, "k"),
    "vertex": (vertex, "vertex_api", "gemini-2.5-flash", "/v1beta1/projects/p/locations/global", {}, "Bearer tok"),
    "bedrock": (bedrock, "bedrock_api", BEDROCK_MODEL, "", {}, ""),
    "mistral": (mistral, "mistral_api", "mistral-medium-latest", "/mistral/v1", {}, "k"),
}  # fmt: skip
# What differs, and is meant to: (client, path): (theirs, ours).
MEANT = {
    # We stay with the version that takes sampling parameters where the model does.
    ("anthropic", "headers.anthropic-version"): ("2026-10-21", "2023-06-01"),
    ("anthropic", "headers.authorization"): ("Bearer k", None),
    ("anthropic", "headers.x-api-key"): (None, "k"),
    ("vertex-claude", "body.anthropic_version"): ("2026-10-21", "vertex-2023-10-16"),
    # It is reported to be refused by its neighbours, and LiteLLM leaves it out.
    ("openai", "body.stop.0"): ("X", None),
    ("azure", "body.stop.0"): ("X", None),
    # Numbers come as they are unless somebody asks for another form.
    ("openai", "body.encoding_format"): ("float", None),
    ("azure", "body.encoding_format"): ("float", None),
    # Both say what is so without them.
    ("bedrock", "body.messages.2.content.0.toolResult.status"): (None, "success"),
    ("mistral", "body.messages.2.prefix"): (False, None),
    # The role of a system prompt says nothing.
    ("google", "body.systemInstruction.role"): ("user", None),
    ("vertex", "body.systemInstruction.role"): ("user", None),
}  # fmt: skip
HEADERS = ("authorization", "api-key", "x-api-key", "x-goog-api-key", "anthropic-version", "content-type")


@pytest.fixture(scope="module")
async def server():
    async with vendors() as running:
        yield running


@pytest.fixture(autouse=True)
def keys(monkeypatch):
    for name in list(os.environ):
        if name.startswith(("AWS_", "OPENAI_", "AZURE_", "ANTHROPIC_", "GOOGLE_", "GEMINI_", "MISTRAL_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKID")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_REGION", "us-east-1")


async def ours(url: str, name: str, scene: str, folder) -> Answer:
    _, kind, model, path, options, key = OFFICIAL[name]
    cls = registry.load("targets", kind)
    provider = {"vertex-claude": "vertex"}.get(name, name)
    spec = TargetSpec(
        id=name, kind=kind, provider=provider, model=model, base_url=url + path, api_key=key, options=options
    )
    target = cls(spec, cls.options_type(**options), folder)
    sampled = name not in ("anthropic", "vertex-claude")
    params = {"max_tokens": 100, "stop": ["X"], **({"temperature": 0.5, "top_p": 0.9, "seed": 7} if sampled else {})}
    if scene == "reasoning":
        params["reasoning"] = "high" if name == "mistral" else "medium"
        if name in ("openai", "azure"):
            del params["stop"], params["seed"]
    attached = {
        "image": File(name="a.png", media="image/png", body=PNG),
        "pdf": File(name="a.pdf", media="application/pdf", body=PDF),
    }
    files = (attached[scene],) if scene in attached else ()
    history = tuple(Message(**message) for message in before(scene))
    request = Request(
        trial_id="t", case_id="c", input="hi", system="s", params=params, files=files, history=history,
        schema=SHAPE if scene == "schema" else None, stream=scene == "stream",
    )  # fmt: skip
    await target.open(1)
    try:
        return await target.ask(request)
    finally:
        await target.close()


LOOK = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}
TOOL = Tool(name="look", server="s", tool="look", description="Looks.", schema=LOOK)


def openai_tools(url, client=None, model="gpt-5.1", limit="max_completion_tokens"):
    from openai import OpenAI

    client = client or OpenAI(base_url=f"{url}/v1", api_key="k")
    tool = {"type": "function", "function": {"name": "look", "description": "Looks.", "parameters": LOOK}}
    messages = [{"role": "system", "content": "s"}, {"role": "user", "content": "hi"}]
    given = {"model": model, limit: 100, "tools": [tool]}
    message = client.chat.completions.create(messages=messages, **given).choices[0].message
    messages += [message, {"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": "4711"}]
    return client.chat.completions.create(messages=messages, **given).choices[0].message.content


def azure_tools(url):
    from openai import AzureOpenAI

    return openai_tools(url, AzureOpenAI(azure_endpoint=url, api_key="k", api_version="2024-10-21"), "my-dep")


def responses_tools(url):
    from openai import OpenAI

    client = OpenAI(base_url=f"{url}/v1", api_key="k")
    tool = {"type": "function", "name": "look", "description": "Looks.", "parameters": LOOK, "strict": False}
    given = {"model": "gpt-5.1", "instructions": "s", "max_output_tokens": 100, "store": False, "tools": [tool]}
    given["include"] = ["reasoning.encrypted_content"]
    said = [{"role": "user", "content": "hi"}]
    reply = client.responses.create(input=said, **given)
    said += [*reply.output, {"type": "function_call_output", "call_id": reply.output[0].call_id, "output": "4711"}]
    return client.responses.create(input=said, **given).output_text


def claude_tools(client, model):
    tool = {"name": "look", "description": "Looks.", "input_schema": LOOK}
    given = {"model": model, "system": "s", "max_tokens": 100, "tools": [tool]}
    messages = [{"role": "user", "content": "hi"}]
    reply = client.messages.create(messages=messages, **given)
    result = {"type": "tool_result", "tool_use_id": reply.content[0].id, "content": "4711"}
    messages += [{"role": "assistant", "content": reply.content}, {"role": "user", "content": [result]}]
    return client.messages.create(messages=messages, **given).content[0].text


def anthropic_tools(url):
    from anthropic import Anthropic

    return claude_tools(Anthropic(base_url=url, api_key="k"), "claude-sonnet-4-5")


def google_tools(url):
    from google import genai
    from google.genai import types

    client = genai.Client(api_key="k", http_options={"base_url": url})
    look = types.FunctionDeclaration(name="look", description="Looks.", parameters_json_schema=LOOK)
    config = types.GenerateContentConfig(
        system_instruction="s", max_output_tokens=100, tools=[types.Tool(function_declarations=[look])]
    )
    said = [types.Content(role="user", parts=[types.Part(text="hi")])]
    given = {"model": "gemini-2.5-flash", "config": config}
    reply = client.models.generate_content(contents=said, **given).candidates[0].content
    response = types.FunctionResponse(id="c0", name="look", response={"result": "4711"})
    said += [reply, types.Content(role="user", parts=[types.Part(function_response=response)])]
    return client.models.generate_content(contents=said, **given).text


def bedrock_tools(url):
    import boto3

    client = boto3.client(
        "bedrock-runtime", endpoint_url=url, region_name="us-east-1", aws_access_key_id="AKID",
        aws_secret_access_key=SECRET,
    )  # fmt: skip
    spec = {"toolSpec": {"name": "look", "description": "Looks.", "inputSchema": {"json": LOOK}}}
    given = {"modelId": BEDROCK_MODEL, "system": [{"text": "s"}], "inferenceConfig": {"maxTokens": 100}}
    given["toolConfig"] = {"tools": [spec]}
    messages = [{"role": "user", "content": [{"text": "hi"}]}]
    reply = client.converse(messages=messages, **given)["output"]["message"]
    result = {"toolUseId": reply["content"][0]["toolUse"]["toolUseId"], "content": [{"text": "4711"}]}
    messages += [reply, {"role": "user", "content": [{"toolResult": result}]}]
    return client.converse(messages=messages, **given)["output"]["message"]["content"][0]["text"]


def mistral_tools(url):
    from mistralai.client import Mistral

    client = Mistral(api_key="k", server_url=f"{url}/mistral")
    tool = {"type": "function", "function": {"name": "look", "description": "Looks.", "parameters": LOOK}}
    messages = [{"role": "system", "content": "s"}, {"role": "user", "content": "hi"}]
    given = {"model": "mistral-medium-latest", "max_tokens": 100, "tools": [tool]}
    message = client.chat.complete(messages=messages, **given).choices[0].message
    result = {"role": "tool", "tool_call_id": message.tool_calls[0].id, "name": "look", "content": "4711"}
    return client.chat.complete(messages=[*messages, message, result], **given).choices[0].message.content


TOOLS = {
    "openai": openai_tools, "openai-responses": responses_tools, "azure": azure_tools, "anthropic": anthropic_tools,
    "google": google_tools, "bedrock": bedrock_tools, "mistral": mistral_tools,
}  # fmt: skip


def openai_vectors(url):
    from openai import OpenAI

    client = OpenAI(base_url=f"{url}/v1", api_key="k")
    return client.embeddings.create(model="small", input="hi", encoding_format="float").data[0].embedding


def azure_vectors(url):
    from openai import AzureOpenAI

    client = AzureOpenAI(azure_endpoint=url, api_key="k", api_version="2024-10-21")
    return client.embeddings.create(model="my-dep", input="hi", encoding_format="float").data[0].embedding


def mistral_vectors(url):
    from mistralai.client import Mistral

    client = Mistral(api_key="k", server_url=f"{url}/mistral")
    return client.embeddings.create(model="mistral-embed", inputs="hi").data[0].embedding


def google_vectors(url):
    from google import genai

    client = genai.Client(api_key="k", http_options={"base_url": url})
    return client.models.embed_content(model="gemini-embedding-001", contents="hi").embeddings[0].values


def bedrock_vectors(url):
    import json

    import boto3

    client = boto3.client(
        "bedrock-runtime", endpoint_url=url, region_name="us-east-1", aws_access_key_id="AKID",
        aws_secret_access_key=SECRET,
    )  # fmt: skip
    body = json.dumps({"inputText": "hi"}, separators=(",", ":"))
    given = {"modelId": "amazon.titan-embed-text-v2:0", "contentType": "application/json", "body": body}
    return json.loads(client.invoke_model(**given)["body"].read())["embedding"]


VECTORS = {
    "openai": (openai_vectors, "small"),
    "azure": (azure_vectors, "my-dep"),
    "mistral": (mistral_vectors, "mistral-embed"),
    "google": (google_vectors, "gemini-embedding-001"),
    "bedrock": (bedrock_vectors, "amazon.titan-embed-text-v2:0"),
}


def target_of(url: str, name: str, folder, model: str = ""):
    _, kind, usual, path, options, key = OFFICIAL[name]
    cls = registry.load("targets", kind)
    spec = TargetSpec(
        id=name, kind=kind, provider=name, model=model or usual, base_url=url + path, api_key=key, options=options
    )
    return cls(spec, cls.options_type(**options), folder)


def flat(value, path="") -> dict:
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    else:
        return {path: value}
    return {
        key: item for name, inner in items for key, item in flat(inner, f"{path}.{name}" if path else str(name)).items()
    }


def compared(heard, name: str) -> dict:
    headers = {key: value for key, value in heard.headers.items() if key in HEADERS}
    if headers.get("authorization", "").startswith("AWS4"):  # the time is in it; the server has checked it
        headers["authorization"] = headers["authorization"].partition(", Signature=")[0].rpartition("/")[2]
    headers["content-type"] = headers["content-type"].partition(";")[0]
    body = camel(heard.body) if name in ("google", "vertex") else heard.body
    return flat({"path": heard.path, "headers": headers, "body": body})


def difference(theirs: dict, mine: dict, name: str) -> list[str]:
    result = []
    for path in sorted({*theirs, *mine}):
        pair = theirs.get(path), mine.get(path)
        meant = MEANT.get((name, path))
        if pair[0] != pair[1] and meant != pair:
            result.append(f"{path}: {name}'s client sends {pair[0]!r}, fairtrial {pair[1]!r}")
    return result


@pytest.mark.slow
@pytest.mark.parametrize("scene", SCENES)
@pytest.mark.parametrize("name", OFFICIAL)
async def test_the_official_client_works_here_and_sends_what_we_send(name, scene, server, tmp_path):
    server.say = Say(text="ok")
    server.heard.clear()
    assert await asyncio.to_thread(OFFICIAL[name][0], server.url, scene) == "ok"
    answer = await ours(server.url, name, scene, tmp_path)
    assert isinstance(answer, Answer) and answer.text == "ok", answer
    theirs, mine = server.heard
    found = difference(compared(theirs, name), compared(mine, name), name)
    assert not found, "\n".join(found)


@pytest.mark.slow
@pytest.mark.parametrize("name", TOOLS)
async def test_calls_of_tools_go_forth_and_back_as_the_official_client_sends_them(name, server, tmp_path):
    calls = [Say(text="", calls=(("look", {"x": 1}),)), Say(text="ok")]
    server.say = list(calls)
    server.heard.clear()
    assert await asyncio.to_thread(TOOLS[name], server.url) == "ok"
    server.say, target = list(calls), target_of(server.url, name, tmp_path)
    request = Request(trial_id="t", case_id="c", input="hi", system="s", params={"max_tokens": 100}, stream=False)
    await target.open(1)
    talk = target.conversation(target.spec, request, [TOOL])

    async def receive(response):
        return talk.read(await response.read())

    turn = await target.post(msgspec.json.encode(talk.body()), receive)
    talk.add(turn, [ToolResult(call=turn.calls[0], text="4711")])
    assert (await target.post(msgspec.json.encode(talk.body()), receive)).text == "ok"
    await target.close()
    server.say = Say()
    theirs, mine = server.heard[:2], server.heard[2:]
    found = []
    for one, other in zip(theirs, mine, strict=True):
        left, right = compared(one, name), compared(other, name)
        found += difference(left, right, name)
    assert not found, "\n".join(found)


@pytest.mark.parametrize("name", VECTORS)
async def test_embeddings_are_asked_for_as_the_official_client_does(name, server, tmp_path):
    server.say = Say()
    server.heard.clear()
    ask, model = VECTORS[name]
    assert list(await asyncio.to_thread(ask, server.url)) == [1.0, 0.5]
    target = target_of(server.url, name, tmp_path, model)
    await target.open(1)
    answer = await target.ask(Request(trial_id="t", case_id="c", input="hi", embed=True))
    await target.close()
    assert isinstance(answer, Answer) and answer.text == "[1.0,0.5]", answer
    assert answer.usage is None or answer.usage.prompt == 3
    theirs, mine = server.heard
    found = difference(compared(theirs, name), compared(mine, name), name)
    assert not found, "\n".join(found)
