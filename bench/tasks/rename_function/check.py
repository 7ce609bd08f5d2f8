from checking import evaluate, read, run_python

printed = run_python("main.py")
assert printed == "the total is 6\n", f"main.py prints {printed[:100]!r}"
values = evaluate("import shop, extra", "shop.sum_of([4])", "extra.twice([2])", "hasattr(shop, 'total')")
assert values == [4, 4, False], f"shop.sum_of([4]), extra.twice([2]), has the old name: {values}"
assert "total(" not in read("main.py"), "main.py calls total"
