"""A program on a leash: `python leash.py PROGRAM ARGS…` becomes that program, and dies when its parent does.

The parent may be killed in a way that leaves it no time to clean up; on Linux the kernel then ends this one. With
FAIRTRIAL_KEEP in the environment, only the variables that it names (separated by commas) are handed on.
This file is run by itself, without the package, so that starting it costs next to nothing.
"""

import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main() -> None:
    """Become the program."""
    parent = os.getppid()
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it has gone while we were getting ready
            sys.exit(1)
    environment = dict(os.environ)
    kept = environment.pop("FAIRTRIAL_KEEP", None)
    if kept is not None:
        names = set(kept.split(","))
        environment = {name: value for name, value in environment.items() if name in names}
    try:
        os.execvpe(sys.argv[1], sys.argv[1:], environment)  # noqa: S606  # that is what it is for
    except OSError as error:
        sys.exit(f"{sys.argv[1]} cannot be started: {error.strerror}")


if __name__ == "__main__":
    main()
