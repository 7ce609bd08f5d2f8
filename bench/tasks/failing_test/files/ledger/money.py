def parse_amount(text):
    """Return the cents of an amount such as 12.50 or 12,50."""
    text = text.strip().replace(",", ".")
    sign = -1 if text.startswith("-") else 1
    units, _, cents = text.lstrip("+-").partition(".")
    return sign * (int(units or 0) * 100 + int(cents.ljust(2, "0")))


def format_amount(cents):
    sign = "-" if cents < 0 else ""
    units, rest = divmod(abs(cents), 100)
    return f"{sign}{units}.{rest:02}"
