from collections import defaultdict

from reports.period import month_period
from reports.sales import select_sales


def monthly_report(sales, year, month):
    """Return the cents per article."""
    start, end = month_period(year, month)
    totals = defaultdict(int)
    for sale in select_sales(sales, start, end):
        totals[sale.article] += sale.cents
    return dict(totals)


def week_report(sales, monday, sunday):
    return sum(sale.cents for sale in select_sales(sales, monday, sunday))
