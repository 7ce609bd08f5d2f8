from datetime import date

from reports.report import monthly_report
from reports.sales import Sale


def test_only_sales_of_the_month_count():
    sales = [Sale(date(2026, 1, 5), "pen", 150), Sale(date(2026, 1, 9), "pen", 50), Sale(date(2026, 2, 1), "ink", 900)]
    assert monthly_report(sales, 2026, 1) == {"pen": 200}
