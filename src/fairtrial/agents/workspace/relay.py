"""The inner end of a sandbox's way out: `python relay.py SOCKET PORT[=HOST:PORT]… -- PROGRAM ARGS…` runs a program.

Inside the sandbox, connections to 127.0.0.1:PORT are passed on to a unix socket, behind which fairtrial lets through
what is allowed (`workspace/gateway.py`). A plain PORT is an HTTP proxy; PORT=HOST:PORT leads to that address at once,
for servers that are on loopback outside. This file runs on its own, without the package, like the supervisor.
"""

import os
import socket
import sys
import threading


def main() -> None:
    """Listen in a child process, and become the program."""
    where = sys.argv[1]
    end = sys.argv.index("--")
    listeners = [_listen(argument) for argument in sys.argv[2:end]]
    program = os.getpid()
    if os.fork() == 0:
        _serve(where, listeners, program)
    for listener, _ in listeners:
        listener.close()
    try:
        os.execvp(sys.argv[end + 1], sys.argv[end + 1 :])  # noqa: S606  # running a program is its purpose
    except OSError as error:
        os.write(2, f"{sys.argv[end + 1]} cannot be started: {error.strerror}\n".encode())
        os._exit(127)


def _listen(argument: str) -> "tuple[socket.socket, str]":
    port, _, address = argument.partition("=")
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", int(port)))
    listener.listen(64)
    return listener, address


def _serve(where: str, listeners: "list[tuple[socket.socket, str]]", program: int) -> None:
    null = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):  # whoever reads the program's output waits until nobody holds it any more
        os.dup2(null, number)
    for listener, address in listeners:
        threading.Thread(target=_accept, args=(listener, where, address), daemon=True).start()
    wait = threading.Event()
    while os.getppid() == program:
        wait.wait(0.5)
    os._exit(0)


def _accept(listener: socket.socket, where: str, address: str) -> None:
    while True:
        client, _ = listener.accept()
        threading.Thread(target=_connect, args=(client, where, address), daemon=True).start()


def _connect(client: socket.socket, where: str, address: str) -> None:
    server = socket.socket(socket.AF_UNIX)
    try:
        server.connect(where)
        if address:
            server.sendall(f"CONNECT {address} HTTP/1.1\r\n\r\n".encode())
            reply = b""
            while not reply.endswith(b"\r\n\r\n"):
                byte = server.recv(1)
                if not byte:
                    break
                reply += byte
            if not reply.startswith(b"HTTP/1.1 200"):
                client.sendall(reply)
                return
    except OSError:
        client.close()
        return
    threading.Thread(target=_pipe, args=(client, server), daemon=True).start()
    _pipe(server, client)


def _pipe(source: socket.socket, target: socket.socket) -> None:
    try:
        while block := source.recv(2**16):
            target.sendall(block)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        return


if __name__ == "__main__":
    main()
