import json


def add(arguments):
    given = json.loads(arguments)
    return str(given["a"] + given["b"])
