"""Suggestions for misspelt names."""

from collections.abc import Iterable

_MAX_SUGGESTIONS = 12


def find_nearest_name(name: str, known: Iterable[str]) -> str | None:
    """Find the known name that was probably meant. Return None when no name is similar."""
    import difflib

    near = difflib.get_close_matches(name, sorted(known), n=1, cutoff=0.65)
    return near[0] if near else None


def normalize_name(name: str) -> str:
    """Return the letters and digits of a name, in lower case: `TodoWrite` and `todo_write` are one name."""
    return "".join(filter(str.isalnum, name)).lower()


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Suggest the nearest known name, or list all of them, as the end of an error message."""
    names = sorted(set(known))
    if near := find_nearest_name(name, names):
        return f"did you mean {near!r}?"
    more = f" and {len(names) - _MAX_SUGGESTIONS} more" if len(names) > _MAX_SUGGESTIONS else ""
    return f"there are: {', '.join(names[:_MAX_SUGGESTIONS])}{more}" if names else "there are none"
