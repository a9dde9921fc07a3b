import json
import subprocess
import sys

program = "import sys, json; from numbers_of import median; print(json.dumps(median(json.loads(sys.argv[1]))))"
for values, right in (([3, 1, 2], 2), ([4, 1, 2, 3], 2.5), ([7], 7), ([1, 9], 5)):
    done = subprocess.run([sys.executable, "-c", program, json.dumps(values)], capture_output=True, text=True)
    if done.returncode or not done.stdout.strip() or json.loads(done.stdout) != right:
        sys.exit(f"median({values}) is wrong")
