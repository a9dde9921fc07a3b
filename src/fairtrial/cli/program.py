"""The program `fairtrial`, from its first moment to its last: what can be interrupted, and by what it is not kept."""

from __future__ import annotations

import os
import sys
import threading

from fairtrial.cli.interrupts import INTERRUPTED, Interrupts

_LEAVING = 10.0  # seconds in which the process of an ended command may take leave
_LEAVING_SOON = 3.0  # after Ctrl-C


def main() -> None:
    """Carry out the command that was typed."""
    interrupts = Interrupts().install()
    from fairtrial.cli.main import main as carry_out  # click, for one: Ctrl-C may come while it is imported

    code = INTERRUPTED  # at the very end of the command, too
    try:
        carry_out()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 0
    except KeyboardInterrupt:
        pass
    finally:
        interrupts.leave(code)
    _leave(code)


def _leave(code: int) -> None:
    """End the process; a thread that hangs, as one that waits for a server, does not keep it."""
    ending = threading.Timer(_LEAVING_SOON if code == INTERRUPTED else _LEAVING, os._exit, (code,))
    ending.daemon = True
    ending.start()
    sys.exit(code)
