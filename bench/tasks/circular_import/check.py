import ast

from checking import assert_unchanged, evaluate, list_files, passes_tests, read, run_python

assert_unchanged("tests/test_library.py", "main.py")
printed = run_python("main.py")
assert printed == "Ann: 1 of 2 books, 0 cents to pay\n", f"main.py prints {printed[:150]!r}"
assert passes_tests("tests"), "the tests fail"
evaluate("from library import members", "members.Member('Bo').describe()")
values = evaluate(
    "from library import loans\nfrom library.members import Member",
    "error_of(lambda: loans.lend('Ann', 'Emma'))",
    "[loans.LIMIT, loans.late_fee(2), Member('Bo').describe()]",
)
assert values == ["TypeError", [2, 40, "Bo: 0 of 2 books, 0 cents to pay"]], f"the library has {values}"
for path in list_files("library"):
    if not path.endswith(".py"):
        continue
    tree = ast.parse(read(path))
    inner = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom) and node not in tree.body]
    assert not inner, f"{path} imports within a function or a condition"
