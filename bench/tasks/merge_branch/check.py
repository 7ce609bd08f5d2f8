from checking import evaluate, passes_tests, read, run

assert run("git", "branch", "--show-current") == "main\n", "another branch is checked out"
assert run("git", "status", "--porcelain") == "", "there are changes that were not committed"
run("git", "merge-base", "--is-ancestor", "vat", "main")
assert len(run("git", "log", "-1", "--merges", "--format=%P").split()) == 2, "there is no merge commit"
for branch, path in [
    ("vat", "tests/test_vat.py"),
    ("main^1", "tests/test_discounts.py"),
    ("vat", "tests/test_till.py"),
]:
    assert run("git", "diff", branch, "--", path) == "", f"{path} was changed"
for path in ("till/prices.py", "till/receipt.py"):
    assert "<<<<<<<" not in read(path) and ">>>>>>>" not in read(path), f"{path} has marks of a conflict"
values = evaluate(
    "from till.prices import price, total\nfrom till.receipt import receipt",
    "[price('book', 1000), price('toy', 5000), price('book', 10000)]",
    "total([('toy', 5000), ('book', 100)])",
    "receipt([('toy', 5000), ('book', 100)]).splitlines()",
    "receipt([('book', 4999)]).splitlines()",
)
expected = [
    [1070, 5355, 9630],
    5462,
    ["toy 5000", "book 100", "you saved 500", "total with VAT 5462"],
    ["book 4999", "total with VAT 5348"],
]
assert values == expected, f"prices, a total and two receipts are {values}"
assert passes_tests("tests"), "the tests fail"
