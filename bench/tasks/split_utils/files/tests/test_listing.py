from notes.listing import format_line, format_reminder
from notes.store import Note


def test_lines():
    note = Note("Call the bank about the new card", "2026-11-28")
    assert note.file_name() == "2026-11-28-call-the-bank-about-the-new-card.md"
    assert format_line(note) == "Sat 2026-11-28  Call the bank about…"
    assert format_reminder(Note("Tea", "2026-11-28")) == "Tea: again on 2026-11-30"
