"""Few open files and little memory: fewer calls at once, or one sentence; nothing is lost, and it goes on with more."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import pytest

from fairtrial.cli.main import _report_error
from tests import forks
from tests.conftest import numbered
from tests.torture.blows import end_of, whole_store, without_complaint
from tests.torture.test_disks import begun, one_sentence
from tests.torture.test_kills import PRICES, QUICK, runs_of, stored

LIMITED = """
import resource
{before}
resource.setrlimit(resource.{kind}, ({most}, {most}))
from fairtrial.cli.main import main
main()
"""
CASES, AT_ONCE = 80, 40
# What a process has already, when it is limited: what is left is what the campaign draws.
_MEMORY = "\n".join(
    (
        "from pathlib import Path",
        "pages = int(Path('/proc/self/statm').read_text().split()[0])",
    )
)


def limits(kind: str, chance: Any) -> str:
    if kind == "RLIMIT_NOFILE":
        return LIMITED.format(kind=kind, before="", most=chance.choice((20, 32, 48, 64, 128)))
    more = chance.choice((8, 16, 32, 64, 128, 256)) * 2**20
    return LIMITED.format(kind=kind, before=_MEMORY, most=f"pages * resource.getpagesize() + {more}")


@pytest.mark.parametrize("kind", ["RLIMIT_NOFILE", "RLIMIT_AS"])
async def test_a_process_that_may_have_little(campaign, kind, write_suite, model_server, tmp_path):
    keys = {"prices": PRICES, "budget_usd": 500.0, "params": {"max_tokens": 2000}, "retry": QUICK}
    suite = write_suite(targets=["openai:m"], scorer="boolean", cases=numbered(CASES), concurrency=AT_ONCE, **keys)
    for number, chance in enumerate(campaign.rounds(short=2)):
        state = await model_server(latency=0.002, answer="42: {prompt}")
        store = tmp_path / f"{number}.db"
        command = ("--store", store, "--quiet")
        limited = forks.start("run", suite, *command, program=limits(kind, chance), folder=suite.parent)
        ended = without_complaint(await end_of(limited), 1)
        if ended.code:
            one_sentence(ended)
        before = stored(store) if begun(store) else {}
        if ended.code:
            go_on = ("resume", "latest") if begun(store) and runs_of(store) else ("run", suite)
            again = await end_of(forks.start(*go_on, *command, folder=suite.parent))
            assert again.code == 0, (ended, again)
        check(state, before, store)
        campaign.count(lost=0, hung=0, tracebacks=0, refused=ended.code != 0)


def check(state: Any, before: dict[int, str], store: Path) -> None:
    after = stored(store)
    assert before.items() <= after.items() and len(after) == CASES
    assert runs_of(store)[0].status == "completed"
    whole_store(store)
    assert sum(times - 1 for times in state.answered.values()) <= 2 * AT_ONCE + 16


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(errno.EMFILE, "Too many open files"), "may not open more files"),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), "too little memory"),
        (MemoryError(), "too little memory"),
        (RuntimeError("can't start new thread"), "no more threads or processes"),
        (BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable"), "no more threads or processes"),
    ],
)
def test_what_there_is_too_little_of_is_said(error, words, capsys):
    assert _report_error(error, None) == 2
    said = capsys.readouterr().err
    assert words in said and said.count("\n") == 1 and "internal error" not in said
