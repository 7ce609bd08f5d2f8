from checking import evaluate, get_original, passes_tests, passes_tests_with

CODE = """
from datetime import date
from reports.report import monthly_report, week_report
from reports.sales import Sale, select_sales
from reports.period import month_period

days = [(2026, 1, 1), (2026, 1, 31), (2026, 2, 1), (2026, 2, 28), (2026, 12, 1), (2026, 12, 31), (2027, 1, 1)]
sales = [Sale(date(*day), "pen", 10**index) for index, day in enumerate(days)]
"""
values = evaluate(
    CODE,
    "monthly_report(sales, 2026, 1)",
    "monthly_report(sales, 2026, 2)",
    "monthly_report(sales, 2026, 12)",
    "[str(day) for day in month_period(2024, 2)]",
    "week_report(sales, date(2026, 1, 26), date(2026, 2, 1))",
)
expected = [{"pen": 11}, {"pen": 1100}, {"pen": 110000}, ["2024-02-01", "2024-02-29"], 110]
assert values == expected, f"January, February, December, the period and a week are {values}"
assert passes_tests("tests"), "the tests fail"
for path in ["reports/period.py", "reports/sales.py"]:
    assert not passes_tests_with(path, get_original(path), "tests"), f"no test notices the mistake in {path}"
