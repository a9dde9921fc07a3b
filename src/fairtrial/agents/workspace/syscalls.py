"""What programs in a sandbox may not ask of the kernel: a filter, in the form in which bubblewrap takes it.

Namespaces, mounts, keys, modules and whatever else could lead out or is of no use inside. It holds for all programs in
the sandbox, and none can take it off.
"""

from __future__ import annotations

import errno
import platform
import struct
import sys
from functools import lru_cache

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06  # of classic BPF
_NUMBER, _MACHINE, _FIRST, _SECOND = 0, 4, 16, 24  # where a call's number, machine and arguments are
_ALLOW, _ERROR = 0x7FFF0000, 0x00050000
_NEW_NAMESPACES = 0x7E020000  # flags of `clone`
_TYPE_INTO_TERMINAL, _OF_CONSOLE = 0x5412, 0x541C  # TIOCSTI, TIOCLINUX
_FAMILIES = (15, 17, 38, 40)  # keys of IPsec, raw packets, the kernel's cryptography, and the host of a virtual machine
_X32 = 0x40000000
_COMMON = {
    "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "open_tree": 428, "move_mount": 429,
    "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433, "clone3": 435, "pidfd_getfd": 438,
    "mount_setattr": 442, "quotactl_fd": 443, "open_tree_attr": 467,
}  # fmt: skip
_TABLES = {
    "x86_64": (
        0xC000003E,
        {"ioctl": 16, "socket": 41, "clone": 56, "ptrace": 101},
        {
            "pivot_root": 155, "chroot": 161, "acct": 163, "settimeofday": 164, "mount": 165, "umount2": 166,
            "swapon": 167, "swapoff": 168, "reboot": 169, "iopl": 172, "ioperm": 173, "init_module": 175,
            "delete_module": 176, "quotactl": 179, "lookup_dcookie": 212, "clock_settime": 227, "kexec_load": 246,
            "add_key": 248, "request_key": 249, "keyctl": 250, "unshare": 272, "perf_event_open": 298,
            "open_by_handle_at": 304, "setns": 308, "finit_module": 313, "kexec_file_load": 320, "bpf": 321,
            "userfaultfd": 323,
        },
    ),
    "aarch64": (
        0xC00000B7,
        {"ioctl": 29, "socket": 198, "clone": 220, "ptrace": 117},
        {
            "lookup_dcookie": 18, "umount2": 39, "mount": 40, "pivot_root": 41, "chroot": 51, "quotactl": 60,
            "acct": 89, "unshare": 97, "kexec_load": 104, "init_module": 105, "delete_module": 106,
            "clock_settime": 112, "reboot": 142, "settimeofday": 170, "add_key": 217, "request_key": 218,
            "keyctl": 219, "swapon": 224, "swapoff": 225, "perf_event_open": 241, "open_by_handle_at": 265,
            "setns": 268, "finit_module": 273, "bpf": 280, "userfaultfd": 282, "kexec_file_load": 294,
        },
    ),
}  # fmt: skip
# Programs know what to do without these, if they are told that the kernel does not have them.
_UNKNOWN = frozenset({"clone3", "io_uring_setup", "io_uring_enter", "io_uring_register"})


@lru_cache
def syscall_filter() -> bytes:
    """Return the filter for this machine; empty for machines whose calls we do not know."""
    if sys.platform != "linux" or platform.machine() not in _TABLES or sys.maxsize < 2**32:
        return b""
    machine, special, denied = _TABLES[platform.machine()]
    refused = _ERROR | errno.EPERM
    lines = [
        (_LOAD, 0, 0, _MACHINE),
        (_EQUAL, 1, 0, machine),
        (_RETURN, 0, 0, _ERROR | errno.ENOSYS),  # calls of another kind of processor, whose numbers mean other things
        (_LOAD, 0, 0, _NUMBER),
        (_AT_LEAST, 0, 1, _X32),
        (_RETURN, 0, 0, _ERROR | errno.ENOSYS),
    ]
    for name, number in {**denied, **_COMMON}.items():
        verdict = _ERROR | errno.ENOSYS if name in _UNKNOWN else refused
        lines += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, verdict)]
    lines += [
        (_EQUAL, 0, 4, special["clone"]),
        (_LOAD, 0, 0, _FIRST),
        (_ANY_BIT, 0, 1, _NEW_NAMESPACES),
        (_RETURN, 0, 0, refused),
        (_RETURN, 0, 0, _ALLOW),
    ]
    lines += _unless(special["ioctl"], _SECOND, (_TYPE_INTO_TERMINAL, _OF_CONSOLE), refused)
    lines += _unless(special["socket"], _FIRST, _FAMILIES, refused)
    lines += _unless(special["ptrace"], _SECOND, (1,), refused)  # the first process, which ends the sandbox
    lines.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("=HBBI", *line) for line in lines)


def _unless(number: int, argument: int, values: tuple[int, ...], refused: int) -> list[tuple[int, int, int, int]]:
    """Return the lines that refuse a call with one of some values as an argument, and allow it with others."""
    checks = [line for value in values for line in ((_EQUAL, 0, 1, value), (_RETURN, 0, 0, refused))]
    return [(_EQUAL, 0, len(checks) + 2, number), (_LOAD, 0, 0, argument), *checks, (_RETURN, 0, 0, _ALLOW)]
