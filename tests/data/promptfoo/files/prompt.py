import json


def get_prompt(context):
    return json.dumps(
        [{"role": "system", "content": "Be brief."}, {"role": "user", "content": context["vars"]["topic"]}]
    )


class Polite:
    def ask(self, context):
        return f"Please tell me about {context['vars']['topic']}"
