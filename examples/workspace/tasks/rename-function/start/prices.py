def calc(amount, rate):
    return round(amount * (1 + rate), 2)
