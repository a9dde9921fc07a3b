def get_var(name, prompt, other_vars):
    return {"output": f"in the mood of {other_vars['topic']}"}
