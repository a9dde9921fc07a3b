"""Overlap of words between texts: SQuAD's F1, ROUGE and BLEU, computed as in their reference implementations."""

from __future__ import annotations

import math
import re
import string
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import regex

_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)
_JOINED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
_TERMS = regex.compile(rf"[{_JOINED}]|(?:(?![{_JOINED}])[\p{{L}}\p{{M}}\p{{N}}])+")
# The tokens of mteval-v13a, which most published BLEU scores use.
_MARKS = re.compile(r"([{-~\[-` -&(-+:-@/])")
_NOT_AFTER_DIGIT, _NOT_BEFORE_DIGIT = re.compile(r"([^0-9])([.,])"), re.compile(r"([.,])([^0-9])")
_DIGIT_DASH = re.compile(r"([0-9])(-)")
_ENTITIES = (("&quot;", '"'), ("&amp;", "&"), ("&lt;", "<"), ("&gt;", ">"))
_MAX_ORDER = 4


class Overlap(NamedTuple):
    """Precision, recall and their harmonic mean."""

    precision: float
    recall: float
    f1: float


def squad_tokens(text: str) -> list[str]:
    """Return the words of a text as SQuAD compares them: small letters, no punctuation, no articles."""
    return _ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split()


def terms(text: str) -> list[str]:
    """Return runs of letters and digits in small letters; in scripts without spaces, single characters."""
    return _TERMS.findall(text.lower())


def overlap(common: int, answer: int, reference: int) -> Overlap:
    """Return precision, recall and F1 of this many common items."""
    precision, recall = (common / answer if answer else 0.0), (common / reference if reference else 0.0)
    return Overlap(precision, recall, 2 * precision * recall / (precision + recall) if common else 0.0)


def token_f1(answer: Sequence[str], reference: Sequence[str]) -> Overlap:
    """Return the overlap of two bags of words; two empty ones are the same."""
    if not answer or not reference:
        same = float(list(answer) == list(reference))
        return Overlap(same, same, same)
    return overlap((Counter(answer) & Counter(reference)).total(), len(answer), len(reference))


def ngrams(tokens: Sequence[str], order: int) -> Counter[tuple[str, ...]]:
    """Count the runs of this many words."""
    return Counter(zip(*(tokens[start:] for start in range(order)), strict=False))


def rouge_n(answer: Sequence[str], reference: Sequence[str], order: int) -> Overlap:
    """Return ROUGE-1, ROUGE-2 …: the overlap of runs of words."""
    ours, theirs = ngrams(answer, order), ngrams(reference, order)
    return overlap((ours & theirs).total(), ours.total(), theirs.total())


def rouge_l(answer: Sequence[str], reference: Sequence[str]) -> Overlap:
    """Return ROUGE-L: the longest common subsequence of words."""
    from rapidfuzz.distance import LCSseq

    return overlap(LCSseq.similarity(answer, reference), len(answer), len(reference))


def bleu_tokens(text: str) -> list[str]:
    """Return the tokens of a text as mteval-v13a makes them."""
    text = text.replace("<skipped>", "").replace("-\n", "").replace("\n", " ")
    for entity, character in _ENTITIES:
        text = text.replace(entity, character)
    text = _MARKS.sub(r" \1 ", f" {text} ")
    text = _NOT_BEFORE_DIGIT.sub(r" \1 \2", _NOT_AFTER_DIGIT.sub(r"\1 \2 ", text))
    return _DIGIT_DASH.sub(r"\1 \2 ", text).split()


def sentence_bleu(answer: Sequence[str], reference: Sequence[str]) -> float:
    """Return the BLEU of one sentence, 0 to 1.

    Runs of up to 4 words, fewer in an answer of fewer words; exponential smoothing: the n-th order without a match
    counts as 1/2ⁿ of a match.
    """
    if not answer or not reference:
        return 0.0
    logs, smoothing, orders = 0.0, 1.0, min(_MAX_ORDER, len(answer))
    for order in range(1, orders + 1):
        ours = ngrams(answer, order)
        matches: float = (ours & ngrams(reference, order)).total()
        if not matches:
            if order == 1:
                return 0.0
            smoothing *= 2
            matches = 1 / smoothing
        logs += math.log(matches / ours.total())
    brevity = min(0.0, 1 - len(reference) / len(answer))
    return min(1.0, math.exp(brevity + logs / orders))
