"""The process that reads model files for `model_reader`: paths come in, problems or what is wrong with them go out."""

from __future__ import annotations

import json
import math
import os
import signal
import sys
from pathlib import Path

import msgspec

from fairtrial.core.errors import FairtrialError
from fairtrial.tracks.optimisation.exchange import read_here
from fairtrial.tracks.optimisation.model_reader import LENGTH, READY, Reply
from fairtrial.tracks.optimisation.worker import private_output


def main() -> None:
    """Read the files whose paths come in, until the input ends."""
    output = private_output()
    output.write(READY)
    output.flush()
    for line in sys.stdin.buffer:
        try:
            folder, path, seconds = json.loads(line)
            os.chdir(folder)
            _end_after(seconds)
            reply = Reply(problem=read_here(Path(path)))
        except FairtrialError as error:
            reply = Reply(wrong=str(error))
        _end_after(0)
        body = msgspec.msgpack.encode(reply)
        output.write(len(body).to_bytes(LENGTH, "big") + body)
        output.flush()


def _end_after(seconds: float) -> None:
    """Have the kernel end this process by then, whoever still waits for it: HiGHS holds the interpreter; 0: no more."""
    if hasattr(signal, "alarm"):
        signal.alarm(math.ceil(seconds))
