"""Rich renderables that toolkits log."""

from rich.table import Table

from goose_like.agent.journal import Journal
from goose_like.core.events import Logged, SessionStarted
from goose_like.core.notifier import Recorder
from goose_like.sessions.session import Session
from goose_like.terminal.plain_text import RichNotifier, render_plain_text


class RichRecorder(RichNotifier, Recorder):
    """A recorder that takes renderables."""


def test_log_takes_text_and_renderables():
    recorder, table = RichRecorder(), Table("name")
    table.add_row("goose [N] [/b] :warning:")
    recorder.log("[bold]as it is[/bold], list[int] [N] [/b]")
    recorder.log(table)
    text, drawn = recorder.events
    assert text == Logged(text="[bold]as it is[/bold], list[int] [N] [/b]")
    assert "goose [N] [/b] :warning:" in drawn.text  # text of a person is no markup
    assert "\x1b" not in drawn.text


def test_a_logged_table_fits_the_terminal_with_its_indentation(monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    recorder, table = RichRecorder(), Table.grid(expand=True)
    table.add_row("/name", "word " * 40)
    recorder.log(table)
    rows = recorder.events[0].text.split("\n")
    assert max(map(len, rows)) <= 58
    assert rows == [row.rstrip() for row in rows]


async def test_the_journal_records_a_renderable_as_text():
    table = Table("name")
    session = Session.temporary()
    journal = Journal(session, recorder := Recorder())
    journal.emit(start := SessionStarted(version="1", name="", cwd="", profile="", models={}, tools=()))
    journal.log(table)
    assert recorder.events == [start, Logged(text=render_plain_text(table))]
    session.close()
