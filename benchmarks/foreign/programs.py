"""What runs inside the environments of the tools."""

from datetime import date

INSPECT = """
from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.scorer import includes, match
from inspect_ai.solver import generate

@task
def sums():
    rows = {rows!r}
    samples = [Sample(id=str(n), input=r["input"], target=r["target"]) for n, r in enumerate(rows)]
    return Task(dataset=MemoryDataset(samples), solver=generate(), scorer=[includes(), match()], epochs=2)
"""

PYDANTIC = """
import asyncio, json, sys
from openai import AsyncOpenAI
from pydantic_evals import Case, Dataset
from pydantic_evals.evaluators import Contains, EqualsExpected
from pydantic_evals.reporting import EvaluationReportAdapter

client = AsyncOpenAI(base_url=sys.argv[1], api_key="not-a-key", max_retries=0)

async def ask(question: str) -> str:
    chat = [{{"role": "user", "content": question}}]
    reply = await client.chat.completions.create(model="model-a", messages=chat)
    return reply.choices[0].message.content or ""

rows = {rows!r}
cases = [Case(name=str(n), inputs=r["input"], expected_output=r["target"]) for n, r in enumerate(rows)]
dataset = Dataset(name="sums", cases=cases, evaluators=[EqualsExpected(), Contains(value="42")])
report = asyncio.run(dataset.evaluate(ask, progress=False))
open(sys.argv[2], "wb").write(EvaluationReportAdapter.dump_json(report))
averages = report.averages()
open(sys.argv[3], "w").write(json.dumps({{"assertions": averages.assertions, "task_duration": averages.task_duration}}))
"""

LM_EVAL = {
    "task": "sums",
    "dataset_path": "json",
    "dataset_kwargs": {"data_files": "sums.jsonl"},
    "test_split": "train",
    "output_type": "generate_until",
    "doc_to_text": "{{input}}",
    "doc_to_target": "{{target}}",
    "generation_kwargs": {"until": ["\n\n"], "max_gen_toks": 64, "temperature": 0},
    "filter_list": [
        {"name": "strict", "filter": [{"function": "take_first"}]},
        {
            "name": "number",
            "filter": [{"function": "regex", "regex_pattern": "(-?[0-9]+)"}, {"function": "take_first"}],
        },
    ],
    "metric_list": [{"metric": "exact_match", "aggregation": "mean", "higher_is_better": True}],
}

DEEPEVAL = '''
import sys
import openai
from deepeval import evaluate
from deepeval.evaluate.configs import AsyncConfig, CacheConfig, DisplayConfig, ErrorConfig
from deepeval.metrics import BaseMetric, ExactMatchMetric, PatternMatchMetric
from deepeval.test_case import LLMTestCase, ToolCall

class Closeness(BaseMetric):
    """The closer the last number of an answer, the better; one question cannot be measured."""

    threshold, async_mode, strict_mode, include_reason, verbose_mode = 0.5, False, False, True, False
    evaluation_model = error = None
    __name__ = "Closeness"

    def measure(self, test_case, *args, **kwargs):
        if test_case.name == "7":
            raise ValueError("there is no number for seven")
        number = int("".join(c for c in test_case.actual_output if c.isdigit()))
        self.score = 1 / (1 + abs(int(test_case.expected_output) - number))
        self.reason = f"it says {{number}}"
        self.success = self.score >= self.threshold
        return self.score

    async def a_measure(self, test_case, *args, **kwargs):
        return self.measure(test_case)

    def is_successful(self):
        return bool(self.success)

client = openai.OpenAI(base_url=sys.argv[1], api_key="not-a-key", max_retries=0)

def ask(question):
    chat = [{{"role": "user", "content": question}}]
    return client.chat.completions.create(model="model-a", messages=chat).choices[0].message.content

def case(n, row):
    called = [ToolCall(name="add", input_parameters={{"a": 40 + n, "b": 2}}, output=42 + n)] if n % 2 else None
    return LLMTestCase(
        name=str(n), input=row["input"], actual_output=ask(row["input"]), expected_output=row["target"],
        retrieval_context=["Sums are sums."], tools_called=called, tags=["sum"],
        completion_time=0.25 + n, token_cost=0.001 * n,
    )

evaluate(
    test_cases=[case(n, row) for n, row in enumerate({rows!r})],
    metrics=[ExactMatchMetric(), PatternMatchMetric(pattern=".*42.*"), Closeness()],
    hyperparameters={{"model": "model-a", "temperature": "0"}},
    async_config=AsyncConfig(run_async=False),
    display_config=DisplayConfig(show_indicator=False, print_results=False, results_folder=sys.argv[2]),
    cache_config=CacheConfig(write_cache=False),
    error_config=ErrorConfig(ignore_errors=True),
)
'''

K_EVAL = '''
"""k-eval's own command, runner, judge and writers; its only agent is a program with an account, so ours asks instead."""
import os, sys
import openai
from k_eval.agent.domain.result import AgentResult
from k_eval.agent.domain.turn import AgentTurn, ToolCall
from k_eval.agent.domain.usage import UsageMetrics
from k_eval.cli import main

class Agent:
    def __init__(self, condition):
        self.condition = condition
        self.client = openai.AsyncOpenAI(base_url=os.environ["MODELS"], api_key="not-a-key", max_retries=0)

    async def ask(self, question):
        chat = [{"role": "user", "content": question}]
        reply = await self.client.chat.completions.create(model="model-a", messages=chat)
        text = reply.choices[0].message.content
        call = ToolCall(
            tool_use_id="t", tool_name="mcp__graph__add", tool_input={"q": question}, tool_result="42", tool_error=False
        )
        turns = [AgentTurn(turn_idx=0, role="tool_use", text=None, tool_calls=[call])] if self.condition == "graph" else []
        turns.append(AgentTurn(turn_idx=len(turns), role="assistant", text=text, tool_calls=[]))
        return AgentResult(
            response=text, cost_usd=0.001, duration_ms=120, duration_api_ms=100, num_turns=len(turns),
            usage=UsageMetrics(input_tokens=reply.usage.prompt_tokens, output_tokens=reply.usage.completion_tokens),
            turns=turns,
        )

class Agents:
    def create(self, condition, **others):
        return Agent(condition)

main.create_agent_factory = lambda **others: Agents()
sys.argv = ["k-eval", "run", "k_eval.yaml", "--output-dir", "k-eval", "--quiet"]
main.app()
'''

K_EVAL_CONFIG = {
    "name": "sums",
    "version": "1",
    "dataset": {"path": "sums.jsonl", "question_key": "input", "answer_key": "target"},
    "agent": {"type": "claude_code_sdk", "model": "model-a"},
    "judge": {"model": "openai/judge", "temperature": 0.0},
    "mcp_servers": {"graph": {"type": "stdio", "command": "true", "args": []}},
    "conditions": {
        "baseline": {"mcp_servers": [], "system_prompt": "Answer from your own knowledge."},
        "graph": {"mcp_servers": ["graph"], "system_prompt": "Use the graph."},
    },
    "execution": {
        "num_repetitions": 3,
        "max_concurrent": 2,
        "retry": {"max_attempts": 1, "initial_backoff_seconds": 0, "backoff_multiplier": 1},
    },
}

HELM_MODEL = {
    "name": "mock/model-a",
    "display_name": "model-a",
    "description": "Answers in turn.",
    "creator_organization_name": "mock",
    "access": "open",
    "release_date": date(2026, 1, 1),
    "tags": ["TEXT_MODEL_TAG", "FULL_FUNCTIONALITY_TEXT_MODEL_TAG", "OPENAI_CHATGPT_MODEL_TAG"],
}


def helm_deployment(url: str) -> dict[str, object]:
    """Return how HELM reaches a model, with a tokenizer that needs no download."""
    client = "helm.clients.openai_client.OpenAIClient"
    return {
        "name": "mock/model-a",
        "model_name": "mock/model-a",
        "tokenizer_name": "simple/tokenizer1",
        "max_sequence_length": 4096,
        "client_spec": {"class_name": client, "args": {"base_url": url, "api_key": "not-a-key"}},
    }
