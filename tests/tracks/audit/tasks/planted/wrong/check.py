import pathlib
import sys

sys.exit(0 if pathlib.Path("answer.txt").read_text().strip() == "43" else "not 43")
