"""Ranges of hours, such as (9, 12). The end is not part of a range."""


def overlaps(first, second):
    return first[0] < second[1] and second[0] < first[1]


def merge(ranges):
    """Join ranges that overlap or touch, and sort them."""
    merged = []
    for start, end in sorted(ranges):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged
