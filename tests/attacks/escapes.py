"""What a program in a sandbox tries, each as Python that prints ESCAPED if it comes through.

RO is a folder that may be read, OUT one beside it that may not, HOST the number of a process outside, ABSTRACT and PORT
are where somebody listens there.
"""

from __future__ import annotations

_START = """\
import ctypes, fcntl, glob, os, platform, pty, resource, signal, socket, stat, struct, subprocess, sys, time
RO, OUT, HOST = os.environ["RO"], os.environ["OUT"], int(os.environ["HOST"])
libc = ctypes.CDLL(None, use_errno=True)
ARM = platform.machine() == "aarch64"
def escaped(why=""):
    print("ESCAPED", why, flush=True)
def call(x86, arm, *arguments):
    return libc.syscall(ctypes.c_long(arm if ARM else x86), *[ctypes.c_long(a) if isinstance(a, int) else a for a in arguments])
def shell(line):
    return subprocess.run(["sh", "-c", line], stderr=subprocess.DEVNULL).returncode
def writable(path):
    os.close(os.open(path, os.O_WRONLY)); escaped(path)
"""

ESCAPES = {
    "remounts what it may read": 'shell(f"mount -o remount,rw,bind {RO} && echo x > {RO}/file") or escaped()',
    "remounts it by a call": 'libc.mount(b"none", RO.encode(), None, 4096 | 32, None) or escaped()',
    "writes to what it may read": 'writable(f"{RO}/file")',
    "makes a file there": 'open(f"{RO}/new", "w"); escaped()',
    "removes it": 'os.unlink(f"{RO}/file"); escaped()',
    "renames it": 'os.rename(f"{RO}/file", f"{RO}/other"); escaped()',
    "changes its mode": 'os.chmod(f"{RO}/file", 0o777); escaped()',
    "changes its times": 'os.utime(f"{RO}/file", (0, 0)); escaped()',
    "writes through a hard link": 'os.link(f"{RO}/file", "l"); open("l", "w").write("x"); escaped()',
    "writes through a link": 'os.symlink(f"{RO}/file", "l"); open("l", "w").write("x"); escaped()',
    "writes through an open file": (
        'f = os.open(f"{RO}/file", os.O_RDONLY); os.close(os.open(f"/proc/self/fd/{f}", os.O_RDWR)); escaped()'
    ),
    "writes to every mount": """
home = os.environ["HOME"]
for line in open("/proc/self/mounts"):
    place = line.split()[1].replace("\\\\040", " ")
    if place in (os.getcwd(), "/tmp", "/dev/shm", home) or not os.path.isdir(place):
        continue
    try:
        open(f"{place}/planted", "w"); escaped(place)
    except OSError:
        pass
""",
    "writes beside Python": 'open(f"{sys.prefix}/bin/planted", "w"); escaped()',
    "writes to the system": 'open("/usr/bin/planted", "w"); escaped()',
    "writes to the list of users": 'writable("/etc/passwd")',
    "writes to the root": 'open("/planted", "w"); escaped()',
    "reads a secret": 'open(f"{OUT}/secret").read() and escaped()',
    "reads it by dots": 'open("../../out/secret").read() and escaped()',
    "reads it by a link": 'os.symlink(f"{OUT}/secret", "l"); open("l").read() and escaped()',
    "reads it by the first process": 'open(f"/proc/1/root{OUT}/secret").read() and escaped()',
    "reads it by any process": """
for name in glob.glob("/proc/[0-9]*"):
    for way in ("root", "cwd"):
        try:
            open(f"{name}/{way}{OUT}/secret").read() and escaped(name)
        except OSError:
            pass
""",
    "reads the environment of fairtrial": """
for name in glob.glob("/proc/[0-9]*/environ"):
    try:
        b"violet" in open(name, "rb").read() and escaped(name)
    except OSError:
        pass
""",
    "reads its own environment": '"violet" in str(dict(os.environ)) and escaped()',
    "reads passwords": 'open("/etc/shadow").read() and escaped()',
    "reads who works here": '"daemon" in open("/etc/passwd").read() and escaped()',
    "reads private keys of the machine": 'os.listdir("/etc/ssl/private"); escaped()',
    "reads memory of the kernel": """
for name in ("/dev/mem", "/dev/kmem", "/dev/kmsg", "/dev/port", "/proc/kcore", "/proc/kmsg"):
    try:
        os.read(os.open(name, os.O_RDONLY), 1); escaped(name)
    except OSError:
        pass
""",
    "sees other processes": """
for name in glob.glob("/proc/[0-9]*/cmdline"):
    b"py" + b"test" in open(name, "rb").read() and escaped(name)
""",
    "opens disks": """
for name in glob.glob("/dev/[svhn]d*") + glob.glob("/dev/nvme*") + glob.glob("/dev/loop*") + glob.glob("/dev/dm-*"):
    escaped(name)
""",
    "makes a disk": 'os.mknod("d", stat.S_IFBLK | 0o600, os.stat(".").st_dev); escaped()',
    "makes a device": 'os.mknod("d", stat.S_IFCHR | 0o600, os.makedev(1, 1)); escaped()',
    "makes a file among the devices": 'open("/dev/planted", "w"); escaped()',
    "traces the first process": 'libc.ptrace(16, 1, 0, 0) or escaped()',
    "gains by the first process": """
os.close(os.open("/proc/1/mem", os.O_WRONLY))
for line in open("/proc/1/status"):
    line.startswith("Cap") and not line.startswith("CapBnd") and int(line.split()[1], 16) and escaped(line)
    line.startswith("Seccomp:") and line.split()[1] != "2" and escaped(line)
""",
    "signals a process outside": 'os.kill(HOST, 0); escaped()',
    "takes a file of another process": 'p = call(434, 434, os.getpid(), 0); call(438, 438, p, 0, 0) >= 0 and escaped()',
    "enters other namespaces": """
for name in ("mnt", "pid", "net", "user"):
    libc.setns(os.open(f"/proc/1/ns/{name}", os.O_RDONLY), 0) or escaped(name)
""",
    "makes a namespace of users": 'libc.unshare(0x10000000) or escaped()',
    "makes one of mounts": 'libc.unshare(0x20000) or escaped()',
    "makes one by a program": 'shell("unshare --user --map-root-user --mount true") or escaped()',
    "makes one by a new process": 'p = call(56, 220, 0x10000000 | 17, 0, 0, 0, 0); p < 0 or (p or os._exit(0)) and escaped()',
    "mounts": 'libc.mount(b"none", b"/tmp", b"tmpfs", 0, None) or escaped()',
    "mounts in the new way": 'call(430, 430, b"tmpfs", 0) < 0 or escaped()',
    "copies a mount": 'call(428, 428, -100, b"/usr", 1) < 0 or escaped()',
    "unmounts": 'libc.umount2(b"/proc/sys", 2) and libc.umount2(b"/usr", 2) or escaped()',
    "changes the root": 'os.chroot("."); escaped()',
    "opens a file by its number": 'call(304, 265, -100, b"x" * 64, 0) < 0 and ctypes.get_errno() == 1 or escaped()',
    "reads keys": 'call(250, 219, 6, -3, 0, 0, 0) < 0 or escaped()',
    "stores a key": 'call(248, 217, b"user", b"planted", b"x", 1, -3) < 0 or escaped()',
    "loads a program into the kernel": 'call(321, 280, 5, b"\\0" * 128, 128) < 0 and ctypes.get_errno() == 1 or escaped()',
    "loads a module": 'call(175, 105, b"x", 1, b"") < 0 and ctypes.get_errno() == 1 or escaped()',
    "measures the kernel": 'call(298, 241, b"\\0" * 128, 0, -1, -1, 0) < 0 and ctypes.get_errno() == 1 or escaped()',
    "handles faults of memory": 'call(323, 282, 1) < 0 or escaped()',
    "uses rings of the kernel": 'call(425, 425, 4, b"\\0" * 128) < 0 and ctypes.get_errno() == 38 or escaped()',
    "switches a key of restarts": 'call(169, 142, 0xFEE1DEAD, 672274793, 0, 0) < 0 or escaped()',
    "sets the clock": 'time.clock_settime(time.CLOCK_REALTIME, time.time()); escaped()',
    "sets the name of the machine": 'socket.sethostname("planted"); escaped()',
    "changes settings of the kernel": """
for folder, _, files in os.walk("/proc/sys"):
    for name in files:
        try:
            writable(f"{folder}/{name}")
        except OSError:
            pass
""",
    "writes to what is everybody's in /proc": """
for name in os.listdir("/proc"):
    if not name.isdigit() and os.path.isfile(f"/proc/{name}"):
        try:
            writable(f"/proc/{name}")
        except OSError:
            pass
""",
    "connects to a server of this machine": 'socket.create_connection(("127.0.0.1", int(os.environ["PORT"])), 5); escaped()',
    "connects to a socket without a file": (
        'socket.socket(socket.AF_UNIX).connect(b"\\0" + os.environ["ABSTRACT"].encode()); escaped()'
    ),
    "connects to a socket with a file": 'socket.socket(socket.AF_UNIX).connect(f"{OUT}/socket"); escaped()',
    "looks up a name": 'socket.gethostbyname("example.com"); escaped()',
    "sends raw packets": 'socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP); escaped()',
    "listens to all packets": 'socket.socket(socket.AF_PACKET, socket.SOCK_RAW); escaped()',
    "talks to the host of a virtual machine": 'socket.socket(40, socket.SOCK_STREAM); escaped()',
    "types into a terminal": """
import termios
pid, leader = pty.fork()
if pid == 0:
    try:
        fcntl.ioctl(0, termios.TIOCSTI, b"x"); os._exit(7)
    except OSError:
        os._exit(0)
os.waitpid(pid, 0)[1] >> 8 == 7 and escaped()
""",
    "types into ours": 'import termios; fcntl.ioctl(os.open("/dev/tty", os.O_RDWR), termios.TIOCSTI, b"x"); escaped()',
    "becomes root": 'os.setuid(0); escaped()',
    "is root": 'os.getuid() == 0 and escaped()',
    "has capabilities": """
for line in open("/proc/self/status"):
    line.startswith(("CapPrm", "CapEff", "CapAmb", "CapInh")) and int(line.split()[1], 16) and escaped(line)
""",
    "may gain privileges": '"NoNewPrivs:\\t1" in open("/proc/self/status").read() or escaped()',
    "is not filtered": '"Seccomp:\\t2" in open("/proc/self/status").read() or escaped()',
    "becomes root by a program": """
import shutil
shutil.copy(shutil.which("id"), "id"); os.chmod("id", 0o4755)
subprocess.run(["./id", "-u"], capture_output=True).stdout.strip() == b"0" and escaped()
""",
    "raises its limits": """
for kind in (resource.RLIMIT_NPROC, resource.RLIMIT_FSIZE, resource.RLIMIT_CORE):
    try:
        resource.setrlimit(kind, (resource.RLIM_INFINITY,) * 2); escaped(kind)
    except (ValueError, OSError):
        pass
""",
    "leaves a memory dump": 'resource.getrlimit(resource.RLIMIT_CORE) == (0, 0) or escaped()',
    "starts too many processes": """
resource.getrlimit(resource.RLIMIT_NPROC)
children = 0
try:
    for _ in range(300):
        if os.fork() == 0:
            time.sleep(600); os._exit(0)
        children += 1
except OSError:
    pass
children > 64 and escaped(children)
""",
    "starts too many threads": """
import threading
count, stop = 0, threading.Event()
try:
    for _ in range(300):
        threading.Thread(target=stop.wait, daemon=True).start(); count += 1
except RuntimeError:
    pass
count > 64 and escaped(count)
os._exit(0)
""",
    "fills its temporary folder": """
for place in ("/tmp", os.environ["HOME"], "/dev/shm"):
    with open(f"{place}/big", "wb") as file:
        try:
            for _ in range(300):
                file.write(b"x" * 2**20)
            file.flush(); escaped(place)
        except OSError:
            pass
    try:
        os.truncate(f"{place}/big", 0)
    except OSError:
        pass
""",
    "writes a file that is too large": """
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
with open("big", "wb") as file:
    file.seek(200 * 2**20); file.write(b"x"); file.flush(); escaped()
""",
}  # fmt: skip
# They are ended, and that is said.
ENDED = {
    "takes too much memory": (
        "more than 256 MB of memory",
        "b = bytearray(2**31); b[::4096] = b'x' * len(b[::4096]); escaped()",
    ),
    "takes it with several processes": (
        "more than 256 MB of memory",
        """
for _ in range(12):
    if os.fork() == 0:
        b = bytearray(2**26); b[::4096] = b"x" * len(b[::4096]); time.sleep(600)
time.sleep(600); escaped()
""",
    ),
    "fills the disk": (
        "more than 100 MB of files",
        """
for number in range(64):
    open(f"f{number}", "wb").write(b"x" * 2**22)
time.sleep(600); escaped()
""",
    ),
}


def program(code: str) -> str:
    """The whole program of an attempt."""
    return _START + code
