def best(scores, context):
    return {
        "pass": max(scores.values()) > 0,
        "score": max(scores["time"], scores["other"]),
        "reason": "the best of them",
    }
