"""Threads may meet our types for the first time at once: pages, prices of several targets, rows that are read."""

import os
import subprocess
import sys

import pytest

# Each child is a fresh start: what is known once is known.
SCRIPT = """
import os, sys, threading
from contextlib import suppress
import msgspec
{first}
sys.setswitchinterval(1e-9)

def look():
    together.wait()
    {then}

crashed = 0
for _ in range(20):
    if not (child := os.fork()):
        together = threading.Barrier(16)
        threads = [threading.Thread(target=look) for _ in range(16)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        os._exit(0)
    crashed += os.waitpid(child, 0)[1] != 0
print(crashed)
"""
DECODED = "with suppress(msgspec.ValidationError): msgspec.convert({}, KIND)"
MET = {
    "the sheet of models": (
        "from fairtrial.providers import sheet",
        'sheet.sheet_of("openai", "gpt-6-luna")',
    ),
    "arms of a plan": (
        "from fairtrial.store import rows",
        'rows.read_arms(b"[]", None)',
    ),
    "settings of a run": ("from fairtrial.core.settings import Settings", DECODED.replace("KIND", "Settings")),
    "a gate": ("from fairtrial.core.gate import GateSpec", DECODED.replace("KIND", "GateSpec | None")),
    "numbers of a run": ("from fairtrial.web.numbers import RunNumbers", DECODED.replace("KIND", "RunNumbers")),
    "a board": ("from fairtrial.web.numbers import PairBoard", DECODED.replace("KIND", "PairBoard")),
    "a calibration": ("from fairtrial.judging.calibration import Calibration", DECODED.replace("KIND", "Calibration")),
}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("what", MET)
def test_threads_may_meet_a_type_at_once(what):
    first, then = MET[what]
    script = SCRIPT.replace("{first}", first).replace("{then}", then)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "0\n", done.stderr
