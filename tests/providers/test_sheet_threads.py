"""The sheet is read by several threads at once: prices of several targets are found at the same time."""

import os
import subprocess
import sys

import pytest

# Each child is a fresh start: what is known once is known.
SCRIPT = """
import os, sys, threading
from fairtrial.providers import sheet
sys.setswitchinterval(1e-9)

def look():
    together.wait()
    sheet.sheet_of("openai", "gpt-6-luna")

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


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_threads_may_look_at_the_sheet_for_the_first_time():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    assert done.stdout == "0\n"
