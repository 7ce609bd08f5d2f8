from datetime import date, timedelta


def month_period(year, month):
    """Return the first day of the month and the last one."""
    start = date(year, month, 1)
    end = date(year, month + 1, 1) - timedelta(days=1)
    return start, end
