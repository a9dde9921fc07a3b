def create(context):
    return "x"
