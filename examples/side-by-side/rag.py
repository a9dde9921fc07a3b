import json

from inspect_ai import Task, eval_set, task
from inspect_ai.dataset import FieldSpec, csv_dataset
from inspect_ai.scorer import Score, mean, model_graded_qa, scorer
from inspect_ai.solver import generate, prompt_template, system_message
from jsonschema import ValidationError, validate

PROMPTS = {
    "plain": "{context}\n\n{prompt}",
    "careful": "Answer from the context only.\n\n{context}\n\n{prompt}",
}
SCHEMA = json.load(open("schema.json"))
FOLLOWS = "The answer must follow from this context alone: {}\nEnd with GRADE: C, GRADE: P (partly) or GRADE: I."


@scorer(metrics=[mean()])
def combined(judge="anthropic/claude-opus-5-5"):
    async def score(state, target):
        instructions = FOLLOWS.format(state.metadata["context"])
        rubric = await model_graded_qa(instructions=instructions, partial_credit=True, model=judge)(state, target)
        parts = [0.0, 0.0, {"C": 1.0, "P": 0.5}.get(rubric.value, 0.0), float(state.output.time <= 5)]
        try:
            reply = json.loads(state.output.completion)
            parts[1] = float(target.text.lower() in str(reply.get("answer", "")).lower())
            validate(reply, SCHEMA)
            parts[0] = 1.0
        except (ValueError, AttributeError, ValidationError):
            pass
        return Score(value=sum(parts) / len(parts), answer=state.output.completion)

    return score


@task
def rag(prompt="plain"):
    columns = FieldSpec(input="question", target="answer", metadata=["context"])
    return Task(
        dataset=csv_dataset("questions.csv", columns),
        solver=[
            system_message('Reply with JSON: {{"answer": text, "source": text}}'),
            prompt_template(PROMPTS[prompt]),
            generate(),
        ],
        scorer=combined(),
    )


if __name__ == "__main__":
    models = ["openai/gpt-6-luna", "anthropic/claude-haiku-5-5"]
    eval_set([rag(prompt) for prompt in PROMPTS], model=models, log_dir="logs")
