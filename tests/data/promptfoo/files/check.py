def get_assert(output, context):
    right = context["config"]["word"] in output
    return {"pass": right, "score": float(right), "reason": "looked for the word"}


def never(output, context):
    return False
