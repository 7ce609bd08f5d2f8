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


async def test_tee():
    one, two = Recorder(), Recorder()
    Tee(one, two).log("x")
    assert one.events == two.events == [Logged(text="x")]
    assert not (await Tee(Notifier()).ask(None)).is_allowed
