import json

print(json.dumps({"score": 100 if sum([1, 2, 3]) == 6 else 0}))
