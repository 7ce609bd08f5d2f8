import re
from datetime import date, timedelta

DAYS = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]


def slug(title):
    return "-".join(re.findall(r"\w+", title.lower()))


def day_name(day):
    return DAYS[day.weekday()]


def shorten(text, length=20):
    if len(text) <= length:
        return text
    return text[: length - 1] + "…"


def parse_day(text):
    return date.fromisoformat(text)


def next_monday(day):
    return day + timedelta(days=7 - day.weekday())
