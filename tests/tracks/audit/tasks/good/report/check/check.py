import pathlib
import sys

made = pathlib.Path("errors.txt")
if made.is_symlink() or not made.is_file():
    sys.exit("there is no errors.txt")
right = pathlib.Path("expected.txt").read_text().split()
sys.exit(0 if made.read_text().split() == right else "errors.txt is wrong")
