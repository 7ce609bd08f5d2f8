"""The two small notifiers."""

from rich.table import Table

from goose_like.core.events import Logged, Status
from goose_like.core.notifier import Notifier, Recorder, Tee


def test_log_takes_text_and_renderables():
    recorder, table = Recorder(), Table("name")
    table.add_row("goose [N] [/b] :warning:")
    recorder.log("[bold]as it is[/bold]")
    recorder.log(table)
    recorder.status("working")
    text, drawn, status = recorder.events
    assert text == Logged(text="[bold]as it is[/bold]")
    assert "goose [N] [/b] :warning:" in drawn.text  # text of a person is no markup
    assert "\x1b" not in drawn.text
    assert status == Status(text="working")


def test_a_logged_table_fits_the_terminal_with_its_indentation(monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    recorder, table = Recorder(), Table.grid(expand=True)
    table.add_row("/name", "word " * 40)
    recorder.log(table)
    rows = recorder.events[0].text.split("\n")
    assert max(map(len, rows)) <= 58
    assert rows == [row.rstrip() for row in rows]


async def test_tee():
    one, two = Recorder(), Recorder()
    Tee(one, two).log("x")
    assert one.events == two.events == [Logged(text="x")]
    assert not (await Tee(Notifier()).ask(None)).is_allowed
