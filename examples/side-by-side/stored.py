"""Answers and marks that stand in for models and judge, so that the three tools can be run on the same ones."""

import json
import re

ANSWERS = {
    ("alpha", "plain", "keep"): '{"answer": "35 days", "source": "retention"}',
    ("alpha", "plain", "upload"): '{"answer": "250 MB"}',
    ("alpha", "plain", "after"): '{"answer": "The Tidewater team", "source": "owner"}',
    ("alpha", "careful", "keep"): '{"answer": "35 days", "source": "retention"}',
    ("alpha", "careful", "upload"): '{"answer": "250 MB", "source": "uploads"}',
    ("alpha", "careful", "after"): '{"answer": "Tidewater", "source": "owner"}',
    ("beta", "plain", "keep"): '{"answer": "a month", "source": "retention"}',
    ("beta", "plain", "upload"): '{"answer": "250 MB", "source": 7}',
    ("beta", "plain", "after"): '{"answer": "nobody", "source": "owner"}',
    ("beta", "careful", "keep"): '{"answer": "35 days", "source": "retention"}',
    ("beta", "careful", "upload"): '{"answer": "unknown", "source": "uploads"}',
    ("beta", "careful", "after"): '{"answer": "Tidewater", "source": "owner"}',
}
MARKS = {"a month": 5, "nobody": 0, "unknown": 0}  # of 10; everything else has 10


def answer(model, prompt):
    """Return a model's answer to a prompt."""
    wording = "careful" if "context only" in prompt else "plain"
    return ANSWERS[model, wording, re.search(r"(keep|upload|after)[^?\n]*\?", prompt)[1]]


def mark(prompt):
    """Return the judge's mark for an answer that stands in its prompt."""
    return next((mark for text, mark in MARKS.items() if f'"{text}"' in prompt.replace('\\"', '"')), 10)


def alpha(user_query, system_prompt, mcp_servers):
    """Answer for fairtrial."""
    return {"text": answer("alpha", user_query), "cost_usd": 0.0}


def beta(user_query, system_prompt, mcp_servers):
    """Answer for fairtrial."""
    return {"text": answer("beta", user_query), "cost_usd": 0.0}


def call_api(prompt, options, context):
    """Answer, or judge, for promptfoo."""
    model = options["config"]["model"]
    if model != "judge":
        return {"output": answer(model, prompt)}
    points = mark(prompt) / 10
    return {"output": json.dumps({"reason": "stored", "pass": points == 1, "score": points})}
