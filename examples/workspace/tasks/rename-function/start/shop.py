from prices import calc


def total(amounts):
    return sum(calc(amount, 0.2) for amount in amounts)
