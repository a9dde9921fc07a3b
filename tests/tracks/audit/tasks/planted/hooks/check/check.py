import sys

from needed import lines

sys.exit(0 if lines("made.txt") == ["made"] else 1)
