"""Has nothing to do with prices: `calculate` must keep its name."""


def calculate(text):
    return sum(map(float, text.split("+")))
