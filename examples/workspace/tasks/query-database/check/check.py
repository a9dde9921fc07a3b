from pathlib import Path

answer = Path("answer.txt").read_text().strip()
assert answer == "Cem 7", f"answer.txt says {answer!r}"
