import json
import subprocess
import sys

cases = {"poem.txt": ["5 the", "3 and", "2 hen"], "other.txt": ["3 a", "2 b", "1 c"]}
with open("other.txt", "w") as file:
    file.write("b a c\na b\na\n")
right = 0
for name, expected in cases.items():
    done = subprocess.run([sys.executable, "words.py", name], capture_output=True, text=True, timeout=20)
    right += done.stdout.split("\n")[:3] == expected
print(json.dumps({"score": 100 * right / len(cases), "notes": f"{right} of {len(cases)} files counted right"}))
