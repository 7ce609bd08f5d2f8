"""Words: suggestions for misspelt names, and numbers with nouns."""

from collections.abc import Iterable

_MAX_SUGGESTIONS = 12


def find_nearest_name(name: str, known: Iterable[str]) -> str | None:
    """Find the known name that was probably meant. Return None when no name is similar."""
    import difflib

    near = difflib.get_close_matches(name, sorted(known), n=1, cutoff=0.65)
    return near[0] if near else None


def format_count(count: int, noun: str) -> str:
    """Write a number with its noun: `1 step`, `2,000 steps`."""
    if count != 1:
        noun += "s"
    return f"{count:,} {noun}"


def normalize_name(name: str) -> str:
    """Return the letters and digits of a name, in lower case: `TodoWrite` and `todo_write` are one name."""
    return "".join(filter(str.isalnum, name)).lower()


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Suggest the nearest known name, or list all of them, as the end of an error message."""
    names = sorted(set(known))
    if near := find_nearest_name(name, names):
        return f"did you mean {near!r}?"
    if not names:
        return "there are none"
    listed = ", ".join(names[:_MAX_SUGGESTIONS])
    hidden_count = len(names) - _MAX_SUGGESTIONS
    if hidden_count > 0:
        listed += f" and {hidden_count} more"
    return f"there are: {listed}"
