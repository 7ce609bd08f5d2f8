"""Completion in a session's input: slash commands, their arguments, and files after `@`."""

import re
from collections.abc import Iterable

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from typing_extensions import override

from goose_like.agent.mentions import format_mention
from goose_like.agent.slash_context import SlashContext

from .file_finder import FileFinder

_MENTION = re.compile(r'(?:^|(?<=\s))@(?:"(?P<quoted>[^"\n]*)|(?P<bare>[^\s"]*))\Z')


class SessionCompleter(Completer):
    """Completions for `/commands` with their arguments and for `@files`, as soon as a session is open."""

    _context: SlashContext | None = None
    _files: FileFinder

    def open(self, context: SlashContext) -> None:
        """Complete for this session from now on."""
        self._files = FileFinder(context.exchange.workspace.root, context.exchange.workspace.run_internal)
        self._context = context

    @override
    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        text = document.text_before_cursor
        if self._context is None:
            return
        if match := _MENTION.search(text):
            letters = match["bare"] or match["quoted"] or ""
            for path in self._files.find_paths(letters):
                yield Completion(format_mention(path), match.start() - len(text), path)
        elif text.startswith("/") and "\n" not in text:
            name, separator, words = text[1:].replace(":", " ", 1).partition(" ")
            yield from self._complete_words(name, words) if separator else self._complete_name(name)

    def _complete_name(self, start: str) -> Iterable[Completion]:
        assert self._context
        for command in self._context.commands.values():
            if command.name.startswith(start):
                yield Completion(command.name, -len(start), f"/{command.name}", command.summary)

    def _complete_words(self, name: str, words: str) -> Iterable[Completion]:
        assert self._context
        command = self._context.commands.get(name)
        if command is None:
            return
        if command.choices == "files":
            choices: Iterable[str] = self._files.find_paths(words)
        else:
            choices = [choice for choice in command.choices(self._context) if choice.startswith(words)]
        yield from (Completion(choice, -len(words)) for choice in choices)
