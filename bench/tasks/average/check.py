from checking import evaluate

calls = ["average([2, 4])", "average([5])", "average([1, 2, 3, 6])", "average([0.5])"]
values = evaluate("from calc import average", *calls)
assert values == [3, 5, 3, 0.5], f"{', '.join(calls)} are {values}"
