"""Python imports this when it starts in a check: what the check imports is not what an agent has put in its way.

An agent's own programs, which a check may start, find their modules as they always do.
"""

import os
import sys
from importlib import import_module


def _main() -> str:
    """Return the script that is started; empty for `-c` and `-m`."""
    arguments = getattr(sys, "orig_argv", [""])[1:]
    while arguments and arguments[0].startswith("-"):
        option = arguments.pop(0)
        if option in ("-c", "-m") or (not option.startswith("--") and option[-1:] in "cm"):
            return ""
        if option in ("-W", "-X") and arguments:
            arguments.pop(0)
    return arguments[0] if arguments else ""


def _guard() -> None:
    mine = os.path.dirname(os.path.abspath(__file__))
    workspace = os.environ.get("FAIRTRIAL_WORKSPACE", "")
    agents = os.environ.get("FAIRTRIAL_CHANGED", "")
    sys.path[:] = [place for place in sys.path if os.path.abspath(place or ".") != mine]
    sys.modules.pop("sitecustomize", None)
    try:
        import_module("sitecustomize")  # the one of this Python, if it has one
    except ImportError:
        pass
    sys.path.insert(0, mine)
    guard = import_module("guard")
    changed, script = guard.Changed(workspace, agents), _main()
    if workspace and not (script and changed.has(script)):
        guard.trust_installed(changed, os.path.dirname(os.path.abspath(script)) if script else os.getcwd())
    sys.path[:] = [place for place in sys.path if os.path.abspath(place or ".") != mine]
    del sys.modules["guard"]


_guard()
