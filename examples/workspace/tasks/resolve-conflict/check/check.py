from pathlib import Path

text = Path("greeting.py").read_text()
assert "<<<<" not in text and ">>>>" not in text and "====" not in text, "there are still marks of the conflict"
scope = {}
exec(text, scope)
assert scope["greet"]("ann lee") == "Good day, Ann Lee!", f"greet('ann lee') says {scope['greet']('ann lee')!r}"
