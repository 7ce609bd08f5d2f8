"""What may come next in a session's input: commands, what they take, and files after an `@`."""

import re
from collections.abc import Iterable

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from goose_like.agent.mentions import mention
from goose_like.agent.slash_context import Desk

from .file_finder import Files

_MENTION = re.compile(r'(?:^|(?<=\s))@(?:"(?P<quoted>[^"\n]*)|(?P<bare>[^\s"]*))\Z')


class SessionCompleter(Completer):
    """Completes `/commands` and their words, and `@files`, once there is a desk to work at."""

    _desk: Desk | None = None
    _files: Files

    def open(self, desk: Desk) -> None:
        """Completes for this desk from now on."""
        self._files = Files(desk.exchange.workspace.root, desk.exchange.workspace.run)
        self._desk = desk

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        text = document.text_before_cursor
        if self._desk is None:
            return
        if found := _MENTION.search(text):
            letters = found["bare"] or found["quoted"] or ""
            for path in self._files.matching(letters):
                yield Completion(mention(path), found.start() - len(text), path)
        elif text.startswith("/") and "\n" not in text:
            name, separator, words = text[1:].replace(":", " ", 1).partition(" ")
            yield from self._words(self._desk, name, words) if separator else self._names(self._desk, name)

    def _names(self, desk: Desk, start: str) -> Iterable[Completion]:
        for command in desk.commands.values():
            if command.name.startswith(start):
                yield Completion(command.name, -len(start), f"/{command.name}", command.about)

    def _words(self, desk: Desk, name: str, words: str) -> Iterable[Completion]:
        command = desk.commands.get(name)
        if command is None:
            return
        if command.choices == "files":
            yield from (Completion(path, -len(words)) for path in self._files.matching(words))
        else:
            yield from (Completion(each, -len(words)) for each in command.choices(desk) if each.startswith(words))
