from statistics_of_list import median

for numbers, right in [([3], 3), ([3, 1], 2), ([5, 1, 3], 3), ([4, 1, 3, 2], 2.5)]:
    assert median(numbers) == right, f"median({numbers}) is {median(numbers)}, not {right}"
