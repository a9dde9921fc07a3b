"""`python -m tests.originals`: write docs/originals.md, run the suite, and tell how many numbers were compared."""

from __future__ import annotations

import sys

import pytest

from tests.originals import agreement
from tests.originals.rows import FOLDER, PAGE, page

PAGE.write_text(page(), "utf-8")
failed = pytest.main(["-q", "-p", "no:cacheprovider", str(FOLDER)])
print(f"{agreement.compared():,} numbers and texts compared with the originals' own definitions")
sys.exit(failed)
