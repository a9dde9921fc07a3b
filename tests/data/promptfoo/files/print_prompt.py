import json
import sys

print(json.loads(sys.argv[-1])["vars"]["q"].upper() + "!")
