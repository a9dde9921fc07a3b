"""Wordings: variables, prompts as conditions, chats; and what is found wrong before anything is spent."""

import pytest

from fairtrial import pipeline
from fairtrial.core.errors import ProblemsError

SHOTS = [
    {"role": "system", "content": "You translate into {{ language }}."},
    {"role": "user", "content": "cheese"},
    {"role": "assistant", "content": "fromage"},
    {"role": "user", "content": "{{ input }}"},
]
PLAIN = "Translate into {{ language }}: {{ input }}"


WATER = {"input": "water", "expected": "eau"}


def told(run):
    return {(trial.arm, trial.case_id): trial.answer for trial in run.trials()}


def problems(write_suite, **keys):
    with pytest.raises(ProblemsError) as caught:
        pipeline.load(write_suite(**keys))
    return [
        f"{problem.key}: {problem.message}" if problem.key else problem.message for problem in caught.value.problems
    ]


async def test_every_prompt_is_a_condition(run_suite):
    run = await run_suite(
        vars={"language": "French"},
        prompts={"plain": PLAIN, "short": "{{ input }} in {{ language }}?"},
        cases=[{"id": "a", "input": "cheese"}, {"id": "b", "input": "water", "vars": {"language": "German"}}],
        scorer={"type": "regex", "pattern": "."},
    )
    assert told(run) == {
        ("mock:echo/plain", "a"): "Translate into French: cheese",
        ("mock:echo/short", "a"): "cheese in French?",
        ("mock:echo/plain", "b"): "Translate into German: water",
        ("mock:echo/short", "b"): "water in German?",
    }


async def test_prompts_beside_conditions_make_every_pair(run_suite):
    run = await run_suite(
        prompts={"plain": "{{ input }}", "please": "Please: {{ input }}"},
        conditions={"kind": {"system": "Be kind."}, "strict": {"system": "Be strict."}},
    )
    assert [arm.arm for arm in run.arms] == [
        f"mock:echo/{condition}/{prompt}" for condition in ("kind", "strict") for prompt in ("plain", "please")
    ]
    systems = {arm.name: arm.condition.system for arm in run.plan_arms}
    assert systems["mock:echo/kind/please"] == "Be kind." and systems["mock:echo/strict/plain"] == "Be strict."


async def test_a_chat_is_sent_with_its_roles(run_suite, model):
    served = await model()
    for target in ("openai:gpt-5-mini", "anthropic:claude-sonnet-5"):
        await run_suite(
            targets=[target],
            vars={"language": "French"},
            prompts={"shots": SHOTS},
            scorer={"type": "regex", "pattern": "."},
            cases=[{"input": "water"}],
        )
        body = served.bodies[-1]
        talk = [(m["role"], m["content"]) for m in body["messages"] if m["role"] != "system"]
        assert talk == [("user", "cheese"), ("assistant", "fromage"), ("user", "water")]
        system = body.get("system") or next(m["content"] for m in body["messages"] if m["role"] == "system")
        assert system == "You translate into French."


async def test_every_column_is_a_variable(run_suite, tmp_path):
    (tmp_path / "q.csv").write_text("question,context,answer\nWho?,{{ not a template }} Ann,Ann\n")
    run = await run_suite(
        prompts={"rag": "{{ context }}\n{{ question }}"},
        dataset={"path": "q.csv", "input": "question", "expected": "answer"},
        cases=[],
        scorer="contains",
    )
    (trial,) = run.trials()
    assert trial.answer == "{{ not a template }} Ann\nWho?" and trial.score == 1
    assert trial.input == trial.answer  # what was asked is shown as it was asked


async def test_a_prompt_from_a_file(run_suite, tmp_path):
    (tmp_path / "long.md").write_text("# Task\n{{ input }}\n")
    (tmp_path / "chat.json").write_text('[{"role": "user", "content": "{{ input }}!"}]')
    (tmp_path / "chat.yaml").write_text("- role: user\n  content: '{{ input }}?'\n")
    run = await run_suite(
        prompts={name: {"file": name} for name in ("long.md", "chat.json", "chat.yaml")},
        cases=[{"id": "a", "input": "x"}],
        scorer={"type": "regex", "pattern": "."},
    )
    assert list(told(run).values()) == ["# Task\nx\n", "x!", "x?"]


async def test_functions_get_the_whole_chat(run_suite, tmp_path):
    (tmp_path / "t.py").write_text("def f(q, s, m, messages):\n    return ' '.join(m['role'] for m in messages)\n")
    run = await run_suite(targets=["python:t.py:f"], prompts={"s": SHOTS}, vars={"language": "x"})
    assert next(run.trials()).answer == "system user assistant user"


async def test_another_value_is_another_trial(run_suite):
    ids = set()
    for language in ("French", "German", "French"):
        run = await run_suite(vars={"language": language}, prompts={"p": PLAIN})
        ids |= {trial.trial_id for trial in run.trials()}
    assert len(ids) == 2


async def test_a_stored_run_goes_on_with_its_templates(run_suite, store):
    from fairtrial.workflows.resume import arescore

    run = await run_suite(vars={"language": "French"}, prompts={"p": PLAIN, "s": SHOTS}, cases=[WATER])
    again = await arescore(run.id, scorer={"type": "contains", "any": ["French"]}, store=store)
    assert [trial.score for trial in again.trials()] == [1.0, 0.0]
    assert [trial.input for trial in again.trials()] == [
        "Translate into French: water",
        "user: cheese\n\nassistant: fromage\n\nuser: water",
    ]


async def test_the_system_prompt_is_a_template_too(run_suite, model):
    served = await model()
    await run_suite(targets=["openai:gpt-5-mini"], system="Speak {{ language }}.", vars={"language": "Latin"})
    assert served.bodies[-1]["messages"][0] == {"role": "system", "content": "Speak Latin."}


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ({"prompts": {"p": "{{ langauge }} {{ input }}"}, "vars": {"language": "x"}}, "this case has no `langauge`; did you mean `language`?"),
        ({"system": "{{ contxt }}"}, "the system prompt: this case has no `contxt`"),
        ({"prompts": {"p": "the same for every case"}}, "the prompt needs {{ input }}, or the name of a column"),
        ({"prompts": {"p": "{{ input "}}, "prompts.p: not a valid template: "),
        ({"prompts": {"p": [{"role": "user", "content": "{{ input }}"}, {"role": "assistant", "content": "x"}]}}, "a chat must end with a user's message"),
        ({"prompts": {"p": [{"role": "user", "content": "{{ input }}"}, {"role": "system", "content": "x"}, {"role": "user", "content": "y"}]}}, "system messages must come first"),
        ({"prompts": {"p": []}}, "a chat must end with a user's message"),
        ({"prompts": {"p": {"file": "none.md"}}}, "there is no file"),
        ({"prompts": {"p": "{{ input }}"}, "conditions": {"c": {"prompt": "{{ input }}"}}}, "in addition to the suite's `prompts`"),
        ({"prompts": {"s": SHOTS}, "vars": {"language": "x"}, "system": "Hello"}, "has a system message, and there is a `system` prompt"),
        ({"prompts": {"s": SHOTS}, "vars": {"language": "x"}, "targets": [{"target": "command:x", "options": {"command": ["cat"]}}]}, "takes one question, not the chat"),
        ({"prompts": {"p": "{{ input | nosuch }}"}}, "not a valid template: No filter named"),
        ({"prompts": {"p": "{{ input.x.y }}"}}, "prompt `p`: "),
        ({"scorer": "llm_judge", "judge": {"target": "mock:j", "options": {"verdict": {}}, "instructions": "Use {{ contxt }}"}}, "the instructions of judge mock:j: this case has no `contxt`"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_found_beforehand(write_suite, keys, problem):
    found = problems(write_suite, **keys)
    assert any(problem in text for text in found), found


def test_every_case_without_a_value_is_named(write_suite, tmp_path):
    cases = [{"id": f"c{n}", **WATER, "vars": {"note": "y"} if n != 120 else {}} for n in range(150)]
    found = problems(write_suite, prompts={"p": "{{ input }} {{ note }}"}, cases=cases)
    assert len(found) == 1 and found[0].startswith("cases.120: ")


async def test_what_fails_only_while_filling_in_is_a_failure_with_a_reason(run_suite):
    """Only the first hundred cases are filled in beforehand."""
    cases = [{"id": f"c{n}", "input": "x", "vars": {"n": n - 120}} for n in range(130)]
    run = await run_suite(
        prompts={"p": "{{ input }} {{ 1 / n }}"}, cases=cases, scorer={"type": "regex", "pattern": "."}
    )
    failed = [trial for trial in run.trials() if trial.status == "failed"]
    assert [trial.case_id for trial in failed] == ["c120"]
    assert failed[0].failure_kind == "template" and "division by zero" in failed[0].failure_message


def test_plain_suites_have_the_trials_that_they_had(write_suite):
    """Answers of earlier versions are found again under these ids."""
    from fairtrial.engine.trials import trials_of

    suite = pipeline.load(write_suite(conditions={"c": {"system": "s", "prompt": "Q: {{input}}"}}))
    (trial,) = trials_of(suite.cases(), suite.arms)
    assert not suite.arms[0].condition.templates and trial.id == "9c77efed6716e007c251"


FUNCTIONS = """
def ask(vars):
    return f"{vars['input']} in {vars['language']}?"

def chat(vars):
    return [{"role": "system", "content": "Be brief."}, {"role": "user", "content": vars["input"]}]

def broken(vars):
    raise KeyError("no such word")

def odd(vars):
    return 42

async def echo(user_query, system_prompt, mcp_servers, messages, vars):
    return f"{vars['language']}: {messages[0]['content']} {user_query}"
"""


async def test_a_function_makes_a_prompt(run_suite, tmp_path):
    (tmp_path / "words.py").write_text(FUNCTIONS)
    run = await run_suite(
        targets=["python:words.py:echo"],
        prompts={"ask": {"python": "words.py:ask"}, "chat": {"python": "words.py:chat"}},
        cases=[{"id": "a", "input": "cheese", "vars": {"language": "French"}}],
        scorer={"type": "regex", "pattern": "."},
    )
    assert told(run) == {
        ("python:words.py:echo/ask", "a"): "French: cheese in French? cheese in French?",
        ("python:words.py:echo/chat", "a"): "French: Be brief. cheese",
    }


@pytest.mark.parametrize(("name", "words"), [("broken", "raised KeyError"), ("odd", "must return a text")])
async def test_a_function_without_a_prompt_fails_the_trial_and_says_why(run_suite, tmp_path, name, words):
    (tmp_path / "words.py").write_text(FUNCTIONS)
    run = await run_suite(prompts={"one": {"python": f"words.py:{name}"}}, cases=[WATER], scorer="match")
    (trial,) = run.trials()
    assert words in trial.failure_message


def test_functions_that_are_not_there(write_suite):
    found = problems(write_suite, prompts={"one": {"python": "nowhere.py:f"}, "two": {}}, cases=[WATER])
    assert any("there is no file" in text for text in found)
    assert any("exactly one of `file` and `python`" in text for text in found)


async def test_targets_have_conditions_and_an_extract_of_their_own(run_suite):
    run = await run_suite(
        targets=[
            {"id": "one", "target": "mock:echo", "conditions": ["plain"], "extract": {"after": "say "}},
            {"id": "two", "target": "mock:echo"},
        ],
        prompts={"plain": "say {{ input }}", "polite": "please say {{ input }}"},
        cases=[{"id": "a", "input": "eau", "expected": "eau"}],
        scorer={"type": "match", "verbatim": True},
    )
    assert {trial.arm: trial.score for trial in run.trials()} == {"one/plain": 1, "two/plain": 0, "two/polite": 0}


def test_conditions_that_a_suite_does_not_have(write_suite):
    target = {"id": "one", "target": "mock:echo", "conditions": ["plane"]}
    found = problems(write_suite, targets=[target], prompts={"plain": "say {{ input }}"}, cases=[WATER])
    assert any("unknown condition `plane`; did you mean `plain`?" in text for text in found)


def test_settings_of_the_sdk_of_claude_code_are_checked(write_suite, monkeypatch):
    pytest.importorskip("claude_agent_sdk")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    options = {"sdk": {"permission_mode": "acceptEdits", "colour": "blue", "model": "x"}}
    target = {"id": "agent", "target": "claude-code", "options": options}
    found = problems(write_suite, targets=[target], cases=[WATER])
    assert [text for text in found if "has no setting" in text and ("`colour`" in text or "`model`" in text)] == found
    assert len(found) == 2
