from pathlib import Path

codes = Path("errors.txt").read_text().split()
assert codes == ["E17", "E42"], f"errors.txt has {codes}"
