"""What may come next in a session's input: commands and what they take."""

from collections.abc import Iterable

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from ..desk import Desk


class SessionCompleter(Completer):
    """Completes `/commands` and their words; `desk` is the session's, once there is one."""

    desk: Desk | None = None

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        text = document.text_before_cursor
        if self.desk is None or not text.startswith("/") or "\n" in text:
            return
        name, separator, words = text[1:].replace(":", " ", 1).partition(" ")
        if not separator:
            for command in self.desk.commands.values():
                if command.name.startswith(name):
                    yield Completion(command.name, -len(name), f"/{command.name}", command.about)
        elif chosen := self.desk.commands.get(name):
            for choice in chosen.choices(self.desk):
                if choice.startswith(words):
                    yield Completion(choice, -len(words))
