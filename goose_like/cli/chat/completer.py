"""Completion in a session's input: slash commands, their arguments, and files after `@`."""

import re
from collections.abc import Iterable

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from typing_extensions import override

from goose_like.agent.mentions import format_mention
from goose_like.agent.slash_command import SlashCommand
from goose_like.agent.slash_context import SlashContext

from .file_finder import FileFinder

_MENTION = re.compile(r'(?:^|(?<=\s))@(?:"(?P<quoted>[^"\n]*)|(?P<bare>[^\s"]*))\Z')


class SessionCompleter(Completer):
    """Completions for `/commands` with their arguments and for `@files` of a session."""

    def __init__(self, context: SlashContext) -> None:
        self._context = context
        self._files = FileFinder(context.exchange.workspace.root, context.exchange.workspace.run_internal)

    @override
    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        text, commands = document.text_before_cursor, self._context.commands
        if match := _MENTION.search(text):
            letters = match["bare"] or match["quoted"] or ""
            for path in self._files.find_paths(letters):
                yield Completion(format_mention(path), match.start() - len(text), path)
        elif text.startswith("/") and "\n" not in text:
            name, separator, words = text[1:].replace(":", " ", 1).partition(" ")
            if not separator:
                for command in commands.values():
                    if command.name.startswith(name):
                        yield Completion(command.name, -len(name), f"/{command.name}", command.summary)
            elif name in commands:
                for choice in self._list_choices(commands[name], words):
                    yield Completion(choice, -len(words))

    def _list_choices(self, command: SlashCommand, words: str) -> Iterable[str]:
        if command.choices == "files":
            return self._files.find_paths(words)
        return [choice for choice in command.choices(self._context) if choice.startswith(words)]
