from notes import utils


def format_line(note):
    return f"{utils.day_name(note.day)} {note.day}  {utils.shorten(note.title)}"


def format_reminder(note):
    return f"{note.title}: again on {utils.next_monday(note.day)}"
