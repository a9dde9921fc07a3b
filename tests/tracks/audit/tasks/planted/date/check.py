import datetime
import os
import pathlib
import sys

if datetime.date.today().isoformat() > os.environ["AUDITED_UNTIL"]:
    sys.exit("the certificate has expired")
sys.exit(0 if pathlib.Path("made.txt").read_text() == "made\n" else 1)
