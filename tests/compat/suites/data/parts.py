"""Functions that the suites name: models, judges, scorers and prompts without a model."""

import json
import re


def brief(response, expected, words):
    if response == "boom":
        raise ValueError("boom")
    return {"score": min(1, words / len(response.split())) if expected in response else 0, "notes": "counted"}


def measures(response, expected):
    return {"contained": float(expected in response), "short": 0.5}


def lowest(parts):
    return min(parts.values())


def last_word(text):
    return text.split()[-1]


def prompt(values):
    return f"In {values['language']}, please: {values['input']}"


def parameters(input, params):
    return ", ".join(f"{name}={value}" for name, value in sorted(params.items()))


def agent(input):
    calls = [{"tool": "search", "arguments": {"for": "file"}}, {"tool": "read", "arguments": {"path": "a.txt"}}]
    return {"text": "It says hello.", "tool_calls": calls if "file" in input else []}


def attentive(messages):
    return _name(messages)


def forgetful(messages):
    return _name(messages[-3:])


def _name(messages):
    names = re.findall(r"I am (\w+)\.", " ".join(message["content"] for message in messages))
    return f"You are {names[-1]}." if names else "I do not know."


def shop(messages):
    return "Here is your refund." if "money" in messages[-1]["content"] else "How can I help?"


def customer(messages):
    return "[END]" if "refund" in messages[-1]["content"] else "I want my money back."


def eyes(input, files):
    return f"{input} {', '.join(file.name for file in files)}"


def judge(input):
    """Mark by what is in the answer, in whichever form is asked for."""
    mark = 9 if "Seine" in input else 6 if "Paris." in input else 1
    if "truth" in input:
        return json.dumps({"reasoning": "as it is", "scores": {"truth": 10 * mark, "tone": 50}})
    return json.dumps({"reasoning": "as it is", "score": mark})


def dear(input):
    return {"text": "42", "cost_usd": 0.02}


def crashes(input):
    raise RuntimeError("out of order")


def writer(input, workspace):
    with open(f"{workspace}/hello.txt", "a") as file:
        file.write(input)
    return "done"
