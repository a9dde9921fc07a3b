"""What keys look like: the one list, which `core/secrets.py` goes by for everything that finds or hides them.

Some keys are known by their form, others only by what carries them: a header, an address, a name before the value.
A pattern is tried only if one of its marks is in the text, which most texts have none of.
"""

from __future__ import annotations

import re
from functools import cached_property


class KeyForm:
    """A kind of keys: its pattern, compiled when first needed, and texts of which each of its keys has one."""

    def __init__(self, pattern: str, *marks: str) -> None:
        self._text, self._marks = pattern, marks

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """The pattern of the whole key."""
        return re.compile(self._text)

    def is_possible(self, text: str) -> bool:
        """Return whether a text can have such a key."""
        return any(map(text.__contains__, self._marks))


FORMS = (
    # OpenAI, Anthropic, OpenRouter, DeepSeek, Langfuse: with a digit, or 16 characters without a hyphen.
    KeyForm(
        r"\b[spr]k-(?:(?=[A-Za-z_-]{0,99}\d)[A-Za-z0-9_-]{16,}|[a-z-]{0,20}[A-Za-z0-9_]{16,})",
        "sk-", "pk-", "rk-",
    ),
    # Stripe
    KeyForm(r"\b[spr]k_(?:live|test)_[A-Za-z0-9]{10,}|\bwhsec_[A-Za-z0-9+/=]{20,}", "k_live_", "k_test_", "whsec_"),
    KeyForm(r"\b(?:gh[pousr]|github_pat)_[A-Za-z0-9_]{20,}", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
    # GitLab: of people, for deploying, of runners, of jobs, for triggers
    KeyForm(r"\bgl(?:pat|dt|rt|cbt|ptt)-[A-Za-z0-9_.-]{16,}", "glpat-", "gldt-", "glrt-", "glcbt-", "glptt-"),
    KeyForm(r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}|\bxapp-\d-[A-Za-z0-9-]{10,}", "xox", "xapp-"),  # Slack
    # Hugging Face, Groq, Replicate, Fireworks, npm, DigitalOcean, Logfire, LangSmith
    KeyForm(r"\b(?:hf|gsk|r8|fw|npm|dop_v1)_[A-Za-z0-9]{20,}", "hf_", "gsk_", "r8_", "fw_", "npm_", "dop_v1_"),
    KeyForm(r"\b(?:pylf|lsv2)_[A-Za-z0-9_]{16,}", "pylf_", "lsv2_"),
    # xAI, NVIDIA, Perplexity, Tavily, PyPI, Google's OAuth clients
    KeyForm(
        r"\b(?:xai|nvapi|pplx|tvly|pypi|GOCSPX)-(?=[A-Za-z_-]{0,99}\d)[A-Za-z0-9_-]{20,}",
        "xai-", "nvapi-", "pplx-", "tvly-", "pypi-", "GOCSPX-",
    ),
    KeyForm(r"\bAIza[A-Za-z0-9_-]{30,}|\bya29\.[A-Za-z0-9_-]{20,}", "AIza", "ya29."),  # Google
    KeyForm(r"\bA(?:KIA|SIA)[A-Z0-9]{16}(?![A-Za-z0-9])", "AKIA", "ASIA"),  # AWS
    KeyForm(r"\bSG\.[A-Za-z0-9_-]{16,99}\.[A-Za-z0-9_-]{16,}", "SG."),  # SendGrid
    KeyForm(r"\beyJ[A-Za-z0-9_-]{10,999}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]*", "eyJ"),  # JSON web tokens
    KeyForm(
        r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY-----(?:.|\n)*?(?:-----END (?:[A-Z0-9]+ )*PRIVATE KEY-----|\Z)",
        "PRIVATE KEY-----",
    ),
)  # fmt: skip
_SCHEME = r"(?i:bearer|basic|token)[ \t]+"
HEADER = KeyForm(
    rf"\b{_SCHEME}(?P<key>(?=[A-Za-z._~+/=-]{{0,99}}\d)[A-Za-z0-9._~+/=-]{{12,}})",
    "earer ", "EARER ", "asic ", "ASIC ", "oken ", "OKEN ",
)  # fmt: skip
ADDRESS = KeyForm(r"://[^\s/:@\"'<>]{0,80}:(?P<key>[^\s/@\"'<>]{4,200})@", "://")
# Looked at ahead, since the value may have the next one in it, as in an address.
ASSIGNMENT = KeyForm(
    rf"[:=](?=[ \t]{{0,3}}[\"']?(?:{_SCHEME})?"
    r"(?P<key>(?:[\w.-]{1,40}=)?[^\s\"',;&<>(){}\[\]:=]{8,}={0,2}))",
    ":", "=",
)  # fmt: skip
# What stands before an assignment of a key, or before a word that may be one.
NAME = KeyForm(
    r"(?i)(?:(?:api|access|account|auth|client|private|secret|session|shared|signing|subscription)(?:[-_ ]?access)?"
    r"[-_ ]?(?:key|token|secret)|authorization|cookie|(?P<vague>password|passwd|pwd|passphrase|token|secret))"
    r"[\"']?[ \t]{0,3}$"
)
LONGEST_NAME = 40


def is_key(value: str) -> bool:
    """Return whether a value is a key by its form alone, whatever its name."""
    return any(form.is_possible(value) and form.pattern.fullmatch(value) for form in FORMS)
