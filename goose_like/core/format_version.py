"""Versions of file formats: a file of a newer goose-like is refused, because this one would misread and damage it."""

from typing import Any

SESSION_FORMAT = 6
"""The format of session files and their exports.

A new durable event or field needs a new number: an older goose-like would lose it. `tests/fixtures/formats` keeps a
session of each format. Format 2 adds the events `prompt_recorded` and `prompt_changed`. Format 3 adds `file_changed`,
in place of a `logged` diff, the `call_id` of questions, and the `displays` of `session_started`. Format 4 adds the
event `refused`, and the `allowed_by` of questions. Format 5 adds the `steps` of `usage_recorded` and the event
`command_finished`. Format 6 adds its `ran_no_test`, the `native` and `deferred_group` of tools, the `verbatim` of
`compacted`, PDF files, and the `web_searches` of usage. Older files are read: they lack only newer events and fields.
"""


def describe_newer_format(place: str, version: Any, known: int) -> str:
    """Return a sentence that refuses a file of a newer format, or an empty text if this goose-like can read it."""
    if not isinstance(version, int) or version <= known:
        return ""
    return (
        f"{place} has format {version} of a newer goose-like, and this one reads formats up to {known}; "
        "upgrade it: pip install --upgrade goose-like"
    )
