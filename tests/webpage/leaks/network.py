"""A network of one's own, of which this machine is the whole: whatever a browser looks up or connects to is noted."""

from __future__ import annotations

import asyncio
import fcntl
import re
import socket
import struct
import subprocess
from collections import Counter
from pathlib import Path

ADDRESS = "203.0.113.2"  # to private addresses Firefox only looks up names
DOMAIN = "leak.example"
WAYS = ("tcp", "udp", "name")
_SIOCSIFADDR, _SIOCSIFFLAGS, _UP_RUNNING = 0x8916, 0x8914, 0x41
_RTM_NEWLINK, _REQUEST_ACK_CREATE = 16, 0x1 | 0x4 | 0x400
_RTM_NEWROUTE, _RTA_OIF, _RT_TABLE_MAIN, _RTPROT_STATIC, _RTN_UNICAST = 24, 4, 254, 4, 1
_IFLA_IFNAME, _IFLA_LINKINFO, _IFLA_INFO_KIND = 3, 18, 1


def make(folder: Path) -> None:
    """Bring up the network inside the namespace we are in: our address, the way to everywhere, and our name server."""
    _add_pair(b"leak0")
    for interface, address in (("lo", "127.0.0.1"), ("leak0", ADDRESS), ("veth0", "")):
        _bring_up(interface, address)
    _add_route()
    for name, text in (("resolv.conf", f"nameserver {ADDRESS}\n"), ("nsswitch.conf", "hosts: files dns\n")):
        (folder / name).write_text(text)
        if (place := Path("/etc") / name).exists():
            subprocess.run(["mount", "--bind", str(folder / name), str(place)], check=True)


def _add_pair(name: bytes) -> None:
    """A pair of joined interfaces: without one beside the loopback, browsers do not try WebRTC."""
    kind = _attribute(_IFLA_LINKINFO, _attribute(_IFLA_INFO_KIND, b"veth"))
    _ask_kernel(_RTM_NEWLINK, struct.pack("=BxHiII", 0, 0, 0, 0, 0) + _attribute(_IFLA_IFNAME, name + b"\0") + kind)


def _add_route() -> None:
    """A way to everywhere: Firefox asks for its own address by it."""
    message = struct.pack("=BBBBBBBBI", socket.AF_INET, 0, 0, 0, _RT_TABLE_MAIN, _RTPROT_STATIC, 0, _RTN_UNICAST, 0)
    interface = struct.pack("=I", socket.if_nametoindex("leak0"))
    _ask_kernel(_RTM_NEWROUTE, message + _attribute(_RTA_OIF, interface))


def _ask_kernel(kind: int, body: bytes) -> None:
    head = struct.pack("=IHHII", 16 + len(body), kind, _REQUEST_ACK_CREATE, 1, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as control:
        control.send(head + body)
        failed = struct.unpack("=i", control.recv(4096)[16:20])[0]
    if failed:
        raise OSError(-failed, "this network cannot be made")


def _attribute(kind: int, value: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(value), kind) + value + b"\0" * (-len(value) % 4)


def _bring_up(interface: str, address: str) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        if address:
            place = struct.pack("16sHH4s8x", interface.encode(), socket.AF_INET, 0, socket.inet_aton(address))
            fcntl.ioctl(control, _SIOCSIFADDR, place)
        fcntl.ioctl(control, _SIOCSIFFLAGS, struct.pack("16sH14x", interface.encode(), _UP_RUNNING))


class Listener:
    """Counts connections, datagrams and look-ups, by port or by name."""

    def __init__(self) -> None:
        self.heard: Counter[tuple[str, int]] = Counter()

    async def open(self, ports: range) -> None:
        loop = asyncio.get_running_loop()
        for port in ports:
            await asyncio.start_server(self._connection(port), ADDRESS, port)
            await loop.create_datagram_endpoint(lambda port=port: _Datagrams(self, port), local_addr=(ADDRESS, port))
        await loop.create_datagram_endpoint(lambda: _Names(self), local_addr=(ADDRESS, 53))

    def _connection(self, port: int):
        async def hear(reader, writer):
            self.heard["tcp", port] += 1
            writer.close()

        return hear


class _Datagrams(asyncio.DatagramProtocol):
    def __init__(self, listener: Listener, port: int) -> None:
        self._listener, self._port = listener, port

    def datagram_received(self, data, address):
        self._listener.heard["udp", self._port] += 1


class _Names(asyncio.DatagramProtocol):
    """A name server that knows every name."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener

    def connection_made(self, transport):
        self._transport = transport

    def datagram_received(self, data, address):
        labels, place = [], 12
        while size := data[place]:
            labels.append(data[place + 1 : place + 1 + size].decode("ascii", "replace").lower())
            place += size + 1
        kind = struct.unpack("!H", data[place + 1 : place + 3])[0]
        name = ".".join(labels)
        if name.endswith(DOMAIN):
            self._listener.heard["name", int(re.search(r"p(\d+)\.[a-z.]+$", name)[1])] += 1
        question = data[12 : place + 5]
        answer = struct.pack("!HHHIH", 0xC00C, 1, 1, 60, 4) + socket.inet_aton(ADDRESS) if kind == 1 else b""
        head = data[:2] + struct.pack("!HHHHH", 0x8180, 1, 1 if answer else 0, 0, 0)
        self._transport.sendto(head + question + answer, address)
