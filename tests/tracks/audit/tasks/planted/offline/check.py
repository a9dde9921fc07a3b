import os
import pathlib
import socket
import sys

socket.create_connection(("127.0.0.1", int(os.environ["AUDITED_PORT"])), timeout=10).close()
sys.exit(0 if pathlib.Path("made.txt").read_text() == "made\n" else 1)
