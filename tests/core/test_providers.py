"""The table of providers: every name can be used in a suite, and every address is somebody's."""

import re

import msgspec
import pytest

from fairtrial.config import load_suite
from fairtrial.core import registry
from fairtrial.core.errors import FairtrialError
from fairtrial.core.experiment import TargetSpec
from fairtrial.core.providers import (
    address_variables,
    api_kinds,
    api_providers,
    find_provider,
    known_providers,
    plain_name,
    provider_at,
)
from fairtrial.providers.prices import FREE, find_price

SUITE = {"scorer": "contains", "cases": [{"input": "x", "expected": "x"}]}


@pytest.fixture(autouse=True)
def no_variables(monkeypatch):
    for name in {name for provider in known_providers().values() for name in provider.variables}:
        monkeypatch.delenv(name, raising=False)


def target_of(write_suite, name: str, environment: dict[str, str]) -> TargetSpec:
    path = write_suite(**SUITE, targets=[name])
    return load_suite(path, environment=environment).arms[0].target


class TestTable:
    def test_every_provider_of_either_earlier_table_can_be_named(self):
        importer = """abliteration ai21 aimlapi alibaba azure cerebras cloudflare-ai cohere cometapi databricks deepinfra
            deepseek docker envoy fireworks github google groq helicone huggingface hyperbolic lambdalabs llamafile localai
            minimax mistral moonshot nebius novita nscale nvidia openclaw perplexity portkey sambanova together truefoundry
            vercel vertex vllm xai zai sagemaker watsonx replicate snowflake azureai azure-foundry ovhcloud volcengine"""
        core = """anthropic bedrock openai openai-responses openrouter ollama litellm http https local mock replay python
            command tool-agent claude-code codex gemini-cli opencode gemini vertex_ai vertexai azure_openai together_ai
            fireworks_ai grok"""
        assert not [name for name in (*importer.split(), *core.split()) if plain_name(name) not in known_providers()]

    @pytest.mark.parametrize("name", [name for name in api_providers() if name not in ("vertex", "bedrock", "azure")])
    def test_a_suite_can_name_it(self, write_suite, name):
        row = api_providers()[name]
        environment = {key: "https://given.example" if key in row.addresses else "given-0001" for key in row.needed}
        spec = target_of(write_suite, f"{name}:some/model", environment)
        assert (spec.kind, spec.provider, spec.model) == (row.kind, name, "some/model")
        assert re.fullmatch(r"https?://[\w.-]+(:\d+)?(/[\w./-]*)?", spec.base_url)
        assert spec.api_key == ("given-0001" if row.variable else "")

    @pytest.mark.parametrize("name", [name for name, row in api_providers().items() if row.needed])
    def test_it_says_which_variable_is_missing(self, write_suite, name):
        with pytest.raises(FairtrialError) as error:
            target_of(write_suite, f"{name}:m", {})
        assert api_providers()[name].needed[0] in str(error.value)

    def test_names_are_unambiguous(self):
        for field in ("also", "promptfoo"):
            names = [other for provider in known_providers().values() for other in getattr(provider, field)]
            assert len(names) == len(set(names))
        also = {other for provider in known_providers().values() for other in provider.also}
        assert not also & known_providers().keys()

    def test_only_plug_ins_bring_a_row_of_their_own(self):
        assert all(registry.load("targets", kind).provider is None for kind in api_kinds())
        assert {row.kind for row in known_providers().values()} <= {*registry.builtin_names("targets")}

    def test_the_prices_of_a_provider_are_found_by_its_name_in_the_list(self):
        from genai_prices.data_snapshot import get_snapshot

        listed = {provider.id for provider in get_snapshot().providers}
        named = {row.prices for row in known_providers().values() if row.prices}
        assert named <= listed
        for name in ("cohere", "cloudflare", "databricks", "meta", "minimax", "moonshot", "novita", "ovhcloud", "zai"):
            assert (api_providers()[name].prices or name) in listed

    def test_a_server_of_ones_own_costs_nothing(self):
        free = [name for name, row in api_providers().items() if row.local]
        assert {"ollama", "vllm", "llamacpp", "lmstudio", "docker"} <= {*free}
        for name in free:
            assert find_price(TargetSpec(id="t", kind="openai_api", provider=name, model="m"), {}) is FREE
            assert "127.0.0.1" in api_providers()[name].base_url and not api_providers()[name].needed
        gateway = TargetSpec(id="t", kind="openai_api", provider="litellm-proxy", model="m")
        assert find_price(gateway, {}) is None

    def test_a_server_of_the_suite_at_a_providers_address_has_its_prices(self):
        team = TargetSpec(
            id="t", kind="openai_api", provider="team", model="gpt-4o", base_url="https://api.openai.com/v1"
        )
        assert find_price(team, {}) == find_price(msgspec.structs.replace(team, provider="openai", base_url=""), {})
        assert find_price(team, {}).rates[0].prompt > 0
        assert find_price(msgspec.structs.replace(team, base_url="https://gateway.example.com/v1"), {}) is None

    def test_the_names_of_other_tools_are_ours(self, write_suite):
        spec = target_of(write_suite, "together_ai/meta-llama/x", {"TOGETHERAI_API_KEY": "k-0001"})
        assert (spec.provider, spec.model, spec.api_key) == ("together", "meta-llama/x", "k-0001")

    def test_what_only_litellm_reaches_is_a_name_for_it(self, write_suite):
        spec = target_of(write_suite, "sagemaker:my-endpoint", {})
        assert (spec.id, spec.kind, spec.provider) == ("sagemaker:my-endpoint", "litellm", "litellm")
        assert spec.model == "sagemaker/my-endpoint"

    def test_a_provider_that_was_switched_off_says_so(self, write_suite):
        with pytest.raises(FairtrialError, match="llamaapi was switched off on 2026-07-06: name another"):
            target_of(write_suite, "llamaapi:Llama-4", {"LLAMA_API_KEY": "k-0001"})
        assert "llamaapi" not in api_providers()

    @pytest.mark.parametrize("name", ["alibaba", "vercel", "deepinfra"])
    def test_name_base_url_works_whatever_its_own_variables_are(self, name):
        variables = {f"{name.upper()}_BASE_URL": "http://127.0.0.1:1/v1", f"{name.upper()}_API_KEY": "k-0001"}
        found = find_provider(name, {}, variables)
        assert found.base_url.startswith(f"${{{name.upper()}_BASE_URL")
        assert found.api_key == f"${{{name.upper()}_API_KEY}}"

    def test_a_row_with_a_key_that_nobody_reads_is_refused(self):
        with pytest.raises(msgspec.ValidationError, match="unknown field `adress`"):
            msgspec.convert({"kind": "openai_api", "adress": "x"}, type(known_providers()["openai"]))


class TestAddresses:
    @pytest.mark.parametrize(
        ("address", "name"),
        [
            ("https://api.openai.com/v1", "openai"),
            ("https://eu.api.openai.com/v1", "openai"),
            ("https://us.api.openai.com/v1/", "openai"),
            ("https://my-resource.openai.azure.com/openai/v1", "azure"),
            ("https://lab.services.ai.azure.com/openai/v1", "azure"),
            ("https://generativelanguage.googleapis.com", "google"),
            ("https://aiplatform.googleapis.com/v1beta1/projects/p", "vertex"),
            ("https://europe-west4-aiplatform.googleapis.com/v1/projects/p", "vertex"),
            ("https://bedrock-runtime.eu-central-1.amazonaws.com", "bedrock"),
            ("https://openrouter.ai/api/v1", "openrouter"),
            ("https://api.together.xyz/v1", "together"),
            ("https://API.DeepInfra.com/v1/openai", "deepinfra"),
            ("https://gateway.example.com/v1", None),
            ("https://api.openai.com.example.com/v1", None),
            ("https://notapi.openai.com/v1", None),
            ("https://my-apim.azure-api.net/openai", None),
            ("http://127.0.0.1:11434/v1", None),
            ("http://localhost:8080/v1", None),
            ("", None),
        ],
    )
    def test_whose_it_is(self, address, name):
        assert provider_at(address) == name

    def test_each_usual_address_is_its_providers(self):
        for name, row in api_providers().items():
            if row.address.startswith("https://") and name != "openai-responses":
                assert provider_at(row.address) == name

    def test_variables_that_say_where_keys_go(self):
        expected = {"OPENAI_BASE_URL", "AZURE_API_HOST", "DATABRICKS_HOST", "OPENCLAW_GATEWAY_URL", "LITELLM_API_BASE"}
        expected |= {"AWS_ENDPOINT_URL_BEDROCK_RUNTIME", "ENVOY_API_BASE_URL"}
        assert expected <= address_variables()
        assert not address_variables() & {"CLOUDFLARE_ACCOUNT_ID", "GOOGLE_CLOUD_PROJECT", "OPENAI_API_VERSION"}
