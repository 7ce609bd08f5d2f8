from checking import evaluate, get_original, passes_tests, read, read_answer, run

AMOUNTS = {
    "12,50": 1250,
    "-650,00": -65000,
    "2100,5": 210050,
    "1,234.50": 123450,
    "-2,000,000": -200000000,
    "9,999": 999900,
    "12,345,678.9": 1234567890,
    "12.50": 1250,
    "-0.05": -5,
    "+7.1": 710,
    "3": 300,
}
values = evaluate("from ledger.money import parse_amount", *[f"parse_amount({text!r})" for text in AMOUNTS])
assert values == list(AMOUNTS.values()), f"the amounts are {dict(zip(AMOUNTS, values, strict=True))}"
assert read("tests/test_report.py") == get_original("tests/test_report.py"), "tests/test_report.py was changed"
assert "test_thousands" in read("tests/test_money.py"), "a test is gone"
assert passes_tests("tests"), "the tests fail"
assert run("git", "status", "--porcelain") == "", "there are changes that were not committed"
assert int(run("git", "rev-list", "--count", "HEAD")) >= 6, "there is no new commit"
culprit = run("git", "log", "--format=%h", "--abbrev=7", "--grep", "^Accept thousands").strip()
others = set(run("git", "log", "--format=%h", "--abbrev=7").split()) - {culprit}
answer = read_answer()
assert culprit in answer, f"the answer does not name the commit {culprit}: {answer[:200]!r}"
assert sum(other in answer for other in others) <= 1, "the answer names other commits, too"
