"""Statistics of lists of numbers."""


def median(numbers):
    """Return the middle of the numbers; of an even count, the mean of the two in the middle."""
    ordered = sorted(numbers)
    middle = len(ordered) // 2
    return ordered[middle]
