"""Small benchmarks in the layouts of the published ones, written for these tests."""

from pathlib import Path

FILES = {
    "ComplexOR/diet/code_example.py": r"""def diet(food_cost, min_amount, content, need):
    # To be implemented
    return 0
""",
    "ComplexOR/diet/description.txt": r"""Given foods with costs, least amounts and contents, fulfil all needs at the least cost.""",
    "ComplexOR/diet/diet.py": r'''def diet(food_cost, min_amount, content, need):
    """Minimise the cost of a diet."""
    import gurobipy as gp
    from gurobipy import GRB

    model = gp.Model("diet")
    amount = {}
    for i in range(len(food_cost)):
        amount[i] = model.addVar(lb=min_amount[i], ub=GRB.INFINITY, name=f"amount_{i}")
    model.setObjective(gp.quicksum(food_cost[i] * amount[i] for i in amount), GRB.MINIMIZE)
    for k in range(len(need)):
        model.addConstr(sum(content[i][k] * amount[i] for i in amount) >= need[k], name=f"need_{k}")
    model.optimize()
    return model.ObjVal
''',
    "ComplexOR/diet/gt_model.txt": r"""…""",
    "ComplexOR/diet/sample.json": r"""[{"input": {"food_cost": [2.0, 1.5], "min_amount": [0, 0], "content": [[10, 5], [5, 10]], "need": [50, 30]}, "output": [10.333333333333334]}]""",
    "IndustryOR.json": r"""{"en_question": "A carpenter makes stools (profit 5) and tables (profit 8). A stool takes 1 hour and a table 2; there are 10 hours. He can sell at most 6 stools. What is the largest profit, in whole pieces?", "en_answer": "46", "difficulty": "Easy", "id": 0}
{"en_question": "Two trucks must both be in two cities at once. What is the least cost?", "en_answer": "No Best Solution", "difficulty": "Hard", "id": 1}
{"en_question": "A shop orders 1,200 boxes at 0.75 euros, with a fee of 50 euros for the order. What does it pay at least?", "en_answer": "950.0", "difficulty": "Medium", "id": 2}
""",
    "NLP4LP/1/description.txt": r"""A kiosk is open on Days days that repeat. Everybody works two days in a row for Wage each, and day d needs Need people. Minimise the wages.""",
    "NLP4LP/1/optimus-code.py": r"""import json
import gurobipy as gp
from gurobipy import GRB

with open("parameters.json", "r") as f:
    data = json.load(f)

model = gp.Model("shifts")
x = model.addVars(data["Days"], vtype=GRB.INTEGER, name="x")
model.addConstrs((x[d] + x[(d - 1) % data["Days"]] >= data["Need"][d] for d in range(data["Days"])), name="need")
model.setObjective(gp.quicksum(data["Wage"] * x[d] for d in range(data["Days"])), GRB.MINIMIZE)
model.optimize()

solution = {"objective": model.objVal, "variables": {"x": [x[d].x for d in range(data["Days"])]}}
with open("solution.json", "w") as f:
    json.dump(solution, f)
""",
    "NLP4LP/1/parameters.json": r"""{"Days": 3, "Need": [2, 3, 4], "Wage": 10}""",
    "NLP4LP/1/problem_info.json": r"""{"parametrized_description": "\u2026", "parameters": {"Days": {"description": "days", "shape": []}}}""",
    "NLP4LP/1/solution.json": r"""{"objective": 50.0, "variables": {"x": [0, 3, 2]}}""",
    "NLP4LP/2/description.txt": r"""The same kiosk with other needs: Days, Need and Wage as before.""",
    "NLP4LP/2/optimus-code.py": r"""import json
import gurobipy as gp
from gurobipy import GRB

with open("parameters.json", "r") as f:
    data = json.load(f)

model = gp.Model("shifts")
x = model.addVars(data["Days"], vtype=GRB.INTEGER, name="x")
model.addConstrs((x[d] + x[(d - 1) % data["Days"]] >= data["Need"][d] for d in range(data["Days"])), name="need")
model.setObjective(gp.quicksum(data["Wage"] * x[d] for d in range(data["Days"])), GRB.MINIMIZE)
model.optimize()

solution = {"objective": model.objVal, "variables": {"x": [x[d].x for d in range(data["Days"])]}}
with open("solution.json", "w") as f:
    json.dump(solution, f)
""",
    "NLP4LP/2/parameters.json": r"""{"Days": 3, "Need": [4, 4, 4], "Wage": 10}""",
    "NLP4LP/2/solution.json": r"""{"objective": 80.0, "variables": {}}""",
    "OptiBench.json": r"""[
 {
  "question": "A rectangle has a wall on one side and 100 feet of fence on the other three. What is its largest area?",
  "code": "from pyscipopt import Model, quicksum\n\nmodel = Model()\nlength = model.addVar(vtype=\"CONTINUOUS\", name=\"L\", lb=0, ub=100)\nwidth = model.addVar(vtype=\"CONTINUOUS\", name=\"W\", lb=0, ub=100)\narea = model.addVar(\"area\")\nmodel.setObjective(area, \"maximize\")\nmodel.addCons(area == length * width)\nmodel.addCons(length + 2 * width <= 100)\nmodel.optimize()\nif model.getStatus() == \"optimal\":\n    print(model.getVal(area))\n",
  "results": {
   "Length": "50.0",
   "Width": "25.0",
   "Area": "1250.0"
  },
  "type": "nonlinear-notable",
  "index": 0
 },
 {
  "question": "Apples bring 3 and come whole, pears bring 2, at most 7 of them. There is room for 10.5, and there may be at most 2 more apples than pears. What is the largest sum?",
  "code": "from pulp import *\n\napples = LpVariable(\"Apples\", lowBound=0, cat=\"Integer\")\npears = LpVariable(\"Pears\", lowBound=0, upBound=7)\nproblem = LpProblem(\"Fruit\", LpMaximize)\nproblem += 3 * apples + 2 * pears\nproblem += apples + pears <= 10.5, \"room\"\nproblem += apples - pears <= 2\nstatus = problem.solve()\nprint(value(problem.objective))\n",
  "results": {
   "Total": "26.0"
  },
  "type": "linear-notable",
  "index": 1
 },
 {
  "question": "The largest of two numbers is to be small.",
  "code": "from pyscipopt import Model\nmodel = Model()\nmodel.addConsSOS2([])\n",
  "results": {
   "Value": "1"
  },
  "type": "linear-table",
  "index": 2
 }
]""",
    "mamo_easy_lp.jsonl": r"""{"id": 1, "Question": "Choose whole numbers X and Y with X + Y at least 10. X costs $3 and Y costs $4. What is the minimum cost?", "Answer": "30", "Category": "optimization", "Type": "easy_lp"}
{"id": 2, "Question": "Choose X at most 4 to maximise 2X. What is the maximum?", "Answer": "8", "Category": "optimization", "Type": "easy_lp"}
""",
}


def write(folder: Path, name: str) -> Path:
    """Write the files of one benchmark; return its file or folder."""
    for path, text in FILES.items():
        if path == name or path.startswith(f"{name}/"):
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text, "utf-8")
    return folder / name
