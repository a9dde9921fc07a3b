"""Limits in headers, variables of providers, and prices of cached tokens."""

from datetime import UTC, datetime, timedelta

import pytest

from fairtrial.core.answer import Usage
from fairtrial.core.experiment import TargetSpec
from fairtrial.core.providers import api_providers, find_provider, known_providers
from fairtrial.core.settings import PriceSpec
from fairtrial.providers.params import supported_params, tokens_needed, unsupported_params
from fairtrial.providers.prices import find_price
from fairtrial.providers.quota import read_quota
from fairtrial.providers.replies import anthropic_usage


def limits(what: str, **values: str) -> dict[str, str]:
    return {f"x-ratelimit-{name}-{what}": value for name, value in values.items()}


class TestQuota:
    @pytest.mark.parametrize(
        ("reset", "seconds"),
        [("12ms", 0.012), ("6s", 6.0), ("1m30.5s", 90.5), ("2h", 7200.0), ("10", 10.0), ("soon", None)],
    )
    def test_openai(self, reset, seconds):
        headers = limits("requests", limit="500", remaining="499", reset=reset)
        quota = read_quota({**headers, **limits("tokens", limit="30000", remaining="29000", reset="2s")}, at=5.0)
        assert (quota.requests.limit, quota.requests.left, quota.requests.reset) == (500, 499, seconds)
        assert (quota.tokens.left, quota.reserves, quota.at) == (29_000, True, 5.0)

    def test_what_makes_no_sense_is_not_told(self):
        """Azure sends -1 and 0 for limits that it does not know."""
        headers = {**limits("requests", limit="-1", remaining="-1"), **limits("tokens", limit="0", remaining="0")}
        quota = read_quota(headers)
        assert quota.requests is None and quota.tokens is None

    def test_anthropic(self):
        later = (datetime.now(UTC) + timedelta(seconds=30)).isoformat().replace("+00:00", "Z")
        headers = {}
        for what, limit in (("requests", 50), ("input-tokens", 30_000), ("output-tokens", 8000)):
            values = {"limit": str(limit), "remaining": str(limit // 2), "reset": later}
            headers |= {f"anthropic-ratelimit-{what}-{name}": value for name, value in values.items()}
        quota = read_quota(headers)
        assert (quota.requests.left, quota.input.left, quota.output.left) == (25, 15_000, 4000)
        assert 20 < quota.input.reset <= 30 and not quota.reserves

    def test_mistral_and_nobody(self):
        headers = {"x-ratelimit-limit-req-minute": "60", "x-ratelimit-remaining-req-minute": "0"}
        quota = read_quota(headers)
        assert (quota.requests.limit, quota.requests.left, quota.requests.reset) == (60, 0, None)
        assert quota.tokens is None and read_quota({"date": "x"}) is None


class TestVariables:
    """Which variables a provider takes, and which comes first."""

    @pytest.mark.parametrize(
        ("name", "environment", "address", "key"),
        [
            ("google", {"GEMINI_API_KEY": "a"}, "${GEMINI_BASE_URL", "${GEMINI_API_KEY}"),
            ("google", {"GEMINI_API_KEY": "a", "GOOGLE_API_KEY": "b"}, "${GEMINI_BASE_URL", "${GOOGLE_API_KEY}"),
            ("gemini", {"GOOGLE_API_KEY": "b"}, "${GEMINI_BASE_URL", "${GOOGLE_API_KEY}"),
            ("azure", {"AZURE_OPENAI_API_KEY": "k", "AZURE_OPENAI_AD_TOKEN": "t"}, "${AZURE_OPENAI_ENDPOINT}", "Bearer ${AZURE_OPENAI_AD_TOKEN}"),
            ("azure", {"AZURE_API_KEY": "k", "AZURE_API_BASE": "u"}, "${AZURE_API_BASE}?api-version=${OPENAI_API_VERSION:-}", "${AZURE_API_KEY}"),
            ("vertex_ai", {"VERTEX_ACCESS_TOKEN": "t", "VERTEXAI_PROJECT": "p"}, "${VERTEX_BASE_URL", "Bearer ${VERTEX_ACCESS_TOKEN}"),
            ("huggingface", {"HF_TOKEN": "t"}, "${HF_BASE_URL:-https://router.huggingface.co/v1}", "${HF_TOKEN}"),
        ],
    )  # fmt: skip
    def test_the_more_specific_one(self, name, environment, address, key):
        provider = find_provider(name, {}, environment)
        assert provider.base_url.startswith(address) and provider.api_key == key
        assert "VERTEXAI_PROJECT" not in environment or "projects/${VERTEXAI_PROJECT}/" in provider.base_url

    def test_who_is_ready(self):
        ready = lambda name, **environment: known_providers()[name].ready(environment)  # noqa: E731
        assert ready("groq", GROQ_API_KEY="k") and not ready("groq")
        assert ready("azure", AZURE_OPENAI_ENDPOINT="u", AZURE_OPENAI_AD_TOKEN="t")
        assert not ready("azure", AZURE_OPENAI_API_KEY="k")
        assert ready("bedrock", AWS_PROFILE="p") and not ready("bedrock")

    def test_every_provider_says_what_it_needs(self):
        for name, provider in api_providers().items():
            assert provider.variables, name
            assert provider.needed or provider.signs_in or "127.0.0.1" in provider.base_url, name


class TestReasoning:
    @pytest.mark.parametrize(
        ("name", "wanted", "sent", "tokens"),
        [
            ("openai:gpt-5", "none", "minimal", 2000 + 2048),
            ("openai:o3", "none", "low", 2000 + 4096),
            ("openai:gpt-5.5", 3000, "low", 2000 + 4096),
            ("anthropic:claude-sonnet-4-5", "medium", 8192, 2000 + 8192),
            ("anthropic:claude-sonnet-4-5", 10, 1024, 2000 + 1024),
            ("anthropic:claude-opus-5", 20_000, "high", 2000 + 32_768),
            ("google:gemini-2.5-pro", "none", 128, 2000 + 128),
            ("google:gemini-2.5-flash", "none", 0, 2000),
            ("google:gemini-3.7-pro", "none", "low", 2000 + 4096),
            ("lab:whatever", "high", "high", 2000 + 32_768),
            ("openai:gpt-4o", "high", None, 2000),
            ("anthropic:claude-3-5-haiku-20241022", "high", None, 2000),
        ],
    )
    def test_what_is_sent_is_the_nearest_that_a_model_takes(self, name, wanted, sent, tokens):
        provider, model = name.split(":")
        kind = {"lab": "openai_api"}.get(provider, f"{provider}_api")
        spec = TargetSpec(id=name, kind=kind, provider=provider, model=model)
        params = {"max_tokens": 2000, "temperature": 0.5, "reasoning": wanted}
        made = supported_params(spec, params)
        assert (made.get("reasoning"), made["max_tokens"]) == (sent, tokens)
        assert ("reasoning" in unsupported_params(spec, params)) == (sent is None)
        if sent is not None:
            assert tokens_needed(spec, params, 500) == 500  # the room is added when it is sent

    def test_extra_comes_first(self):
        spec = TargetSpec(id="x", kind="openai_api", provider="openai", model="gpt-5.5")
        made = supported_params(spec, {"max_tokens": 9, "reasoning": "high", "extra": {"reasoning_effort": "none"}})
        assert made == {"max_tokens": 9, "extra": {"reasoning_effort": "none"}}


class TestPrices:
    def spec(self, name: str) -> TargetSpec:
        provider, _, model = name.partition(":")
        return TargetSpec(id=name, kind="x", provider=provider, model=model)

    def test_what_is_read_from_and_written_to_a_cache_has_its_price(self):
        price = find_price(self.spec("anthropic:claude-sonnet-4-5"), {})
        counts = {
            "input_tokens": 1000,
            "cache_read_input_tokens": 2000,
            "cache_creation_input_tokens": 3000,
            "cache_creation": {"ephemeral_5m_input_tokens": 1000, "ephemeral_1h_input_tokens": 2000},
            "output_tokens": 100,
        }
        usage = anthropic_usage(counts)
        assert (usage.prompt, usage.cache_write, usage.cache_write_1h) == (6000, 3000, 2000)
        by_hand = (1000 * 3 + 2000 * 0.3 + 1000 * 3.75 + 2000 * 6 + 100 * 15) / 1e6
        assert price.cost(usage) == pytest.approx(by_hand)
        assert price.most(6000, 100) >= price.cost(usage)

    def test_of_a_suite(self):
        own = {"lab:m": PriceSpec(input=10, output=20, cache_read=1, cache_write=12)}
        usage = Usage(prompt=1000, completion=100, cache_read=400, cache_write=100)
        cost = find_price(self.spec("lab:m"), own).cost(usage)
        assert cost == pytest.approx((500 * 10 + 400 * 1 + 100 * 12 + 100 * 20) / 1e6)

    @pytest.mark.parametrize(
        "name",
        [
            "openai-responses:gpt-5", "vertex:gemini-2.5-pro", "vertex:claude-opus-4-5", "azure:gpt-4o", "xai:grok-4",
            "bedrock:us.anthropic.claude-sonnet-4-5-20250929-v1:0", "mistral:mistral-large-latest",
            "groq:openai/gpt-oss-120b",
        ],
    )  # fmt: skip
    def test_a_model_that_others_serve_has_their_price(self, name):
        assert find_price(self.spec(name), {}) is not None
