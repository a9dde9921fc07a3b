"""Vendors of models: their OpenAI-compatible servers, and the names by which LiteLLM knows the others."""

from __future__ import annotations

from typing import Any, NamedTuple

from fairtrial.importers._promptfoo.nunjucks import variable


class Server(NamedTuple):
    """An OpenAI-compatible server, and the variable that has its key."""

    base_url: str
    key: str


NAMES = {
    "togetherai": "together", "azureopenai": "azure", "palm": "google", "fireworks-ai": "fireworks", "x": "xai",
    "alicloud": "alibaba", "aliyun": "alibaba", "dashscope": "alibaba", "hf": "huggingface", "gemini": "google",
}  # fmt: skip
SERVERS = {
    "abliteration": Server("https://api.abliteration.ai/v1", "ABLIT_KEY"),
    "ai21": Server("https://api.ai21.com/studio/v1", "AI21_API_KEY"),
    "aimlapi": Server("https://api.aimlapi.com/v1", "AIML_API_KEY"),
    "alibaba": Server("https://dashscope-intl.aliyuncs.com/compatible-mode/v1", "DASHSCOPE_API_KEY"),
    "azure": Server(f"https://{variable('AZURE_API_HOST')}/openai/v1", "AZURE_API_KEY"),
    "cerebras": Server("https://api.cerebras.ai/v1", "CEREBRAS_API_KEY"),
    "cloudflare-ai": Server(
        f"https://api.cloudflare.com/client/v4/accounts/{variable('CLOUDFLARE_ACCOUNT_ID')}/ai/v1", "CLOUDFLARE_API_KEY"
    ),
    "cohere": Server("https://api.cohere.ai/compatibility/v1", "COHERE_API_KEY"),
    "cometapi": Server("https://api.cometapi.com/v1", "COMETAPI_KEY"),
    "databricks": Server(f"{variable('DATABRICKS_WORKSPACE_URL')}/serving-endpoints", "DATABRICKS_TOKEN"),
    "deepinfra": Server("https://api.deepinfra.com/v1/openai", "DEEPINFRA_API_KEY"),
    "deepseek": Server("https://api.deepseek.com/v1", "DEEPSEEK_API_KEY"),
    "docker": Server("http://127.0.0.1:12434/engines/v1", ""),
    "envoy": Server(f"{variable('ENVOY_API_BASE_URL')}", ""),
    "fireworks": Server("https://api.fireworks.ai/inference/v1", "FIREWORKS_API_KEY"),
    "github": Server("https://models.github.ai/inference", "GITHUB_TOKEN"),
    "google": Server("https://generativelanguage.googleapis.com/v1beta/openai", "GOOGLE_API_KEY"),
    "groq": Server("https://api.groq.com/openai/v1", "GROQ_API_KEY"),
    "helicone": Server("http://127.0.0.1:8080/ai", ""),
    "huggingface": Server("https://router.huggingface.co/v1", "HF_TOKEN"),
    "hyperbolic": Server("https://api.hyperbolic.xyz/v1", "HYPERBOLIC_API_KEY"),
    "lambdalabs": Server("https://api.lambda.ai/v1", "LAMBDA_API_KEY"),
    "litellm": Server("http://127.0.0.1:4000", "LITELLM_API_KEY"),
    "llama": Server("http://127.0.0.1:8080/v1", ""),
    "llamaapi": Server("https://api.llama.com/compat/v1", "LLAMA_API_KEY"),
    "llamafile": Server("http://127.0.0.1:8080/v1", ""),
    "localai": Server("http://127.0.0.1:8080/v1", ""),
    "minimax": Server("https://api.minimax.io/v1", "MINIMAX_API_KEY"),
    "mistral": Server("https://api.mistral.ai/v1", "MISTRAL_API_KEY"),
    "moonshot": Server("https://api.moonshot.ai/v1", "MOONSHOT_API_KEY"),
    "nebius": Server("https://api.studio.nebius.com/v1", "NEBIUS_API_KEY"),
    "novita": Server("https://api.novita.ai/v3/openai", "NOVITA_API_KEY"),
    "nscale": Server("https://inference.api.nscale.com/v1", "NSCALE_SERVICE_TOKEN"),
    "nvidia": Server("https://integrate.api.nvidia.com/v1", "NVIDIA_API_KEY"),
    "openclaw": Server(f"{variable('OPENCLAW_GATEWAY_URL', 'http://127.0.0.1:18789')}/v1", "OPENCLAW_GATEWAY_TOKEN"),
    "perplexity": Server("https://api.perplexity.ai", "PERPLEXITY_API_KEY"),
    "portkey": Server("https://api.portkey.ai/v1", "PORTKEY_API_KEY"),
    "sambanova": Server("https://api.sambanova.ai/v1", "SAMBANOVA_API_KEY"),
    "together": Server("https://api.together.xyz/v1", "TOGETHER_API_KEY"),
    "truefoundry": Server("https://llm-gateway.truefoundry.com", "TRUEFOUNDRY_API_KEY"),
    "vercel": Server("https://ai-gateway.vercel.sh/v1", "VERCEL_AI_GATEWAY_API_KEY"),
    "vertex": Server("", "VERTEX_ACCESS_TOKEN"),  # its address depends on the project
    "vllm": Server("http://127.0.0.1:8000/v1", ""),
    "xai": Server("https://api.x.ai/v1", "XAI_API_KEY"),
    "zai": Server("https://api.z.ai/api/paas/v4", "ZAI_API_KEY"),
}  # fmt: skip
LITELLM = {  # vendors without such a server, or without everything that their own API can do
    "bedrock": "bedrock/", "sagemaker": "sagemaker/", "watsonx": "watsonx/", "replicate": "replicate/",
    "snowflake": "snowflake/", "google": "gemini/", "vertex": "vertex_ai/", "azureai": "azure_ai/",
    "azure-foundry": "azure_ai/", "ovhcloud": "ovhcloud/", "volcengine": "volcengine/",
}  # fmt: skip
KINDS = (  # the part of a name that selects an API
    "chat", "messages", "completion", "text-generation", "text", "converse", "chat-completion", "openai", "llama",
    "anthropic", "jumpstart", "huggingface", "custom", "language",
)  # fmt: skip
NOT_CHAT = (
    "embedding", "embeddings", "image", "assistant", "moderation", "realtime", "speech", "transcription", "video",
    "codex-sdk", "codex-app-server", "claude-agent-sdk", "agents", "chatkit", "tts", "live", "feature-extraction",
    "text-classification", "token-classification", "sentence-similarity", "openai-image", "nova-sonic", "agent", "kb",
    "agents-python", "api", "foundry-agent", "nova-reel", "luma-ray", "voice", "text-to-speech", "interactions",
)  # fmt: skip
_ONE_API = ("sagemaker", "bedrock", "cloudflare-ai", "databricks")  # whose names have a kind that is part of the API


def vertex(config: dict[str, Any]) -> Server:
    """Return the server of Vertex AI for a region and a project."""
    region = config.get("region") or variable("VERTEX_REGION", "us-central1")
    project = config.get("projectId") or variable("VERTEX_PROJECT_ID")
    host = "https://aiplatform.googleapis.com" if region == "global" else f"https://{region}-aiplatform.googleapis.com"
    return Server(f"{host}/v1/projects/{project}/locations/{region}/endpoints/openapi", "VERTEX_ACCESS_TOKEN")


def is_kind(provider: str, kind: str) -> bool:
    """Return whether the second part of a name selects an API, and is no part of the model's name."""
    if kind in ("openai", "llama", "anthropic", "jumpstart", "huggingface", "custom", "language"):
        return provider in _ONE_API
    return kind in KINDS
