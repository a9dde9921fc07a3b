import csv

with open("totals.csv", newline="") as file:
    totals = {row["region"]: float(row["amount"]) for row in csv.DictReader(file)}
assert totals == {"north": 10.35, "south": 8.5, "west": 3.35}, f"totals.csv has {totals}"
