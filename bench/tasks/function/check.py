from checking import evaluate

values = evaluate("from calc import add, multiply, subtract", "add(2, 3)", "multiply(2, 3)", "subtract(7, 3)")
assert values == [5, 6, 4], f"add(2, 3), multiply(2, 3), subtract(7, 3) are {values}"
